//! What the cleaner decides, without reading, waiting or a clock: which segment, and how fast.

/// A segment that could be cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its number.
    pub segment: u32,
    /// Units of blocks in it that are needed.
    pub live: u64,
}

/// Of which share of a segment's units cleaning it still gains room: copies need headers and an end
/// of their own.
pub const LIVE_SHARE_MAX: f64 = 0.95;

/// The segment to clean: the one with the least to keep, if cleaning it gains anything. `units` is
/// what a segment holds.
#[must_use]
pub fn victim(candidates: impl IntoIterator<Item = Candidate>, units: u64) -> Option<u32> {
    let least = candidates.into_iter().min_by_key(|c| (c.live, c.segment))?;
    (least.live as f64 <= units as f64 * LIVE_SHARE_MAX).then_some(least.segment)
}

/// The share of all segments' bytes that may be live before the file grows.
pub const FILL_MAX: f64 = 0.75;
/// Cleaning a segment that keeps more than this costs more than the disk that it saves.
const VICTIM_MAX: f64 = 0.9;

/// Where room comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoomBy {
    /// A larger file, as long as the disk has room.
    Growing,
    /// Cleaning.
    Cleaning,
}

/// Where room comes from when `fill` of all segments' bytes are live, and the next victim keeps the
/// share `victim` of its own.
#[must_use]
pub fn room_by(fill: f64, victim: Option<f64>) -> RoomBy {
    let is_worth_it = victim.is_some_and(|live| live <= VICTIM_MAX);
    if fill > FILL_MAX || !is_worth_it { RoomBy::Growing } else { RoomBy::Cleaning }
}

/// The share of all segments' bytes that is needed after the file was made smaller: far enough
/// below [`FILL_MAX`] that it does not grow again at once.
const FILL_AFTER: f64 = 0.6;
/// A cut gives back at least so many segments, and this share of those that stay.
const CUT_MIN: (u64, f64) = (16, 0.25);

/// How many segments are enough, when there are `count`; `None`: no fewer, or so few fewer that
/// moving what lies in them is not worth it. In segments: what is live, what room is held for, and
/// what is kept for the store's own work.
#[must_use]
pub fn enough_segments(count: u64, live: f64, held: f64, reserve: u64) -> Option<u64> {
    let enough = ((live + held) / FILL_AFTER).ceil() as u64 + 2 * reserve + CUT_MIN.0;
    let least = CUT_MIN.0.max((enough as f64 * CUT_MIN.1) as u64);
    (enough + least <= count).then_some(enough)
}

/// What is due until some time from now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Horizon {
    /// Seconds from now.
    pub seconds: f64,
    /// Bytes of blocks that will have been written by then.
    pub bytes_due: f64,
}

/// How much cleaning is needed: bytes of victims a second, so that the free segments never fall
/// below `floor_bytes`. Cleaning is one more deadline: the steepest slope to any horizon counts.
/// `live_share` is what the next victims have to keep; each byte of a victim frees the rest.
#[must_use]
pub fn clean_rate(
    free_bytes: f64,
    floor_bytes: f64,
    live_share: f64,
    horizons: impl IntoIterator<Item = Horizon>,
) -> f64 {
    let gain = (1.0 - live_share).max(1.0 - LIVE_SHARE_MAX);
    let slope = |h: Horizon| {
        let need = h.bytes_due + floor_bytes - free_bytes;
        need.max(0.0) / h.seconds.max(1e-3)
    };
    horizons.into_iter().map(slope).fold(0.0, f64::max) / gain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lives: &[u64]) -> Vec<Candidate> {
        (0..).zip(lives).map(|(segment, &live)| Candidate { segment, live }).collect()
    }

    #[test]
    fn the_emptiest_segment_is_cleaned_if_that_gains_room() {
        assert_eq!(victim(of(&[50, 20, 30, 20]), 100), Some(1));
        assert_eq!(victim(of(&[95]), 100), Some(0));
        assert_eq!(victim(of(&[96, 97]), 100), None);
        assert_eq!(victim(of(&[]), 100), None);
    }

    #[test]
    fn a_file_is_cut_when_much_of_it_is_not_needed_and_does_not_grow_again() {
        assert_eq!(enough_segments(1000, 600.0, 0.0, 5), None);
        assert_eq!(enough_segments(1000, 300.0, 60.0, 5), Some(626));
        assert_eq!(enough_segments(1000, 300.0, 400.0, 5), None, "room is held for pages");
        assert_eq!(enough_segments(40, 0.0, 0.0, 5), None, "a small one is left alone");
        for live in 0..400 {
            let Some(enough) = enough_segments(1000, f64::from(live), 30.0, 5) else { continue };
            let fill = (f64::from(live) + 30.0) / enough as f64;
            assert_eq!(room_by(fill, Some(0.5)), RoomBy::Cleaning, "{live}: {enough}");
            assert_eq!(enough_segments(enough, f64::from(live), 30.0, 5), None);
        }
    }

    #[test]
    fn cleaning_follows_its_deadlines() {
        let at = |seconds, bytes_due| Horizon { seconds, bytes_due };
        let rate =
            |free, horizons: &[Horizon]| clean_rate(free, 100.0, 0.5, horizons.iter().copied());
        // Room for all that is due: nothing to do.
        assert_eq!(rate(1100.0, &[at(10.0, 1000.0)]), 0.0);
        // 500 short in 10 s, and each byte of a victim frees half.
        assert_eq!(rate(600.0, &[at(10.0, 1000.0)]), 100.0);
        // The near and steep one counts.
        assert_eq!(rate(600.0, &[at(10.0, 1000.0), at(1.0, 700.0)]), 400.0);
        // Full victims do not make it endless.
        assert!((clean_rate(0.0, 0.0, 1.0, [at(1.0, 1.0)]) - 20.0).abs() < 1e-9);
    }
}
