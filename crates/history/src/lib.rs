//! Judges isolation: histories of concurrent transactions are recorded, checked for circles that the
//! isolation levels forbid, and what is found is named and told. Knows no store: a store is whatever
//! implements [`Session`].
#![forbid(unsafe_code)]
mod anomaly;
mod check;
mod depend;
mod explain;
mod graph;
mod points;
mod record;
mod versions;

pub use anomaly::Anomaly;
pub use check::{Demand, Evidence, Found, Link, Report, check, survey};
pub use depend::{Dependency, Fault, Faulty, Kind};
pub use record::{End, History, Key, Level, Lock, Op, Transaction, Version};
