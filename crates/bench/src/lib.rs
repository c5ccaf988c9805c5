//! Measures a store under four workloads and says afterwards whether everything that it
//! acknowledged is there. A run is: open, load (or reuse), warm up, measure second by second,
//! verify, report. The store is reached through two small traits, so that another store can be
//! measured by the same code.
#![forbid(unsafe_code)]

mod ack;
mod compact;
pub mod compare;
mod driver;
mod durability;
mod engine;
#[cfg(test)]
mod fake;
mod feed;
mod figure_set;
mod figures;
mod host;
pub mod http;
mod ledger;
mod line;
mod load;
mod locked;
mod options;
pub mod page;
mod processors;
mod record;
mod report;
mod run;
mod section;
mod settle;
mod sizes;
mod target;
#[cfg(test)]
mod tests;
pub mod tpcc;
mod verify;
mod workload;

pub use ack::{AckFile, Acknowledged};
pub use durability::Durability;
pub use engine::{Engine, OnRecovery, Opened, open};
pub use feed::{Column, Feed, Recorded};
pub use figure_set::{MeasuredRun, SetFigure, SetRival, add_to_set, figure_of, machine};
pub use figures::{Figures, LatencyMicros, Rates};
pub use host::ProcessorFigures;
pub use options::{DoubleWrite, DoubleWriteMode, Lab, Options, Phase, Phases, WorkloadKind};
pub use report::{Report, RunReport, Series, Setup, replace_file, write_json};
pub use run::{Outcome, Raw, run};
pub use settle::{Settling, settled, settled_tps};
pub use sizes::{SizeFigures, Sizes, SizesOptions, sizes};
pub use target::{Counters, PageWrites, Table, Target, Visit, Watched};
pub use verify::{Verdict, verify_trees};
pub use workload::{INSERT_TREE, ROWS_TREE};
