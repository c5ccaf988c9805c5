//! The log over simulated and real files.
mod basic;
mod crash;
mod support;
