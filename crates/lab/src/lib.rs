//! The workbench: the flushing policies of other engines and the experiments that made them known,
//! on Weir's own pages, log and disk, beside Weir's own policy, which has no knobs.
#![forbid(unsafe_code)]

mod arm;
mod cost;
mod experiments;
mod judge;
pub mod policies;
mod recovery;
mod report;
mod results;
mod run;

pub use cost::{Cost, cost};
pub use experiments::{Experiment, all, find};
pub use report::Outcome;
pub use run::{Order, run};
