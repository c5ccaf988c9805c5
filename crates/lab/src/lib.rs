//! The workbench: the flushing policies of other engines and the experiments that made them known,
//! on Weir's own pages, log and disk, beside Weir's own policy, which has no knobs.
#![forbid(unsafe_code)]

pub mod policies;
