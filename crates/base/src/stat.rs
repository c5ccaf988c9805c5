//! Counters: declared once, read by the command line, the live page and reports alike.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count that only grows.
#[derive(Default)]
#[repr(align(64))] // Each on a cache line of its own: neighbours are counted by different threads.
pub struct Counter(AtomicU64);

impl Counter {
    /// Starts at zero.
    #[must_use]
    pub const fn new() -> Self {
        Counter(AtomicU64::new(0))
    }
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        crate::lines::wrote("a statistics counter");
        self.0.fetch_add(n, Relaxed);
    }
    /// The count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A table of named counters with a help text and a unit each.
pub trait Stats {
    /// Calls `visit(name, unit, help, value)` for each counter, in the order of declaration.
    fn visit(&self, visit: &mut dyn FnMut(&'static str, &'static str, &'static str, u64));
}

/// Declares a struct of [`Counter`]s with its [`Stats`] table:
/// `counters! { pub struct PoolStats { evictions: "pages", "frames reclaimed"; } }`.
#[macro_export]
macro_rules! counters {
    ($(#[$doc:meta])* $vis:vis struct $name:ident {
        $($field:ident : $unit:literal, $help:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Default)]
        $vis struct $name {
            $(#[doc = $help] pub $field: $crate::Counter,)*
        }
        impl $crate::Stats for $name {
            fn visit(&self, visit: &mut dyn FnMut(&'static str, &'static str, &'static str, u64)) {
                $(visit(stringify!($field), $unit, $help, self.$field.get());)*
            }
        }
    };
}
