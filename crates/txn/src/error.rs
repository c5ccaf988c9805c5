//! What can go wrong in a transaction.
use thiserror::Error;
use weir_btree::TreeError;
use weir_redo::RedoError;
use weir_space::SpaceError;

use crate::locks::Refused;

/// Why a transaction failed. All its changes have been taken back unless the variant says
/// otherwise.
#[derive(Debug, Error)]
pub enum TxnError {
    /// A tree operation failed.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The log refused: the engine has halted.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// What would have to be remembered to take the transaction back is too much for the log.
    #[error(
        "the batch is too large: taking it back would need {undo_bytes} bytes, and with this log \
         {max} bytes are allowed; write it in smaller batches or make the log larger"
    )]
    TooLarge {
        /// Needed.
        undo_bytes: u64,
        /// Allowed.
        max: u64,
    },
    /// A lock was not got.
    #[error(transparent)]
    Lock(#[from] Refused),
    /// The row is there already.
    #[error("there is a row with this key already")]
    Duplicate,
    /// Somebody has changed the row since this transaction's snapshot was taken.
    #[error("another transaction changed the row after this one began; take it back and try again")]
    Conflict,
    /// The transaction has ended.
    #[error("the transaction has ended")]
    Over,
    /// Taking the changes back failed too: the rows of this transaction stay locked until the
    /// database is opened again, which takes them back.
    #[error("{first}; taking the changes back failed as well: {then}")]
    RollbackFailed {
        /// Why the transaction failed.
        first: Box<TxnError>,
        /// Why the rollback failed.
        then: Box<TxnError>,
    },
}

impl From<SpaceError> for TxnError {
    fn from(e: SpaceError) -> Self {
        TxnError::Tree(e.into())
    }
}
