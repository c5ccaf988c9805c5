//! What one transaction did, as data: its changes and what rows were before, what rolls it back,
//! what its commit leaves to do, and what of that lies in pages.
pub(crate) mod entry;
pub(crate) mod kept;
pub(crate) mod losers;
pub(crate) mod purge_task;
pub(crate) mod stored;
pub(crate) mod txn_record;
pub(crate) mod work;
