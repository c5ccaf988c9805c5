//! Which thread writes where in the log, without a lock: claiming is one `fetch_add`, and
//! publishing one store into a ring of links that the writer follows to the contiguous published
//! point. The link ring is MySQL 8's idea (`Link_buf`, WL#10310).
use crate::sync::{AtomicU32, AtomicU64, Ordering, Words, words};

/// No claim is smaller, so that the starts of two claims never share a link.
pub(crate) const CLAIM_MIN: u64 = 8;

/// A value on cache lines of its own: its neighbours are written by other threads.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

pub(crate) struct Claims {
    /// The next payload byte that no thread has claimed.
    next: Apart<AtomicU64>,
    /// Every byte below is copied.
    published: Apart<AtomicU64>,
    /// 1 while a thread follows the links.
    following: AtomicU32,
    /// `links[start / 8 % n]` holds the end of the published claim that begins at `start`.
    links: Words,
}

impl Claims {
    /// Claims begin at byte `start`; at most `open_bytes` (a power of two) are claimed and not yet
    /// given back at any time.
    pub(crate) fn new(start: u64, open_bytes: u64) -> Claims {
        assert!(open_bytes.is_power_of_two() && open_bytes >= CLAIM_MIN);
        Claims {
            next: Apart(AtomicU64::new(start)),
            published: Apart(AtomicU64::new(start)),
            following: AtomicU32::new(0),
            links: words(open_bytes / CLAIM_MIN),
        }
    }

    fn link(&self, start: u64) -> &AtomicU64 {
        &self.links[(start / CLAIM_MIN) as usize & (self.links.len() - 1)]
    }

    /// Claims `bytes` bytes; gives the first one's number.
    #[inline]
    pub(crate) fn claim(&self, bytes: u64) -> u64 {
        debug_assert!(bytes >= CLAIM_MIN);
        weir_base::lines::wrote("the log's end");
        self.next.0.fetch_add(bytes, Ordering::AcqRel)
    }

    /// Says that the claimed bytes `start..end` are copied. The ring positions of `start..end` must
    /// have been given back before they were copied (REDO-3): then the link is free as well.
    #[inline]
    pub(crate) fn publish(&self, start: u64, end: u64) {
        debug_assert!(end >= start + CLAIM_MIN);
        weir_base::lines::wrote("the log's ring of links");
        self.link(start).store(end, Ordering::Release);
    }

    /// Just behind the last claimed byte.
    pub(crate) fn next(&self) -> u64 {
        self.next.0.load(Ordering::Acquire)
    }

    /// Every byte below this one is copied; there may be more by now (see [`Claims::advance`]).
    pub(crate) fn published(&self) -> u64 {
        self.published.0.load(Ordering::Acquire)
    }

    /// Moves the published point forward as far as it goes. Gives it and how many links were
    /// followed. When another thread is at it, the point as it is.
    pub(crate) fn advance(&self) -> (u64, u64) {
        if self.following.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return (self.published(), 0);
        }
        weir_base::lines::wrote("the log's published point");
        // A link is overwritten only after its place was given back, which happens only below the
        // stored `published`: so a link that points beyond its own place is of this lap.
        let before = self.published.0.load(Ordering::Acquire);
        let (mut point, mut links) = (before, 0);
        loop {
            let end = self.link(point).load(Ordering::Acquire);
            if end <= point {
                break;
            }
            point = end;
            links += 1;
        }
        if point != before {
            self.published.0.store(point, Ordering::Release);
        }
        self.following.store(0, Ordering::Release);
        (point, links)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn published_is_the_contiguous_part() {
        let claims = Claims::new(1000, 64);
        let (a, b, c) = (claims.claim(10), claims.claim(8), claims.claim(20));
        assert_eq!((a, b, c, claims.next()), (1000, 1010, 1018, 1038));
        claims.publish(b, b + 8);
        assert_eq!(claims.advance(), (1000, 0));
        claims.publish(a, a + 10);
        assert_eq!(claims.advance(), (1018, 2));
        claims.publish(c, c + 20);
        assert_eq!((claims.advance(), claims.published()), ((1038, 1), 1038));
    }

    #[test]
    fn links_of_earlier_laps_are_not_followed() {
        let claims = Claims::new(0, 64);
        for lap in 0..100 {
            let start = claims.claim(24);
            assert_eq!(claims.advance().0, start, "lap {lap}");
            claims.publish(start, start + 24);
            assert_eq!(claims.advance().0, start + 24);
        }
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)] // loom's cells give raw pointers.
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// Two appenders and a writer over a ring of 16 bytes, each claim 8: loom's cells report any
    /// byte that is filled while it is read, or read before it is published. No thread waits: an
    /// appender without room and a writer without work leave, which keeps the model small.
    #[test]
    fn loom_claim_copy_publish_give_back() {
        struct Shared {
            claims: Claims,
            given_back: AtomicU64,
            cells: [UnsafeCell<u64>; 2],
        }
        let append = |shared: &Shared| {
            let start = shared.claims.claim(8);
            if start + 8 > shared.given_back.load(Ordering::Acquire) + 16 {
                return;
            }
            let cell = &shared.cells[(start / 8 % 2) as usize];
            // SAFETY: the place was claimed and given back.
            cell.with_mut(|value| unsafe { *value = start + 1 });
            shared.claims.publish(start, start + 8);
        };
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let shared = Arc::new(Shared {
                claims: Claims::new(0, 16),
                given_back: AtomicU64::new(0),
                cells: [UnsafeCell::new(0), UnsafeCell::new(0)],
            });
            let appenders: Vec<_> = [2, 1]
                .into_iter()
                .map(|count| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || (0..count).for_each(|_| append(&shared)))
                })
                .collect();
            let mut taken = 0;
            for _ in 0..2 {
                let (point, _) = shared.claims.advance();
                while taken < point {
                    // SAFETY: below the published point.
                    shared.cells[(taken / 8 % 2) as usize]
                        .with(|value| assert_eq!(unsafe { *value }, taken + 1));
                    taken += 8;
                }
                shared.given_back.store(taken, Ordering::Release);
            }
            for appender in appenders {
                appender.join().unwrap();
            }
            let (point, _) = shared.claims.advance();
            assert!(point >= taken && point <= 24);
        });
    }
}
