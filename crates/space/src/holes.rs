//! Giving the blocks of free pages back to the file system, a step at a time, and having them
//! again. When they may go is the caller's business: once the checkpoint has passed what freed the
//! pages.
use weir_base::counters;
use weir_pool::PoolError;

use crate::space::{Space, SpaceError, State, disk_full};

counters! {
    /// What the space counts.
    pub struct SpaceStats {
        given_back: "bytes", "of free pages, given back to the file system";
        taken_again: "bytes", "given back and asked for again, for pages to come";
    }
}

/// What a step of giving back came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveBack {
    /// So much was given back; the next step begins at this page.
    Bytes {
        /// How much.
        bytes: u64,
        /// The page behind it.
        next: u32,
    },
    /// There is nothing left that was found to be free, or there was no room on the disk for what
    /// giving back takes.
    Nothing,
    /// The file system cannot do so.
    Unsupported,
}

impl Space {
    /// What is counted of it.
    #[must_use]
    pub fn stats(&self) -> &SpaceStats {
        &self.stats
    }

    /// Looks at the pages of map number `map`, and notes which are to be given back: they are free
    /// now, and what freed them lies before the end of the log as it is when this returns. `kept`
    /// goes from one map to the next, from 0 on. Returns the bytes found; `None`: there is no such
    /// map.
    #[must_use]
    pub fn look_for_holes(&self, map: u32, kept: &mut u64) -> Option<u64> {
        let first = map.checked_mul(self.bits_per_map)?;
        let pages = self.pool.store().pages();
        let end = first.saturating_add(self.bits_per_map).min(pages);
        let mut state = self.state.lock();
        let state = &mut *state;
        if map == 0 {
            state.blocks.forget_quiet();
        }
        (first < pages).then(|| state.blocks.look(&state.used, first..end, kept))
    }

    /// Gives back the next of what was found, from page `from` on, and is free still. To be called
    /// when the checkpoint has passed the end of the log as it was after the last look, and no
    /// batch from before is under way.
    ///
    /// # Errors
    /// Device failures; the pool has halted then.
    pub fn give_back(&self, from: u32) -> Result<GaveBack, PoolError> {
        // Held meanwhile: none of these pages is claimed before it is known that it is a hole.
        let mut state = self.state.lock();
        let Some(pages) = state.blocks.next_quiet(from) else { return Ok(GaveBack::Nothing) };
        let is_punched = match self.pool.punch(pages.clone()) {
            Err(e) if e.is_disk_full() => return Ok(GaveBack::Nothing),
            punched => punched?,
        };
        state.blocks.settle(&pages, is_punched);
        if !is_punched {
            return Ok(GaveBack::Unsupported);
        }
        let bytes = pages.len() as u64 * self.pool.page_size() as u64;
        self.stats.given_back.add(bytes);
        Ok(GaveBack::Bytes { bytes, next: pages.end })
    }

    /// SPACE-4: has blocks for a page before it is used, as growing has: a full disk is met here,
    /// and not by the thread that writes the page.
    pub(crate) fn take_blocks(&self, state: &mut State, page: u32) -> Result<(), SpaceError> {
        if !state.blocks.is_unsure(page) {
            return Ok(());
        }
        let wanted = state.blocks.wanted(page, state.used.used(), self.pool.store().pages());
        match self.pool.reserve(wanted.clone()) {
            // Not so much; this page alone, perhaps.
            Err(e) if e.is_disk_full() => self.pool.reserve(page..page + 1).map_err(disk_full),
            Err(e) => Err(e.into()),
            Ok(()) => {
                self.stats.taken_again.add(state.blocks.has_blocks(&wanted));
                Ok(())
            }
        }
    }

    /// A free page behind `page` that has blocks for certain.
    pub(crate) fn next_with_blocks(&self, state: &mut State, page: u32) -> Option<u32> {
        let pages = self.pool.store().pages();
        let mut next = state.used.first_free(page + 1);
        while next < pages {
            next = if state.blocks.is_unsure(next) {
                state.used.first_free(state.blocks.behind(next))
            } else if next.is_multiple_of(self.bits_per_map) {
                // It is to be a map, and what lies behind it needs that.
                return None;
            } else {
                return Some(next);
            };
        }
        None
    }
}
