//! Pages that are not in use any more give their room back, to a page store that can use it or (see
//! `holes.rs`) to the file system: looked for in the space maps, one map after another, when pages
//! were freed; given up when the checkpoint has passed what freed them. Before that recovery may
//! need what lies there: the log has changes of the page from when it was in use, and they are not
//! applied to nothing.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_base::lock::Mutex;
use weir_base::{Lsn, rank};
use weir_pool::{Placed, Pool, PoolError};
use weir_space::Space;
use weir_txn::PlantedBug;

use crate::holes::{Holes, Seen};

/// Pages that may wait for the checkpoint at a time: 16 bytes each.
const WAITING_MAX: usize = 1 << 20;

/// Where a pass over the maps is, and what it has found.
#[derive(Default)]
struct Pass {
    /// Where pages are in place.
    holes: Holes,
    /// The map that comes next; none: no pass is under way.
    map: Option<u32>,
    /// Pages that had been freed when the pass began.
    freed: u64,
    /// Pages of an earlier pass were not given up.
    left: bool,
    /// What was not in use, where it lay, and the end of the log then.
    waiting: VecDeque<(Lsn, Vec<Placed>)>,
}

/// What looks for pages that take room and are not in use.
pub(crate) struct Unused {
    pool: Arc<Pool>,
    space: Arc<Space>,
    pass: Mutex<rank::UnusedPages, Pass>,
    /// Copies of what lies there that are being made.
    holders: AtomicU32,
    planted: PlantedBug,
}

/// As long as it is there, pages that are not in use stay where they are.
pub(crate) struct HeldUnused(Arc<Unused>);

impl Drop for HeldUnused {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Unused {
    /// Begins with a pass: pages may have been freed before a crash that were not given up. Blocks
    /// of pages in place go back `grace_micros` after it was seen that they are free, at least.
    pub(crate) fn new(
        pool: Arc<Pool>,
        space: Arc<Space>,
        planted: PlantedBug,
        grace_micros: u64,
    ) -> Unused {
        let pass = Pass { map: Some(0), holes: Holes::new(grace_micros), ..Pass::default() };
        Unused { pool, space, pass: Mutex::new(pass), holders: AtomicU32::new(0), planted }
    }

    /// Keeps what the checkpoint of now may need.
    pub(crate) fn hold(unused: &Arc<Unused>) -> HeldUnused {
        // So none is being given up when this returns.
        let _pass = unused.pass.lock();
        unused.holders.fetch_add(1, Ordering::AcqRel);
        HeldUnused(unused.clone())
    }

    /// Looks at one map, or gives up what the checkpoint has passed. Returns whether there is more
    /// to do now.
    ///
    /// # Errors
    /// Device and log failures; the pool has halted then.
    pub(crate) fn step(&self, now_micros: u64) -> Result<bool, PoolError> {
        let mut pass = self.pass.lock();
        if self.holders.load(Ordering::Acquire) > 0 {
            return Ok(false);
        }
        if self.pool.store().room_pages().is_some() {
            return self.step_of_segments(&mut pass);
        }
        let checkpoint = match self.planted {
            PlantedBug::PunchedTooSoon => self.pool.log().end(),
            _ => self.pool.log().checkpoint(),
        };
        let seen = Seen { now_micros, checkpoint, freed: self.space.freed() };
        pass.holes.step(&self.pool, &self.space, &seen)
    }

    /// Whether something that is not in use is to give its room back, as soon as the checkpoint and
    /// the pace allow it.
    pub(crate) fn has_more(&self) -> bool {
        let pass = self.pass.lock();
        if self.pool.store().room_pages().is_none() {
            return self.pool.store().can_punch() && pass.holes.has_more(self.space.freed());
        }
        let is_passed = pass.map.is_none() && pass.freed == self.space.freed() && !pass.left;
        !(is_passed && pass.waiting.is_empty()) || self.pool.store().is_shrinking()
    }

    fn step_of_segments(&self, pass: &mut Pass) -> Result<bool, PoolError> {
        let checkpoint = match self.planted {
            PlantedBug::GivenUpTooSoon => self.pool.log().durable(),
            _ => self.pool.log().checkpoint(),
        };
        if pass.waiting.front().is_some_and(|(end, _)| *end <= checkpoint)
            && let Some((_, placed)) = pass.waiting.pop_front()
        {
            let given = self.pool.give_up(&placed, checkpoint)?;
            // The cleaner moved them meanwhile, or the store had no room to say it of all: another
            // pass finds these again.
            pass.left |= given < placed.len() as u64;
            return Ok(true);
        }
        if pass.waiting.iter().map(|(_, placed)| placed.len()).sum::<usize>() >= WAITING_MAX {
            return Ok(false);
        }
        let map = match pass.map {
            Some(map) => map,
            None if self.space.freed() == pass.freed && !pass.left => return Ok(false),
            None => {
                pass.left = false;
                pass.freed = self.space.freed();
                0
            }
        };
        pass.map = None;
        if let Some(unused) = self.space.unused_of(map) {
            pass.map = Some(map + 1);
            // In this order: what freed them lies before the end.
            let placed = self.pool.store().placed(&unused);
            if !placed.is_empty() {
                pass.waiting.push_back((self.pool.log().end(), placed));
            }
        }
        Ok(pass.map.is_some())
    }
}
