//! The four workloads: what one thread does in one transaction.
use crate::ack::AckFile;
use crate::driver::{Job, Meter, Work};
use crate::durability::Durability;
use crate::ledger::Ledger;
use crate::options::WorkloadKind;
use crate::record::{self, KEY_BYTES, VALUE_BYTES};
use crate::target::Table;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The tree of update, read and scan: keys 0 to rows, without gaps.
pub const ROWS_TREE: &str = "bench-rows";
/// The tree of insert: keys are scrambled numbers, so that neighbours in time are not neighbours in
/// the tree.
pub const INSERT_TREE: &str = "bench-inserts";

/// Rows that one scan reads.
pub(crate) const SCAN_ROWS: u64 = 100;

/// What all threads of a run share.
pub(crate) struct Shared<B> {
    pub(crate) kind: WorkloadKind,
    pub(crate) table: B,
    pub(crate) durability: Durability,
    /// Rows of the tree of rows.
    pub(crate) rows: u64,
    /// Versions of the rows; empty unless the workload updates.
    pub(crate) ledger: Ledger,
    pub(crate) inserts: Inserts,
    /// Whether all pages of the store are this table's.
    pub(crate) alone: bool,
    pub(crate) acks: Option<AckFile>,
}

/// Which rows were inserted. Row `n` has the key `scramble(n)`.
#[derive(Default)]
pub(crate) struct Inserts {
    /// Rows that were there before the run.
    pub(crate) before: u64,
    /// The number of the run's first row.
    pub(crate) first: u64,
    /// The next row's number.
    pub(crate) next: AtomicU64,
    /// Rows whose insertion failed: they may be there or not.
    pub(crate) failed: Mutex<Vec<u64>>,
}

/// One thread's part.
pub(crate) struct Worker<'a, B> {
    shared: &'a Shared<B>,
    random: fastrand::Rng,
    value: [u8; VALUE_BYTES],
    read: Vec<u8>,
    upwards: bool,
}

impl<B: Table> Job for Shared<B> {
    type Work<'a>
        = Worker<'a, B>
    where
        Self: 'a;

    fn work(&self, thread: usize) -> Result<Worker<'_, B>> {
        Ok(Worker::new(self, thread))
    }
}

impl<B: Table> Work for Worker<'_, B> {
    fn step(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let begun = meter.last_micros();
        self.transaction()?;
        meter.read();
        meter.record(begun);
        Ok(())
    }
}

impl<'a, B: Table> Worker<'a, B> {
    fn new(shared: &'a Shared<B>, thread: usize) -> Self {
        Worker {
            shared,
            random: fastrand::Rng::with_seed(record::scramble(thread as u64 + 1)),
            value: [0; VALUE_BYTES],
            read: Vec::with_capacity(VALUE_BYTES),
            upwards: thread.is_multiple_of(2),
        }
    }

    fn transaction(&mut self) -> Result<()> {
        match self.shared.kind {
            WorkloadKind::Update => self.update(),
            WorkloadKind::Insert => self.insert(),
            WorkloadKind::Read => self.read(),
            WorkloadKind::Scan => self.scan(),
            WorkloadKind::Tpcc => bail!("TPC-C does not run on one table"),
        }
    }

    fn update(&mut self) -> Result<()> {
        let shared = self.shared;
        let (row, version) = self.claim()?;
        record::fill(&mut self.value, row, version);
        shared
            .table
            .put(&row.to_be_bytes(), &self.value, shared.durability)
            .with_context(|| format!("update of row {row}"))?;
        shared.ledger.acknowledge(row, version);
        self.note(row, version)
    }

    /// A row chosen uniformly among those that no other thread is updating.
    fn claim(&mut self) -> Result<(u64, u32)> {
        let tries_max = 1000 * self.shared.rows.max(1000);
        for _ in 0..tries_max {
            let row = self.random.u64(..self.shared.rows);
            if let Some(version) = self.shared.ledger.claim(row) {
                return Ok((row, version));
            }
            // More threads than rows: let the owner finish.
            std::thread::yield_now();
        }
        Err(anyhow!("every row is being updated; use more rows than threads"))
    }

    fn insert(&mut self) -> Result<()> {
        let shared = self.shared;
        let number = shared.inserts.next.fetch_add(1, Relaxed);
        let key = record::scramble(number);
        record::fill(&mut self.value, key, 0);
        let put = shared.table.put(&key.to_be_bytes(), &self.value, shared.durability);
        if put.is_err() {
            shared.inserts.failed.lock().expect("no thread panics with the lock").push(number);
        }
        put.with_context(|| format!("insert of key 0x{key:016x}"))?;
        self.note(key, 0)
    }

    fn note(&self, key: u64, version: u32) -> Result<()> {
        match &self.shared.acks {
            Some(acks) => acks.note(self.shared.kind, key, version),
            None => Ok(()),
        }
    }

    fn read(&mut self) -> Result<()> {
        let row = self.random.u64(..self.shared.rows);
        let key = row.to_be_bytes();
        let found = self.shared.table.get_into(&key, &mut self.read);
        ensure!(found.with_context(|| format!("read of row {row}"))?, "row {row} is missing");
        ensure!(record::echoes(&key, &self.read), "row {row} holds the value of another");
        Ok(())
    }

    fn scan(&mut self) -> Result<()> {
        let length = SCAN_ROWS.min(self.shared.rows);
        let first = self.random.u64(..=self.shared.rows - length);
        self.upwards = !self.upwards;
        let mut expected = Expected { first, length, seen: 0, upwards: self.upwards, wrong: None };
        let mut visit = |key: &[u8], value: &[u8]| expected.visit(key, value);
        if self.upwards {
            self.shared.table.scan_up(&first.to_be_bytes(), &mut visit)
        } else {
            let before = (first + length).to_be_bytes();
            self.shared.table.scan_down(Some(&before), &mut visit)
        }
        .with_context(|| format!("scan from row {first}"))?;
        match expected.wrong {
            Some(wrong) => Err(anyhow!("scan of {length} rows from row {first}: {wrong}")),
            None if expected.seen < length => {
                let seen = expected.seen;
                Err(anyhow!("scan from row {first} ended after {seen} of {length} rows"))
            }
            None => Ok(()),
        }
    }
}

/// Checks that a scan meets every row in order.
struct Expected {
    first: u64,
    length: u64,
    seen: u64,
    upwards: bool,
    wrong: Option<String>,
}

impl Expected {
    fn visit(&mut self, key: &[u8], value: &[u8]) -> bool {
        let offset = if self.upwards { self.seen } else { self.length - 1 - self.seen };
        let row = (self.first + offset).to_be_bytes();
        debug_assert_eq!(row.len(), KEY_BYTES);
        if key != row {
            self.wrong = Some(format!("key {key:02x?} where row {} belongs", self.first + offset));
        } else if !record::echoes(key, value) {
            self.wrong = Some(format!("row {} holds the value of another", self.first + offset));
        }
        self.seen += 1;
        self.wrong.is_none() && self.seen < self.length
    }
}
