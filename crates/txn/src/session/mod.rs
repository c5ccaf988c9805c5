//! A transaction as its session uses it: reads, locks, changes, savepoints, its end.
pub(crate) mod change;
pub(crate) mod commit;
pub(crate) mod cursor;
pub(crate) mod decide;
pub(crate) mod locking;
pub(crate) mod long;
pub(crate) mod prepared;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod run;
pub(crate) mod savepoint;
pub(crate) mod scan;
pub(crate) mod store;
pub(crate) mod trees;
pub(crate) mod txn;
