//! The pool over a log and an in-place store on a simulated disk.
mod doublewrite;
mod evict;
mod faults;
mod neighbours;
mod support;
mod threads;
