//! Long changes of a transaction: chains of pages and bulk loads, written group by group. Between
//! two groups it holds no latch, waits for admission, and remembers the pages that it has taken.
use std::sync::Arc;

use weir_btree::{ChainHead, Run, Steps, Tree};
use weir_change::Header;

use crate::context::Context;
use crate::error::TxnError;
use crate::record::entry::Undo;
use crate::record::txn_record::TxnRecord;
use crate::record::work::Work;
use crate::session::txn::Txn;

impl Txn {
    /// Writes a long value to pages of its own. Returns the bytes for its row.
    pub(crate) fn write_long(
        &mut self,
        cx: &Context,
        record: &Arc<TxnRecord>,
        tree: &Tree,
        key: &[u8],
        value: &[u8],
    ) -> Result<Vec<u8>, TxnError> {
        let mark = self.next_mark(record);
        let header = Header { txn: Some(record.id()), ..Header::default() };
        let (mut writer, front) = tree.long_writer(key, value, mark, header)?;
        self.write_steps(cx, record, &mut writer)?;
        Ok(writer.head().with_front(front))
    }

    /// Writes bytes to pages of their own that no row names.
    pub(crate) fn write_chain(
        &mut self,
        cx: &Context,
        record: &Arc<TxnRecord>,
        bytes: &[u8],
    ) -> Result<ChainHead, TxnError> {
        let mark = self.next_mark(record);
        let header = Header { txn: Some(record.id()), ..Header::default() };
        let mut writer = cx.env().chains().writer(bytes, mark, header)?;
        self.write_steps(cx, record, &mut writer)?;
        Ok(writer.head())
    }

    /// A number for a chain of pages that no other has.
    fn next_mark(&mut self, record: &TxnRecord) -> u64 {
        self.chains += 1;
        ChainHead::mark(record.id(), self.chains)
    }

    /// Takes all steps of a long change that are due, and remembers the pages taken.
    pub(crate) fn write_steps(
        &mut self,
        cx: &Context,
        record: &Arc<TxnRecord>,
        steps: &mut impl Steps,
    ) -> Result<(), TxnError> {
        while let Some(bytes) = steps.next_log_bytes() {
            self.seal(cx, record, bytes)?;
            let written = steps.write_next();
            let mut work = record.work.lock();
            work.sealed = false;
            for run in written? {
                self.note_pages(record, &mut work, run);
            }
        }
        Ok(())
    }

    /// Waits until so many bytes of log may be written, and sets the transaction apart until what
    /// is written is known of it, or it has ended (TXN-13).
    pub(crate) fn seal(
        &mut self,
        cx: &Context,
        record: &Arc<TxnRecord>,
        log_bytes: u64,
    ) -> Result<(), TxnError> {
        self.reserve_log(cx, record, log_bytes)?;
        // Not before: what is pinned and has nothing to log again holds the log that it would
        // wait for (TXN-4).
        self.pin(cx, record);
        record.work.lock().sealed = true;
        Ok(())
    }

    fn note_pages(&self, record: &TxnRecord, work: &mut Work, (first, count): Run) {
        let can_join = work.depth() > self.savepoint_at.get();
        match work.undo.last_mut() {
            // Not across a savepoint, which must find its place again.
            Some(Undo::Pages { first: begin, count: have, notes })
                if begin.0 + *have == first.0 && can_join =>
            {
                *have += count;
                *notes += 1;
            }
            _ => {
                work.undo.push(Undo::Pages { first, count, notes: 1 });
                record.add_undo_bytes(16);
            }
        }
    }
}
