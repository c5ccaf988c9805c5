//! The transactions under way: what each transaction's records say is left to roll back or to
//! complete.
use std::collections::BTreeMap;

use weir_base::{Lsn, TreeId, TxnId};
use weir_change::{DecodeError, Header, Op, decode};
use weir_txn::{PurgeTasks, UndoEntry};

/// A transaction that the log does not show the end of.
#[derive(Clone, Debug, Default)]
pub struct OpenTxn {
    /// The first record that matters.
    pub first: Lsn,
    /// The name under which it is prepared, and what it has locked: then it is kept, with `undo`
    /// and `tasks`.
    pub prepared: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether it committed: then only `tasks` is left.
    pub committed: bool,
    /// What to roll back, oldest first.
    pub undo: Vec<UndoEntry>,
    /// What its commit left to do.
    pub tasks: PurgeTasks,
}

/// What the log says of the transactions without an end.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    open: BTreeMap<TxnId, OpenTxn>,
    /// One more than the greatest transaction number seen.
    pub next_txn: TxnId,
    /// One more than the greatest tree number seen.
    pub next_tree: TreeId,
}

impl Analysis {
    /// Takes in a group by its body. The groups of a log come in their order.
    ///
    /// # Errors
    /// [`DecodeError`] when it is none.
    pub fn take(&mut self, start: Lsn, body: &[u8]) -> Result<(), DecodeError> {
        let (header, ops) = decode(body)?;
        self.begin_group(&header, start);
        for op in ops {
            self.note(&header, start, &op?);
        }
        self.end_group(&header);
        Ok(())
    }

    fn begin_group(&mut self, header: &Header, start: Lsn) {
        let Some(txn) = header.txn else { return };
        if header.undo {
            let open = self.open.entry(txn).or_default();
            if open.undo.is_empty() && open.tasks.is_empty() {
                open.first = start;
            }
        }
    }

    fn note(&mut self, header: &Header, start: Lsn, op: &Op<'_>) {
        let Some(txn) = header.txn else { return };
        match op {
            op if op.is_undo() => {
                let open = self.open.entry(txn).or_default();
                open.undo.extend(UndoEntry::from_op(op));
            }
            Op::Prepared { xid, held } => {
                let prepared = (!xid.is_empty()).then(|| (xid.to_vec(), held.to_vec()));
                self.open.entry(txn).or_default().prepared = prepared;
            }
            Op::UndoReset => {
                let open = self.open.entry(txn).or_default();
                open.undo.clear();
                open.tasks = PurgeTasks::default();
                open.first = start;
            }
            Op::Undone { entries } => {
                if let Some(open) = self.open.get_mut(&txn) {
                    undone(&mut open.undo, *entries);
                }
            }
            Op::Purge(purge) => {
                let open = self.open.entry(txn).or_default();
                if open.first == Lsn::ZERO {
                    open.first = start;
                }
                open.tasks.add(purge);
            }
            _ => {}
        }
    }

    fn end_group(&mut self, header: &Header) {
        let Some(txn) = header.txn else { return };
        if self.open.is_empty() || !(header.commits || header.ended) {
            return;
        }
        let Some(open) = self.open.get_mut(&txn) else { return };
        open.committed |= header.commits;
        if header.ended || open.tasks.is_empty() {
            self.open.remove(&txn);
        }
    }

    /// The transactions without an end, newest first: the order to roll them back in.
    pub fn into_open(self) -> impl Iterator<Item = (TxnId, OpenTxn)> {
        self.open.into_iter().rev()
    }

    /// The first record that matters of any that has no end.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        self.open.values().map(|open| open.first).min()
    }

    /// How many have no end.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.open.len()
    }
}

/// The last `count` notes have been rolled back; a piece counts as those in it, and one more.
fn undone(undo: &mut Vec<UndoEntry>, mut count: u32) {
    while count > 0
        && let Some(last) = undo.last_mut()
    {
        match last {
            UndoEntry::Stored(piece) if piece.entries > 0 => {
                let some = piece.entries.min(count);
                piece.entries -= some;
                count -= some;
            }
            _ => {
                undo.pop();
                count -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::PageNo;
    use weir_change::{Before, Purge};
    use weir_txn::PurgeTask;

    fn header(txn: u64) -> Header {
        Header { txn: Some(TxnId(txn)), ..Header::default() }
    }

    fn group(analysis: &mut Analysis, start: u64, header: Header, ops: &[Op<'_>]) {
        analysis.begin_group(&header, Lsn(start));
        for op in ops {
            analysis.note(&header, Lsn(start), op);
        }
        analysis.end_group(&header);
    }

    #[test]
    fn committed_losers_carried_forward_and_half_undone() {
        let mut analysis = Analysis::default();
        let undo =
            |key: &'static [u8]| Op::Undo { tree: TreeId(1), key, seq: 1, before: Before::Absent };
        let single = Header { commits: true, ..header(1) };
        group(&mut analysis, 10, single, &[]);
        assert_eq!(analysis.open_count(), 0);
        let undoing = |txn| Header { undo: true, ..header(txn) };
        group(&mut analysis, 20, undoing(2), &[undo(b"a")]);
        group(&mut analysis, 30, undoing(3), &[undo(b"b")]);
        group(&mut analysis, 40, undoing(3), &[undo(b"c")]);
        group(&mut analysis, 50, Header { commits: true, ..header(2) }, &[]);
        assert_eq!(analysis.open_count(), 1);
        group(&mut analysis, 60, undoing(3), &[Op::UndoReset, undo(b"b"), undo(b"c")]);
        group(&mut analysis, 70, header(3), &[Op::Undone { entries: 1 }]);
        let left = Purge::Chain { first: PageNo(7), mark: 1 };
        group(&mut analysis, 80, Header { commits: true, ..header(4) }, &[Op::Purge(left)]);
        let further = Purge::Chain { first: PageNo(9), mark: 1 };
        group(&mut analysis, 90, header(4), &[Op::Purge(further)]);
        let open: Vec<_> = analysis.into_open().collect();
        assert_eq!(open.len(), 2);
        let (txn, four) = &open[0];
        assert_eq!((*txn, four.committed), (TxnId(4), true));
        let tasks = four.tasks.clone().into_vec();
        assert!(matches!(tasks[..], [PurgeTask::Chain { first: PageNo(9), .. }]));
        let (txn, three) = &open[1];
        assert_eq!((*txn, three.committed, three.undo.len()), (TxnId(3), false, 1));
        assert_eq!(three.first, Lsn(60));
    }
}
