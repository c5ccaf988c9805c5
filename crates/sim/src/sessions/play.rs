//! Sessions on a database, one turn after the other, and the ledger beside them.
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use weir::{
    Commit, Db, Isolation, ManualClock, PreparedTxn, Savepoint, SimVolume, Snapshot, Tree, Txn,
    TxnCursor, TxnOptions, Wait,
};

use super::coverage::Coverage;
use super::ledger::{Key, Ledger, Sight};
use super::prepared::{Decision, Prepared};
use super::turn::{Row, Turn};
use crate::model::digest;
use crate::op::key_bytes;
use crate::play::{Ending, tree_name};
use crate::setup::Setup;

pub(super) struct Stayed {
    pub(super) cursor: TxnCursor,
    pub(super) tree: u8,
    /// `None`: what its session sees when it moves.
    pub(super) sight: Option<Sight>,
    /// From where it goes up, and from where down; `None`: there is nothing that way, or it stands
    /// nowhere.
    pub(super) from: [Option<Bound<Vec<u8>>>; 2],
    /// It shows a row.
    pub(super) on_row: bool,
}

impl Stayed {
    pub(super) fn new(cursor: TxnCursor, tree: u8, sight: Option<Sight>) -> Self {
        Stayed { cursor, tree, sight, from: [None, None], on_row: false }
    }

    /// Its cursor has come to a row, or run off.
    pub(super) fn arrive(&mut self, at: Option<Vec<u8>>) {
        self.on_row = at.is_some();
        let from = at.map(Bound::Excluded);
        self.from = [from.clone(), from];
    }

    /// Its cursor could not go on from there: it tries again, or comes back.
    pub(super) fn stop(&mut self, from: Bound<&[u8]>, up: bool) {
        let back = match from {
            Bound::Included(key) => Some(Bound::Excluded(key.to_vec())),
            Bound::Excluded(key) => Some(Bound::Included(key.to_vec())),
            Bound::Unbounded => None,
        };
        let again = Some(from.map(<[u8]>::to_vec));
        self.on_row = false;
        self.from = if up { [again, back] } else { [back, again] };
    }
}

pub(super) struct Live {
    pub(super) txn: Txn,
    savepoints: Vec<Savepoint>,
    /// Trees that it has found by name, by their own numbers: it goes on with them.
    pub(super) at_hand: BTreeMap<u8, u8>,
    pub(super) stayed: Option<Stayed>,
    /// Where the log ended behind its first change.
    pub(super) first: Option<u64>,
}

impl Live {
    pub(super) fn new(txn: Txn) -> Self {
        let (savepoints, at_hand) = (Vec::new(), BTreeMap::new());
        Live { txn, savepoints, at_hand, stayed: None, first: None }
    }
}

/// Sessions, their database, and what is known.
pub struct SessionPlayer {
    pub(super) setup: Setup,
    pub(super) volume: SimVolume,
    pub(super) clock: Arc<ManualClock>,
    pub(super) db: Option<Db>,
    /// By the trees' own numbers, also of those that are gone.
    pub(super) handles: BTreeMap<u8, Tree>,
    /// As a session's, for what is outside of all transactions.
    pub(super) at_hand: BTreeMap<u8, u8>,
    pub(super) ledger: Ledger,
    pub(super) live: BTreeMap<u8, Live>,
    pub(super) held: Option<(Snapshot, u64)>,
    /// The mark before the first commit and after each.
    pub(super) marks: Vec<u64>,
    /// How many commits must be found after a crash.
    pub(super) synced: usize,
    pub(super) tickets: Vec<(usize, Commit)>,
    pub(super) prepared: Vec<Prepared>,
    /// Those that a handle is open to.
    pub(super) hands: BTreeMap<Vec<u8>, PreparedTxn>,
    /// Whether some of those prepared stay with their handle.
    pub(crate) briefly: bool,
    pub(super) next_xid: u64,
    /// What was met so far.
    pub seen: Coverage,
}

impl SessionPlayer {
    /// Over an open database that holds what `ledger` says.
    #[allow(clippy::too_many_arguments)] // All that a run goes on from.
    pub(crate) fn new(
        setup: Setup,
        volume: SimVolume,
        clock: Arc<ManualClock>,
        db: Db,
        ledger: Ledger,
        pending: Vec<Prepared>,
        next_xid: u64,
    ) -> Self {
        let mut ledger = ledger;
        for one in &pending {
            ledger.recovered(one.number, &one.changes, &one.locks);
        }
        SessionPlayer {
            setup,
            volume,
            clock,
            db: Some(db),
            handles: BTreeMap::new(),
            at_hand: BTreeMap::new(),
            marks: vec![ledger.mark()],
            ledger,
            live: BTreeMap::new(),
            held: None,
            synced: 0,
            tickets: Vec::new(),
            prepared: pending,
            hands: BTreeMap::new(),
            briefly: false,
            next_xid,
            seen: Coverage::default(),
        }
    }

