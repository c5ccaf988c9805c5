//! The pool over a log and a page store on a simulated disk.
mod doublewrite;
mod evict;
mod faults;
mod holes;
mod neighbours;
mod scrub;
mod segments;
mod support;
mod threads;
