//! A workload on a database, one operation after the other, and what is known of each.
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use weir::{
    Batch, CompactOptions, Db, Durability, Error, ManualClock, SimVolume, StoreKind, Tree, Volume,
};

use crate::backups::Chain;
use crate::lie::{Lie, LyingVolume};
use crate::model::{Model, digest};
use crate::op::{Op, key_bytes};
use crate::setup::{Planted, Setup};

/// How a stretch of a workload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All operations were done.
    Done,
    /// The disk crashed while this operation was under way.
    Crashed {
        /// Its number within the stretch.
        at: usize,
    },
}

/// A database and the model beside it.
pub struct Player {
    setup: Setup,
    volume: SimVolume,
    clock: Arc<ManualClock>,
    db: Option<Db>,
    trees: BTreeMap<u8, Tree>,
    model: Model,
    /// The model's mark before the first operation and after each.
    marks: Vec<u64>,
    /// How many operations must be found after a crash.
    synced: usize,
    /// Which operations the engine refused, as it may.
    refused: Vec<bool>,
    backups: Chain,
}

/// The name of tree `number`.
#[must_use]
pub(crate) fn tree_name(number: u8) -> String {
    format!("tree {number}")
}

/// Opens the database of `setup` on `volume`.
///
/// # Errors
/// Those of opening.
pub(crate) fn open(
    setup: &Setup,
    volume: &SimVolume,
    clock: &Arc<ManualClock>,
) -> Result<Db, Error> {
    volume.set_atomic(setup.atomic);
    let honest: Arc<dyn Volume> = Arc::new(volume.clone());
    let lie = match setup.planted {
        Planted::PagesNotSynced => Some(Lie(match setup.store {
            StoreKind::InPlace => "pages",
            StoreKind::Log => "segments",
        })),
        Planted::LogNotSynced => Some(Lie("redo-")),
        Planted::DoubleWriteNotSynced => Some(Lie("doublewrite-")),
        _ => None,
    };
    let volume = match lie {
        Some(lie) => Arc::new(LyingVolume::new(honest, lie)),
        None => honest,
    };
    Db::open_with_clock(volume, setup.config(), clock.clone())
}

impl Player {
    /// Over an open database that holds what `model` says.
    #[must_use]
    pub fn new(
        setup: Setup,
        volume: SimVolume,
        clock: Arc<ManualClock>,
        db: Db,
        model: Model,
    ) -> Self {
        let marks = vec![model.mark()];
        let trees = BTreeMap::new();
        Player {
            setup,
            volume,
            clock,
            db: Some(db),
            trees,
            model,
            marks,
            synced: 0,
            refused: Vec::new(),
            backups: Chain::default(),
        }
    }

    /// The marks of all states that may be found after a crash now, the first that may first, and
    /// how many operations lie before it.
    #[must_use]
    pub fn may_be_found(&self) -> (usize, &[u64]) {
        (self.synced, &self.marks[self.synced..])
    }

    /// Which operations were refused.
    #[must_use]
    pub fn refused(&self) -> &[bool] {
        &self.refused
    }

    /// The model after all operations.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The database; none after a crash while it was being reopened.
    #[must_use]
    pub fn db(&self) -> Option<&Db> {
        self.db.as_ref()
    }

    /// Does the operations until the end or until the disk crashes.
    ///
    /// # Errors
    /// Whatever the engine should not have said or done.
    pub fn play(&mut self, ops: &[Op]) -> Result<Ending> {
        for (at, op) in ops.iter().enumerate() {
            let done = self.step(op);
            if self.volume.has_crashed() {
                // Whether or not the engine noticed, the operation may be there after the crash.
                self.model.apply(op);
                self.marks.push(self.model.mark());
                self.refused.push(false);
                return Ok(Ending::Crashed { at });
            }
            let is_done = done.with_context(|| format!("operation {at}, {op:?}"))?;
            if is_done {
                self.model.apply(op);
            }
            self.marks.push(self.model.mark());
            self.refused.push(!is_done);
            if is_done && self.is_synced_by(op) {
                self.synced = self.marks.len() - 1;
            }
        }
        Ok(Ending::Done)
    }

    fn is_synced_by(&self, op: &Op) -> bool {
        match op {
            Op::Put { durability, .. }
            | Op::Batch { durability, .. }
            | Op::Delete { durability, .. } => *durability == Durability::Synced,
            Op::Load { .. } | Op::Create(_) | Op::Drop(_) | Op::Reopen => true,
            _ => false,
        }
    }

    fn tree(&mut self, number: u8) -> Result<Option<Tree>, Error> {
        if let Some(tree) = self.trees.get(&number) {
            return Ok(Some(tree.clone()));
        }
        let Some(db) = &self.db else { return Ok(None) };
        let tree = db.tree(&tree_name(number))?;
        if let Some(tree) = &tree {
            self.trees.insert(number, tree.clone());
        }
        Ok(tree)
    }

