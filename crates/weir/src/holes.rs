//! The blocks of free pages go back to the file system, where pages are in place: a pass looks at
//! one space map after another, waits until the checkpoint has passed what it saw, and punches
//! holes, a few MiB at a time (`docs/decisions/holes.md`). What to do next is decided by
//! [`decide`]; [`Holes::step`] does it.
use weir_base::Lsn;
use weir_pool::{Pool, PoolError};
use weir_space::{GaveBack, Space};

/// Without work, or while something is waited for, it is looked so often.
const REST_MICROS: u64 = 100_000;
/// After a step the thread rests nine times as long as it took, within these bounds: punching keeps
/// readers and writers of the file out.
const PAUSE_MICROS: std::ops::RangeInclusive<u64> = 10_000..=500_000;

/// Where a pass is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// None is under way.
    #[default]
    Idle,
    /// This map comes next; so many free bytes are kept, so many were found that are to go.
    Look { map: u32, kept: u64, found: u64 },
    /// The checkpoint is to pass `end`.
    Wait { end: Lsn, due_micros: u64 },
    /// Batches that were begun before are to be over: none names these pages afterwards.
    Settle { batch: u64 },
    /// The next blocks are given back, from this page on.
    Give { from: u32 },
}

/// What a decision needs to know.
pub(crate) struct Seen {
    pub(crate) now_micros: u64,
    /// What the checkpoint has passed.
    pub(crate) checkpoint: Lsn,
    /// Pages that were freed so far.
    pub(crate) freed: u64,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Nothing, now.
    Rest,
    /// A pass begins.
    Begin,
    /// The stage goes on with what it does.
    GoOn,
}

/// A pass begins when pages were freed since the last one did; what it has found goes back when the
/// checkpoint has passed it.
fn decide(stage: &Stage, freed_before: Option<u64>, seen: &Seen) -> Next {
    match stage {
        Stage::Idle if freed_before == Some(seen.freed) => Next::Rest,
        Stage::Idle => Next::Begin,
        Stage::Wait { end, due_micros } => {
            let is_due = *end <= seen.checkpoint && *due_micros <= seen.now_micros;
            if is_due { Next::GoOn } else { Next::Rest }
        }
        Stage::Look { .. } | Stage::Settle { .. } | Stage::Give { .. } => Next::GoOn,
    }
}

/// After how long the next step comes: one that found more to do `took` so long.
pub(crate) fn pause_micros(has_more: bool, took: u64) -> u64 {
    if has_more {
        (9 * took).clamp(*PAUSE_MICROS.start(), *PAUSE_MICROS.end())
    } else {
        REST_MICROS
    }
}

/// What gives blocks back.
#[derive(Default)]
pub(crate) struct Holes {
    stage: Stage,
    /// Pages that had been freed when the last pass began.
    freed: Option<u64>,
    /// So long after they were found, at least: what is used again at once keeps its blocks, and a
    /// reader that is on its way to a page that was freed is not on its way any more.
    grace_micros: u64,
}

impl Holes {
    pub(crate) fn new(grace_micros: u64) -> Self {
        Holes { grace_micros, ..Holes::default() }
    }

    /// Whether pages were freed, so many in all, whose blocks it has not seen to yet.
    pub(crate) fn has_more(&self, freed: u64) -> bool {
        self.stage != Stage::Idle || self.freed != Some(freed)
    }

    /// Does what comes next. Returns whether there is more to do now.
    ///
    /// # Errors
    /// Device failures; the pool has halted then.
    pub(crate) fn step(
        &mut self,
        pool: &Pool,
        space: &Space,
        seen: &Seen,
    ) -> Result<bool, PoolError> {
        if !pool.store().can_punch() {
            return Ok(false);
        }
        match decide(&self.stage, self.freed, seen) {
            Next::Rest => Ok(false),
            Next::Begin => {
                self.freed = Some(seen.freed);
                // Where all that is on disk is in use, nothing can go.
                let used = space.used() * pool.page_size() as u64;
                if pool.store().file_bytes().1.is_none_or(|on_disk| on_disk > used) {
                    self.stage = Stage::Look { map: 0, kept: 0, found: 0 };
                }
                Ok(self.stage != Stage::Idle)
            }
            Next::GoOn => {
                let (stage, has_more) = self.go_on(pool, space, seen.now_micros)?;
                self.stage = stage;
                Ok(has_more)
            }
        }
    }

    /// The stage that comes next, and whether it can go on now.
    fn go_on(&self, pool: &Pool, space: &Space, now: u64) -> Result<(Stage, bool), PoolError> {
        Ok(match self.stage {
            Stage::Idle => (Stage::Idle, false),
            Stage::Look { map, mut kept, found } => {
                match space.look_for_holes(map, &mut kept) {
                    Some(more) => (Stage::Look { map: map + 1, kept, found: found + more }, true),
                    None if found == 0 => (Stage::Idle, false),
                    // In this order: what freed them lies before the end.
                    None => {
                        let due_micros = now + self.grace_micros;
                        (Stage::Wait { end: pool.log().end(), due_micros }, true)
                    }
                }
            }
            // Which batches had been begun must be asked now: pages that were freed while they were
            // dirty have been written meanwhile.
            Stage::Wait { .. } => (Stage::Settle { batch: pool.store().batches_begun() }, true),
            Stage::Settle { batch } if pool.settle_through(batch)? => {
                (Stage::Give { from: 0 }, true)
            }
            Stage::Settle { batch } => (Stage::Settle { batch }, false),
            Stage::Give { from } => match space.give_back(from)? {
                GaveBack::Bytes { next, .. } => (Stage::Give { from: next }, true),
                GaveBack::Nothing | GaveBack::Unsupported => (Stage::Idle, false),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_waits_for_the_checkpoint_and_the_grace() {
        let seen =
            |now_micros, checkpoint| Seen { now_micros, checkpoint: Lsn(checkpoint), freed: 3 };
        let idle = Stage::Idle;
        assert_eq!(decide(&idle, None, &seen(0, 0)), Next::Begin, "of the first nothing is known");
        assert_eq!(decide(&idle, Some(2), &seen(0, 0)), Next::Begin);
        assert_eq!(decide(&idle, Some(3), &seen(0, 0)), Next::Rest);
        let wait = Stage::Wait { end: Lsn(100), due_micros: 50 };
        assert_eq!(decide(&wait, Some(3), &seen(60, 99)), Next::Rest);
        assert_eq!(decide(&wait, Some(3), &seen(49, 100)), Next::Rest);
        assert_eq!(decide(&wait, Some(3), &seen(50, 100)), Next::GoOn);
        assert_eq!(decide(&Stage::Give { from: 0 }, Some(3), &seen(0, 0)), Next::GoOn);
    }

    #[test]
    fn the_pace_is_a_tenth_of_the_time() {
        assert_eq!(pause_micros(true, 0), 10_000);
        assert_eq!(pause_micros(true, 4_000), 36_000);
        assert_eq!(pause_micros(true, 10_000_000), 500_000);
        assert_eq!(pause_micros(false, 1), REST_MICROS);
    }
}
