//! The commands. Each returns the exit code, or an error that says why it could not run.
mod advise;
mod backup;
mod bench;
mod check;
mod check_through;
mod copy;
mod dump;
mod entries;
mod lab;
mod man;
mod restore;
mod salvage;
mod stat;
mod tpcc;

pub(crate) use advise::advise;
pub(crate) use backup::backup;
pub(crate) use bench::bench;
pub(crate) use check::check;
pub(crate) use copy::copy;
pub(crate) use dump::dump;
pub(crate) use entries::{delete, get, put, scan};
pub(crate) use lab::lab;
pub(crate) use man::man;
pub(crate) use restore::{repair, restore, verify};
pub(crate) use salvage::salvage;
pub(crate) use stat::{stat, trees};
