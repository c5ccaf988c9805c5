//! The engine as its users see it.
mod basics;