    /// What is known.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The database; none after a crash while it was being reopened.
    #[must_use]
    pub fn db(&self) -> Option<&Db> {
        self.db.as_ref()
    }

    /// Takes the turns until the end or until the disk crashes.
    ///
    /// # Errors
    /// Whatever the engine should not have said or done.
    pub fn play(&mut self, turns: &[Turn]) -> Result<Ending> {
        let decided = self.decide_brief();
        if self.volume.has_crashed() {
            // The first turn was not come to, and is left out.
            return Ok(Ending::Crashed { at: 0 });
        }
        decided.context("what was in hand before")?;
        for (at, turn) in turns.iter().enumerate() {
            let done = self.take(turn);
            if self.volume.has_crashed() {
                // Whether or not the engine noticed, a commit may be there after the crash.
                if done.is_err() {
                    self.assume(turn);
                }
                return Ok(Ending::Crashed { at });
            }
            done.with_context(|| format!("turn {at}, {turn:?}"))?;
            self.ask_tickets();
        }
        Ok(Ending::Done)
    }

    pub(super) fn key_bytes(&self, number: u16) -> Vec<u8> {
        key_bytes(number, self.setup.page_size)
    }

    /// Where a row is, by the handle that is at hand, which may be older than the tree's end;
    /// `None`: there is no such tree.
    pub(super) fn find(
        &mut self,
        of: Option<(u8, &mut Live)>,
        row: Row,
    ) -> Result<Option<(Tree, Key)>> {
        let Some((tree, handle)) = self.find_tree(of, row.0)? else { return Ok(None) };
        Ok(Some((handle, (tree, self.key_bytes(row.1)))))
    }

    /// As [`SessionPlayer::find`], a tree: its own number, and the handle.
    pub(super) fn find_tree(
        &mut self,
        of: Option<(u8, &mut Live)>,
        name: u8,
    ) -> Result<Option<(u8, Tree)>> {
        let session = of.as_ref().map(|(session, _)| *session);
        let expected = self.ledger.tree(session, name);
        let db = self.db.as_ref().context("no database is open")?;
        let (at_hand, found) = match of {
            Some((_, live)) => {
                let known = live.at_hand.contains_key(&name);
                let found = if known { None } else { live.txn.tree(&tree_name(name))? };
                (&mut live.at_hand, found)
            }
            None => {
                let known = self.at_hand.contains_key(&name);
                let found = if known { None } else { db.tree(&tree_name(name))? };
                (&mut self.at_hand, found)
            }
        };
        let tree = match at_hand.get(&name) {
            Some(tree) => *tree,
            None => {
                let is = found.is_some();
                ensure!(is == expected.is_some(), "tree {name} is found: {is}, not {expected:?}");
                let (Some(tree), Some(handle)) = (expected, found) else { return Ok(None) };
                at_hand.insert(name, tree);
                self.handles.entry(tree).or_insert(handle);
                tree
            }
        };
        Ok(self.handles.get(&tree).map(|handle| (tree, handle.clone())))
    }

    fn take(&mut self, turn: &Turn) -> Result<()> {
        match turn {
            Turn::Begin { session, isolation, at_once, share } => {
                if !self.live.contains_key(session) {
                    self.begin(*session, *isolation, *at_once, *share)?;
                }
            }
            Turn::Single { row, value, durability } => self.single(*row, *value, *durability)?,
            Turn::Batch { rows, durability } => self.batch(rows, *durability)?,
            Turn::Look { row } => self.look(*row)?,
            Turn::Walk { tree } => self.walk(*tree)?,
            Turn::Decide { which, commit } => {
                let open =
                    self.prepared.iter().filter(|one| one.decision == Decision::Open).count();
                if open > 0 {
                    self.decide(usize::from(*which) % open, *commit)?;
                }
            }
            Turn::Hold => {
                if self.held.take().is_none() {
                    let db = self.db.as_ref().context("no database is open")?;
                    self.held = Some((db.snapshot(), self.ledger.commits()));
                }
            }
            Turn::Step => self.db.as_ref().context("no database is open")?.step()?,
            Turn::Checkpoint => self.db.as_ref().context("no database is open")?.checkpoint()?,
            Turn::Pass(micros) => self.clock.advance(*micros),
            Turn::Reopen => self.reopen()?,
            _ => return self.take_of_session(turn),
        }
        self.seen.turns += 1;
        Ok(())
    }

