//! The protocol of a page's one word: version, exclusive latch, frame. Pure steps over one atomic,
//! so that loom can walk all their interleavings.
//!
//! A reader takes the word, reads the page, and looks again: same version and no writer, so what it
//! read was one state (a sequence lock; Boehm, "Can seqlocks get along with programming language
//! memory models?", MSPC 2012). A writer sets the latch bit and bumps the version when it is done.
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

const FRAME_BITS: u32 = 31;
const FRAME_MASK: u64 = (1 << FRAME_BITS) - 1;
const EXCLUSIVE: u64 = 1 << FRAME_BITS;
const VERSION_ONE: u64 = 1 << 32;
const _: () = assert!(EXCLUSIVE < VERSION_ONE, "the latch bit is no bit of the version");

/// The most frames that a word can name.
pub(crate) const FRAMES_MAX: u32 = (FRAME_MASK - 1) as u32;

/// A snapshot of a page's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    /// The frame that holds the page, if any does.
    pub(crate) fn frame(self) -> Option<u32> {
        match (self.0 & FRAME_MASK) as u32 {
            0 => None,
            n => Some(n - 1),
        }
    }
    pub(crate) fn is_exclusive(self) -> bool {
        self.0 & EXCLUSIVE != 0
    }
    fn with_frame(self, frame: Option<u32>) -> Word {
        Word((self.0 & !FRAME_MASK) | frame.map_or(0, |f| u64::from(f) + 1))
    }
}

/// A page's word: 32 bits of version, a latch bit, 31 bits of frame number plus one.
pub(crate) struct Latch(AtomicU64);

