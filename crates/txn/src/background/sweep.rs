//! Removing the versions of an archive that no snapshot will look for any more, while others of the
//! same tree are still held: so a tree is as large as what they need, however many have come and
//! gone meanwhile.
use weir_btree::{Change, Cursor};
use weir_change::Header;

use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::session::txn::Txn;
use crate::versions::archive::{SnapshotGroup, split};

/// How far a pass through a tree of the archive has come.
#[derive(Default)]
pub(crate) struct Sweep {
    /// Versions in the tree.
    versions: u64,
    /// So many were left when it was gone through last.
    kept: u64,
    /// A snapshot has been dropped since that began.
    has_left: bool,
    /// The last place that was looked at, while it is gone through.
    last: Option<Vec<u8>>,
}

impl Sweep {
    /// So many versions have been written.
    pub(crate) fn count(&mut self, more: usize) {
        self.versions += more as u64;
    }

    /// A snapshot of the tree has been dropped.
    pub(crate) fn note_left(&mut self) {
        self.has_left = true;
    }

    /// Whether the tree is gone through: from when it has doubled, and `more`, so that each version
    /// is looked at about as often as it was written.
    fn is_due(&mut self, more: u64) -> bool {
        if self.last.is_none() && self.has_left && self.versions >= 2 * self.kept + more {
            (self.last, self.has_left) = (Some(Vec::new()), false);
        }
        self.last.is_some()
    }

    /// Retries at up to `max` versions more, if the tree is being gone through. `false`: it is not,
    /// or not any more.
    pub(crate) fn go_on(
        &mut self,
        cx: &Context,
        maker: &mut Txn,
        group: &SnapshotGroup,
        due_from: u64,
        max: usize,
    ) -> Result<bool, TxnError> {
        if !self.is_due(due_from) {
            return Ok(false);
        }
        let held: Vec<u64> =
            group.views.iter().filter(|view| view.is_held()).map(|view| view.at).collect();
        let mut last = self.last.take().unwrap_or_default();
        let mut cursor = Cursor::new(group.tree.clone());
        // Directly behind it.
        let mut from = last.clone();
        from.push(0);
        let mut on = cursor.seek(if last.is_empty() { &[] } else { &from })?;
        let mut spent: Vec<Vec<u8>> = Vec::new();
        for _ in 0..max {
            if !on {
                break;
            }
            let (row, at) = split(cursor.key());
            // It is for the snapshots behind the one that the version before it is for.
            let (row_before, at_before) = split(&last);
            let behind = if row == row_before { at_before + 1 } else { 0 };
            let first = held.partition_point(|&view| view < behind);
            if held.get(first).is_none_or(|&view| view > at) {
                spent.push(cursor.key().to_vec());
            }
            last.clear();
            last.extend_from_slice(cursor.key());
            on = cursor.next()?;
        }
        remove_versions(cx, maker, group, &spent)?;
        self.versions = self.versions.saturating_sub(spent.len() as u64);
        if on {
            self.last = Some(last);
        } else {
            self.kept = self.versions;
        }
        Ok(on)
    }
}

fn remove_versions(
    cx: &Context,
    maker: &mut Txn,
    group: &SnapshotGroup,
    places: &[Vec<u8>],
) -> Result<(), TxnError> {
    let Some(record) = maker.record().cloned() else { return Err(TxnError::Ended) };
    let header = Header { txn: Some(record.id()), ..Header::default() };
    for place in places {
        maker.reserve_log(cx, &record, ROW_BYTES + place.len() as u64)?;
        group.tree.remove(place, &Change::restoring(header))?;
        cx.registry().archive.count_out(1);
    }
    Ok(())
}
