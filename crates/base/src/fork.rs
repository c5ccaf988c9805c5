//! Whether this process is the one that something was begun in, or was forked from it: a child has
//! the parent's files and a copy of its memory, but none of its threads. One of the few files with
//! `unsafe`.
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// On a line of its own: every call of an open database reads it.
#[repr(align(128))]
struct Forks(AtomicU64);

/// How often a process between the first one and this one was forked from its parent.
static FORKS: Forks = Forks(AtomicU64::new(0));

extern "C" fn count_in_child() {
    FORKS.0.fetch_add(1, Ordering::Relaxed);
}

/// The process in which this was made.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    forks: u64,
}

impl Home {
    /// This process.
    #[must_use]
    pub fn here() -> Home {
        static ASKED: Once = Once::new();
        ASKED.call_once(|| {
            // Miri knows no such call, and forks nothing.
            #[cfg(not(miri))]
            // SAFETY: the function adds to an atomic, which is allowed in a child of a process of
            // many threads. The C library forgets it when a library that holds it is unloaded. A
            // refusal, for lack of memory, leaves forks unnoticed and changes nothing else.
            unsafe {
                libc::pthread_atfork(None, None, Some(count_in_child));
            }
        });
        Home { forks: FORKS.0.load(Ordering::Relaxed) }
    }

    /// Whether it is this process still, and not one that was forked from it.
    #[inline]
    #[must_use]
    pub fn is_here(self) -> bool {
        FORKS.0.load(Ordering::Relaxed) == self.forks
    }
}
