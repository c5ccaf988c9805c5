//! The log over simulated and real files.
mod basic;
mod support;
