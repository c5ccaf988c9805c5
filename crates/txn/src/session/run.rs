//! Many rows inserted at once, in the order of their keys: those that go into one leaf under one
//! latch, and in one group of the log.
use weir_btree::{Action, Tree, TreeError, Value};
use weir_change::Header;
use weir_page::Flags;

use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::record::txn_record::TxnRecord;
use crate::session::change::{Done, Intent, note_change};
use crate::session::decide::{Meeting, Request};
use crate::session::txn::Txn;

/// A row to be inserted: its key and its value.
pub type NewRow<'r> = (&'r [u8], &'r [u8]);

/// So many rows at most are inserted under one latch, for which others wait.
const RUN_ROWS_MAX: usize = 64;

impl Txn {
    /// Inserts rows, none of which may be there: as [`Txn::change`] does one by one, and quicker
    /// where several that come one behind the other go into one leaf.
    ///
    /// # Errors
    /// As [`Txn::change`]; the rows before the one that fails are inserted. After a deadlock the
    /// transaction has been rolled back.
    pub fn insert_all(
        &mut self,
        cx: &Context,
        tree: &Tree,
        mut rows: &[NewRow<'_>],
    ) -> Result<(), TxnError> {
        while let Some(&(key, value)) = rows.first() {
            let mut done = self.insert_run(cx, tree, &rows[..rows.len().min(RUN_ROWS_MAX)])?;
            if done == 0 {
                // It is refused, or waits for a transaction, or wants room made or a chain.
                self.change(cx, tree, key, Intent::Insert(value))?;
                done = 1;
            }
            rows = &rows[done..];
        }
        Ok(())
    }

    /// Inserts the first of these rows, as far as they go into one leaf and nothing is in the way.
    /// Returns how many.
    fn insert_run(
        &mut self,
        cx: &Context,
        tree: &Tree,
        rows: &[NewRow<'_>],
    ) -> Result<usize, TxnError> {
        let record = self.start(cx)?;
        self.store_if_large(cx, &record)?;
        let bytes = |(key, value): &NewRow<'_>| {
            let value = value.len().min(tree.max_inline_value(key.len()));
            ROW_BYTES + 2 * (key.len() + value) as u64
        };
        self.reserve_log(cx, &record, rows.iter().map(bytes).sum())?;
        let base = record.changes();
        if u64::from(base) + rows.len() as u64 >= u64::from(cx.changes_max) {
            return Ok(0);
        }
        let conflict_point = self.conflict_point(cx);
        self.pin(cx, &record);
        let mut work = record.work.lock();
        let written = write_run(cx, &record, conflict_point, tree, rows);
        let Ok(done @ 1..) = written else {
            record.truncate(base);
            self.unpin_if_clean(cx, &record, &work);
            return Ok(written?);
        };
        for (&(key, _), seq) in rows[..done].iter().zip(base + 1..) {
            let change = Done { tree, key, seq, replaced: None, is_delete: false };
            note_change(&mut work, &record, &change);
        }
        Ok(done)
    }
}

/// As [`Txn::insert_run`]. The version before each row, that there was none, is remembered before
/// the row can be seen (TXN-8).
fn write_run(
    cx: &Context,
    record: &TxnRecord,
    conflict_point: Option<u64>,
    tree: &Tree,
    rows: &[NewRow<'_>],
) -> Result<usize, TreeError> {
    let Some(&(first, _)) = rows.first() else { return Ok(0) };
    let own = record.id();
    let mut run = tree.latch_run(first, Header { txn: Some(own), ..Header::default() })?;
    let (mut done, mut before, base) = (0, None, record.changes());
    for (&(key, value), seq) in rows.iter().zip(base + 1..) {
        if before.replace(key).is_some_and(|before| before >= key) {
            break;
        }
        let Some(slot) = run.place(key, value.len()) else { break };
        let meeting = Meeting { cx, own, conflict_point, tree, key };
        let request = Request::Insert(Value { bytes: value, flags: Flags::NONE });
        if !matches!(meeting.decide(None, request), (_, Action::Put(_))) {
            break;
        }
        record.push(tree.id(), key, None);
        run.insert(slot, seq, key, value);
        done += 1;
    }
    run.commit()?;
    Ok(done)
}
