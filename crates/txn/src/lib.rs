//! Visibility and waiting: transaction numbers, which of them are active, rows as locks, undo and
//! what remains to be done after a commit; versions, snapshots and locks.
#![forbid(unsafe_code)]
mod auto;
mod background;
mod by_txn;
mod context;
mod error;
mod locks;
mod planted;
mod record;
mod session;
mod undo;
mod versions;

pub use auto::AutoCommit;
pub use auto::batch::{Batch, BatchOp};
pub use auto::load::Load;
pub use background::Background;
pub use background::resume::{RecoveredState, RecoveredTxn};
pub use context::{Admission, Context, NamedBy, PageWait, TreeOf, TryAdmission};
pub use error::TxnError;
pub use locks::{
    Edge, Kind, LockError, LockStats, LockTable, Owner, Place, PlaceBuf, SeenLock, Wait,
    WaitListener,
};
#[doc(hidden)]
pub use planted::PlantedBug;
pub use record::entry::UndoEntry;
pub use record::purge_task::{PurgeTask, PurgeTasks};
pub use record::txn_record::{State, TxnRecord, Version};
pub use record::work::Xid;
pub use session::change::Intent;
pub use session::commit::{Due, Ended};
pub use session::cursor::{ReadView, RowCursor};
pub use session::prepared::Keeps;
pub use session::run::NewRow;
pub use session::savepoint::Savepoint;
pub use session::scan::LockingCursor;
pub use session::txn::{Isolation, Txn};
pub use versions::registry::{Registry, RegistryStats, Snapshot};
pub use versions::see::{Extent, ReadOutcome, Reader, View};
