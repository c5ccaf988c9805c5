//! What the log says of a prepared transaction: that it is one, under which name, with which locks;
//! and that it is one no more.
use weir_btree::Env;
use weir_change::{Group, Header, Op};

use crate::error::TxnError;
use crate::record::purge_task::PurgeTask;
use crate::record::txn_record::TxnRecord;

/// Says that a transaction is prepared under the name `xid`; under the empty one, that it is not
/// any more.
pub(crate) fn note_prepared(group: &mut Group<'_>, xid: &[u8], held: &[u8], tasks: &[PurgeTask]) {
    group.note(&Op::Prepared { xid, held });
    tasks.iter().map(PurgeTask::to_purge).for_each(|task| group.note(&Op::Purge(task)));
}

/// Says in the log that a prepared transaction is being rolled back, if it is prepared.
pub(crate) fn no_longer_prepared(env: &Env, record: &TxnRecord) -> Result<(), TxnError> {
    let mut work = record.work.lock();
    if work.xid.is_some() {
        let header = Header { txn: Some(record.id()), ..Header::default() };
        let mut group = Group::begin(header);
        note_prepared(&mut group, b"", b"", &[]);
        group.commit(env.pool.log())?;
        work.xid = None;
    }
    Ok(())
}
