//! When a transaction moves what it must remember into pages, and how: once that is much for the
//! log, in which it would be logged again, and as one step for a reader of the log.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_btree::ChainHead;
use weir_change::{Group, Header, Op, Stored};

use crate::context::Context;
use crate::error::TxnError;
use crate::record::stored::{self, Body};
use crate::record::txn_record::TxnRecord;
use crate::record::work::Work;
use crate::session::txn::Txn;

/// How many bytes of notes a transaction holds in memory before it stores them. A small part of the
/// log, since until then they are logged again in it.
pub(crate) fn bytes_max(log_limit_bytes: u64) -> u64 {
    (log_limit_bytes / 64).clamp(8 << 10, 4 << 20)
}

/// As [`bytes_max`], where others hold much in memory as well: what all `open` of them hold is
/// logged again in the same log.
pub(crate) fn bytes_max_among(log_limit_bytes: u64, open: u64, open_bytes: u64) -> u64 {
    let alone = bytes_max(log_limit_bytes);
    let share = log_limit_bytes / 16;
    if open_bytes <= share { alone } else { (share / open.max(1)).clamp(2 << 10, alone) }
}

/// What a transaction holds is reported to the registry when it has changed by so much.
const WEIGHED_BYTES: u64 = 4 << 10;

/// All that memory holds, as segments to store.
fn bodies(record: &TxnRecord, work: &Work) -> Vec<Body> {
    // First, so that rolling a change back never frees what an earlier one left to do.
    let mut bodies = stored::bodies_of(&work.tasks);
    for entry in work.undo.iter().filter_map(|undo| record.undo_entry(*undo)) {
        let seq = entry.seq().unwrap_or(0);
        let body = stored::add(&mut bodies, &entry.to_op());
        body.entries += 1;
        body.last_seq = body.last_seq.max(seq);
    }
    bodies
}

impl Txn {
    /// Stores what memory holds of the transaction's undo, once that is much.
    pub(crate) fn store_if_large(
        &mut self,
        cx: &Context,
        record: &Arc<TxnRecord>,
    ) -> Result<(), TxnError> {
        Self::weigh(cx, record);
        let (limit, registry) = (cx.env().pool.log().age_limit_bytes(), cx.registry());
        if record.undo_bytes() <= bytes_max_among(limit, registry.len(), registry.open_bytes()) {
            return Ok(());
        }
        let (bodies, keep) = {
            let work = record.work.lock();
            if work.undo.is_empty() && work.tasks.is_empty() {
                // All that was counted has been rolled back.
                record.set_undo_bytes(0);
                record.move_out(cx.undo_cache(), &[], record.changes());
                return Ok(());
            }
            (bodies(record, &work), work.depth())
        };
        // Pages that were taken before may be another's now.
        self.savepoint_at.set(keep);
        let segments = match self.write_segments(cx, record, &bodies) {
            Ok(segments) => segments,
            Err(e) => {
                self.roll_back_partly(cx, record, keep)?;
                return Err(e);
            }
        };
        let mut work = record.work.lock();
        let header = Header { txn: Some(record.id()), undo: true, ..Header::default() };
        let mut group = Group::begin(header);
        let notes = work.undo.iter().map(|undo| undo.notes()).sum();
        // In one group: whenever a crash comes, each change is named once.
        group.note(&Op::Undone { entries: notes });
        segments.iter().for_each(|segment| group.note(&Op::UndoStored(*segment)));
        group.commit(cx.env().pool.log())?;
        segments.iter().for_each(|segment| work.segments.push(*segment));
        work.undo.clear();
        work.tasks.clear();
        record.set_undo_bytes(0);
        self.named_bytes = work.segments.named_bytes();
        record.move_out(cx.undo_cache(), &segments, record.changes());
        Ok(())
    }

    /// Tells the registry how much it holds, if that has changed much.
    pub(crate) fn weigh(cx: &Context, record: &TxnRecord) {
        if record.undo_bytes().abs_diff(record.weight.load(Ordering::Relaxed)) >= WEIGHED_BYTES {
            cx.registry().weigh(record, record.undo_bytes());
        }
    }

    /// Writes the segments; their pages are the transaction's to free.
    pub(crate) fn write_segments(
        &mut self,
        cx: &Context,
        record: &Arc<TxnRecord>,
        bodies: &[Body],
    ) -> Result<Vec<Stored>, TxnError> {
        let mut segments = Vec::with_capacity(bodies.len());
        for Body { bytes, entries, tasks, last_seq } in bodies {
            let ChainHead { first, mark, .. } = self.write_chain(cx, record, bytes)?;
            let len = bytes.len() as u32;
            let (entries, tasks, last_seq) = (*entries, *tasks, *last_seq);
            segments.push(Stored { first, mark, len, entries, tasks, last_seq });
        }
        Ok(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_hold_together_is_a_small_part_of_the_log() {
        for limit in [560 << 10, 58 << 20, 1 << 30, 64 << 30_u64] {
            // One, or few that hold little: as before.
            assert_eq!(bytes_max_among(limit, 1, 0), bytes_max(limit));
            assert_eq!(bytes_max_among(limit, 3, limit / 16), bytes_max(limit));
            for open in [10, 100, 1_000, 10_000] {
                let each = bytes_max_among(limit, open, limit / 16 + 1);
                assert!(each <= bytes_max(limit));
                assert!(each * open <= (limit / 16).max(open * (2 << 10)), "{limit} {open}");
            }
        }
    }
}
