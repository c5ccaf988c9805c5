//! A page store that writes out of place: segments that are filled from front to back, a map from
//! page numbers to places, no doublewrite. So far the protocol alone is here, as the model that
//! `tests/crash_model` crashes.
#![forbid(unsafe_code)]
