//! What the store asks for between writes: a map checkpoint when one is due, segments free ahead of
//! demand, by cleaning or by a larger file.
use crate::clean::{Cleaned, Dirty};
use crate::error::StoreError;
use crate::policy::{Horizon, RoomBy, clean_rate, enough_segments, room_by};
use crate::store::{LogStore, Observed};

/// How soon a burst of writes is believed, and how long it is remembered.
const RATE_SECONDS: [f64; 2] = [0.2, 2.0];
/// Free segments are wanted for the writes of so many seconds,
const HORIZONS: [f64; 2] = [1.0, 8.0];
/// and of this many at any moment,
const FLOOR_SECONDS: f64 = 0.5;
/// and this many segments in any case.
const FLOOR_SEGMENTS: f64 = 2.0;
/// Copies are worth a write of their own from this many bytes on.
const COPY_BYTES_MIN: f64 = (64 << 10) as f64;
/// What was not cleaned in time is not made up for all at once.
const OWED_SECONDS_MAX: f64 = 0.5;
/// What a file that is too large may cost: so many bytes of copies a second, and this share of what
/// is written for the pool.
const SHRINK_BYTES_PER_SECOND: f64 = (1 << 20) as f64;
const SHRINK_SHARE: f64 = 0.25;

/// A full disk may have room again: looked at so often.
const FULL_MICROS: u64 = 5_000_000;

/// What is remembered from one step of upkeep to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Upkeep {
    seen: Option<(u64, u64)>,
    /// Bytes of blocks that are written in a second.
    bytes_per_second: f64,
    /// Bytes that are to be cleaned.
    owed_bytes: f64,
    /// Bytes that may be copied to make the file smaller.
    shrink_bytes: f64,
    /// The file was larger than it need be at the last look.
    is_shrinking: bool,
    /// Bytes, unpacked, of pages that the pool may want to write: room for them stays.
    pub held_bytes: u64,
    /// When the file was last tried to be made larger because the disk had been full.
    tried_micros: u64,
}

/// What is to be done now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Act {
    /// Nothing.
    Rest,
    /// A map checkpoint.
    Checkpoint,
    /// A larger file.
    Grow,
    /// Cleaning of so many bytes.
    Clean(usize),
    /// A step towards a file of so many segments, of so many bytes of copies.
    Shrink(usize, usize),
}

/// What a step of upkeep did.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// It did something: another step may find more to do.
    pub did: bool,
    /// What was cleaned; the pages in [`Cleaned::flush_wanted`] are to be written.
    pub cleaned: Cleaned,
}

impl Upkeep {
    /// Decides from what is observed at `now_micros`, with `bytes_packed` written for the pool
    /// since the store was opened.
    pub fn decide(
        &mut self,
        now_micros: u64,
        bytes_packed: u64,
        segment_bytes: u64,
        is_checkpoint_due: bool,
        seen: &Observed,
    ) -> Act {
        let seconds = self.learn(now_micros, bytes_packed);
        self.is_shrinking = self.enough(segment_bytes, seen).is_some();
        if is_checkpoint_due {
            return Act::Checkpoint;
        }
        let free = seen.free_bytes.saturating_sub(seen.reserve_bytes) as f64;
        let rate = self.bytes_per_second;
        let floor = FLOOR_SEGMENTS * segment_bytes as f64 + FLOOR_SECONDS * rate;
        let horizons = HORIZONS.map(|seconds| Horizon { seconds, bytes_due: seconds * rate });
        let live_share = seen.next_victim.unwrap_or(1.0);
        let wanted = clean_rate(free, floor, live_share, horizons);
        if wanted <= 0.0 {
            self.owed_bytes = 0.0;
            return self.shrink(seconds, segment_bytes, seen);
        }
        // Cheaper than cleaning: segments of free records wait for nothing else.
        let is_reserve_used = seen.free_bytes < seen.reserve_bytes && seen.pinned_bytes > 0;
        if is_reserve_used || seen.pinned_bytes >= seen.reserve_bytes {
            return Act::Checkpoint;
        }
        let fill = seen.live_bytes as f64 / seen.bytes as f64;
        if free < floor && room_by(fill, seen.next_victim) == RoomBy::Growing {
            return Act::Grow;
        }
        if seen.next_victim.is_none() {
            return Act::Rest;
        }
        self.owed_bytes = (self.owed_bytes + wanted * seconds).min(wanted * OWED_SECONDS_MAX);
        if self.owed_bytes < COPY_BYTES_MIN.min(wanted * OWED_SECONDS_MAX) {
            return Act::Rest;
        }
        let copies = self.owed_bytes * live_share;
        self.owed_bytes = 0.0;
        Act::Clean(copies.min(segment_bytes as f64) as usize)
    }

