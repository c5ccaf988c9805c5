//! A page store that writes out of place: segments that are filled from front to back, a map from
//! page numbers to places, no doublewrite. So far here: what lies on disk, as bytes, and the
//! protocol, as the model that `tests/crash_model` crashes.
#![forbid(unsafe_code)]

mod codec;
pub mod format;
pub mod ids;

pub use codec::Packing;
