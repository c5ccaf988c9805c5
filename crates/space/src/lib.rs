//! Hands out pages, and frees them. Which pages are in use is kept in map pages, changed in the
//! same group as what uses them, and mirrored in memory for finding free ones.
#![forbid(unsafe_code)]
mod bitmap;
mod blocks;
mod holes;
mod space;

pub use blocks::HoleLimits;
pub use holes::{GaveBack, SpaceStats};
pub use space::{Space, SpaceError};
