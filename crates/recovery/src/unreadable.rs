//! What is said of log that cannot be read.
use weir_base::Lsn;
use weir_redo::RedoError;

/// The log cannot be read there.
pub(crate) fn unreadable(lsn: Lsn, what: &str) -> RedoError {
    RedoError::Damaged {
        file: format!("the log at position {lsn}"),
        offset: 0,
        what: what.to_owned(),
        advice: "it was written by another version, or by a faulty program; restore a backup",
    }
}
