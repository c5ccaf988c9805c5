//! Why nothing could be salvaged.
use thiserror::Error;

/// What ends a salvage. Damage of the source does not: it is in the report.
#[derive(Debug, Error)]
pub enum SalvageError {
    /// There is nothing that pages could be read from.
    #[error("{0}")]
    Source(String),
    /// The source cannot be opened, or the file that holds changes meanwhile cannot be had.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// The answer.
        #[source]
        cause: std::io::Error,
    },
    /// The new database cannot be made or filled.
    #[error(transparent)]
    Target(#[from] weir::Error),
}

impl SalvageError {
    pub(crate) fn io(what: impl Into<String>, cause: std::io::Error) -> Self {
        SalvageError::Io { what: what.into(), cause }
    }
}
