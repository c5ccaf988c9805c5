//! A log that is larger than the memory for it: read in windows. The pages that one window changes
//! are brought up to date and written before the next one is read; what is left in the end is a log
//! that fits, and is pending as always. Transactions without an end are followed from window to
//! window.
use std::collections::VecDeque;
use std::ops::ControlFlow;

use weir_base::{DbId, Lsn, TreeId, TxnId};
use weir_change::{DecodeError, decode};
use weir_device::Volume;
use weir_pool::{Pool, PoolError};
use weir_redo::{Chunk, Reader, RedoError, ScanEnd, ScanOptions, scan_chunks};

use crate::analysis::Analysis;
use crate::chains::{Chains, Place};
use crate::collect::Collected;
use crate::indexer::Indexer;
use crate::progress::{Phase, Progress};
use crate::redo::{History, set_pending_chains};
use crate::roll::Roll;
use crate::unreadable::unreadable;

/// Of the log that may be held, the end takes this part, which lies in memory all the time.
const TAILS_IN_MEMORY: u64 = 4;
/// The end begins at one of so many places, or a few less, in its length.
const BOUNDARIES_IN_TAIL: u64 = 8;
/// A window is read in so many steps, or more: before each it is looked whether there is room.
const STEPS_IN_WINDOW: u64 = 16;
/// And not more than this at a time.
const STEP_BYTES_MAX: u64 = 2 << 20;

/// The log, known to its end, of which the last part is held.
pub struct Windows {
    reader: Reader,
    /// Where the next window begins.
    at: Lsn,
    /// Where the end that is held begins.
    tail: Lsn,
    tail_chunks: Vec<Chunk>,
    end: ScanEnd,
    /// Memory for a window, and what is made of it.
    window_bytes: u64,
    analysis: Analysis,
    read_bytes: u64,
}

/// What a window changes.
pub struct Window {
    history: History,
}

