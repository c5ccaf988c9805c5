//! The log over simulated and real files.
mod basic;
mod capacity;
mod crash;
mod damage;
mod image;
mod support;
