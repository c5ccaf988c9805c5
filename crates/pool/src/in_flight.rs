//! Pages on their way to the disk: why, and what they hold.
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::{Lsn, rank};

/// Why a page is written. Counted apart: the difference between a database that keeps up and one
/// whose pool is too small is visible here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The checkpoint's deadline asked for it.
    Deadline,
    /// Its frame is wanted for another page.
    FreeFrames,
    /// Nothing else to do.
    Idle,
    /// It holds a segment that is to be free.
    Segment,
    /// The database is closing (or the user asked for a full checkpoint).
    Shutdown,
}

/// The oldest first-modification LSN of each batch on its way: they hold the checkpoint although
/// their pages have left the dirty list.
#[derive(Default)]
pub(crate) struct InFlight {
    batches: Mutex<rank::BatchesInFlight, Vec<(u64, Lsn, u64)>>,
    next: AtomicU64,
}

impl InFlight {
    /// A batch without pages yet; its number.
    pub(crate) fn begin(&self) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.batches.lock().push((id, Lsn::MAX, 0));
        id
    }

    /// A page of the batch, which holds the checkpoint at `lsn`.
    pub(crate) fn hold(&self, id: u64, lsn: Lsn) {
        for batch in self.batches.lock().iter_mut().filter(|b| b.0 == id) {
            batch.1 = batch.1.min(lsn);
            batch.2 += 1;
        }
    }

    /// The batch is durable, and holds nothing any more.
    pub(crate) fn end(&self, id: u64) {
        self.batches.lock().retain(|b| b.0 != id);
    }

    pub(crate) fn oldest(&self) -> Option<Lsn> {
        self.batches.lock().iter().map(|b| b.1).min().filter(|&lsn| lsn != Lsn::MAX)
    }

    pub(crate) fn pages(&self) -> u64 {
        self.batches.lock().iter().map(|b| b.2).sum()
    }
}
