//! Pages that are not in use any more give their room back to a page store that can use it: looked
//! for in the space maps, one map after another, when pages were freed.
use std::sync::Arc;

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_pool::{Pool, PoolError};
use weir_space::Space;

/// Where a pass over the maps is.
#[derive(Default)]
struct Pass {
    /// The map that comes next; none: no pass is under way.
    map: Option<u32>,
    /// Pages that had been freed when the pass began.
    freed: u64,
}

/// What looks for pages that take room and are not in use.
pub(crate) struct Unused {
    pool: Arc<Pool>,
    space: Arc<Space>,
    pass: Mutex<rank::UnusedPages, Pass>,
}

impl Unused {
    /// Begins with a pass: before a crash pages may have been freed that nobody came to look at.
    pub(crate) fn new(pool: Arc<Pool>, space: Arc<Space>) -> Unused {
        let pass = Pass { map: Some(0), freed: 0 };
        Unused { pool, space, pass: Mutex::new(pass) }
    }

    /// One map. Returns whether there is another to look at now.
    ///
    /// # Errors
    /// Device and log failures; the pool has halted then.
    pub(crate) fn step(&self) -> Result<bool, PoolError> {
        if self.pool.store().room_pages().is_none() {
            return Ok(false);
        }
        let mut pass = self.pass.lock();
        let map = match pass.map {
            Some(map) => map,
            None if self.space.freed() == pass.freed => return Ok(false),
            None => {
                pass.freed = self.space.freed();
                0
            }
        };
        pass.map = match self.space.unused_of(map) {
            None => None,
            Some(unused) => {
                self.pool.give_up(&unused)?;
                Some(map + 1)
            }
        };
        Ok(pass.map.is_some())
    }
}