impl Windows {
    /// Reads the log once from `from` to its end, and keeps the last part of it in memory.
    /// `held_bytes`: how much log there may be in memory, all in all.
    ///
    /// # Errors
    /// [`RedoError`]: damage, missing files, device errors.
    pub fn open(
        volume: &dyn Volume,
        db: DbId,
        from: Lsn,
        held_bytes: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Windows, RedoError> {
        let tail_bytes = (held_bytes / TAILS_IN_MEMORY).max(1);
        // What is made of a log may take as much again as the log itself.
        let window_bytes = held_bytes.saturating_mul(2) - 2 * tail_bytes;
        let mut tell = |done: u64| progress(Progress { phase: Phase::Scan, done, of: 0 });
        let mut boundaries = Boundaries::new(from, tail_bytes);
        let options = ScanOptions { read_ahead: true, progress: Some(&mut tell) };
        let whole = scan_chunks(volume, db, from, options, |chunk| {
            chunk.bodies().for_each(|(span, _)| boundaries.pass(span.start, span.end));
            ControlFlow::Continue(())
        })?;
        let tail = boundaries.first_behind(whole.end);
        let mut tail_chunks = Vec::new();
        let mut end = scan_chunks(volume, db, tail, ScanOptions::default(), |chunk| {
            tail_chunks.push(chunk);
            ControlFlow::Continue(())
        })?;
        if end.end != whole.end {
            return Err(unreadable(tail, "its end is not where it was a moment ago"));
        }
        let read_bytes = whole.end.bytes_since(from) + whole.end.bytes_since(tail);
        // The log is needed from there on.
        end.from = from;
        let reader = Reader::open(volume, db, from)?;
        let analysis = Analysis::default();
        Ok(Windows { reader, at: from, tail, tail_chunks, end, window_bytes, analysis, read_bytes })
    }

    /// Where the log ends.
    #[must_use]
    pub fn end(&self) -> &ScanEnd {
        &self.end
    }

    /// Reads the next window; `None`: what is left is held, see [`Windows::rest`]. All that windows
    /// read so far change must be forward on disk, before [`Windows::checkpoint`] is recorded.
    ///
    /// # Errors
    /// [`RedoError`]: it cannot be read.
    pub fn next(
        &mut self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<Window>, RedoError> {
        let of = self.end.end.bytes_since(self.end.from);
        progress(Progress { phase: Phase::Redo, done: self.at.bytes_since(self.end.from), of });
        let mut window = Gathered::default();
        let step = (self.window_bytes / STEPS_IN_WINDOW).clamp(1, STEP_BYTES_MAX);
        let mut want = step;
        while self.at < self.tail && window.memory_bytes() < self.window_bytes {
            let to = self.at.advanced(want).min(self.tail);
            let analysis = &mut self.analysis;
            let end = self
                .reader
                .chunks(self.at, to, |chunk| window.take(std::mem::take(chunk), analysis))?;
            if end > self.at {
                self.read_bytes += end.bytes_since(self.at);
                (self.at, want) = (end, step);
            } else if to == self.tail {
                return Err(unreadable(self.at, "a group is cut off where another begins"));
            } else {
                // A group longer than that.
                want = want.saturating_mul(4);
            }
        }
        let is_empty = window.chunks.is_empty();
        Ok((!is_empty).then(|| Window { history: window.into_history() }))
    }

    /// Where the windows to come begin.
    #[must_use]
    pub fn at(&self) -> Lsn {
        self.at
    }

    /// What must not be lost before the windows to come: where they begin, or the first record of a
    /// transaction without an end. With the numbers that the control file must know then.
    #[must_use]
    pub fn checkpoint(&self) -> (Lsn, TxnId, TreeId) {
        let oldest = self.analysis.oldest().map_or(self.at, |first| first.min(self.at));
        (oldest, self.analysis.next_txn, self.analysis.next_tree)
    }

    /// What is left when no window is: a log that fits into memory, with all transactions that have
    /// no end. `checkpoint`: the one that is recorded by now.
    ///
    /// # Errors
    /// [`RedoError`] for groups that cannot be decoded.
    pub fn rest(mut self, checkpoint: Lsn) -> Result<Collected, RedoError> {
        let mut tail = Gathered::default();
        for chunk in std::mem::take(&mut self.tail_chunks) {
            tail.take(chunk, &mut self.analysis)?;
        }
        let indexer = Indexer::resume(checkpoint, checkpoint, 0, &[], Default::default());
        Ok(Collected {
            chunks: tail.chunks,
            chains: tail.chains,
            stretches: None,
            analysis: self.analysis,
            end: self.end,
            indexer,
            read_bytes: self.read_bytes,
        })
    }
}

impl Window {
    /// Says to the pool, which knows nothing yet, which pages the window changes.
    ///
    /// # Errors
    /// Those of [`Pool::set_pending`].
    pub fn set_pending(self, pool: &Pool) -> Result<(), PoolError> {
        set_pending_chains(self.history, pool, |first| first).map(drop)
    }
}

/// A window as it is read.
#[derive(Default)]
struct Gathered {
    chunks: Vec<Chunk>,
    chains: Chains,
}

impl Gathered {
    fn take(&mut self, chunk: Chunk, analysis: &mut Analysis) -> Result<(), RedoError> {
        let number = self.chunks.len() as u32;
        let mut roll = Roll::default();
        for group in chunk.groups() {
            let (at, len) = (group.frame.start as u32, group.frame.len() as u32);
            let place = Place { chunk: number, at, len };
            let bad = |e: DecodeError| unreadable(group.span.start, &e.to_string());
            let body = &chunk.payload()[group.body.clone()];
            let (header, ops) = decode(body).map_err(bad)?;
            for op in ops {
                let op = op.map_err(bad)?;
                if let Some(page) = op.page() {
                    self.chains.add(page, group.span, place, op.makes_page());
                }
                roll.take_op(&op);
            }
            if let Some(txn) = header.txn {
                roll.next_txn = roll.next_txn.max(TxnId(txn.0 + 1));
                analysis.take(group.span.start, body).map_err(bad)?;
            }
        }
        analysis.next_txn = analysis.next_txn.max(roll.next_txn);
        analysis.next_tree = analysis.next_tree.max(roll.next_tree);
        self.chunks.push(chunk);
        Ok(())
    }

    /// What it takes, and what the list of its pages will.
    fn memory_bytes(&self) -> u64 {
        let log: usize = self.chunks.iter().map(|chunk| chunk.payload().len()).sum();
        (log + self.chains.memory_bytes()) as u64
    }

    fn into_history(self) -> History {
        let pages = self.chains.pages();
        History::new(self.chunks, self.chains.into_records(), pages, None)
    }
}

/// Starts of groups, not all of them: where the held end of the log may begin, once the end is
/// known.
struct Boundaries {
    /// How long the end is.
    bytes: u64,
    /// Ascending, each so much behind the one before; the first is a little less than that back.
    starts: VecDeque<Lsn>,
}

impl Boundaries {
    fn new(from: Lsn, bytes: u64) -> Self {
        Boundaries { bytes, starts: VecDeque::from([from]) }
    }

    fn pass(&mut self, start: Lsn, end: Lsn) {
        let step = (self.bytes / BOUNDARIES_IN_TAIL).max(1);
        if self.starts.back().is_none_or(|&last| start.bytes_since(last) >= step) {
            self.starts.push_back(start);
        }
        while self.starts.len() > 1 && end.bytes_since(self.starts[0]) > self.bytes {
            self.starts.pop_front();
        }
    }

    /// The first that is no farther than that before the end, or the last.
    fn first_behind(&self, end: Lsn) -> Lsn {
        self.starts.front().copied().unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_is_held_begins_with_a_group_and_is_so_long_at_most() {
        let mut boundaries = Boundaries::new(Lsn(1_000), 80);
        for (start, end) in [(1_000, 1_004), (1_004, 1_011), (1_011, 1_050), (1_050, 1_075)] {
            boundaries.pass(Lsn(start), Lsn(end));
        }
        assert_eq!(boundaries.first_behind(Lsn(1_075)), Lsn(1_000));
        boundaries.pass(Lsn(1_075), Lsn(1_090));
        assert_eq!(
            boundaries.first_behind(Lsn(1_090)),
            Lsn(1_011),
            "1004 was too close to the one before"
        );
        // Longer than all of it.
        boundaries.pass(Lsn(1_090), Lsn(2_000));
        assert_eq!(boundaries.first_behind(Lsn(2_000)), Lsn(1_090));
        assert_eq!(Boundaries::new(Lsn(5), 80).first_behind(Lsn(5)), Lsn(5));
    }
}
