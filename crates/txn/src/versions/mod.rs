//! Which transactions there are, and what a reader sees of rows: numbers, snapshots, older
//! versions.
pub(crate) mod archive;
pub(crate) mod ended;
pub(crate) mod gate;
pub(crate) mod registry;
pub(crate) mod see;
