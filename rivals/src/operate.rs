//! What one thread does, operation by operation.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};
use crossbeam_utils::CachePadded;

use crate::distribution::{Latest, Scrambled};
use crate::drive::Shared;
use crate::engine::Worker;
use crate::ledger::{Notes, Share};
use crate::plan::{Mix, Workload};
use crate::rows::{self, Keys};

/// Rows of a short scan.
const SCAN_ROWS: u64 = 100;
/// `maxscanlength` of YCSB's workload E; the lengths are uniform.
const YCSB_SCAN_ROWS: u64 = 100;
/// Rows of a full scan after which its counter is brought up to date.
const COUNT_EVERY: u64 = 1024;

/// What all threads of a cell do.
pub struct Task {
    pub workload: Workload,
    pub keys: Keys,
    /// Rows at the start.
    pub rows: u64,
    pub value_bytes: usize,
    /// See `ledger.rs`.
    pub cell: u64,
    inserts: Inserts,
    scrambled: Scrambled,
    latest: Latest,
}

impl Task {
    pub fn new(workload: Workload, rows: u64, value_bytes: usize, threads: usize) -> Task {
        let latest = matches!(workload, Workload::Ycsb(Mix::D, _));
        Task {
            workload,
            keys: workload.keys(),
            rows,
            value_bytes,
            cell: crate::ledger::new_cell(),
            inserts: Inserts::new(rows, threads),
            scrambled: Scrambled::new(rows),
            latest: Latest::new(if latest { rows } else { 1 }),
        }
    }

    /// Rows that there are when all threads have ended.
    pub fn rows_after(&self) -> u64 {
        self.inserts.next.load(Ordering::SeqCst)
    }
}

impl Workload {
    pub fn writes(self) -> bool {
        use Workload::{Read, ScanFull, ScanShort, Ycsb};
        !matches!(self, Read | ScanFull | ScanShort | Ycsb(Mix::C, _))
    }

    fn share(self) -> Share {
        if matches!(self, Workload::Ycsb(..)) { Share::All } else { Share::Own }
    }
}

/// The numbers of inserted rows, and up to where all of them are there: YCSB's
/// `AcknowledgedCounterGenerator`.
struct Inserts {
    next: AtomicU64,
    /// Of each thread a number not above the one that it inserts; `u64::MAX` when it inserts none.
    in_flight: Vec<CachePadded<AtomicU64>>,
}

impl Inserts {
    fn new(rows: u64, threads: usize) -> Inserts {
        let none = |_| CachePadded::new(AtomicU64::new(u64::MAX));
        Inserts { next: AtomicU64::new(rows), in_flight: (0..threads).map(none).collect() }
    }

    fn begin(&self, thread: usize) -> u64 {
        // Stored before the number is taken: a thread that sees the number taken sees this too.
        self.in_flight[thread].store(self.next.load(Ordering::SeqCst), Ordering::SeqCst);
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn end(&self, thread: usize) {
        self.in_flight[thread].store(u64::MAX, Ordering::SeqCst);
    }

    /// All rows below are there.
    fn limit(&self) -> u64 {
        let next = self.next.load(Ordering::SeqCst);
        let others = self.in_flight.iter().map(|number| number.load(Ordering::SeqCst));
        others.fold(next, u64::min)
    }
}

/// One thread.
pub struct Operator<'a> {
    task: &'a Task,
    thread: usize,
    random: fastrand::Rng,
    latest: Latest,
    value: Vec<u8>,
    pub notes: Notes,
}

