//! Pages read in for a scan before it comes to them.
//!
//! A scan that reads one page after the other has the disk do one thing at a time. It knows which
//! pages come next, and asks for some of them at once. None of them is needed yet, so a scan gets
//! no more of the pool than would not hurt others (POOL-18).
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_base::{PageNo, ThreadCounts};

use crate::ahead_pages::AheadRead;
use crate::ahead_thread::AheadBatch;
use crate::pool::Pool;
use crate::read_in::Room;
use crate::refill::Evicted;

/// Pages that are read ahead at a time, of all scans together: no more than this part of the pool.
const AHEAD_POOL_SHARE: u64 = 8;
/// And of one scan no more than this: less than the short queue has (`evict.rs`), so that they are
/// there still when the scan comes to them.
const SCAN_POOL_SHARE: u64 = 16;
/// Frames that a scan tries to empty for a page before it does with fewer pages.
const VICTIMS_MAX: u32 = 4;

impl Pool {
    /// Pages that a scan may have read ahead at a time.
    #[must_use]
    pub fn ahead_max(&self) -> usize {
        (u64::from(self.frames.count()) / SCAN_POOL_SHARE) as usize
    }

    /// Reads those of the pages that are absent, which a scan comes to next, in this order. Waits
    /// for no latch and for no frame: it does with fewer pages, of which the first ones come. What
    /// cannot be read is left to a thread that needs it, which gets the error then.
    pub fn read_ahead(&self, pages: &[PageNo]) -> AheadRead {
        let most = u64::from(self.frames.count()) / AHEAD_POOL_SHARE;
        let taken = self.ahead.take(pages.len() as u64, most);
        if taken == 0 {
            return AheadRead::default();
        }
        let batch = self.bring_batch(&pages[..taken as usize], Room::Ahead);
        self.ahead.give_back(taken);
        self.stats.read_ahead.add(batch.read);
        self.stats.read_ahead_batches.add(u64::from(batch.arrived > 0));
        AheadRead { looked_at: batch.looked_at, arrived: batch.arrived }
    }

    /// Has a thread that does nothing else read those of the pages that are absent, as
    /// [`Pool::read_ahead`] does. `None`: no such thread is idle ([`Pool::step_ahead`]).
    #[must_use]
    pub fn hand_over_ahead(&self, pages: Vec<PageNo>) -> Option<Arc<AheadBatch>> {
        self.ahead_threads.hand_over(pages).ok()
    }

    /// Waits for such a batch, which counts as a read of this thread's, as if it had asked itself.
    pub fn await_ahead(&self, batch: &AheadBatch) -> AheadRead {
        ThreadCounts::reading(batch.pages().len() as u64, || batch.wait())
    }

    /// The step of a thread that reads batches for scans: waits at most so long for one. `false`:
    /// there was none.
    pub fn step_ahead(&self, limit: Duration) -> bool {
        let Some(reading) = self.ahead_threads.take(limit) else { return false };
        let read = self.read_ahead(reading.pages());
        self.stats.read_ahead_handed_over.add(u64::from(read.arrived > 0));
        reading.end(read);
        true
    }

    /// Wakes the threads that wait in [`Pool::step_ahead`].
    pub fn wake_ahead(&self) {
        self.ahead_threads.wake();
    }

    /// A frame for a page that a scan comes to next: one that will not be missed, or that of the
    /// page that would leave next, if it is clean. The scan does the cleaner's work itself, so that
    /// threads that wait for frames do not wait longer because of it.
    pub(crate) fn take_frame_ahead(&self) -> Option<u32> {
        if let Some(frame) = self.take_spare_frame() {
            return Some(frame);
        }
        for _ in 0..VICTIMS_MAX {
            let victim = self.evictor.lock().next_victim(&self.frames)?;
            match self.try_evict(victim) {
                Evicted::Yes => {
                    if let Some((frame, _)) = self.free.pop() {
                        return Some(frame);
                    }
                }
                Evicted::Busy => self.evictor.lock().give_back(victim),
                Evicted::Dirty(..) => {
                    self.evictor.lock().give_back_first(victim);
                    self.free.want();
                    break;
                }
            }
        }
        // Half of what is kept free stays.
        self.free.pop_beyond(self.free.target.load(Ordering::Relaxed).div_ceil(2))
    }
}
