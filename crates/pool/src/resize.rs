//! More or less memory for pages, while all goes on. Frames are numbered: a pool that becomes
//! smaller gives up those with the highest numbers, some at a time; what is in them leaves memory,
//! written if it is dirty, and comes back into others when a thread asks for it.
use weir_base::{Lsn, PageNo, format_size};

use crate::error::PoolError;
use crate::in_flight::Cause;
use crate::pool::{FRAMES_MIN, Pool};
use crate::refill::Evicted;
use crate::write_back::LANE;

/// A step gives up this part of the frames, and at least so many.
const STEP_SHARE: u32 = 64;
const STEP_FRAMES_MIN: u32 = 16;

impl Pool {
    /// The most memory that the pool may be given while it is open, in bytes.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        u64::from(self.frames.room()) * self.page_size() as u64
    }

    /// Makes the pool larger or smaller: about `bytes` of memory for pages. Between steps, and
    /// where a step cannot go on, `wait` is called, with the frames that were given up since the
    /// last time; the pool stops trying when it says `false`.
    ///
    /// # Errors
    /// [`PoolError::Size`] when that is too little or too much, or what is in the frames cannot
    /// leave them: the pool has what it had, or a part less. Those of writing pages.
    pub fn resize(&self, bytes: u64, wait: &mut dyn FnMut(u32) -> bool) -> Result<(), PoolError> {
        let _one_at_a_time = self.resizing.lock();
        self.check_halted()?;
        let wanted = bytes / self.page_size() as u64;
        if wanted < FRAMES_MIN || wanted > u64::from(self.frames.room()) {
            return Err(PoolError::Size(format!(
                "a pool of {} is not possible while the database is open; the least is {}, the \
                 most {}",
                format_size(bytes),
                format_size(FRAMES_MIN * self.page_size() as u64),
                format_size(self.bytes_max())
            )));
        }
        let wanted = wanted as u32;
        let now = self.frames.count();
        if wanted > now {
            self.frames.set_count(wanted);
            self.evictor.lock().set_frames(wanted);
            self.free.go_on_to(wanted, now..wanted);
            return Ok(());
        }
        let step = (now / STEP_SHARE).max(STEP_FRAMES_MIN);
        let mut from = now;
        while from > wanted {
            let to = from.saturating_sub(step).max(wanted);
            self.shed(to, from, wait)?;
            from = to;
        }
        Ok(())
    }

    /// Gives up the frames from `to` up to `from`: all of them, or none.
    fn shed(&self, to: u32, from: u32, wait: &mut dyn FnMut(u32) -> bool) -> Result<(), PoolError> {
        self.free.end_at(to);
        self.frames.set_count(to);
        self.evictor.lock().set_frames(to);
        let emptied = self.empty(to, from, wait);
        if emptied.is_err() {
            // As it was: those that are in use were on no queue meanwhile, so that they can leave.
            self.frames.set_count(from);
            let mut evictor = self.evictor.lock();
            evictor.set_frames(from);
            let mut here: Vec<u32> = (to..from).collect();
            self.free.retain_here(&mut here);
            here.into_iter().for_each(|frame| evictor.give_back(frame));
            drop(evictor);
            self.free.go_on_to(from, 0..0);
            return emptied;
        }
        // A page that came while they were given up is admitted to a queue.
        self.evictor.lock().set_frames(to);
        // SAFETY: POOL-16: all of them are gone: each was on the list of free frames or has left
        // its page's word, and none can be taken. Those after them went before, or never came.
        unsafe { self.frames.give_back(to, from) };
        self.free.forget_gone();
        wait(from - to);
        Ok(())
    }

    /// Until the frames are all gone.
    fn empty(
        &self,
        to: u32,
        from: u32,
        wait: &mut dyn FnMut(u32) -> bool,
    ) -> Result<(), PoolError> {
        let mut left: Vec<u32> = (to..from).collect();
        loop {
            self.free.retain_here(&mut left);
            if left.is_empty() {
                return Ok(());
            }
            self.check_halted()?;
            let before = self.free.gone();
            let mut dirty: Vec<(PageNo, Lsn)> = Vec::new();
            for &frame in &left {
                if let Evicted::Dirty(page, first) = self.try_evict(frame) {
                    dirty.push((page, first));
                }
            }
            dirty.sort_unstable();
            // They leave in the next round, unless they are changed again meanwhile.
            let written =
                self.write_back(LANE, &dirty, Cause::FreeFrames, usize::MAX, &mut |_| {})?;
            if self.free.gone() == before && written.pages == 0 && !wait(0) {
                return Err(PoolError::Size(format!(
                    "the pool cannot become smaller than {} now: {} pages in what is to be given \
                     up are in use",
                    format_size(u64::from(from) * self.page_size() as u64),
                    left.len()
                )));
            }
        }
    }
}
