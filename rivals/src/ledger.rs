//! What was written and acknowledged, so that a store can be judged afterwards.
//!
//! A version says in which cell it was written, by which thread, and that thread's how-manieth
//! write of that row it is. A thread's writes of one row follow each other, so of each thread only
//! its last acknowledged version of a row may ever be found again. No two cells share a version: a
//! store that notices equal bytes (SQLite skips writing them) would otherwise commit nothing, and
//! look several times faster than the disk.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::rows;

const COUNT_BITS: u32 = 32;
const THREAD_BITS: u32 = 8;

/// A number that no other cell has, of this process or (but for one chance in 16 million) another;
/// never 0, which loads have.
pub fn new_cell() -> u64 {
    static CELLS: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let word = now.as_nanos() as u64 ^ rows::mix(CELLS.fetch_add(1, Ordering::Relaxed));
    (rows::mix(word) % 0xff_ffff) + 1
}

/// The `count`th version by this thread in this cell.
pub fn version(cell: u64, thread: usize, count: u32) -> u64 {
    cell << (COUNT_BITS + THREAD_BITS) | (thread as u64) << COUNT_BITS | u64::from(count)
}

fn parts(version: u64) -> (u64, usize, u32) {
    let thread = (version >> COUNT_BITS) as u8;
    (version >> (COUNT_BITS + THREAD_BITS), usize::from(thread), version as u32)
}

/// Which rows a thread may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of them, as may the others.
    All,
    /// Those whose number divided by the number of threads leaves its own.
    Own,
}

/// One thread's writes.
pub struct Notes {
    cell: u64,
    thread: usize,
    threads: usize,
    share: Share,
    /// Of each row that it may write, how often it has.
    counts: Vec<u32>,
}

impl Notes {
    pub fn new(cell: u64, thread: usize, threads: usize, share: Share, rows: u64) -> Notes {
        let rows = match share {
            Share::All => rows,
            Share::Own => rows.div_ceil(threads as u64),
        };
        Notes { cell, thread, threads, share, counts: vec![0; rows as usize] }
    }

    /// A row to write, by chance.
    pub fn any_own(&self, rows: u64, random: &mut fastrand::Rng) -> u64 {
        let (thread, threads) = (self.thread as u64, self.threads as u64);
        let own = (rows - thread).div_ceil(threads);
        random.u64(0..own) * threads + thread
    }

    fn at(&self, number: u64) -> usize {
        (match self.share {
            Share::All => number,
            Share::Own => number / self.threads as u64,
        }) as usize
    }

    /// The version that it is about to write.
    pub fn next(&self, number: u64) -> u64 {
        version(self.cell, self.thread, self.counts[self.at(number)] + 1)
    }

    /// It is written, and the store has said so.
    pub fn acknowledged(&mut self, number: u64) {
        let at = self.at(number);
        self.counts[at] += 1;
    }

    /// How often it has written this row.
    fn count(&self, number: u64) -> u32 {
        let may = self.share == Share::All || number % self.threads as u64 == self.thread as u64;
        if may { self.counts.get(self.at(number)).copied().unwrap_or(0) } else { 0 }
    }
}

/// Whether this version of a row may be found after these threads have ended.
pub fn is_right(notes: &[Notes], number: u64, found: u64) -> bool {
    let (cell, thread, count) = parts(found);
    if notes.first().is_some_and(|notes| notes.cell == cell) {
        return notes.get(thread).is_some_and(|n| count > 0 && n.count(number) == count);
    }
    notes.iter().all(|notes| notes.count(number) == 0)
}

/// Whether this version may be found after a crash, when its only writer `thread` of `cell` had so
/// many acknowledged: the last of them, or the one that it was about to write.
pub fn is_right_after_crash(cell: u64, thread: usize, acknowledged: u32, found: u64) -> bool {
    let (found_cell, found_thread, count) = parts(found);
    if found_cell != cell {
        return acknowledged == 0;
    }
    found_thread == thread && (count == acknowledged || count == acknowledged + 1) && count > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_threads_last_version_is_right() {
        let mut notes: Vec<Notes> =
            (0..2).map(|thread| Notes::new(9, thread, 2, Share::All, 10)).collect();
        assert!(is_right(&notes, 3, version(8, 0, 1)), "an older cell's, and not written to");
        for _ in 0..2 {
            notes[0].acknowledged(3);
        }
        notes[1].acknowledged(3);
        assert!(!is_right(&notes, 3, version(8, 0, 1)) && !is_right(&notes, 3, 0));
        assert!(is_right(&notes, 3, version(9, 0, 2)) && is_right(&notes, 3, version(9, 1, 1)));
        assert!(!is_right(&notes, 3, version(9, 0, 1)), "one that was written over");
        assert!(!is_right(&notes, 3, version(9, 1, 2)), "one that was never written");
        assert!(!is_right(&notes, 4, version(9, 0, 0)) && !is_right(&notes, 4, version(9, 7, 1)));
    }

    #[test]
    fn shares_are_apart_and_complete() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut seen = [None; 11];
        for thread in 0..3 {
            let mut notes = Notes::new(9, thread, 3, Share::Own, 11);
            for _ in 0..200 {
                let number = notes.any_own(11, &mut random);
                assert!(seen[number as usize].is_none_or(|other| other == thread));
                seen[number as usize] = Some(thread);
                notes.acknowledged(number);
                assert_eq!(parts(notes.next(number)).2, notes.count(number) + 1);
            }
            assert_eq!(notes.count((thread as u64 + 1) % 3), 0, "another's");
        }
        assert!(seen.iter().all(Option::is_some));
    }

    #[test]
    fn after_a_crash_the_last_or_the_next() {
        let right = |acknowledged, found| is_right_after_crash(9, 2, acknowledged, found);
        assert!(right(0, 0) && right(0, version(9, 2, 1)) && right(5, version(9, 2, 5)));
        assert!(right(5, version(9, 2, 6)) && !right(5, version(9, 2, 4)));
        assert!(!right(5, version(9, 2, 7)) && !right(5, 0) && !right(5, version(9, 1, 5)));
        assert!(!right(0, version(9, 2, 0)));
    }

    #[test]
    fn no_two_cells_are_the_same() {
        let mut cells: Vec<u64> = (0..1_000).map(|_| new_cell()).collect();
        assert!(cells.iter().all(|&cell| cell > 0 && cell <= 0xff_ffff));
        cells.sort_unstable();
        cells.dedup();
        assert!(cells.len() > 990, "{}", cells.len());
    }
}
