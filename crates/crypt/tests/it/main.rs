//! The crate seen from outside.
mod keys;
mod streams;
mod support;
mod volumes;