impl<'a> Operator<'a> {
    pub fn new(task: &'a Task, thread: usize, threads: usize) -> Operator<'a> {
        let rows = if task.workload.writes() { task.rows } else { 0 };
        Operator {
            task,
            thread,
            random: fastrand::Rng::with_seed(rows::mix(task.cell << 8 | thread as u64)),
            latest: task.latest.clone(),
            value: vec![0; task.value_bytes],
            notes: Notes::new(task.cell, thread, threads, task.workload.share(), rows),
        }
    }

    pub fn run(&mut self, worker: &mut dyn Worker, shared: &Shared) -> Result<()> {
        let done = &shared.done[self.thread];
        let mut count = 0;
        while !shared.is_over() {
            count += self.step(worker, &mut |more| done.store(count + more, Ordering::Relaxed))?;
            done.store(count, Ordering::Relaxed);
        }
        Ok(())
    }

    /// One operation; what it counts as. A long one tells meanwhile how far it is.
    fn step(&mut self, worker: &mut dyn Worker, far: &mut dyn FnMut(u64)) -> Result<u64> {
        let rows = self.task.rows;
        match self.task.workload {
            Workload::Read => {
                let number = self.random.u64(0..rows);
                self.read(worker, number)?;
            }
            Workload::ScanShort => {
                let length = SCAN_ROWS.min(rows);
                let from = self.random.u64(0..=rows - length);
                self.scan_from(worker, from, length)?;
            }
            Workload::ScanFull => return self.scan_full(worker, far),
            Workload::Update(_) => {
                let number = self.notes.any_own(rows, &mut self.random);
                self.update(worker, number)?;
            }
            Workload::Ycsb(mix, _) => self.ycsb(worker, mix)?,
            other => anyhow::bail!("{} is not run by threads", other.name()),
        }
        Ok(1)
    }

    fn ycsb(&mut self, worker: &mut dyn Worker, mix: Mix) -> Result<()> {
        let percent = self.random.u8(0..100);
        match mix {
            Mix::D if percent < 5 => return self.insert(worker),
            Mix::D => {
                let limit = self.task.inserts.limit();
                let number = self.latest.next(limit, &mut self.random);
                return self.read(worker, number);
            }
            Mix::E if percent < 5 => return self.insert(worker),
            _ => {}
        }
        let number = self.task.scrambled.next(&mut self.random);
        match mix {
            Mix::E => {
                let length = self.random.u64(1..=YCSB_SCAN_ROWS);
                self.scan(worker, number, length)
            }
            Mix::A if percent < 50 => self.update(worker, number),
            Mix::B if percent < 5 => self.update(worker, number),
            Mix::F if percent < 50 => {
                self.read(worker, number)?;
                self.update(worker, number)
            }
            _ => self.read(worker, number),
        }
    }

    fn read(&mut self, worker: &mut dyn Worker, number: u64) -> Result<()> {
        let (key, len) = (self.task.keys.key(number), self.task.value_bytes);
        let mut right = false;
        let found = worker.read(&key, &mut |value| right = rows::is_for(value, number, len))?;
        ensure!(found && right, "row {number}: found {found}, right {right}");
        Ok(())
    }

    fn update(&mut self, worker: &mut dyn Worker, number: u64) -> Result<()> {
        rows::fill(&mut self.value, number, self.notes.next(number));
        worker.update(&self.task.keys.key(number), &self.value)?;
        self.notes.acknowledged(number);
        Ok(())
    }

    fn insert(&mut self, worker: &mut dyn Worker) -> Result<()> {
        let number = self.task.inserts.begin(self.thread);
        rows::fill(&mut self.value, number, 0);
        worker.insert(&self.task.keys.key(number), &self.value)?;
        self.task.inserts.end(self.thread);
        Ok(())
    }

    /// Of dense keys: which rows they are is known.
    fn scan_from(&mut self, worker: &mut dyn Worker, from: u64, length: u64) -> Result<()> {
        let (keys, len) = (self.task.keys, self.task.value_bytes);
        let (mut next, mut wrong) = (from, 0_u64);
        let found = worker.scan(&keys.key(from), length, &mut |key, value| {
            let right = keys.number(key) == Some(next) && rows::is_for(value, next, len);
            wrong += u64::from(!right);
            next += 1;
        })?;
        ensure!(found == length && wrong == 0, "{found} rows from {from}, {wrong} of them wrong");
        Ok(())
    }

    /// Of any keys: each row must be what its key says.
    fn scan(&mut self, worker: &mut dyn Worker, from: u64, length: u64) -> Result<()> {
        let (keys, len) = (self.task.keys, self.task.value_bytes);
        let first = keys.key(from);
        let (mut seen, mut wrong) = (0_u64, 0_u64);
        let found = worker.scan(&first, length, &mut |key, value| {
            let right = keys.number(key).is_some_and(|number| rows::is_for(value, number, len))
                && (seen > 0 || key == first);
            wrong += u64::from(!right);
            seen += 1;
        })?;
        ensure!((1..=length).contains(&found), "{found} rows from row {from}");
        ensure!(wrong == 0, "{wrong} of {found} rows from row {from} are wrong");
        Ok(())
    }

    fn scan_full(&mut self, worker: &mut dyn Worker, far: &mut dyn FnMut(u64)) -> Result<u64> {
        let (keys, len) = (self.task.keys, self.task.value_bytes);
        let (mut next, mut wrong) = (0_u64, 0_u64);
        let found = worker.scan(&[0; 8], u64::MAX, &mut |key, value| {
            let right = keys.number(key) == Some(next) && rows::is_for(value, next, len);
            wrong += u64::from(!right);
            next += 1;
            if next % COUNT_EVERY == 0 {
                far(next);
            }
        })?;
        ensure!(found == self.task.rows && wrong == 0, "{found} rows, {wrong} of them wrong");
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_as_there_when_all_below_it_are() {
        let inserts = Inserts::new(10, 2);
        assert_eq!(inserts.limit(), 10);
        assert_eq!((inserts.begin(0), inserts.begin(1)), (10, 11));
        inserts.end(1);
        assert_eq!(inserts.limit(), 10, "11 is there, 10 is not");
        inserts.end(0);
        assert_eq!(inserts.limit(), 12);
    }
}
