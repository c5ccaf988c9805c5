//! The model: a disk, clients, a log with group commit, a dirty list and a sweeper.
pub(crate) mod disk;
pub(crate) mod lanes;
pub(crate) mod load;
pub(crate) mod world;
