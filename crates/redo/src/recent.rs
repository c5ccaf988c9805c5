//! The end of the log as it lies on the disk, kept in memory for a reader that follows close
//! behind: what it read back from the disk would be taken from the log's own writes, on a slow disk
//! a quarter of a second at a time.
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::{LargeArray, align_up, rank};

/// A reader copies so many bytes at a time: the leader, which needs the lock, waits no longer.
const STEP_BYTES: usize = 128 << 10;

/// The last bytes that were written. Nothing is kept until [`Recent::keep`] asks for it.
#[derive(Default)]
pub(crate) struct Recent {
    /// Bytes to keep, a multiple of a page; 0: none. Changed under `kept` only.
    size: AtomicU64,
    kept: Mutex<rank::LogRecent, Kept>,
}

#[derive(Default)]
struct Kept {
    /// The byte of disk position `p` lies at `p` modulo the length.
    ring: LargeArray<u8>,
    from: u64,
    to: u64,
}

impl Recent {
    /// Keeps the last `bytes` from now on; 0 gives the memory back.
    pub(crate) fn keep(&self, bytes: u64) {
        let bytes = align_up(bytes);
        if self.size.load(Ordering::Relaxed) != bytes {
            let mut kept = self.kept.lock();
            *kept = Kept { ring: LargeArray::zeroed(bytes as usize), from: 0, to: 0 };
            self.size.store(bytes, Ordering::Relaxed);
        }
    }

    /// These bytes have been written at disk position `at`, where the last ones ended or before.
    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        if self.size.load(Ordering::Relaxed) > 0 {
            self.kept.lock().put(at, bytes);
        }
    }

    /// Copies what lies from disk position `at` on, if all of it is here.
    pub(crate) fn copy(&self, at: u64, out: &mut [u8]) -> bool {
        let mut at = at;
        out.chunks_mut(STEP_BYTES).all(|out| {
            let from = at;
            at += out.len() as u64;
            self.kept.lock().copy(from, out)
        })
    }
}

impl Kept {
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let len = self.ring.len();
        if len == 0 {
            return;
        }
        if !(self.from..=self.to).contains(&at) {
            (self.from, self.to) = (at, at);
        }
        let end = at + bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(len)..];
        let place = (end - bytes.len() as u64) as usize % len;
        let (head, rest) = bytes.split_at(bytes.len().min(len - place));
        self.ring[place..][..head.len()].copy_from_slice(head);
        self.ring[..rest.len()].copy_from_slice(rest);
        self.to = end;
        self.from = self.from.max(end.saturating_sub(len as u64));
    }

    fn copy(&self, at: u64, out: &mut [u8]) -> bool {
        let len = self.ring.len();
        if at < self.from || at + out.len() as u64 > self.to {
            return false;
        }
        let place = at as usize % len;
        let (head, rest) = out.split_at_mut(out.len().min(len - place));
        head.copy_from_slice(&self.ring[place..][..head.len()]);
        rest.copy_from_slice(&self.ring[..rest.len()]);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bytes(at: u64, len: usize) -> Vec<u8> {
        (at..at + len as u64).map(|p| (p % 251) as u8).collect()
    }

    #[test]
    fn the_last_bytes_are_here_and_no_others() {
        let recent = Recent::default();
        let copied = |at: u64, len: usize| {
            let mut out = vec![0; len];
            recent.copy(at, &mut out).then(|| assert_eq!(out, bytes(at, len), "{at} {len}"))
        };
        recent.put(0, &bytes(0, 100));
        assert!(copied(0, 1).is_none(), "nothing was asked for");
        recent.keep(1);
        // (written from, bytes; then what is here, and what is not)
        type Stretch = (u64, usize);
        let rows: [(u64, usize, Stretch, Stretch); 7] = [
            (8192, 1000, (8192, 1000), (8191, 10)),
            (9192, 3000, (8192, 4000), (8192, 4001)),
            (12_000, 1000, (8904, 4096), (8903, 2)),
            // A page written again, and more behind it.
            (12_288, 2000, (12_200, 2088), (9000, 10_000)),
            // More than is kept.
            (14_288, 9001, (19_193, 4096), (19_192, 100)),
            // Behind a gap: what lies before it is of no use.
            (30_000, 10, (30_000, 10), (23_288, 1)),
            (30_010, 4100, (30_014, 4096), (30_000, 20)),
        ];
        for (at, len, here, gone) in rows {
            recent.put(at, &bytes(at, len));
            assert!(copied(here.0, here.1).is_some(), "{at} {here:?}");
            assert!(copied(gone.0, gone.1).is_none(), "{at} {gone:?}");
        }
        recent.keep(0);
        assert!(copied(30_014, 1).is_none() && recent.kept.lock().ring.is_empty());
    }
}
