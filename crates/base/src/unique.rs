//! Numbers that nothing else in the process has, taken without threads meeting for each.
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A thread takes so many at once.
const BLOCK: u64 = 1024;

static NEXT_BLOCK: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// A number above 0 that was not given out before in this process.
#[must_use]
pub fn unique_number() -> u64 {
    NEXT.with(|next| {
        let mut number = next.get();
        if number.is_multiple_of(BLOCK) {
            number = NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) * BLOCK;
        }
        next.set(number + 1);
        number
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_threads_get_the_same_number_and_none_gets_zero() {
        let take = || (0..5 * BLOCK / 2).map(|_| unique_number()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(take)).collect();
        let mut all: Vec<u64> = take();
        for thread in threads {
            all.extend(thread.join().expect("ended"));
        }
        let different: HashSet<u64> = all.iter().copied().collect();
        assert_eq!(different.len(), all.len());
        assert!(!different.contains(&0));
    }
}
