//! The laboratory's way in: other engines' flushing policies in the place of `decide`. For
//! comparisons only (crate `weir-lab`). Without a policy of the laboratory all of this is one test
//! of an `Option` at each tick and each batch.
use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Clock, Lsn, PageNo};
use weir_pool::{Cause, Neighbours, Pool, PoolError};

use crate::tick::TickView;

/// What a policy of the laboratory is shown when it is asked.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// As `decide` sees it.
    pub seen: &'a TickView<'a>,
    /// Capacity of the log in bytes: what other engines call the size of all their log files.
    pub log_bytes: u64,
    /// Pages that were written for the last orders.
    pub wrote: u64,
}

/// What a policy of the laboratory wants to be done. Unlike a verdict these are not rates: engines
/// of this kind write a number of pages as fast as the disk takes them, and then sleep.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    /// Pages to write now, oldest first.
    pub pages: u64,
    /// Only pages first modified before this.
    pub before: Lsn,
    /// Whether writers wait until these pages are durable.
    pub stop_writers: bool,
    /// The age at which writers wait in any case, bytes.
    pub writers_wait_at: u64,
    /// When to be asked again: so many microseconds after now, and not before the orders are done.
    pub again_micros: u64,
    /// Free frames to keep ahead of demand.
    pub free_frames: u64,
    /// Dirty pages that may be written for free frames in a second; `None`: any number.
    pub free_writes: Option<u64>,
}

/// A policy of the laboratory.
pub trait Policy: Send {
    /// Its name, as on the command line.
    fn name(&self) -> &'static str;

    /// What is to be done now.
    fn look(&mut self, look: &Look<'_>) -> Orders;
}

/// A policy with the way in which it writes.
pub struct LabSetup {
    /// Decides.
    pub policy: Box<dyn Policy>,
    /// Dirty pages that are written along with the one that was asked for.
    pub neighbours: Neighbours,
}

/// The orders being carried out.
pub(crate) struct Lab {
    desk: Mutex<rank::LabPolicy, Desk>,
    neighbours: Neighbours,
}

struct Desk {
    policy: Box<dyn Policy>,
    orders: Orders,
    wrote: u64,
    due_micros: u64,
    /// Pages written for free frames in this second, and when it began.
    free_writes: u64,
    free_writes_since: u64,
    /// How far writers may go while they are stopped.
    stopped_at: Lsn,
}

impl Desk {
    fn is_done(&self) -> bool {
        self.wrote >= self.orders.pages
    }
}

impl Lab {
    pub(crate) fn new(setup: LabSetup) -> Self {
        let orders = Orders {
            pages: 0,
            before: Lsn::MAX,
            stop_writers: false,
            writers_wait_at: u64::MAX,
            again_micros: 0,
            free_frames: 64,
            free_writes: None,
        };
        let desk = Desk {
            policy: setup.policy,
            orders,
            wrote: 0,
            due_micros: 0,
            free_writes: 0,
            free_writes_since: 0,
            stopped_at: Lsn(0),
        };
        Lab { desk: Mutex::new(desk), neighbours: setup.neighbours }
    }

    /// Whether the policy is to be asked: its orders are done and its sleep is over.
    pub(crate) fn is_due(&self, now_micros: u64) -> bool {
        let desk = self.desk.lock();
        desk.is_done() && now_micros >= desk.due_micros
    }

    /// Asks it.
    pub(crate) fn ask(&self, seen: &TickView<'_>, log_bytes: u64) {
        let mut desk = self.desk.lock();
        let wrote = desk.wrote;
        let mut orders = desk.policy.look(&Look { seen, log_bytes, wrote });
        // Open transactions are logged again when they begin a quarter of the log back: a limit
        // below that, as some formulas have it for very small logs, would never let them go on.
        orders.writers_wait_at = orders.writers_wait_at.max(log_bytes / 2);
        desk.wrote = 0;
        desk.due_micros = seen.now_micros + orders.again_micros;
        desk.stopped_at = seen.log_end;
        desk.orders = orders;
    }

    /// Free frames to keep.
    pub(crate) fn free_frames(&self) -> u64 {
        self.desk.lock().orders.free_frames
    }

    /// The position that writers may not pass, given where the oldest dirty page is.
    pub(crate) fn gate(&self, oldest: Lsn) -> Lsn {
        let desk = self.desk.lock();
        let by_age = oldest.advanced(desk.orders.writers_wait_at);
        if desk.orders.stop_writers && !desk.is_done() {
            return by_age.min(desk.stopped_at);
        }
        by_age
    }

    /// Dirty pages that may still be written for free frames in this second.
    pub(crate) fn free_writes_left(&self, now_micros: u64) -> u64 {
        let mut desk = self.desk.lock();
        if now_micros.saturating_sub(desk.free_writes_since) >= 1_000_000 {
            (desk.free_writes, desk.free_writes_since) = (0, now_micros);
        }
        let most = desk.orders.free_writes.unwrap_or(u64::MAX);
        most.saturating_sub(desk.free_writes)
    }

    pub(crate) fn count_free_writes(&self, pages: u64) {
        self.desk.lock().free_writes += pages;
    }

    /// Carries out a batch of the orders, unpaced. Returns pages written; 0 means that there is
    /// nothing to do for now.
    pub(crate) fn sweep(&self, pool: &Pool, clock: &dyn Clock) -> Result<usize, PoolError> {
        let (left, before) = {
            let desk = self.desk.lock();
            (desk.orders.pages.saturating_sub(desk.wrote), desk.orders.before)
        };
        if left == 0 {
            return Ok(0);
        }
        let batch = (left as usize).min(pool.store().batch_max());
        let oldest = pool.take_oldest(batch, before.min(pool.log().published()));
        if oldest.is_empty() {
            // Less was there than asked for: these orders are as done as they can be.
            self.give_up();
            return Ok(0);
        }
        let pages = with_neighbours(pool, oldest, self.neighbours);
        let written = pool.write_back(0, &pages, Cause::Deadline, usize::MAX, &mut |_| {})?;
        if written.pages == 0 {
            // All of them are held by others just now, which may be waiting for these very orders
            // to be done: they are to be thought over rather than insisted on.
            clock.sleep_micros(200);
            self.give_up();
        }
        // As the originals do, neighbours count as pages asked for.
        self.desk.lock().wrote += written.pages as u64;
        Ok(written.pages)
    }

    fn give_up(&self) {
        let mut desk = self.desk.lock();
        desk.orders.pages = desk.wrote;
    }
}

fn with_neighbours(
    pool: &Pool,
    oldest: Vec<(PageNo, Lsn)>,
    neighbours: Neighbours,
) -> Vec<(PageNo, Lsn)> {
    if neighbours == Neighbours::None {
        return oldest;
    }
    let mut all = oldest.clone();
    for (page, _) in oldest {
        all.extend(pool.dirty_neighbours(page, neighbours));
    }
    all.sort_unstable();
    all.dedup_by_key(|&mut (page, _)| page);
    all
}
