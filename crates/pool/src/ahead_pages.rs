//! Pages that are read ahead: how many, of all scans together, and what became of them.
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of pages that a scan comes to next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AheadRead {
    /// So many of the first ones were looked at; there was no room for the rest.
    pub looked_at: usize,
    /// So many of them were absent, and have come.
    pub arrived: u64,
}

/// Pages that are being read ahead.
#[derive(Default)]
pub(crate) struct AheadPages(AtomicU64);

impl AheadPages {
    /// Takes up to `pages` of `most`; what is returned is to be given back.
    pub(crate) fn take(&self, pages: u64, most: u64) -> u64 {
        let (mut taken, mut now) = (0, self.0.load(Ordering::Relaxed));
        while let Some(left) = most.checked_sub(now).filter(|left| *left > 0) {
            taken = pages.min(left);
            let next = now + taken;
            match self.0.compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return taken,
                Err(seen) => (taken, now) = (0, seen),
            }
        }
        taken
    }

    pub(crate) fn give_back(&self, pages: u64) {
        self.0.fetch_sub(pages, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_scans_together_take_no_more_than_there_is() {
        let pages = AheadPages::default();
        assert_eq!((pages.take(6, 10), pages.take(6, 10), pages.take(6, 10)), (6, 4, 0));
        pages.give_back(4);
        // The pool has been made smaller.
        assert_eq!((pages.take(6, 3), pages.take(1, 10)), (0, 1));
        pages.give_back(7);
        assert_eq!(pages.take(64, 10), 10);
    }
}
