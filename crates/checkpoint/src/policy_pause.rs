//! Pauses: while much less is asked for than of late, what the disk has to spare makes room in the
//! log for the burst to come (`docs/decisions/room.md`).
use crate::forecast::share;

/// Less than this share of the redo of late is a pause,
const QUIET_SHARE: f64 = 0.25;
/// once it has been so for so long: a disk that stands still makes little redo, too.
const QUIET_SECONDS: f64 = 5.0;
/// The highest rate of redo is forgotten in about this time.
const PEAK_SECONDS: f64 = 600.0;
/// The disk has something to spare while what is needed takes no more than this share of it. A disk
/// that has become slow has not.
const NEEDED_SHARE: f64 = 0.5;
/// Of what the log leaves, so much is used: the rest is for commits that come.
const PART: f64 = 0.8;
/// The age is brought down to this share of its target. What is left is what changes all the time:
/// it would be dirty again at once.
const AGE_SHARE: f64 = 0.2;

/// Where the processors are busier than this, less is asked for because less can be done: it is no
/// pause, and what pages take of the processors is missed. Below the first, nothing is held back.
const PROCESSORS_BUSY: [f64; 2] = [0.5, 0.7];

/// Where more commits than the second of these wait for the same write of the log it is no pause,
/// however little redo there is beside what a load made before: page writes hold all of them up,
/// less redo comes, and it looks the more like a pause. One or two clients' are the first.
const COMMITS_TOGETHER: [f64; 2] = [1.5, 3.0];

/// Whether there is a pause.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pause {
    /// The highest rate of redo of late, bytes per second.
    peak: f64,
    quiet_seconds: f64,
}

/// What a pause has to do with, per second in page writes where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spare {
    /// What the disk takes.
    pub(crate) capacity: f64,
    /// What the log takes of it now.
    pub(crate) log: f64,
    /// What deadlines take of it now.
    pub(crate) deadlines: f64,
    /// The age, as a share of its target.
    pub(crate) age: f64,
    /// The share of the processors' time that is used.
    pub(crate) processors_busy: f64,
    /// Commits for each write of the log.
    pub(crate) commits_together: f64,
}

/// 1 up to the first bound, 0 from the second on.
fn falling(value: f64, [from, to]: [f64; 2]) -> f64 {
    ((to - value) / (to - from)).clamp(0.0, 1.0)
}

impl Pause {
    /// Takes a tick of `seconds`, with redo in bytes per second.
    pub(crate) fn observe(&mut self, seconds: f64, redo: f64) {
        self.peak = redo.max(self.peak * (1.0 - share(seconds, PEAK_SECONDS)));
        let quiet = redo < QUIET_SHARE * self.peak;
        self.quiet_seconds = if quiet { self.quiet_seconds + seconds } else { 0.0 };
    }

    /// Pages to write per second, those for deadlines with them; 0 where there is no pause.
    pub(crate) fn pages_per_second(&self, spare: &Spare) -> f64 {
        let has_spare = spare.log + spare.deadlines < NEEDED_SHARE * spare.capacity;
        if self.quiet_seconds < QUIET_SECONDS || !has_spare || spare.age < AGE_SHARE {
            return 0.0;
        }
        let share = falling(spare.processors_busy, PROCESSORS_BUSY)
            * falling(spare.commits_together, COMMITS_TOGETHER);
        share * PART * (spare.capacity - spare.log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_much_less_than_of_late_on_a_disk_that_has_something_to_spare() {
        let spare = Spare {
            capacity: 1500.0,
            log: 300.0,
            deadlines: 200.0,
            age: 0.9,
            processors_busy: 0.5,
            commits_together: 1.0,
        };
        // (redo now, for how long, what there is to spare, pages per second)
        let rows = [
            (2e6, 10.0, spare, 960.0),
            (2e6, 4.0, spare, 0.0),
            (3e6, 10.0, spare, 0.0),
            (0.0, 10.0, Spare { log: 0.0, deadlines: 0.0, ..spare }, 1200.0),
            (2e6, 10.0, Spare { age: 0.19, ..spare }, 0.0),
            // The disk has become ten times slower: that is why there is little redo.
            (1e6, 10.0, Spare { capacity: 150.0, log: 60.0, deadlines: 80.0, ..spare }, 0.0),
            // The processors have little to spare, or nothing.
            (2e6, 10.0, Spare { processors_busy: 0.6, ..spare }, 480.0),
            (2e6, 10.0, Spare { processors_busy: 0.9, ..spare }, 0.0),
            // Many commits wait for the log.
            (2e6, 10.0, Spare { commits_together: 2.25, ..spare }, 480.0),
            (2e6, 10.0, Spare { commits_together: 12.0, ..spare }, 0.0),
            // Forgotten after a while.
            (2e6, 3000.0, spare, 0.0),
        ];
        for (redo, seconds, spare, pages) in rows {
            let mut pause = Pause::default();
            (0..200).for_each(|_| pause.observe(0.05, 10e6));
            assert_eq!(pause.pages_per_second(&spare), 0.0, "no pause yet");
            (0..(seconds * 20.0) as usize).for_each(|_| pause.observe(0.05, redo));
            let told = pause.pages_per_second(&spare);
            assert!((told - pages).abs() < 1e-6, "{redo} {seconds} {spare:?}: {told}");
        }
    }
}
