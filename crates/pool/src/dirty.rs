//! The dirty list: dirty pages by first-modification LSN. The LSN axis is cut into buckets of equal
//! width; adding locks one bucket for a push, and the age distribution is the row of their counts.
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{LargeArray, Lsn, PageNo};

use crate::dirty_entries::Entries;

/// Dirty pages by first-modification LSN, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgeCounts {
    /// The width of a bucket in bytes of log.
    pub bucket_bytes: u64,
    /// Where bucket 0 begins.
    pub first: Lsn,
    /// Dirty pages whose first modification lies in each bucket.
    pub counts: Vec<u32>,
}

#[derive(Default)]
struct Bucket {
    /// Pages that are dirty since this stretch of the log. Entries outlive their page's being
    /// cleaned elsewhere; this count does not.
    live: AtomicU32,
    /// The oldest first modification that was added since the bucket was last passed: always the
    /// start of a group, which is where a checkpoint may stand. 0: none.
    oldest: AtomicU64,
    entries: Mutex<rank::DirtyBucket, Entries>,
    /// How many entries there are, to be looked at without the lock.
    listed: AtomicU32,
}

/// The fewest and the most buckets for the usual length of the log.
const BUCKETS: (u64, u64) = (256, 2048);

/// So many entries more than twice the live ones, and those that are not live are thrown away.
const STALE_SPARE: usize = 64;

