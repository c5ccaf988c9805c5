//! Parts of the log that are kept although the checkpoint has passed them: for a reader that copies
//! the log while it goes on.
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::Lsn;

/// So many readers may hold the log at a time.
pub(crate) const HOLDS_MAX: usize = 4;
const NONE: u64 = u64::MAX;

/// Where each of them holds it.
pub(crate) struct Holds([AtomicU64; HOLDS_MAX]);

impl Holds {
    pub(crate) fn new() -> Holds {
        Holds([const { AtomicU64::new(NONE) }; HOLDS_MAX])
    }

    /// What is needed: from the checkpoint on, or from where a reader is.
    pub(crate) fn needed(&self, checkpoint: Lsn) -> Lsn {
        let held = self.0.iter().map(|hold| hold.load(Ordering::Acquire)).min();
        checkpoint.min(Lsn(held.unwrap_or(NONE)))
    }

    /// A reader that took it needs nothing before `at` any more.
    pub(crate) fn set(&self, number: usize, at: Lsn) {
        self.0[number].store(at.0, Ordering::Release);
    }

    /// A reader that took it is done.
    pub(crate) fn free(&self, number: usize) {
        self.0[number].store(NONE, Ordering::Release);
    }

    /// Holds the log from `at` on; `None` when too many do.
    pub(crate) fn take(&self, at: Lsn) -> Option<usize> {
        self.0.iter().position(|hold| {
            hold.compare_exchange(NONE, at.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_reader_decides_what_is_needed() {
        let holds = Holds::new();
        assert_eq!(holds.needed(Lsn(70)), Lsn(70));
        let first = holds.take(Lsn(50));
        assert_eq!(
            (first, holds.needed(Lsn(70)), holds.needed(Lsn(40))),
            (Some(0), Lsn(50), Lsn(40))
        );
        assert_eq!(holds.take(Lsn(60)), Some(1));
        holds.free(0);
        assert_eq!(holds.needed(Lsn(70)), Lsn(60));
        assert_eq!(
            [holds.take(Lsn(1)), holds.take(Lsn(2)), holds.take(Lsn(3))],
            [Some(0), Some(2), Some(3)]
        );
        assert_eq!(holds.take(Lsn(4)), None);
    }
}
