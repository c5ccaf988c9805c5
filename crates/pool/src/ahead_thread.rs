//! Batches that a thread of the engine's reads while the scan that comes to them looks at the pages
//! before them: the disk is at work then, and another processor unpacks.
//!
//! A batch is handed over only to a thread that waits for one. So none waits in a queue, and a scan
//! that finds all threads at work reads for itself.
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use weir_base::lock::{Condvar, Mutex};
use weir_base::{PageNo, rank};

use crate::ahead_pages::AheadRead;

/// Pages that another thread reads.
pub struct AheadBatch {
    pages: Vec<PageNo>,
    read: Mutex<rank::AheadBatch, Option<AheadRead>>,
    done: Condvar,
}

impl AheadBatch {
    fn new(pages: Vec<PageNo>) -> Self {
        AheadBatch { pages, read: Mutex::new(None), done: Condvar::new() }
    }

    /// Which pages, in the order in which the scan comes to them.
    #[must_use]
    pub fn pages(&self) -> &[PageNo] {
        &self.pages
    }

    /// Waits until the thread is done with them. Without any latch: the thread may want it.
    pub fn wait(&self) -> AheadRead {
        let mut read = self.read.lock();
        loop {
            if let Some(read) = *read {
                return read;
            }
            self.done.wait(&mut read);
        }
    }

    fn finish(&self, read: AheadRead) {
        self.read.lock().get_or_insert(read);
        self.done.notify_all();
    }
}

impl fmt::Debug for AheadBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AheadBatch").field("pages", &self.pages).finish_non_exhaustive()
    }
}

/// A batch that this thread reads: done with when it is dropped, also if the thread panics.
pub(crate) struct Reading(Arc<AheadBatch>);

impl Reading {
    pub(crate) fn pages(&self) -> &[PageNo] {
        self.0.pages()
    }

    /// Says what has become of them.
    pub(crate) fn end(self, read: AheadRead) {
        self.0.finish(read);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.finish(AheadRead::default());
    }
}

/// The threads that wait for batches, and batches for them.
#[derive(Default)]
pub(crate) struct AheadThreads {
    handing: Mutex<rank::AheadThreads, Handing>,
    handed: Condvar,
}

#[derive(Default)]
struct Handing {
    /// Threads that wait, or are about to look for a batch.
    waiting: usize,
    /// Never more than threads wait: each has one that takes it.
    batches: Vec<Arc<AheadBatch>>,
}

impl AheadThreads {
    /// A batch for a thread that waits, or the pages back: none does.
    pub(crate) fn hand_over(&self, pages: Vec<PageNo>) -> Result<Arc<AheadBatch>, Vec<PageNo>> {
        let mut handing = self.handing.lock();
        if handing.batches.len() >= handing.waiting {
            return Err(pages);
        }
        let batch = Arc::new(AheadBatch::new(pages));
        handing.batches.push(batch.clone());
        self.handed.notify_one();
        Ok(batch)
    }

    /// A batch for this thread, which waits at most so long.
    pub(crate) fn take(&self, limit: Duration) -> Option<Reading> {
        let mut handing = self.handing.lock();
        handing.waiting += 1;
        if handing.batches.is_empty() {
            self.handed.wait_for(&mut handing, limit);
        }
        handing.waiting -= 1;
        // As many batches as threads wait: whichever takes one, the last has one left.
        handing.batches.pop().map(Reading)
    }

    /// Wakes the threads that wait.
    pub(crate) fn wake(&self) {
        self.handed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;

    fn pages(range: std::ops::Range<u32>) -> Vec<PageNo> {
        range.map(PageNo).collect()
    }

    #[test]
    fn a_batch_is_handed_over_to_a_thread_that_waits() {
        let threads = AheadThreads::default();
        assert!(threads.hand_over(pages(0..2)).is_err(), "no thread waits");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| threads.take(Duration::from_secs(60)));
            let batch = loop {
                if let Ok(batch) = threads.hand_over(pages(0..2)) {
                    break batch;
                }
                std::thread::yield_now();
            };
            assert!(threads.hand_over(pages(2..4)).is_err(), "the one thread has a batch");
            let taken = waits.join().expect("the thread ends").expect("it has the batch");
            assert_eq!(taken.pages(), batch.pages());
            taken.end(AheadRead { looked_at: 2, arrived: 1 });
            assert_eq!(batch.wait(), AheadRead { looked_at: 2, arrived: 1 });
        });
        assert!(threads.take(Duration::ZERO).is_none());
        assert!(threads.hand_over(pages(0..2)).is_err(), "it waits no more");
    }

    #[test]
    fn a_thread_that_panics_keeps_no_scan_waiting() {
        let batch = Arc::new(AheadBatch::new(pages(0..2)));
        let reading = Reading(batch.clone());
        let thread = std::thread::spawn(move || {
            let _reading = reading;
            panic!("planted");
        });
        assert_eq!(batch.wait(), AheadRead::default());
        assert!(thread.join().is_err());
    }

    #[test]
    fn each_batch_finds_its_thread() {
        let threads = AheadThreads::default();
        let (handed, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        if let Some(reading) = threads.take(Duration::from_micros(50)) {
                            taken.fetch_add(1, Relaxed);
                            reading.end(AheadRead { looked_at: 1, arrived: 1 });
                        }
                    }
                });
            }
            for n in 0..2000 {
                if let Ok(batch) = threads.hand_over(pages(n..n + 1)) {
                    handed.fetch_add(1, Relaxed);
                    // Hangs where no thread has taken it.
                    assert_eq!(batch.wait().arrived, 1);
                }
            }
            done.store(true, Relaxed);
        });
        assert_eq!(handed.load(Relaxed), taken.load(Relaxed));
    }
}
