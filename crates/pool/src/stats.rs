//! What the pool counts.
use weir_base::{Counter, counters};

use crate::in_flight::Cause;

counters! {
    /// What the pool counts.
    pub struct PoolStats {
        reads: "pages", "pages read from disk";
        warmed: "pages", "of these, read unasked: they were in memory before the restart";
        read_ahead: "pages", "of these, read before a scan came to them";
        read_ahead_batches: "batches", "times that pages were read before a scan came to them";
        read_ahead_handed_over: "batches", "of these, read by another thread as the scan went on";
        lost: "pages", "times a page was asked for that is damaged or cannot be read";
        passed_over: "places", "times a reader passed over rows that cannot be read";
        evictions: "pages", "pages evicted to make room";
        frames_taken: "frames", "free frames taken for a page";
        free_frame_waits: "waits", "times a thread waited for a free frame";
        writes_deadline: "pages", "pages written because the checkpoint's deadline asked";
        writes_free_frames: "pages", "pages written because their frame was wanted";
        writes_idle: "pages", "pages written because nothing else was to be done";
        writes_segment: "pages", "pages written because their segment is to be free";
        writes_shutdown: "pages", "pages written by a full checkpoint or shutdown";
    }
}

impl PoolStats {
    pub(crate) fn count_writes(&self, cause: Cause, pages: u64) {
        let counter: &Counter = match cause {
            Cause::Deadline => &self.writes_deadline,
            Cause::FreeFrames => &self.writes_free_frames,
            Cause::Idle => &self.writes_idle,
            Cause::Segment => &self.writes_segment,
            Cause::Shutdown => &self.writes_shutdown,
        };
        counter.add(pages);
    }

    /// Pages written, whatever the cause.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes_deadline.get()
            + self.writes_free_frames.get()
            + self.writes_idle.get()
            + self.writes_segment.get()
            + self.writes_shutdown.get()
    }
}