    fn begin(
        &mut self,
        session: u8,
        isolation: Isolation,
        at_once: bool,
        share: bool,
    ) -> Result<()> {
        let db = self.db.as_ref().context("no database is open")?;
        let mut txn = db.begin(TxnOptions { isolation, lock_wait: Wait::No });
        let shared = self.held.as_ref().filter(|_| share);
        if let Some((snapshot, _)) = shared {
            txn.share(snapshot)?;
        }
        self.ledger.begin(session, isolation, shared.map(|(_, at)| *at));
        if at_once {
            txn.take_snapshot();
            self.ledger.take_snapshot(session);
        }
        self.live.insert(session, Live::new(txn));
        Ok(())
    }

    /// One turn of a session: it is taken out of the list meanwhile.
    fn take_of_session(&mut self, turn: &Turn) -> Result<()> {
        let session = match turn {
            Turn::Get { session, .. }
            | Turn::Lock { session, .. }
            | Turn::Put { session, .. }
            | Turn::Insert { session, .. }
            | Turn::Update { session, .. }
            | Turn::Delete { session, .. }
            | Turn::Scan { session, .. }
            | Turn::Place { session, .. }
            | Turn::Move { session, .. }
            | Turn::Create { session, .. }
            | Turn::Drop { session, .. }
            | Turn::Truncate { session, .. }
            | Turn::Rename { session, .. }
            | Turn::Savepoint { session }
            | Turn::Back { session, .. }
            | Turn::Commit { session, .. }
            | Turn::Prepare { session }
            | Turn::Rollback { session, .. } => *session,
            _ => return Ok(()),
        };
        let Some(mut live) = self.live.remove(&session) else { return Ok(()) };
        self.seen.turns += 1;
        if matches!(turn, Turn::Commit { .. } | Turn::Rollback { .. })
            && let (Some(first), Some(db)) = (live.first, &self.db)
            && db.stats().checkpoint > first
        {
            self.seen.carried += u64::from(self.ledger.has_changes(session));
        }
        match turn {
            Turn::Commit { how, .. } => {
                let done = self.commit(session, live, *how);
                if done.is_err() {
                    // So that it is known that it may have committed, should the disk have crashed.
                    self.begin_again(session);
                }
                return done;
            }
            Turn::Prepare { .. } => return self.prepare(session, live),
            Turn::Rollback { by_drop, .. } => return self.rollback(session, live, *by_drop),
            _ => {}
        }
        let done = self.take_with(session, &mut live, turn);
        self.live.insert(session, live);
        done
    }

    fn take_with(&mut self, session: u8, live: &mut Live, turn: &Turn) -> Result<()> {
        match turn {
            Turn::Get { row, .. } => {
                let found = self.find(Some((session, &mut *live)), *row)?;
                let Some((tree, key)) = found else { return Ok(()) };
                let sight = self.ledger.sight(session);
                let got = live.txn.get(&tree, &key.1).map(|found| found.map(|b| digest(&b)));
                if live.txn.isolation() == Isolation::Serializable {
                    return self.read_and_lock(session, live, &key, got);
                }
                match self.unless_gone(Some(live), key.0, sight, got)? {
                    Some(got) => self.compare(Some(session), sight, &key, got),
                    None => Ok(()),
                }
            }
            Turn::Create { .. }
            | Turn::Drop { .. }
            | Turn::Truncate { .. }
            | Turn::Rename { .. } => self.define(session, live, turn),
            Turn::Lock { row, shared, .. } => self.lock(session, live, *row, *shared),
            Turn::Scan { tree, from, up, limit, .. } => {
                let stayed = self.place(session, live, *tree, *from, *up)?;
                let Some(mut stayed) = stayed else { return Ok(()) };
                let mut left = *limit;
                while stayed.on_row && left > 0 {
                    left -= 1;
                    self.step(session, live, &mut stayed, *up)?;
                }
                Ok(())
            }
            Turn::Place { tree, from, up, .. } => {
                live.stayed = self.place(session, live, *tree, *from, *up)?;
                Ok(())
            }
            Turn::Move { up, .. } => {
                let Some(mut stayed) = live.stayed.take() else { return Ok(()) };
                self.step(session, live, &mut stayed, *up)?;
                live.stayed = Some(stayed);
                Ok(())
            }
            Turn::Savepoint { .. } => {
                live.savepoints.push(live.txn.savepoint());
                self.ledger.savepoint(session);
                Ok(())
            }
            Turn::Back { which, .. } if !live.savepoints.is_empty() => {
                let which = usize::from(*which) % live.savepoints.len();
                live.savepoints.truncate(which + 1);
                live.txn.rollback_to(live.savepoints[which])?;
                self.ledger.back(session, which);
                self.seen.backs += 1;
                Ok(())
            }
            _ => self.change(session, live, turn),
        }
    }
}