    /// Does one operation. `false`: the engine refused as it may, nothing was changed, or there was
    /// nothing to do (and nothing to wait for).
    fn step(&mut self, op: &Op) -> Result<bool> {
        let page_size = self.setup.page_size;
        let db = self.db.clone().context("no database is open")?;
        match op {
            Op::Put { tree, key, value, durability } => {
                let Some(tree) = self.tree(*tree)? else { return Ok(false) };
                tree.put(&key_bytes(*key, page_size), &value.bytes(), *durability)?;
            }
            Op::Delete { tree, key, durability } => {
                let there = self.model.get(*tree, *key).is_some();
                let Some(tree) = self.tree(*tree)? else { return Ok(false) };
                let was = tree.delete(&key_bytes(*key, page_size), *durability)?;
                ensure!(was == there, "delete said {was}, the model says {there}");
                return Ok(was);
            }
            Op::Batch { rows, durability } => {
                let mut batch = Batch::new();
                for (tree, key, value) in rows {
                    let Some(tree) = self.tree(*tree)? else { continue };
                    let key = key_bytes(*key, page_size);
                    match value {
                        Some(value) => batch.put(&tree, &key, &value.bytes()),
                        None => batch.delete(&tree, &key),
                    }
                }
                match db.write(&batch, *durability) {
                    Err(Error::Transaction(_)) if !self.volume.has_crashed() => return Ok(false),
                    written => written?,
                }
                return Ok(!batch.is_empty());
            }
            Op::Load { tree, count, stride, value } => {
                let empty = self.model.contents().get(tree).is_some_and(BTreeMap::is_empty);
                let Some(tree) = self.tree(*tree)? else { return Ok(false) };
                return load(&tree, empty, *count, *stride, &value.bytes(), page_size);
            }
            Op::Create(tree) => match db.create_tree(&tree_name(*tree)) {
                Err(Error::Name(_)) if self.model.has(*tree) => return Ok(false),
                made => drop(self.trees.insert(*tree, made?)),
            },
            Op::Drop(tree) => {
                self.trees.remove(tree);
                let was = db.drop_tree(&tree_name(*tree))?;
                ensure!(was == self.model.has(*tree), "drop said {was}");
                return Ok(was);
            }
            Op::Look { tree, key } => {
                let expected = self.model.get(*tree, *key);
                let Some(tree) = self.tree(*tree)? else { return Ok(false) };
                let found = tree.get(&key_bytes(*key, page_size))?;
                let found = found.map(|bytes| digest(&bytes));
                ensure!(found == expected, "found {found:?}, the model says {expected:?}");
            }
            Op::Step => {
                db.step()?;
                let damaged = found_by_scrub(&db);
                // SIM-3, of the scrub: nothing sound is taken for damaged.
                ensure!(damaged == 0 || self.setup.may_tear(), "a scrub found {damaged} pages");
            }
            Op::Compact(tree) => {
                let Some(tree) = self.tree(*tree)? else { return Ok(false) };
                let done = tree.compact(&CompactOptions::default(), &mut |_| true)?;
                ensure!(done.next.is_none(), "a compaction ended before its time: {done:?}");
            }
            Op::Checkpoint => db.checkpoint()?,
            Op::Backup => self.backups.back_up(&db, &self.setup, &self.model)?,
            Op::LogBytes(bytes) => match db.set_log_bytes(*bytes) {
                Err(Error::Config(_)) => return Ok(false),
                set => set?,
            },
            Op::Pass(micros) => self.clock.advance(*micros),
            Op::Reopen => {
                drop(db);
                self.reopen()?;
            }
        }
        Ok(true)
    }

    fn reopen(&mut self) -> Result<()> {
        self.trees.clear();
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        let db = open(&self.setup, &self.volume, &self.clock).context("reopening")?;
        if let Some(report) = db.recovery_report() {
            bail!("closed in order, and yet there was something to recover: {report:?}");
        }
        self.db = Some(db);
        Ok(())
    }

    /// Lets go of everything, as a process that ends.
    #[must_use]
    pub fn stop(mut self) -> SimVolume {
        self.trees.clear();
        self.db = None;
        self.volume.clone()
    }
}

/// Pages that the scrub took for damaged.
fn found_by_scrub(db: &Db) -> u64 {
    let mut damaged = 0;
    db.visit_counters(&mut |name, _, _, value| {
        if name == "scrub.damaged" {
            damaged = value;
        }
    });
    damaged
}

fn load(
    tree: &Tree,
    empty: bool,
    count: u16,
    stride: u16,
    value: &[u8],
    page_size: usize,
) -> Result<bool> {
    let mut keys: Vec<Vec<u8>> =
        (0..count).map(|i| key_bytes(i.wrapping_mul(stride), page_size)).collect();
    keys.sort();
    match tree.bulk_load(keys.iter().map(|key| (key, value))) {
        Err(Error::Input(_)) if !empty => Ok(false),
        Err(Error::Transaction(_)) => Ok(false),
        Err(e) => Err(e.into()),
        Ok(loaded) => {
            ensure!(empty, "a tree that is not empty was loaded");
            ensure!(loaded == u64::from(count), "{loaded} rows of {count} were loaded");
            Ok(true)
        }
    }
}
