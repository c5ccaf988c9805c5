//! The whole engine on a disk that loses, tears and reorders.
mod creation;
mod definitions;
mod every_write;
mod histories;
mod online_index;
mod planted;
mod sessions;