    /// Whether the file was larger than it need be at the last look.
    #[must_use]
    pub fn is_shrinking(&self) -> bool {
        self.is_shrinking
    }

    /// With nothing to be cleaned: whether the file is much larger than it need be.
    fn shrink(&mut self, seconds: f64, segment_bytes: u64, seen: &Observed) -> Act {
        let Some(enough) = self.enough(segment_bytes, seen) else {
            self.shrink_bytes = 0.0;
            return Act::Rest;
        };
        let rate = SHRINK_BYTES_PER_SECOND + SHRINK_SHARE * self.bytes_per_second;
        self.shrink_bytes = (self.shrink_bytes + rate * seconds).min(segment_bytes as f64);
        if self.shrink_bytes < COPY_BYTES_MIN {
            return Act::Rest;
        }
        let bytes = std::mem::take(&mut self.shrink_bytes);
        Act::Shrink(enough as usize, bytes as usize)
    }

    /// How many segments are enough, if there are many more.
    fn enough(&self, segment_bytes: u64, seen: &Observed) -> Option<u64> {
        let segments = |bytes: u64| bytes as f64 / segment_bytes as f64;
        let (live, held) = (segments(seen.live_bytes), segments(self.held_bytes));
        let (count, reserve) =
            (seen.bytes / segment_bytes, seen.reserve_bytes.div_ceil(segment_bytes));
        enough_segments(count, live, held, reserve)
    }

    /// Takes note of what was written; returns the seconds since the last look.
    fn learn(&mut self, now_micros: u64, bytes_packed: u64) -> f64 {
        let (then, before) = self.seen.replace((now_micros, bytes_packed)).unwrap_or_default();
        if then == 0 {
            return 0.0;
        }
        let seconds = now_micros.saturating_sub(then) as f64 / 1e6;
        if seconds > 0.0 {
            let rate = bytes_packed.saturating_sub(before) as f64 / seconds;
            let settle = RATE_SECONDS[usize::from(rate < self.bytes_per_second)];
            let share = 1.0 - (-seconds / settle).exp();
            self.bytes_per_second += (rate - self.bytes_per_second) * share;
        }
        seconds
    }
}

