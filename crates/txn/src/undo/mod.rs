//! Rolling transactions back, and keeping what that needs at the end of the log.
pub(crate) mod apply;
pub(crate) mod prepared_note;
pub(crate) mod relog;
pub(crate) mod rollback;
