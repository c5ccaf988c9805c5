//! Which cache lines that many cores share a thread writes, by site: counted in debug builds, for
//! `docs/shared-lines.md`. A line that one core writes is taken from all others; with many cores
//! that, not instructions, is what a short operation costs.

/// To be called where a thread writes such a line outside of a ranked lock. Locks count by
/// themselves, once each: taking and releasing one writes the same line.
#[inline]
pub fn wrote(site: &'static str) {
    #[cfg(all(debug_assertions, not(loom)))]
    counted::add(site);
    #[cfg(not(all(debug_assertions, not(loom))))]
    let _ = site;
}

/// Whether this build counts.
#[must_use]
pub const fn are_counted() -> bool {
    cfg!(all(debug_assertions, not(loom)))
}

/// Does something and returns how often this thread wrote to each site meanwhile, by name.
pub fn count<T>(act: impl FnOnce() -> T) -> (T, Vec<(&'static str, u64)>) {
    #[cfg(all(debug_assertions, not(loom)))]
    let done = counted::count(act);
    #[cfg(not(all(debug_assertions, not(loom))))]
    let done = (act(), Vec::new());
    done
}

#[cfg(all(debug_assertions, not(loom)))]
mod counted {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    thread_local! {
        static SITES: RefCell<Option<BTreeMap<&'static str, u64>>> = const { RefCell::new(None) };
    }

    pub(super) fn add(site: &'static str) {
        // A thread that ends may drop what it has after its list.
        let _ = SITES.try_with(|sites| {
            if let Some(sites) = sites.borrow_mut().as_mut() {
                *sites.entry(site).or_default() += 1;
            }
        });
    }

    pub(super) fn count<T>(act: impl FnOnce() -> T) -> (T, Vec<(&'static str, u64)>) {
        SITES.with(|sites| *sites.borrow_mut() = Some(BTreeMap::new()));
        let done = act();
        let sites = SITES.with(|sites| sites.borrow_mut().take()).unwrap_or_default();
        (done, sites.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Mutex;
    use crate::rank::{LogFiles, LogWriter};

    #[test]
    fn sites_and_locks_are_counted_while_asked() {
        let (files, writer) = (Mutex::<LogFiles, _>::new(0), Mutex::<LogWriter, _>::new(0));
        wrote("before");
        let (sum, sites) = count(|| {
            wrote("a place");
            wrote("a place");
            let sum = *writer.lock() + *files.lock();
            sum + *files.lock()
        });
        wrote("behind");
        assert_eq!(sum, 0);
        let wanted = [("LogFiles", 2), ("LogWriter", 1), ("a place", 2)];
        assert_eq!(sites, if are_counted() { &wanted[..] } else { &[] });
    }
}
