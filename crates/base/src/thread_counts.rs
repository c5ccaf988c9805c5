//! What a thread has asked of the engine since it began: for a caller that wants to know what one
//! statement of its own has cost. A count is taken where work is slow anyway (a page comes from
//! disk, a row's older version is looked up), never where a page is in memory.
use std::cell::Cell;
use std::sync::OnceLock;

use crate::clock::{Clock, SystemClock};

/// Counts of one thread; they only grow. The work of background threads for others is in theirs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ThreadCounts {
    /// Pages read from disk.
    pub pages_read: u64,
    /// Microseconds that the thread waited for them.
    pub read_micros: u64,
    /// Older versions of rows that were looked up.
    pub versions_read: u64,
    /// Places at which rows that cannot be read were passed over: only where a database was opened
    /// for that.
    pub passed_over: u64,
}

thread_local! {
    static COUNTS: Cell<ThreadCounts> = const {
        Cell::new(ThreadCounts { pages_read: 0, read_micros: 0, versions_read: 0, passed_over: 0 })
    };
}

fn change(with: impl FnOnce(&mut ThreadCounts)) {
    // A thread that is ending has no counts left to ask for.
    let _ = COUNTS.try_with(|counts| {
        let mut now = counts.get();
        with(&mut now);
        counts.set(now);
    });
}

impl ThreadCounts {
    /// The calling thread's.
    #[must_use]
    pub fn of_this_thread() -> Self {
        COUNTS.try_with(Cell::get).unwrap_or_default()
    }

    /// Runs `read`, which reads `pages` pages from disk, and counts them and its time.
    pub fn reading<T>(pages: u64, read: impl FnOnce() -> T) -> T {
        static CLOCK: OnceLock<SystemClock> = OnceLock::new();
        let clock = CLOCK.get_or_init(SystemClock::new);
        let begun = clock.now_micros();
        let done = read();
        let took = clock.now_micros() - begun;
        change(|counts| {
            counts.pages_read += pages;
            counts.read_micros += took;
        });
        done
    }

    /// An older version of a row is looked up.
    pub fn version_read() {
        change(|counts| counts.versions_read += 1);
    }

    /// Rows that cannot be read are passed over.
    pub fn passed_over() {
        change(|counts| counts.passed_over += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadCounts;

    #[test]
    fn a_thread_counts_its_own_work_alone() {
        let before = ThreadCounts::of_this_thread();
        let wait = std::time::Duration::from_millis(3);
        assert_eq!(ThreadCounts::reading(2, || (std::thread::sleep(wait), 7).1), 7);
        ThreadCounts::version_read();
        let others = std::thread::spawn(|| {
            ThreadCounts::version_read();
            ThreadCounts::of_this_thread()
        });
        assert_eq!(others.join().expect("a thread").versions_read, 1);
        let now = ThreadCounts::of_this_thread();
        assert_eq!(now.pages_read, before.pages_read + 2);
        assert_eq!(now.versions_read, before.versions_read + 1);
        assert!(now.read_micros >= before.read_micros + 3_000, "{now:?}");
    }
}
