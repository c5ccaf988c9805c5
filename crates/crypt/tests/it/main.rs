//! The crate seen from outside.
mod keys;
mod resumed;
mod streams;
mod support;
mod volumes;
