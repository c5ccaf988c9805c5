//! Repeating history: each page the log names is read once (unless its first change makes it anew),
//! with its neighbours, and all its changes are applied in order. Threads share the work by ranges
//! of pages, so no two touch the same page.
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use thiserror::Error;
use weir_base::PageNo;
use weir_change::{ApplyError, apply, decode};
use weir_pool::{Exclusive, Pool, PoolError};
use weir_redo::Span;

use crate::collect::{Collected, Record};
use crate::{Phase, Progress};

/// Pages read at once by one thread.
const BATCH_PAGES: usize = 64;

/// Changes touched ahead of their turn.
const AHEAD: usize = 16;

/// What redo did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedoReport {
    /// Pages that the log names.
    pub pages: u64,
    /// Pages that were brought forward.
    pub pages_changed: u64,
    /// Changes applied.
    pub changes: u64,
    /// Changes that a page on disk had already.
    pub skipped: u64,
}

/// Why redo failed.
#[derive(Debug, Error)]
pub enum RedoFailed {
    /// A page could not be had.
    #[error("recovery cannot go on: {0}")]
    Pool(#[from] PoolError),
    /// A page and the log do not belong together.
    #[error(
        "recovery cannot go on: the log's change at position {lsn} does not apply to page {page}: \
         {cause}"
    )]
    Apply {
        /// Which page.
        page: PageNo,
        /// Which change.
        lsn: weir_base::Lsn,
        /// Why not.
        cause: ApplyError,
    },
    /// A record could not be decoded although it was before.
    #[error("recovery cannot go on: a record of page {0} cannot be read")]
    Record(PageNo),
}

/// Redoes all that was collected, with `threads` threads.
///
/// # Errors
/// The first [`RedoFailed`]. The database on disk is as it was, apart from pages that were brought
/// forward and written.
pub fn redo(
    collected: &Collected,
    pool: &Pool,
    threads: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<RedoReport, RedoFailed> {
    let pages = page_ranges(&collected.records);
    let work = Work {
        collected,
        pool,
        pages: &pages,
        next: AtomicUsize::new(0),
        done: AtomicU64::new(0),
        failed: Mutex::new(None),
        report: Mutex::new(RedoReport::default()),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(|| work.run(&mut |_| {}));
        }
        work.run(&mut |done| {
            progress(Progress { phase: Phase::Redo, done, of: pages.len() as u64 })
        });
    });
    if let Some(failed) = work.failed.into_inner() {
        return Err(failed);
    }
    let mut report = work.report.into_inner();
    report.pages = pages.len() as u64;
    Ok(report)
}

/// Where each page's records begin and end.
fn page_ranges(records: &[Record]) -> Vec<(PageNo, std::ops::Range<usize>)> {
    let mut ranges: Vec<(PageNo, std::ops::Range<usize>)> = Vec::new();
    for (i, record) in records.iter().enumerate() {
        match ranges.last_mut() {
            Some((page, range)) if page.0 == record.page => range.end = i + 1,
            _ => ranges.push((PageNo(record.page), i..i + 1)),
        }
    }
    ranges
}

struct Work<'a> {
    collected: &'a Collected,
    pool: &'a Pool,
    pages: &'a [(PageNo, std::ops::Range<usize>)],
    next: AtomicUsize,
    done: AtomicU64,
    failed: Mutex<Option<RedoFailed>>,
    report: Mutex<RedoReport>,
}

impl Work<'_> {
    fn run(&self, tell: &mut dyn FnMut(u64)) {
        // A thread must not hold more of a small pool than it can have beside the others.
        let most = (self.pool.residence().frames / 8).clamp(1, BATCH_PAGES as u64) as usize;
        loop {
            let from = self.next.fetch_add(most, Ordering::Relaxed);
            if from >= self.pages.len() || self.failed.lock().is_some() {
                return;
            }
            let batch = &self.pages[from..(from + most).min(self.pages.len())];
            match self.redo_batch(batch) {
                Ok(report) => {
                    let mut all = self.report.lock();
                    all.pages_changed += report.pages_changed;
                    all.changes += report.changes;
                    all.skipped += report.skipped;
                }
                Err(e) => {
                    self.failed.lock().get_or_insert(e);
                    return;
                }
            }
            tell(self.done.fetch_add(batch.len() as u64, Ordering::Relaxed) + batch.len() as u64);
        }
    }

    fn redo_batch(
        &self,
        batch: &[(PageNo, std::ops::Range<usize>)],
    ) -> Result<RedoReport, RedoFailed> {
        let mut report = RedoReport::default();
        // The last Init of a page makes all before it moot.
        let starts: Vec<(usize, bool)> =
            batch.iter().map(|(_, range)| self.first_needed(range)).collect();
        let to_read: Vec<PageNo> = batch
            .iter()
            .zip(&starts)
            .filter(|(_, (_, made))| !made)
            .map(|((page, _), _)| *page)
            .collect();
        let mut read = self.pool.exclusive_many(&to_read).into_iter();
        for ((page, range), (start, made)) in batch.iter().zip(starts) {
            let held = if made {
                self.pool.fresh(*page)?
            } else {
                match read.next() {
                    Some(held) => held?,
                    None => self.pool.exclusive(*page)?,
                }
            };
            self.redo_page(*page, held, &self.collected.records[start..range.end], &mut report)?;
        }
        Ok(report)
    }

    /// The first record that matters for a page, and whether it makes the page anew.
    fn first_needed(&self, range: &std::ops::Range<usize>) -> (usize, bool) {
        let records = &self.collected.records[range.clone()];
        match records.iter().rposition(Record::makes) {
            Some(at) => (range.start + at, true),
            None => (range.start, false),
        }
    }

    fn redo_page(
        &self,
        page: PageNo,
        mut held: Exclusive<'_>,
        records: &[Record],
        report: &mut RedoReport,
    ) -> Result<(), RedoFailed> {
        let mut changed = false;
        // What the page has already is at the front: nothing of it need be looked at.
        let lsn = held.lsn();
        let done = records.partition_point(|record| record.end <= lsn);
        report.skipped += done as u64;
        let records = &records[done..];
        for (i, record) in records.iter().enumerate() {
            // A page's changes lie all over the log in memory: touching those to come, the
            // processor fetches several at once.
            if i % AHEAD == 0 {
                for next in records[i..].iter().take(2 * AHEAD).skip(AHEAD) {
                    std::hint::black_box(self.collected.body(next).first());
                }
            }
            let (header, ops) =
                decode(self.collected.body(record)).map_err(|_| RedoFailed::Record(page))?;
            for op in ops {
                let op = op.map_err(|_| RedoFailed::Record(page))?;
                if op.page() == Some(page) {
                    apply(&op, header.writer(), held.bytes_mut())
                        .map_err(|cause| RedoFailed::Apply { page, lsn: record.end, cause })?;
                }
            }
            report.changes += 1;
            changed = true;
        }
        if let (Some(first), Some(last)) = (records.first(), records.last()) {
            held.log_change(Span { start: self.collected.span(first).start, end: last.end });
        }
        report.pages_changed += u64::from(changed);
        Ok(())
    }
}
