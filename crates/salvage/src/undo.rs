//! What transactions without an end had changed, sorted by row: it is rolled back in the rows that
//! are saved, so that what is saved was committed.
use std::collections::BTreeSet;

use weir::on_disk::{CATALOG_TREE, ChainHead};
use weir::{Sorted, Sorter};
use weir_base::{PageNo, TreeId, TxnId};
use weir_change::{Before, Header, Op, Stored, decode};
use weir_page::{Flags, Stamp};
use weir_pool::PageStore;
use weir_recovery::Analysis;
use weir_txn::UndoEntry;

use crate::chain::fetch;
use crate::error::SalvageError;
use crate::harvest::{Harvest, key_of, split};

/// What was found of transactions without an end.
#[derive(Default)]
pub(crate) struct Losers {
    /// Those that had changed something.
    pub(crate) transactions: u64,
    /// Of those, prepared ones: only their coordinator knows what is to become of them.
    pub(crate) prepared: Vec<Vec<u8>>,
    /// Trees that they had made.
    pub(crate) made: BTreeSet<TreeId>,
    /// Stored undo that cannot be read.
    pub(crate) unreadable: u64,
}

/// Sorts what the transactions without an end have left to roll back.
pub(crate) fn gather(
    analysis: Analysis,
    store: &dyn PageStore,
    catalog: &mut Harvest,
    others: &mut Harvest,
) -> Result<Losers, SalvageError> {
    let mut losers = Losers::default();
    let mut number = 0;
    for (txn, open) in analysis.into_open().filter(|(_, open)| !open.committed) {
        losers.transactions += u64::from(!open.undo.is_empty());
        losers.prepared.extend(open.prepared.map(|(xid, _)| xid));
        for entry in open.undo {
            let UndoEntry::Stored(stored) = entry else {
                take(&mut losers, (catalog, others), txn, &mut number, &entry)?;
                continue;
            };
            match read_stored(store, &stored) {
                Some(entries) => {
                    for entry in &entries {
                        take(&mut losers, (catalog, others), txn, &mut number, entry)?;
                    }
                }
                None => losers.unreadable += 1,
            }
        }
    }
    Ok(losers)
}

fn read_stored(store: &dyn PageStore, stored: &Stored) -> Option<Vec<UndoEntry>> {
    let head = ChainHead { len: u64::from(stored.len), first: stored.first, mark: stored.mark };
    let mut bytes = Vec::new();
    fetch(store, &head, &mut bytes).ok()?;
    let (_, ops) = decode(&bytes).ok()?;
    let mut entries = Vec::new();
    for op in ops {
        entries.extend(UndoEntry::from_op(&op.ok()?));
    }
    entries.truncate(stored.entries as usize);
    Some(entries)
}

fn take(
    losers: &mut Losers,
    (catalog, others): (&mut Harvest, &mut Harvest),
    txn: TxnId,
    number: &mut u64,
    entry: &UndoEntry,
) -> Result<(), SalvageError> {
    let mut body = Vec::new();
    Header::default().encode(&mut body);
    let (tree, key) = match entry {
        UndoEntry::Row { tree, key, seq, before } => {
            let (tree, seq) = (*tree, *seq);
            let before = match before {
                None => Before::Absent,
                Some((flags, stamp, bytes)) => Before::Row { flags: *flags, stamp: *stamp, bytes },
            };
            Op::Undo { tree, key, seq, before }.encode(&mut body);
            (tree, key)
        }
        UndoEntry::Flip { tree, key, seq, flags, stamp, flips } => {
            let Some(flips) = flips.flips() else { return Ok(()) };
            let (tree, page) = (*tree, PageNo::NONE);
            let (old_flags, stamp, seq, flags) = (*flags, *stamp, *seq, Flags::NONE);
            Op::Flip { page, tree, key, seq, flags, old_flags, stamp, flips }.encode(&mut body);
            (tree, key)
        }
        UndoEntry::Tree { tree, .. } => {
            losers.made.insert(*tree);
            return Ok(());
        }
        UndoEntry::Pages { .. } | UndoEntry::Stored(_) => return Ok(()),
    };
    // The newest first.
    let order = u64::MAX - *number;
    *number += 1;
    let value = [&order.to_be_bytes()[..], &txn.0.to_be_bytes(), &body].concat();
    let to: &mut Sorter = if tree == CATALOG_TREE { &mut catalog.undo } else { &mut others.undo };
    Ok(to.push(&key_of(tree, key), &value)?)
}

/// A row as it lies in a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeafRow {
    pub(crate) flags: Flags,
    pub(crate) stamp: Stamp,
    pub(crate) bytes: Vec<u8>,
}

/// What is to be rolled back, in the order of rows.
pub(crate) struct RollBack {
    sorted: Sorted,
    /// The next one.
    next: Option<(Vec<u8>, Vec<u8>)>,
}

impl RollBack {
    pub(crate) fn new(sorted: Sorted) -> Result<Self, SalvageError> {
        let mut all = RollBack { sorted, next: None };
        all.step()?;
        Ok(all)
    }

    fn step(&mut self) -> Result<(), SalvageError> {
        let next = self.sorted.step()?;
        self.next = next.map(|(key, value)| (key.to_vec(), value.to_vec()));
        Ok(())
    }

    /// The row as it was before the transactions without an end changed it; whether they had. Rows
    /// come in order.
    pub(crate) fn row(
        &mut self,
        tree: TreeId,
        key: &[u8],
        row: LeafRow,
    ) -> Result<(Option<LeafRow>, bool), SalvageError> {
        let mut now = Some(row);
        let mut is_changed = false;
        while let Some((at, value)) = &self.next {
            let Some(place) = split(at).filter(|place| *place <= (tree, key)) else {
                if split(at).is_some() {
                    break;
                }
                self.step()?;
                continue;
            };
            if place == (tree, key) {
                let before = now.clone();
                now = roll_back(now, value);
                is_changed |= before != now;
            }
            self.step()?;
        }
        Ok((now, is_changed))
    }
}

/// One change rolled back, if it is that transaction's.
fn roll_back(row: Option<LeafRow>, value: &[u8]) -> Option<LeafRow> {
    let row = row?;
    let undone = || -> Option<Option<LeafRow>> {
        let (_, rest) = value.split_first_chunk::<8>()?;
        let (txn, body) = rest.split_first_chunk()?;
        if row.stamp.writer != TxnId(u64::from_be_bytes(*txn)) {
            return None;
        }
        let (_, mut ops) = decode(body).ok()?;
        match UndoEntry::from_op(&ops.next()?.ok()?)? {
            UndoEntry::Row { before, .. } => {
                Some(before.map(|(flags, stamp, bytes)| LeafRow { flags, stamp, bytes }))
            }
            UndoEntry::Flip { flags, stamp, flips, .. } => {
                let mut bytes = row.bytes.clone();
                flips.flip(&mut bytes).then_some(Some(LeafRow { flags, stamp, bytes }))
            }
            _ => None,
        }
    };
    undone().unwrap_or(Some(row))
}
