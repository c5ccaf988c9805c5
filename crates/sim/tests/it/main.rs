//! The whole engine on a disk that loses, tears and reorders.
mod creation;
mod every_write;
mod histories;
mod planted;
mod sessions;
