//! Judges isolation: histories of concurrent transactions are recorded, checked for circles that
//! the isolation levels forbid, and what is found is named and shown. Knows no store: a store is
//! whatever implements [`Session`].
#![forbid(unsafe_code)]
mod anomaly;
mod catalogue;
mod check;
mod depend;
mod explain;
mod graph;
mod journal;
mod points;
mod record;
mod script;
mod session;
mod versions;
mod workload;

pub use anomaly::Anomaly;
pub use catalogue::CATALOGUE;
pub use check::{Demand, Evidence, Found, Link, Report, check, survey};
pub use depend::{Dependency, Fault, Faulty, Kind};
pub use journal::{Journal, Recorded};
pub use record::{End, History, Key, Level, Lock, Op, Transaction, Version};
pub use script::{Outcome, Played, Script, Step};
pub use session::{Refused, Session};
pub use workload::{Mix, Tally, drive, interleave, look_around};
