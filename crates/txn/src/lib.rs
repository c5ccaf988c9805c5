//! Who sees and who waits: transaction numbers, which of them are active, rows as locks, undo and
//! what remains to be done after a commit; versions, snapshots and locks.
#![forbid(unsafe_code)]
mod archive;
mod auto;
mod back;
mod background;
mod batch;
mod by_txn;
mod change;
mod cleanup;
mod commit;
mod context;
mod cursor;
mod decide;
mod ended;
mod entry;
mod error;
mod gate;
mod kept;
mod load;
mod locking;
mod locks;
mod losers;
mod past;
mod planted;
mod prepared;
mod prepared_note;
mod purge;
mod query;
mod read;
mod registry;
mod relog;
mod resumed;
mod savepoint;
mod scan;
mod see;
mod spill;
mod store;
mod stored;
mod sweep;
mod todo;
mod trees;
mod txn;
mod undo;
mod work;

pub use auto::AutoCommit;
pub use background::Background;
pub use batch::{Batch, BatchOp};
pub use change::Intent;
pub use commit::{Due, Ended};
pub use context::{Admission, Context, NamedBy, TreeOf, TryAdmission};
pub use cursor::{Looker, RowCursor};
pub use entry::UndoEntry;
pub use error::TxnError;
pub use load::Load;
pub use locks::{
    Edge, Kind, LockStats, LockTable, Owner, Place, PlaceBuf, Refused, SeenLock, Wait, WaitListener,
};
pub use past::{Past, State, Version};
#[doc(hidden)]
pub use planted::PlantedBug;
pub use prepared::Keeps;
pub use registry::{Registry, RegistryStats, Snapshot};
pub use resumed::{Fate, Unfinished};
pub use savepoint::Savepoint;
pub use scan::LockingCursor;
pub use see::{Reader, Seen, View};
pub use todo::{Todo, Todos};
pub use txn::{Isolation, Txn};
pub use work::Xid;
