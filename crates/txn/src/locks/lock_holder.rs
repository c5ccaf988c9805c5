//! The holder of a lock, and how it holds it.
use std::sync::Arc;

use weir_base::TxnId;

use super::kind::Kind;
use super::owner::Owner;

/// A transaction that holds a key.
pub(super) struct LockHolder {
    /// The owner's, here as well: looking through many holders follows no pointers.
    pub(super) id: TxnId,
    pub(super) owner: Arc<Owner>,
    pub(super) kind: Kind,
}

impl LockHolder {
    pub(super) fn new(owner: &Arc<Owner>, kind: Kind) -> Self {
        LockHolder { id: owner.id(), owner: Arc::clone(owner), kind }
    }
}
