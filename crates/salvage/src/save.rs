//! Rows on their way from leaves to the new database: what was not committed is rolled back, long
//! values are fetched, and what cannot be had is counted.
use std::collections::BTreeSet;

use weir::on_disk::ChainHead;
use weir::{Db, Durability, Load, PageCodec, Tree};
use weir_base::{PageNo, TreeId};
use weir_page::Flags;
use weir_pool::PageStore;

use crate::chain::fetch;
use crate::error::SalvageError;
use crate::harvest::{Bound, Claim};
use crate::report::{MissingRange, SavedTree, stray_name};
use crate::sweep::{Active, Sink};
use crate::undo::{LeafRow, RollBack};

/// So many ranges and keys of a tree are named; more are counted.
const NAMED_MAX: usize = 1_000;

/// As what a tree is saved.
#[derive(Clone, Default)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// Whether it has got the name only now.
    pub(crate) is_renamed: bool,
    /// The codec that it asks for.
    pub(crate) codec: Option<PageCodec>,
}

/// Where the rows of a tree go.
pub(crate) trait Destination {
    /// As what the tree is saved; `None`: it is left out.
    fn target(&mut self, tree: TreeId) -> Option<Target>;
    /// This tree begins.
    fn begin(&mut self, target: &Target) -> Result<(), SalvageError>;
    /// A row, in the order of keys.
    fn put(&mut self, key: &[u8], value: &[u8], is_stray: bool) -> Result<(), SalvageError>;
    /// The tree is over.
    fn end(&mut self) -> Result<(), SalvageError>;
}

/// Rows as they come from leaves.
pub(crate) struct Saver<'a, D> {
    pub(crate) store: &'a dyn PageStore,
    /// Pages that may be older than they were last.
    pub(crate) doubtful: &'a BTreeSet<PageNo>,
    pub(crate) roll_back: RollBack,
    pub(crate) destination: D,
    /// Rows of a leaf on average.
    pub(crate) rows_per_leaf: u64,
    pub(crate) trees: Vec<SavedTree>,
    pub(crate) left_out: u64,
    pub(crate) now: SavedTree,
}

impl<D: Destination> Sink for Saver<'_, D> {
    fn begin(&mut self, tree: TreeId) -> Result<bool, SalvageError> {
        let Some(target) = self.destination.target(tree) else {
            self.left_out += 1;
            return Ok(false);
        };
        self.destination.begin(&target)?;
        let Target { name, is_renamed, .. } = target;
        self.now = SavedTree { name, number: tree.0, is_renamed, ..SavedTree::default() };
        Ok(true)
    }

    fn row(&mut self, key: &[u8], from: &Active, is_stray: bool) -> Result<(), SalvageError> {
        let (node, slot) = (from.node(), from.slot());
        let bytes = node.value(slot).to_vec();
        let row = LeafRow { flags: node.flags(slot), stamp: node.stamp(slot), bytes };
        let (row, is_rolled_back) = self.roll_back.row(from.leaf.tree, key, row)?;
        self.now.rolled_back += u64::from(is_rolled_back);
        let Some(row) = row.filter(|row| !row.flags.deleted) else { return Ok(()) };
        let value = match self.value(row) {
            Ok(value) => value,
            Err(_) => {
                self.now.values_lost += 1;
                if self.now.values_lost_keys.len() < NAMED_MAX {
                    self.now.values_lost_keys.push(key.to_vec());
                }
                return Ok(());
            }
        };
        let is_stray = is_stray || self.doubtful.contains(&from.leaf.page);
        self.destination.put(key, &value, is_stray)?;
        match is_stray {
            true => self.now.stray_rows += 1,
            false => self.now.rows += 1,
        }
        Ok(())
    }

    fn superseded(&mut self) {
        self.now.superseded += 1;
    }

    fn missing(&mut self, claim: &Claim, found: u64) {
        if claim.level == 0 {
            self.now.leaves_missing += 1;
            self.now.rows_missing_about += self.rows_per_leaf;
        } else {
            self.now.inner_missing += 1;
        }
        if self.now.missing.len() == NAMED_MAX {
            return;
        }
        let key = |bound: &Bound| match bound {
            Bound::At(key) => Some(key.clone()),
            Bound::End | Bound::Unknown => None,
        };
        let (file, offset) = self.store.place(claim.page);
        self.now.missing.push(MissingRange {
            low: key(&claim.low),
            high: key(&claim.high),
            page: claim.page.0,
            file,
            offset,
            is_inner: claim.level > 0,
            found,
        });
    }

    fn end(&mut self) -> Result<(), SalvageError> {
        self.destination.end()?;
        self.trees.push(std::mem::take(&mut self.now));
        Ok(())
    }
}

impl<D> Saver<'_, D> {
    fn value(&self, row: LeafRow) -> Result<Vec<u8>, String> {
        if row.flags != Flags::OVERFLOW {
            return Ok(row.bytes);
        }
        let split = ChainHead::split(&row.bytes);
        let (head, front) = split.ok_or("its row does not say where its value lies")?;
        let mut value = front.to_vec();
        fetch(self.store, &head, &mut value)?;
        Ok(value)
    }
}

/// Trees of the new database.
pub(crate) struct NewDatabase<'a, N> {
    pub(crate) db: &'a Db,
    pub(crate) names: N,
    now: Target,
    rows: Option<Load>,
    strays: Option<Load>,
}

impl<'a, N> NewDatabase<'a, N> {
    /// `names`: as what a tree is saved.
    pub(crate) fn new(db: &'a Db, names: N) -> Self {
        NewDatabase { db, names, now: Target::default(), rows: None, strays: None }
    }
}

impl<N: FnMut(TreeId) -> Option<Target>> Destination for NewDatabase<'_, N> {
    fn target(&mut self, tree: TreeId) -> Option<Target> {
        (self.names)(tree)
    }

    fn begin(&mut self, target: &Target) -> Result<(), SalvageError> {
        target.clone_into(&mut self.now);
        self.rows = Some(open(self.db, &target.name, target.codec)?.load()?);
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8], is_stray: bool) -> Result<(), SalvageError> {
        let load = if is_stray { &mut self.strays } else { &mut self.rows };
        let load = match load {
            Some(load) => load,
            None => {
                let tree = open(self.db, &stray_name(&self.now.name), self.now.codec)?;
                load.insert(tree.load()?)
            }
        };
        Ok(load.push(key, value)?)
    }

    fn end(&mut self) -> Result<(), SalvageError> {
        for load in self.rows.take().into_iter().chain(self.strays.take()) {
            load.finish(Durability::Lazy)?;
        }
        Ok(())
    }
}

/// The tree of this name, made if it is not there.
fn open(db: &Db, name: &str, codec: Option<PageCodec>) -> Result<Tree, weir::Error> {
    match db.tree(name)? {
        Some(tree) => Ok(tree),
        None => db.create_tree_with(name, codec),
    }
}