impl LogStore {
    /// One step of upkeep, at `now_micros` on any clock that goes on evenly.
    ///
    /// # Errors
    /// [`StoreError::Device`]: the store has halted. A full disk is none: less is free then, and a
    /// caller that asks for room gets an error.
    pub fn step_upkeep(
        &self,
        upkeep: &mut Upkeep,
        now_micros: u64,
        dirty: &dyn Dirty,
    ) -> Result<Kept, StoreError> {
        self.core.check_halted()?;
        let packed = self.stats().bytes_packed.get();
        let segment = self.core.segment_bytes as u64;
        let is_due = self.is_checkpoint_due();
        let mut kept = Kept::default();
        if self.is_disk_full() && now_micros >= upkeep.tried_micros + FULL_MICROS {
            upkeep.tried_micros = now_micros;
            let count = self.core.segments.lock().list.len();
            kept.did = self.grow_file(count)?;
        }
        match upkeep.decide(now_micros, packed, segment, is_due, &self.observe()) {
            Act::Rest => {}
            Act::Checkpoint => {
                self.checkpoint_map()?;
                kept.did = true;
            }
            Act::Grow => {
                let count = self.core.segments.lock().list.len();
                kept.did = self.grow_file(count)?;
                if !kept.did {
                    kept.cleaned = self.step_clean(self.core.segment_bytes, dirty)?;
                }
            }
            Act::Clean(bytes) => kept.cleaned = self.step_clean(bytes, dirty)?,
            Act::Shrink(enough, bytes) => {
                (kept.cleaned, kept.did) = self.step_shrink(enough, bytes, dirty)?;
            }
        }
        kept.did |= kept.cleaned.copied > 0;
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1 << 20;

    fn seen(segments: u64, free: u64, live_share: f64) -> Observed {
        Observed {
            bytes: segments * SEGMENT,
            live_bytes: (segments as f64 * SEGMENT as f64 * live_share) as u64,
            free_bytes: (free + 4) * SEGMENT,
            reserve_bytes: 4 * SEGMENT,
            pinned_bytes: 0,
            next_victim: Some(live_share * 0.8),
            pages_since_checkpoint: 0,
            map_memory_bytes: 0,
        }
    }

    /// A store of 100 segments whose blocks all die before they are cleaned: what the rule does in
    /// `seconds` of `rate` bytes a second. Returns the least that was free, and bytes cleaned.
    fn run(rate: f64, seconds: u64, fill: f64) -> (f64, f64) {
        let mut upkeep = Upkeep::default();
        let (mut free, mut least, mut cleaned) = (20.0 * SEGMENT as f64, f64::MAX, 0.0);
        for step in 1..seconds * 100 {
            let (now, packed) = (step * 10_000, (rate * step as f64 / 100.0) as u64);
            free -= rate / 100.0;
            let look = Observed { free_bytes: free as u64 + 4 * SEGMENT, ..seen(100, 0, fill) };
            match upkeep.decide(now, packed, SEGMENT, false, &look) {
                Act::Clean(copies) => {
                    // What a victim does not keep is free.
                    let victims = copies as f64 / (fill * 0.8);
                    free += victims - copies as f64;
                    cleaned += victims;
                }
                Act::Rest => {}
                other => panic!("{other:?}"),
            }
            least = least.min(free);
        }
        (least, cleaned)
    }

    #[test]
    fn segments_stay_free_at_a_steady_rate() {
        for rate in [1e6, 8e6, 30e6] {
            let (least, cleaned) = run(rate, 120, 0.7);
            assert!(least > SEGMENT as f64, "{rate}: {least}");
            // As much as is written, and what is copied for it, once the free ones are used.
            let due = (rate * 120.0 - 20e6) / (1.0 - 0.56);
            assert!(
                rate < 2e6 || (0.7..1.1).contains(&(cleaned / due)),
                "{rate}: {cleaned}, {due}"
            );
        }
    }

    #[test]
    fn nothing_is_cleaned_for_nothing() {
        let mut upkeep = Upkeep::default();
        for step in 1..1000 {
            let act = upkeep.decide(step * 10_000, 0, SEGMENT, false, &seen(100, 3, 0.7));
            assert_eq!(act, Act::Rest);
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_made_smaller_at_a_small_rate() {
        let mut upkeep = Upkeep::default();
        let large = seen(1000, 800, 0.1);
        let mut bytes = 0;
        for step in 1..1000 {
            match upkeep.decide(step * 10_000, 0, SEGMENT, false, &large) {
                Act::Rest => {}
                Act::Shrink(enough, copies) => {
                    assert!((180..210).contains(&enough), "{enough}");
                    bytes += copies;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!((9 << 20..11 << 20).contains(&bytes), "{bytes} in ten seconds");
        // Room that the pool may want is no room to give back.
        upkeep.held_bytes = 500 * SEGMENT;
        for step in 1000..1100 {
            let act = upkeep.decide(step * 10_000, 0, SEGMENT, false, &large);
            assert_eq!(act, Act::Rest);
        }
    }

    #[test]
    fn a_full_store_grows_and_a_map_checkpoint_comes_first() {
        let mut upkeep = Upkeep::default();
        let full = seen(100, 1, 0.9);
        assert_eq!(upkeep.decide(1, 0, SEGMENT, false, &full), Act::Grow);
        assert_eq!(upkeep.decide(2, 0, SEGMENT, true, &full), Act::Checkpoint);
        let pinned = |segments| Observed { pinned_bytes: segments * SEGMENT, ..full };
        assert_eq!(upkeep.decide(3, 0, SEGMENT, false, &pinned(3)), Act::Grow);
        assert_eq!(upkeep.decide(3, 0, SEGMENT, false, &pinned(4)), Act::Checkpoint);
        let used = Observed { free_bytes: 3 * SEGMENT, ..pinned(1) };
        assert_eq!(upkeep.decide(3, 0, SEGMENT, false, &used), Act::Checkpoint);
        let none = Observed { next_victim: None, ..seen(100, 1, 0.5) };
        assert_eq!(upkeep.decide(3, 0, SEGMENT, false, &none), Act::Grow);
    }
}
