//! The store and its formats, from outside.
mod formats;
