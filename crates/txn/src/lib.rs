//! Who sees and who waits: transaction numbers, which of them are active, rows as locks, undo and
//! what remains to be done after a commit. For now a transaction is a batch given at once.
#![forbid(unsafe_code)]
mod active;
mod cleanup;
mod error;
mod locks;
mod run;
mod undo;

pub use active::Active;
pub use cleanup::{Todo, finish};
pub use error::TxnError;
pub use locks::{Edge, Kind, LockStats, LockTable, Owner, Place, PlaceBuf, Refused, Wait};
pub use run::{Admission, Batch, BatchOp, TryAdmission, Writer};
pub use undo::{UndoEntry, roll_back};
