//! The age distribution of the dirty list: all that the controller knows about the future.
use weir_base::Lsn;

/// Dirty pages counted by the LSN of their first modification. Bucket `i` covers
/// `[first + i*bucket_bytes, first + (i+1)*bucket_bytes)`, so the oldest pages come first.
///
/// Since a page must be durable before the log has grown by the age limit past its first
/// modification, this is at the same time the list of all deadlines within the next log wrap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgeHistogram {
    /// Width of a bucket in bytes of log. 0 is read as 1.
    pub bucket_bytes: u64,
    /// Where bucket 0 starts.
    pub first: Lsn,
    /// Pages in each bucket, oldest bucket first.
    pub counts: Vec<u32>,
}

impl AgeHistogram {
    /// An empty histogram whose bucket 0 starts at `first`.
    #[must_use]
    pub fn new(first: Lsn, bucket_bytes: u64) -> Self {
        AgeHistogram { bucket_bytes: bucket_bytes.max(1), first, counts: Vec::new() }
    }

    /// Forgets all pages and starts again at `first`, keeping the allocation.
    pub fn reset(&mut self, first: Lsn, bucket_bytes: u64) {
        self.bucket_bytes = bucket_bytes.max(1);
        self.first = first;
        self.counts.clear();
    }

    /// Counts one page. A page older than `first` is counted in bucket 0; one further than
    /// `BUCKETS_MAX` buckets away in the last, so that a wild LSN cannot ask for memory.
    pub fn add(&mut self, first_modified: Lsn) {
        let width = self.bucket_bytes.max(1);
        let bucket = (first_modified.bytes_since(self.first) / width) as usize;
        let bucket = bucket.min(BUCKETS_MAX - 1);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    /// All pages counted.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Pages first modified before `lsn`. A bucket that `lsn` cuts counts by its share, rounded
    /// up: a deadline may be met too early, not too late.
    #[must_use]
    pub fn pages_older_than(&self, lsn: Lsn) -> u64 {
        let width = self.bucket_bytes.max(1);
        let ahead = lsn.bytes_since(self.first);
        let whole = usize::try_from(ahead / width).unwrap_or(usize::MAX).min(self.counts.len());
        let before: u64 = self.counts[..whole].iter().map(|&count| u64::from(count)).sum();
        let cut = self.counts.get(whole).map_or(0, |&count| {
            let part = u128::from(count) * u128::from(ahead % width);
            part.div_ceil(u128::from(width)) as u64
        });
        before + cut
    }

    /// Where the page number `n` (from 0, oldest first) was first modified, to the precision of a
    /// bucket (its start): the oldest LSN that is left after `n` pages were written. `None` when
    /// there are no more than `n` pages.
    #[must_use]
    pub fn lsn_of_nth_page(&self, n: u64) -> Option<Lsn> {
        let mut seen = 0u64;
        for (start, count) in self.buckets() {
            seen += u64::from(count);
            if seen > n {
                return Some(start);
            }
        }
        None
    }

    /// Non-empty buckets, oldest first: where each starts, and its pages.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Lsn, u32)> + '_ {
        let width = self.bucket_bytes.max(1);
        let starts = (0u64..).map(move |i| self.first.advanced(i.saturating_mul(width)));
        starts.zip(self.counts.iter().copied()).filter(|&(_, count)| count > 0)
    }
}

/// Most buckets that a histogram grows to by itself.
const BUCKETS_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> AgeHistogram {
        AgeHistogram { bucket_bytes: 100, first: Lsn(1000), counts: vec![10, 0, 4] }
    }

    #[test]
    fn counts_pages_older_than_a_position() {
        let rows = [(0, 0), (1000, 0), (1001, 1), (1050, 5), (1100, 10), (1200, 10), (1225, 11)];
        for (lsn, pages) in rows {
            assert_eq!(three().pages_older_than(Lsn(lsn)), pages, "at {lsn}");
        }
        assert_eq!(three().pages_older_than(Lsn(1300)), 14);
        assert_eq!(three().pages_older_than(Lsn::MAX), 14);
    }

    #[test]
    fn finds_the_nth_page() {
        assert_eq!(three().lsn_of_nth_page(0), Some(Lsn(1000)));
        assert_eq!(three().lsn_of_nth_page(9), Some(Lsn(1000)));
        assert_eq!(three().lsn_of_nth_page(10), Some(Lsn(1200)));
        assert_eq!(three().lsn_of_nth_page(14), None);
        assert_eq!(AgeHistogram::default().lsn_of_nth_page(0), None);
    }

    #[test]
    fn adds_into_the_right_bucket_and_bounds_memory() {
        let mut histogram = AgeHistogram::new(Lsn(500), 10);
        for lsn in [500, 509, 510, 3] {
            histogram.add(Lsn(lsn));
        }
        assert_eq!(histogram.counts, [3, 1]);
        histogram.add(Lsn::MAX);
        assert_eq!(histogram.counts.len(), BUCKETS_MAX);
        assert_eq!(histogram.pages(), 5);
    }
}
