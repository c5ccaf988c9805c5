//! The laboratory on real files.
#![forbid(unsafe_code)]

mod policies;