impl Latch {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Latch(AtomicU64::new(0))
    }

    /// The word now; what is read afterwards is at least as new.
    #[inline]
    pub(crate) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Whether nothing has changed since `seen` was loaded (`seen` not exclusive).
    #[inline]
    pub(crate) fn still(&self, seen: Word) -> bool {
        // Orders the reads of page bytes before the second look at the word.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == seen.0
    }

    /// Takes the exclusive latch if the word is still `seen` and free. What the holder loads
    /// afterwards (sequentially consistent) and what others load of the word behind such a fence
    /// are in one order: a thread that holds a latch and asks which transaction has locked a row,
    /// and a thread that has locked it and asks whether the page is still the same, do not miss
    /// each other.
    #[inline]
    pub(crate) fn try_exclusive(&self, seen: Word) -> bool {
        if seen.is_exclusive() {
            return false;
        }
        let taken = self
            .0
            .compare_exchange(seen.0, seen.0 | EXCLUSIVE, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok();
        // Orders the latch bit before the page bytes that the holder is about to write. Loom takes
        // sequentially consistent accesses for weaker ones, but not fences.
        fence(if cfg!(loom) { Ordering::SeqCst } else { Ordering::Release });
        taken
    }

    /// Gives the latch back. `seen` is the word from before it was taken. `changed` says whether
    /// readers that began before must start again.
    #[inline]
    pub(crate) fn release(&self, seen: Word, frame: Option<u32>, changed: bool) -> Word {
        let mut next = seen.with_frame(frame).0 & !EXCLUSIVE;
        if changed {
            next = next.wrapping_add(VERSION_ONE);
        }
        self.0.store(next, Ordering::Release);
        Word(next)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn one_writer_and_versions() {
        let latch = Latch(AtomicU64::new(0));
        let seen = latch.load();
        assert!(latch.try_exclusive(seen));
        assert!(!latch.try_exclusive(latch.load()));
        assert!(!latch.still(seen));
        let after = latch.release(seen, Some(7), true);
        assert_eq!(after.frame(), Some(7));
        assert!(!latch.still(seen));
        assert!(latch.still(after));
        assert!(latch.try_exclusive(after));
        let unchanged = latch.release(after, Some(7), false);
        assert_eq!(unchanged, after);
    }

    /// A pool of 16 TiB is more than a test has: its last frame in a word.
    #[test]
    fn the_last_frame_of_the_largest_pool_has_a_name() {
        let latch = Latch(AtomicU64::new(u64::MAX << 32));
        for frame in [(1 << 24) - 2, (1 << 24) - 1, 1 << 24, FRAMES_MAX - 1] {
            let seen = latch.load();
            assert!(latch.try_exclusive(seen), "frame {frame}");
            assert!(latch.load().is_exclusive());
            let now = latch.release(seen, Some(frame), true);
            assert_eq!((now.frame(), now.is_exclusive()), (Some(frame), false));
            assert_eq!((now.0 >> 32) as u32, ((seen.0 >> 32) as u32).wrapping_add(1));
        }
    }

    #[test]
    fn version_wraps_without_touching_the_rest() {
        let latch = Latch(AtomicU64::new(u64::MAX << 32 | 5));
        let seen = latch.load();
        assert!(latch.try_exclusive(seen));
        assert_eq!(latch.release(seen, seen.frame(), true).0, 5);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as LoomU64;

    /// Two halves of a page that writers keep equal: a reader that validates sees them equal.
    #[test]
    fn loom_validated_reads_are_one_state() {
        loom::model(|| {
            let shared = Arc::new((Latch::new(), LoomU64::new(0), LoomU64::new(0)));
            let writer = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    let seen = shared.0.load();
                    if shared.0.try_exclusive(seen) {
                        shared.1.store(1, Ordering::Relaxed);
                        shared.2.store(1, Ordering::Relaxed);
                        shared.0.release(seen, Some(0), true);
                    }
                })
            };
            let seen = shared.0.load();
            if !seen.is_exclusive() {
                let left = shared.1.load(Ordering::Relaxed);
                let right = shared.2.load(Ordering::Relaxed);
                if shared.0.still(seen) {
                    assert_eq!(left, right);
                }
            }
            writer.join().expect("the writer ends");
        });
    }

    /// A reader that begins before one writer and upgrades after it, as a tree's writers do: the
    /// upgrade fails, whatever it read, unless nothing was changed since.
    #[test]
    fn loom_an_upgrade_builds_on_what_was_read() {
        loom::model(|| {
            let shared = Arc::new((Latch::new(), LoomU64::new(0)));
            let add = |shared: &(Latch, LoomU64)| {
                let seen = shared.0.load();
                if seen.is_exclusive() {
                    return 0;
                }
                let value = shared.1.load(Ordering::Relaxed);
                if !shared.0.try_exclusive(seen) {
                    return 0;
                }
                // What was read without the latch is what is there under it.
                assert_eq!(shared.1.load(Ordering::Relaxed), value);
                shared.1.store(value + 1, Ordering::Relaxed);
                shared.0.release(seen, Some(0), true);
                1
            };
            let other = {
                let shared = shared.clone();
                loom::thread::spawn(move || add(&shared))
            };
            let mine = add(&shared);
            let all = mine + other.join().expect("the other ends");
            assert_eq!(shared.1.load(Ordering::Relaxed), all, "no addition is lost");
        });
    }

    /// A page leaves its frame, another takes it: a reader of the first never takes the second's
    /// bytes for it.
    #[test]
    fn loom_an_evicted_page_is_noticed() {
        loom::model(|| {
            let shared = Arc::new((Latch::new(), LoomU64::new(1)));
            // The page is in frame 0 to begin with.
            let empty = shared.0.load();
            assert!(shared.0.try_exclusive(empty));
            shared.0.release(empty, Some(0), true);
            let evictor = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    let seen = shared.0.load();
                    if shared.0.try_exclusive(seen) {
                        shared.0.release(seen, None, true);
                        // The frame is another page's now.
                        fence(Ordering::Release);
                        shared.1.store(2, Ordering::Relaxed);
                    }
                })
            };
            let seen = shared.0.load();
            if !seen.is_exclusive() && seen.frame() == Some(0) {
                let value = shared.1.load(Ordering::Relaxed);
                if shared.0.still(seen) {
                    assert_eq!(value, 1, "the bytes of another page");
                }
            }
            evictor.join().expect("the evictor ends");
        });
    }

    /// Two threads that both upgrade from the same word: exactly one wins.
    #[test]
    fn loom_one_upgrade_wins() {
        loom::model(|| {
            let latch = Arc::new(Latch::new());
            let seen = latch.load();
            let other = {
                let latch = latch.clone();
                loom::thread::spawn(move || latch.try_exclusive(seen))
            };
            let mine = latch.try_exclusive(seen);
            assert!(mine ^ other.join().expect("the other ends"));
        });
    }
}
