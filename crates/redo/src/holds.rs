//! Parts of the log that are kept although the checkpoint has passed them: for a reader that copies
//! the log while it goes on.
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::Lsn;

/// So many readers may hold the log at a time.
pub(crate) const HOLDS_MAX: usize = 4;
const NONE: u64 = u64::MAX;
/// A reader holds it, and has lost what it held.
const LOST: u64 = u64::MAX - 1;

/// Where each of them holds it.
pub(crate) struct Holds([AtomicU64; HOLDS_MAX]);

impl Holds {
    pub(crate) fn new() -> Holds {
        Holds([const { AtomicU64::new(NONE) }; HOLDS_MAX])
    }

    /// What is needed: from the checkpoint on, or from where a reader is. One that is behind
    /// `least` loses what it holds: the log goes on without it.
    pub(crate) fn needed(&self, checkpoint: Lsn, least: Lsn) -> Lsn {
        let mut needed = checkpoint;
        for hold in &self.0 {
            let at = hold.load(Ordering::Acquire);
            if at < least.0.min(checkpoint.0) {
                let _ = hold.compare_exchange(at, LOST, Ordering::AcqRel, Ordering::Relaxed);
            } else {
                needed = needed.min(Lsn(at));
            }
        }
        needed
    }

    /// A reader that took it needs nothing before `at` any more.
    pub(crate) fn advance(&self, number: usize, at: Lsn) {
        let advanced = |was| (was != LOST).then_some(at.0);
        // What is lost stays lost.
        let _ = self.0[number].fetch_update(Ordering::AcqRel, Ordering::Relaxed, advanced);
    }

    /// Whether what a reader held has been given up.
    pub(crate) fn is_lost(&self, number: usize) -> bool {
        self.0[number].load(Ordering::Acquire) == LOST
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
        assert_eq!(holds.needed(Lsn(70), Lsn(0)), Lsn(70));
        let first = holds.take(Lsn(50));
        assert_eq!(
            (first, holds.needed(Lsn(70), Lsn(0)), holds.needed(Lsn(40), Lsn(0))),
            (Some(0), Lsn(50), Lsn(40))
        );
        assert_eq!(holds.take(Lsn(60)), Some(1));
        holds.free(0);
        assert_eq!(holds.needed(Lsn(70), Lsn(0)), Lsn(60));
        assert_eq!(
            [holds.take(Lsn(1)), holds.take(Lsn(2)), holds.take(Lsn(3))],
            [Some(0), Some(2), Some(3)]
        );
        assert_eq!(holds.take(Lsn(4)), None);
    }

    #[test]
    fn a_reader_that_is_too_far_behind_loses_what_it_holds() {
        let holds = Holds::new();
        assert_eq!((holds.take(Lsn(50)), holds.take(Lsn(60))), (Some(0), Some(1)));
        assert_eq!(holds.needed(Lsn(70), Lsn(55)), Lsn(60));
        assert_eq!((holds.is_lost(0), holds.is_lost(1)), (true, false));
        holds.advance(0, Lsn(65));
        holds.advance(1, Lsn(65));
        assert_eq!(holds.needed(Lsn(70), Lsn(55)), Lsn(65));
        assert!(holds.is_lost(0));
        // A checkpoint that is further behind holds the log by itself.
        assert_eq!(holds.needed(Lsn(10), Lsn(90)), Lsn(10));
        assert!(!holds.is_lost(1));
        holds.free(0);
        assert_eq!(holds.take(Lsn(80)), Some(0));
        assert!(!holds.is_lost(0));
    }
}
