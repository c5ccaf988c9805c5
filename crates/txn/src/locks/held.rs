//! The holder of a lock, and how it holds it.
use std::sync::Arc;

use weir_base::TxnId;

use super::kind::Kind;
use super::owner::Owner;

/// A transaction that holds a key.
pub(super) struct Held {
    /// The owner's, here as well: looking through many holders follows no pointers.
    pub(super) id: TxnId,
    pub(super) owner: Arc<Owner>,
    pub(super) kind: Kind,
}

impl Held {
    pub(super) fn new(owner: &Arc<Owner>, kind: Kind) -> Self {
        Held { id: owner.id(), owner: Arc::clone(owner), kind }
    }
}
