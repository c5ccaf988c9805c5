//! What all handles of an open database share.
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir::SystemClock;

use crate::convert::error;
use crate::error::Error;
use crate::options::Durability;

/// What all handles share.
pub(crate) struct Shared {
    pub(crate) raw: weir::Db,
    pub(crate) dir: Arc<Path>,
    pub(crate) durability: Durability,
    pub(crate) clock: SystemClock,
}

impl Shared {
    /// An error of the engine, in this interface's words.
    pub(crate) fn fails(&self, e: weir::Error) -> Error {
        error(&self.dir, e)
    }
}

/// The engine's transaction, for one call. Nothing of a caller's runs meanwhile; what panics in the
/// engine leaves it to be rolled back.
pub(crate) fn entered(txn: &Mutex<weir::Txn>) -> MutexGuard<'_, weir::Txn> {
    txn.lock().unwrap_or_else(PoisonError::into_inner)
}
