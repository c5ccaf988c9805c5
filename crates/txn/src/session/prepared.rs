//! Prepared transactions: everything that a commit needs is durable, and a coordinator outside
//! decides whether they commit. They survive restarts with all their locks.
use std::sync::Arc;

use weir_base::{Lsn, TreeId};
use weir_change::{Group, Header};

use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::locks::Place;
use crate::planted::PlantedBug;
use crate::record::kept;
use crate::record::purge_task::PurgeTask;
use crate::record::txn_record::TxnRecord;
use crate::record::work::Xid;
use crate::session::txn::Txn;
use crate::undo::prepared_note::note_prepared;
use crate::undo::relog::{self, relog_undo};

/// What a prepared transaction still has after a restart, besides the rows that it has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keeps {
    /// All that it had locked: it may be undecided for long.
    Locks,
    /// Nothing: the coordinator decides it when the database is open again, before any other
    /// transaction comes to it.
    Changes,
}

/// More than this lies in pages: the record is written again each time it is logged again.
const INLINE_BYTES_MAX: usize = 1024;

impl Txn {
    /// Prepares the transaction under the name `xid`: once the log is durable up to the position
    /// returned, only [`Txn::commit`] and [`Txn::rollback`] end it, also after a restart. Until
    /// then it keeps all that it has locked; after it, what `keeps` says.
    ///
    /// # Errors
    /// [`TxnError`]; it is not prepared.
    pub fn prepare(&mut self, cx: &Context, xid: &[u8], keeps: Keeps) -> Result<Lsn, TxnError> {
        let record = self.start(cx)?;
        let forgets = keeps == Keeps::Changes || cx.has(PlantedBug::PreparedForgetsLocks);
        let held = if forgets { Vec::new() } else { self.keep_locks(cx, &record)? };
        relog::admit_relogging(cx, &record, ROW_BYTES + (xid.len() + held.len()) as u64)?;
        self.pin(cx, &record);
        let mut work = record.work.lock();
        let header = Header { txn: Some(record.id()), undo: true, ..Header::default() };
        let mut group = Group::begin(header);
        if !work.segments.is_empty() {
            // After a way back to a savepoint the log knows which undo counts, not which work.
            relog_undo(&mut group, &record, &mut work, 0);
        }
        let short = cx.has(PlantedBug::PreparedShort);
        note_prepared(&mut group, xid, &held, if short { &[] } else { &work.tasks });
        let span = group.commit(cx.env().pool.log())?;
        (work.xid, work.held) = (Some(Xid::from_slice(xid)), held);
        Ok(span.end)
    }

    /// What it has locked, to be written down; what is stored is freed when it ends.
    fn keep_locks(&mut self, cx: &Context, record: &Arc<TxnRecord>) -> Result<Vec<u8>, TxnError> {
        let mut bytes = vec![0];
        let mut put = |tree, place: Place<'_>, kind| kept::encode(tree, place, kind, &mut bytes);
        cx.locks().each_held(record.id(), &mut put);
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok(bytes);
        }
        let keep = record.work.lock().depth();
        self.savepoint_at.set(keep);
        let chain = match self.write_chain(cx, record, &bytes) {
            Ok(chain) => chain,
            Err(e) => {
                self.roll_back_partly(cx, record, keep)?;
                return Err(e);
            }
        };
        let (first, mark) = (chain.first, chain.mark);
        let task = PurgeTask::Chain { first, mark, tree: TreeId(0) };
        record.push_task(&mut record.work.lock(), task);
        Ok(kept::encode_chain(chain))
    }
}
