//! What can go wrong in a transaction.
use thiserror::Error;
use weir_btree::TreeError;
use weir_redo::RedoError;
use weir_space::SpaceError;

use crate::locks::LockError;

/// Why a transaction failed. All its changes have been rolled back unless the variant says
/// otherwise.
#[derive(Debug, Error)]
pub enum TxnError {
    /// A tree operation failed.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The log refused: the engine has halted.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// The log would have to say too much again and again of what rolls the transaction back: more
    /// than an eighth of its limit. What rows were before lies in pages of the store
    /// (`record/stored.rs`), so this is met in two ways only. One value, or one bulk load, takes
    /// pages in very many places: 16 bytes for each run of pages side by side, thousands of runs
    /// with the smallest log, hundreds of thousands with one of 64 MiB. Or the segments stored are
    /// too many to be named: 32 bytes each, which is 12 MiB of undo with the smallest log and some
    /// 25 GiB with one of 64 MiB. The row is as it was, and the transaction may go on, be committed
    /// or be rolled back.
    #[error(
        "the transaction is too large: its undo needs {undo_bytes} bytes of log, the limit is \
         {max}; write it in smaller ones, or make the log larger"
    )]
    TooLarge {
        /// Bytes of log that it would take to say it all again.
        undo_bytes: u64,
        /// Allowed.
        max: u64,
    },
    /// A number that names things on disk has reached the last that fits its place there. What is
    /// there can be read and copied; a copy begins numbering anew.
    #[error("{what} have reached {max}, the last that the format has room for; {way_out}")]
    NumbersUsedUp {
        /// What is numbered.
        what: &'static str,
        /// The last number.
        max: u64,
        /// What to do.
        way_out: &'static str,
    },
    /// What all transactions hold of locks takes all the memory that it may, and this one holds
    /// many of them. What it has done so far is as it was, and so are its locks: it may go on, be
    /// committed or be rolled back.
    #[error(
        "locks take {bytes} bytes of memory, of {max} that they may; lock fewer rows in one \
         transaction, or give the database more memory (a quarter of it is for locks)"
    )]
    TooManyLocks {
        /// Bytes that locks take, about.
        bytes: u64,
        /// Allowed.
        max: u64,
    },
    /// A lock was not got.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The row is there already.
    #[error("there is a row with this key already")]
    Duplicate,
    /// A transaction has changed the row since this transaction's snapshot was taken.
    #[error("another transaction changed the row after this one began; roll back and try again")]
    Conflict,
    /// The transaction has ended.
    #[error("the transaction has ended")]
    Ended,
    /// Rolling the changes back failed too: the rows of this transaction stay locked until they are
    /// rolled back in the background, or when the database is opened again.
    #[error("{first}; the rollback failed as well, and is tried again: {then}")]
    RollbackFailed {
        /// Why the transaction failed.
        first: Box<TxnError>,
        /// Why the rollback failed.
        then: Box<TxnError>,
    },
}

impl TxnError {
    pub(crate) fn no_more_transactions() -> Self {
        TxnError::NumbersUsedUp {
            what: "the numbers of transactions",
            max: weir_base::TxnId::MAX.0,
            way_out: "copy the database (weir copy): the copy numbers its transactions anew",
        }
    }

    pub(crate) fn no_more_changes(max: u32) -> Self {
        TxnError::NumbersUsedUp {
            what: "the changes of one transaction",
            max: max.into(),
            way_out: "commit, and go on in another one",
        }
    }
}

impl From<SpaceError> for TxnError {
    fn from(e: SpaceError) -> Self {
        TxnError::Tree(e.into())
    }
}
