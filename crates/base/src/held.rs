//! What a thread holds: asserts that it waits only for locks of a higher rank. Costs nothing where
//! it is not compiled in: release builds without the feature `check-ranks`.

/// A place in the order of [`crate::rank::RANKS`].
pub trait Ranked {
    /// Its index there.
    const NUMBER: u16;
}

/// A lock that this thread holds, until dropped.
#[derive(Debug)]
#[must_use]
pub struct HeldRank {
    #[cfg(all(any(debug_assertions, feature = "check-ranks"), not(loom)))]
    number: u16,
}

impl HeldRank {
    /// To be called before waiting for a lock of rank `R`.
    ///
    /// # Panics
    /// Where ranks are checked and this thread holds a lock of this rank or a later one.
    #[inline]
    #[track_caller]
    pub fn may_wait<R: Ranked>() {
        #[cfg(all(any(debug_assertions, feature = "check-ranks"), not(loom)))]
        checked::may_wait(R::NUMBER);
    }

    /// A lock of rank `R` has been got, with or without waiting. One that was only tried for
    /// cannot close a circle by itself, but counts for what is waited for afterwards.
    #[inline]
    pub fn got<R: Ranked>() -> HeldRank {
        #[cfg(all(any(debug_assertions, feature = "check-ranks"), not(loom)))]
        checked::push(R::NUMBER);
        crate::lines::wrote(crate::rank::RANKS[usize::from(R::NUMBER)].name);
        HeldRank {
            #[cfg(all(any(debug_assertions, feature = "check-ranks"), not(loom)))]
            number: R::NUMBER,
        }
    }
}

#[cfg(all(any(debug_assertions, feature = "check-ranks"), not(loom)))]
impl Drop for HeldRank {
    fn drop(&mut self) {
        checked::pop(self.number);
    }
}

/// The locks that this thread holds, by name, in no order; nothing where ranks are not checked. For
/// tests of what may be held where.
#[must_use]
pub fn held() -> Vec<&'static str> {
    #[cfg(all(any(debug_assertions, feature = "check-ranks"), not(loom)))]
    return checked::held();
    #[cfg(not(all(any(debug_assertions, feature = "check-ranks"), not(loom))))]
    Vec::new()
}

/// Whether ranks are checked in this build.
#[must_use]
pub const fn are_ranks_checked() -> bool {
    cfg!(all(any(debug_assertions, feature = "check-ranks"), not(loom)))
}

#[cfg(all(any(debug_assertions, feature = "check-ranks"), not(loom)))]
mod checked {
    use crate::rank::RANKS;
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<u16>> = const { RefCell::new(Vec::new()) };
    }

    #[track_caller]
    pub(super) fn may_wait(number: u16) {
        // A thread that ends may drop what it has after its list.
        let latest = HELD.try_with(|held| held.borrow().iter().copied().max()).unwrap_or(None);
        let Some(latest) = latest else { return };
        let wanted = &RANKS[usize::from(number)];
        let is_allowed = latest < number || latest == number && wanted.is_many;
        assert!(
            is_allowed || std::thread::panicking(),
            "a thread that holds the lock {} waits for {}, which comes before it (docs/locks.md)",
            RANKS[usize::from(latest)].name,
            wanted.name
        );
    }

    pub(super) fn held() -> Vec<&'static str> {
        let names = |held: &RefCell<Vec<u16>>| {
            held.borrow().iter().map(|&number| RANKS[usize::from(number)].name).collect()
        };
        HELD.try_with(names).unwrap_or_default()
    }

    pub(super) fn push(number: u16) {
        let _ = HELD.try_with(|held| held.borrow_mut().push(number));
    }

    pub(super) fn pop(number: u16) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|&other| other == number) {
                held.swap_remove(at);
            }
        });
    }
}
