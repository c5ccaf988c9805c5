//! Errors, as callers get them.
use thiserror::Error;

use crate::key::Malformed;

/// Why an operation on a table failed. Unless it says otherwise nothing was changed, and the
/// transaction goes on.
#[derive(Debug, Error)]
pub enum Error {
    /// The store below: locks, disk, damage. After a deadlock the transaction has been rolled back.
    #[error(transparent)]
    Store(#[from] weir::Error),
    /// There is a row with this key in the primary tree (`None`) or in a unique index (its place
    /// among the table's indexes).
    #[error("there is a row with this {} already", which(*.index))]
    Duplicate {
        /// Which index; `None`: the primary key.
        index: Option<usize>,
    },
    /// There is no table of this name.
    #[error("there is no table '{0}'")]
    NoTable(String),
    /// There is a table of this name already.
    #[error("there is a table '{0}' already")]
    TableExists(String),
    /// The table has no index of this name, or it is still being built.
    #[error("the table has no index '{0}'")]
    NoIndex(String),
    /// The table has an index of this name already.
    #[error("the table has an index '{0}' already")]
    IndexExists(String),
    /// The table was altered or dropped since this handle was opened, or after the transaction's
    /// snapshot was taken. Open the table again, and begin the transaction anew.
    #[error("the definition of the table has changed; open it again and begin anew")]
    Changed,
    /// A name or a definition that is not possible.
    #[error("{0}")]
    Definition(String),
    /// A row, key or bound that does not fit the table.
    #[error("{0}")]
    Input(String),
    /// All numbers that the column can hold have been given out.
    #[error("there are no numbers left for the auto-increment column")]
    Exhausted,
    /// The caller, asked whether to go on, has said no.
    #[error("it was interrupted")]
    Interrupted,
    /// Something stored is not what was written.
    #[error("{0}")]
    Damaged(String),
}

fn which(index: Option<usize>) -> String {
    index.map_or("primary key".into(), |at| format!("key of index {at}"))
}

impl Error {
    /// Whether the same transaction, begun anew, may well succeed: it met another one.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Changed) || matches!(self, Error::Store(e) if e.is_retryable())
    }

    /// Whether it was chosen to resolve a deadlock: it has been rolled back as a whole.
    #[must_use]
    pub fn is_deadlock(&self) -> bool {
        matches!(self, Error::Store(e) if e.is_deadlock())
    }
}

impl From<Malformed> for Error {
    fn from(e: Malformed) -> Self {
        Error::Damaged(e.to_string())
    }
}