impl Bucket {
    /// Notes how many entries there are; their lock is held.
    fn note_listed(&self, entries: &Entries) {
        self.listed.store(u32::try_from(entries.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

pub(crate) struct DirtyList {
    shift: u32,
    buckets: LargeArray<Bucket>,
    /// No bucket below this number holds a live page.
    low: AtomicU64,
    /// How far buckets have been passed and cleared.
    passing: Mutex<rank::DirtyPassed, u64>,
    pages: AtomicU64,
    /// POOL-13: the sum of what the pages give back when they are written, each in 65,535ths.
    gives_back: AtomicU64,
}

impl DirtyList {
    /// A list whose ring spans `span_bytes` of log or more, for a pool of `frames`: in 2,048 or
    /// more buckets for `usual_bytes`, fewer where the pool has less than 16 pages for each: a
    /// ring of 1 MiB beside a pool of 64, not of 9.
    pub(crate) fn new(usual_bytes: u64, span_bytes: u64, frames: u32) -> Self {
        let buckets = u64::from(frames / 16).clamp(BUCKETS.0, BUCKETS.1);
        let shift = (usual_bytes / buckets).max(512).ilog2();
        let count = span_bytes.div_ceil(1 << shift).max(4).next_power_of_two() as usize;
        DirtyList {
            shift,
            buckets: LargeArray::new(count, |_| Bucket::default()),
            low: AtomicU64::new(0),
            passing: Mutex::new(0),
            pages: AtomicU64::new(0),
            gives_back: AtomicU64::new(0),
        }
    }

    fn number(&self, lsn: Lsn) -> u64 {
        lsn.0 >> self.shift
    }
    fn bucket(&self, number: u64) -> &Bucket {
        &self.buckets[number as usize & (self.buckets.len() - 1)]
    }
    fn start_of(&self, number: u64) -> Lsn {
        Lsn(number << self.shift)
    }

    /// The ring's length in bytes of log. Less than that, by a bucket, may lie between the oldest
    /// dirty page and the end.
    pub(crate) fn ring_bytes(&self) -> u64 {
        (self.buckets.len() as u64) << self.shift
    }

    /// Says that nothing older than `lsn` can be dirty: where recovery or creation begins.
    pub(crate) fn begin_at(&self, lsn: Lsn) {
        *self.passing.lock() = self.number(lsn);
        self.low.store(self.number(lsn), Ordering::SeqCst);
    }

    /// Adds a page that was clean. Before the log publishes the change (POOL-2).
    pub(crate) fn add(&self, page: PageNo, first: Lsn) {
        let low = self.low.load(Ordering::SeqCst);
        debug_assert!(self.number(first) < low + self.buckets.len() as u64, "beyond the ring");
        let bucket = self.bucket(self.number(first));
        let mut entries = bucket.entries.lock();
        let oldest = bucket.oldest.load(Ordering::Relaxed);
        if oldest == 0 || first.0 < oldest {
            bucket.oldest.store(first.0, Ordering::SeqCst);
        }
        weir_base::lines::wrote("the number of dirty pages");
        bucket.live.fetch_add(1, Ordering::SeqCst);
        entries.push_back((page, first));
        bucket.note_listed(&entries);
        self.pages.fetch_add(1, Ordering::Relaxed);
    }

    /// Says that a page that was dirty since `first` is clean, or on its way to disk. `is_dirty`:
    /// see [`DirtyList::take_oldest`]. Where most entries of a bucket are of pages that are
    /// written, they go: with a small pool and a large log there would be one for each page write
    /// of a whole wrap.
    pub(crate) fn remove(&self, first: Lsn, is_dirty: impl Fn(PageNo, Lsn) -> bool) {
        let number = self.number(first);
        let bucket = self.bucket(number);
        let was = bucket.live.fetch_sub(1, Ordering::SeqCst);
        assert!(was > 0, "POOL-2: a page leaves the dirty list once");
        self.pages.fetch_sub(1, Ordering::Relaxed);
        let most = 2 * (was as usize - 1) + STALE_SPARE;
        if bucket.listed.load(Ordering::Relaxed) as usize > most {
            let mut entries = bucket.entries.lock();
            // Of a newer lap of the ring: not this one's.
            entries.retain(|(page, first)| self.number(first) > number || is_dirty(page, first));
            bucket.note_listed(&entries);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// A page gives back `now` instead of `before`.
    pub(crate) fn count_gives_back(&self, before: u16, now: u16) {
        if before != now {
            let change = u64::from(now).wrapping_sub(u64::from(before));
            self.gives_back.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// What comes back when all are written, in 65,535ths of a page that cannot be packed.
    pub(crate) fn gives_back(&self) -> u64 {
        self.gives_back.load(Ordering::Relaxed)
    }

    /// A position that no dirty page was first modified before, and where a group of the log
    /// starts: the oldest one listed, give or take a bucket, or `published`.
    ///
    /// A thread that adds has an LSN that is not published yet, so no bucket below that of
    /// `published` can come to life any more once it is empty.
    pub(crate) fn oldest(&self, published: Lsn) -> Lsn {
        let end = self.number(published);
        let mut number = self.low.load(Ordering::SeqCst);
        let began = number;
        while number < end && self.bucket(number).live.load(Ordering::SeqCst) == 0 {
            number += 1;
        }
        if number > began {
            // One passer at a time clears, and none clears what another has passed already: the
            // ring's place may be in use again by then.
            let mut passed = self.passing.lock();
            for number in (*passed).max(began)..number {
                let bucket = self.bucket(number);
                let mut entries = bucket.entries.lock();
                entries.clear();
                bucket.note_listed(&entries);
                bucket.oldest.store(0, Ordering::SeqCst);
            }
            *passed = number.max(*passed);
            self.low.fetch_max(number, Ordering::SeqCst);
        }
        let bucket = self.bucket(number);
        if bucket.live.load(Ordering::SeqCst) == 0 {
            return published;
        }
        Lsn(bucket.oldest.load(Ordering::SeqCst)).min(published)
    }

    /// The age distribution up to `published`.
    pub(crate) fn counts(&self, published: Lsn) -> AgeCounts {
        let first = self.number(self.oldest(published));
        let last = self.number(published).max(first);
        AgeCounts {
            bucket_bytes: 1 << self.shift,
            first: self.start_of(first),
            counts: (first..=last)
                .map(|number| self.bucket(number).live.load(Ordering::Relaxed))
                .collect(),
        }
    }

    /// Takes up to `most` entries, oldest first, whose first modification lies before `before`.
    /// They stay counted until [`DirtyList::remove`]; what is not written must be put back.
    ///
    /// Pages that were written to free their frames have left entries behind. `is_dirty` says of a
    /// page whether it is still dirty since then, and may say so of others, but must not say no of
    /// one that is. If such entries were taken, a short batch would have nothing but them where
    /// there are many, the oldest page would not be written, and the log could not go on.
    pub(crate) fn take_oldest(
        &self,
        most: usize,
        before: Lsn,
        is_dirty: impl Fn(PageNo, Lsn) -> bool,
    ) -> Vec<(PageNo, Lsn)> {
        let mut taken = Vec::new();
        let mut number = self.low.load(Ordering::SeqCst);
        let end = self.number(before).min(number + self.buckets.len() as u64 - 1);
        while taken.len() < most && number <= end {
            let bucket = self.bucket(number);
            if bucket.live.load(Ordering::SeqCst) > 0 {
                let mut entries = bucket.entries.lock();
                let mut left = Vec::new();
                while taken.len() < most
                    && let Some((page, first)) = entries.pop_front()
                {
                    // An entry of an older lap of the ring can only be stale.
                    if self.number(first) < number {
                        continue;
                    }
                    if self.number(first) > number || first >= before {
                        left.push((page, first));
                    } else if is_dirty(page, first) {
                        taken.push((page, first));
                    }
                }
                left.into_iter().for_each(|entry| entries.push_back(entry));
                bucket.note_listed(&entries);
            }
            number += 1;
        }
        taken
    }

    /// Returns an entry that was taken and is still dirty.
    pub(crate) fn put_back(&self, page: PageNo, first: Lsn) {
        let bucket = self.bucket(self.number(first));
        let mut entries = bucket.entries.lock();
        entries.push_back((page, first));
        bucket.note_listed(&entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> DirtyList {
        DirtyList::new(1 << 20, 4 << 20, 1 << 16)
    }

    #[test]
    fn oldest_and_counts_follow_adds_and_removes() {
        let list = list();
        list.begin_at(Lsn(10_000));
        assert_eq!(list.oldest(Lsn(50_000)), Lsn(50_000));
        list.add(PageNo(1), Lsn(50_000));
        list.add(PageNo(2), Lsn(52_000));
        assert_eq!(list.len(), 2);
        let oldest = list.oldest(Lsn(90_000));
        assert_eq!(oldest, Lsn(50_000));
        assert_eq!(list.counts(Lsn(90_000)).counts.iter().sum::<u32>(), 2);
        list.remove(Lsn(50_000), |_, _| true);
        assert!(list.oldest(Lsn(90_000)) > Lsn(50_000));
        list.remove(Lsn(52_000), |_, _| true);
        assert_eq!(list.oldest(Lsn(90_000)), Lsn(90_000));
        assert!(list.take_oldest(10, Lsn::MAX.back(1 << 60), |_, _| true).is_empty());
    }

    #[test]
    fn taken_oldest_first_and_put_back() {
        let list = list();
        for i in 0..100u64 {
            list.add(PageNo(i as u32), Lsn(1_000 + i * 700));
        }
        let taken = list.take_oldest(10, Lsn(200_000), |_, _| true);
        assert_eq!(taken.len(), 10);
        assert!(taken.iter().all(|&(_, lsn)| lsn < Lsn(1_000 + 12 * 700)));
        assert_eq!(list.len(), 100, "still counted until removed");
        list.put_back(taken[0].0, taken[0].1);
        assert_eq!(list.take_oldest(1, Lsn(200_000), |_, _| true), vec![taken[0]]);
        assert!(list.take_oldest(10, Lsn(2_000), |_, _| true).is_empty());
    }

    #[test]
    fn what_was_written_otherwise_is_not_taken() {
        let list = list();
        let at = |i: u64| Lsn(1_000 + i * 3);
        for i in 0..1000u64 {
            list.add(PageNo(i as u32), at(i));
        }
        // All but each hundredth were written to free their frames.
        let is_dirty = |page: PageNo, _| page.0.is_multiple_of(100);
        let is_written = |i: &u64| !is_dirty(PageNo(*i as u32), at(0));
        (0..1000).filter(is_written).for_each(|i| list.remove(at(i), |_, _| true));
        let taken = |most| list.take_oldest(most, Lsn(200_000), is_dirty);
        assert_eq!(taken(2), [(PageNo(0), at(0)), (PageNo(100), at(100))]);
        assert_eq!(taken(100).len(), 8);
        assert_eq!(list.len(), 10);
    }

    #[test]
    fn entries_of_written_pages_do_not_pile_up() {
        let list = list();
        // Each page is changed and written again and again while one stays dirty.
        list.add(PageNo(0), Lsn(1_000));
        let listed = || -> usize { list.buckets.iter().map(|b| b.entries.lock().len()).sum() };
        let mut most = 0;
        for change in 0..100_000u64 {
            let (page, first) = (PageNo(1 + (change % 300) as u32), Lsn(1_001 + change));
            list.add(page, first);
            if change >= 200 {
                let written = change - 200;
                let is_dirty = |page: PageNo, first: Lsn| page.0 == 0 || first.0 > 1_001 + written;
                list.remove(Lsn(1_001 + written), is_dirty);
            }
            if change.is_multiple_of(1000) {
                most = most.max(listed());
            }
        }
        assert_eq!(list.len(), 201);
        // Some for each bucket of 512 bytes.
        assert!(most < 20_000, "{most}");
        assert_eq!(list.take_oldest(1, Lsn(200_000), |page, _| page.0 == 0)[0].0, PageNo(0));
    }

    #[test]
    fn the_ring_is_used_again() {
        let list = list();
        let span = list.ring_bytes() - 512;
        for lap in 0..5u64 {
            let lsn = Lsn(lap * span + 4_000);
            list.add(PageNo(9), lsn);
            assert!(list.oldest(lsn.advanced(100)) <= lsn);
            list.remove(lsn, |_, _| true);
            assert_eq!(list.oldest(lsn.advanced(span - 10_000)), lsn.advanced(span - 10_000));
        }
    }
}
