//! Threads that change rows of their own, and count up rows of all.
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use weir::{Batch, Db, Durability, Error, Isolation, Tree, Txn, TxnOptions, Wait};

use super::journal::{HOT, HOT_ROWS, Journal, State};
use super::plan::Plan;
use super::watch::{Shared, fail};

/// A version that is never committed.
const NEVER: u64 = u64::MAX;
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// The trees of a round.
#[derive(Clone)]
pub(super) struct Trees {
    pub(super) rows: Tree,
    pub(super) hot: Tree,
    pub(super) last: Tree,
}

impl Trees {
    pub(super) fn of(db: &Db) -> Result<Trees, Error> {
        let tree = |name| db.open_tree(name);
        Ok(Trees { rows: tree("rows")?, hot: tree("hot")?, last: tree("last")? })
    }

    /// The last transaction of a thread that the database has.
    pub(super) fn last_of(&self, thread: u32) -> Result<u64, Error> {
        let value = self.last.get(&thread.to_be_bytes())?;
        Ok(value.map_or(0, |value| u64_in(&value)))
    }
}

pub(super) fn u64_in(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().expect("8 bytes"))
}

pub(super) fn key_of(thread: u32, row: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&thread.to_be_bytes());
    key[4..].copy_from_slice(&row.to_be_bytes());
    key
}

/// What a row's version holds.
pub(super) fn value_of(plan: &Plan, row: u64, version: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(row ^ version.rotate_left(32) ^ plan.seed << 20);
    let is_long = random.u32(0..1000) < plan.long_values;
    let bytes = if is_long { random.usize(3_000..40_000) } else { random.usize(8..400) };
    let mut value = vec![random.u8(..); bytes];
    value[..8].copy_from_slice(&version.to_be_bytes());
    // Half of it does not pack.
    let half = bytes.max(16) / 2;
    value.iter_mut().skip(8).take(half - 8).for_each(|byte| *byte = random.u8(..));
    value
}

pub(super) struct Worker<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) db: &'a Db,
    pub(super) trees: Trees,
    pub(super) thread: u32,
    state: State,
    journal: Journal,
    number: u64,
    random: fastrand::Rng,
    durability: Durability,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        (plan, shared, db): (&'a Plan, &'a Shared, &'a Db),
        trees: &Trees,
        dir: &Path,
        thread: u32,
    ) -> Result<Self, String> {
        let number = trees.last_of(thread).map_err(|e| e.to_string())?;
        let state = Journal::replay(dir, thread, number)?;
        let journal = Journal::append_to(dir, thread);
        let random = plan.random(u64::from(thread));
        let (trees, durability) = (trees.clone(), Durability::Lazy);
        Ok(Worker { plan, shared, db, trees, thread, state, journal, number, random, durability })
    }

    pub(super) fn run(&mut self) {
        while !self.shared.stops() {
            self.step();
        }
        self.shared.actors[self.thread as usize].ends();
    }

    fn begins(&self, what: &str) {
        self.shared.actors[self.thread as usize].begins(what);
    }

    fn step(&mut self) {
        self.durability = match self.random.u32(0..20) {
            0..3 => Durability::Synced,
            3..5 => Durability::Written,
            _ => Durability::Lazy,
        };
        let done = match self.random.u32(0..1000) {
            0..450 => self.batch(),
            450..880 => self.transaction(),
            880..940 => self.rolled_back(),
            940..990 => self.hot(),
            990..996 => self.large(),
            _ => self.idle(),
        };
        if let Err(e) = done {
            self.refused(&e);
        }
        for _ in 0..self.random.u32(0..4) {
            let row = self.row();
            self.begins("reads");
            let read = self.trees.rows.get(&key_of(self.thread, row));
            self.compare(row, read);
        }
    }

    fn row(&mut self) -> u64 {
        let rows = f64::from(self.plan.rows);
        let at = self.random.f64();
        let at = if self.plan.is_skewed { at * at * at * at } else { at };
        // Often changed ones are spread over all pages.
        ((at * rows) as u64).wrapping_mul(0x9e37_79b1) % u64::from(self.plan.rows)
    }

    fn version(&mut self) -> u64 {
        if self.random.u32(0..10) == 0 { 0 } else { self.random.u64(1..NEVER) }
    }

    fn changes(&mut self, count: usize) -> Vec<(u64, u64)> {
        (0..count).map(|_| (self.row(), self.version())).collect()
    }

    fn compare(&self, row: u64, read: Result<Option<Vec<u8>>, Error>) {
        let expected = self.state.rows.get(&row);
        let expected = expected.map(|version| value_of(self.plan, row, *version));
        match read {
            Ok(read) if read == expected => {}
            Ok(read) => {
                let version = read.map(|value| u64_in(&value));
                let known = self.state.rows.get(&row);
                self.fail(&format!("row {row} has version {version:?}, not {known:?}"));
            }
            Err(e) => self.fail(&format!("row {row} cannot be read: {e}")),
        }
    }

    fn fail(&self, why: &str) -> ! {
        fail(self.plan, &format!("thread {}: {why}", self.thread))
    }

    fn txn(&mut self) -> Txn {
        let isolation = match self.random.u32(0..4) {
            0 => Isolation::ReadCommitted,
            1 => Isolation::Snapshot,
            _ => Isolation::RepeatableRead,
        };
        self.db.begin(TxnOptions { isolation, lock_wait: Wait::Until(LOCK_WAIT) })
    }

    /// Applied all at once.
    fn batch(&mut self) -> Result<(), Error> {
        self.begins("a batch");
        let count = self.random.usize(1..4);
        let changes = self.changes(count);
        let number = self.number + 1;
        let mut batch = Batch::new();
        for &(row, version) in &changes {
            let key = key_of(self.thread, row);
            match version {
                0 => batch.delete(&self.trees.rows, &key),
                _ => batch.put(&self.trees.rows, &key, &value_of(self.plan, row, version)),
            }
        }
        batch.put(&self.trees.last, &self.thread.to_be_bytes(), &number.to_be_bytes());
        self.journal.begins(number, &changes);
        self.db.write(&batch, self.durability)?;
        self.committed(number, &changes);
        Ok(())
    }

    fn put_all(&self, txn: &mut Txn, changes: &[(u64, u64)]) -> Result<(), Error> {
        for &(row, version) in changes {
            let key = key_of(self.thread, row);
            if version == 0 {
                txn.delete(&self.trees.rows, &key)?;
            } else {
                txn.put(&self.trees.rows, &key, &value_of(self.plan, row, version))?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, mut txn: Txn, changes: &[(u64, u64)]) -> Result<(), Error> {
        let number = self.number + 1;
        txn.put(&self.trees.last, &self.thread.to_be_bytes(), &number.to_be_bytes())?;
        self.journal.begins(number, changes);
        txn.commit_durably(self.durability)?;
        self.committed(number, changes);
        Ok(())
    }

    fn transaction(&mut self) -> Result<(), Error> {
        self.begins("a transaction");
        let count = self.random.usize(1..6);
        let changes = self.changes(count);
        let mut txn = self.txn();
        self.put_all(&mut txn, &changes)?;
        self.commit(txn, &changes)
    }

    fn junk(&mut self, txn: &mut Txn) -> Result<(), Error> {
        for _ in 0..self.random.u32(1..20) {
            let row = self.row();
            self.put_all(txn, &[(row, NEVER)])?;
        }
        Ok(())
    }

    /// As a whole, or to a savepoint.
    fn rolled_back(&mut self) -> Result<(), Error> {
        self.begins("a transaction that is rolled back");
        let mut txn = self.txn();
        let changes = self.changes(2);
        self.put_all(&mut txn, &changes)?;
        let savepoint = txn.savepoint();
        self.junk(&mut txn)?;
        match self.random.u32(0..3) {
            0 => txn.rollback(),
            1 => {
                drop(txn);
                Ok(())
            }
            _ => {
                txn.rollback_to(savepoint)?;
                self.commit(txn, &changes)
            }
        }
    }

    /// Rows that all threads want, in any order: there are deadlocks.
    fn hot(&mut self) -> Result<(), Error> {
        self.begins("rows that all want");
        let mut txn = self.txn();
        let mut changes = self.changes(1);
        self.put_all(&mut txn, &changes)?;
        for _ in 0..self.random.u32(1..3) {
            let hot = HOT + self.random.u64(0..HOT_ROWS);
            let mut value = Vec::new();
            let is_there = txn.get_for_update(&self.trees.hot, &hot.to_be_bytes(), &mut value)?;
            let count = if is_there { u64_in(&value) } else { 0 };
            txn.put(&self.trees.hot, &hot.to_be_bytes(), &(count + 1).to_be_bytes())?;
            changes.push((hot, 1));
        }
        self.commit(txn, &changes)
    }

    fn large(&mut self) -> Result<(), Error> {
        self.begins("a large transaction");
        let count = self.random.usize(100..1500);
        let changes = self.changes(count);
        let mut txn = self.txn();
        self.put_all(&mut txn, &changes)?;
        if self.random.u32(0..3) == 0 {
            return txn.rollback();
        }
        self.commit(txn, &changes)
    }

    /// Open for long, with changes that hold the checkpoint.
    fn idle(&mut self) -> Result<(), Error> {
        self.begins("an idle transaction");
        let changes = self.changes(3);
        let mut txn = self.txn();
        self.put_all(&mut txn, &changes)?;
        let millis = self.random.u64(10..3000);
        self.shared.pause(millis);
        self.commit(txn, &changes)
    }

    fn committed(&mut self, number: u64, changes: &[(u64, u64)]) {
        // What is written outlives the process, if not the machine.
        if self.durability != Durability::Lazy {
            self.journal.is_safe(number);
        }
        self.state.apply(changes);
        self.number = number;
        self.shared.commits.fetch_add(1, SeqCst);
    }

    fn refused(&mut self, e: &Error) {
        use weir::TxnError;
        let is_expected = match e {
            Error::DiskFull(_) => true,
            Error::Transaction(TxnError::TooLarge { .. } | TxnError::TooManyLocks { .. }) => true,
            e => e.is_retryable(),
        };
        if !is_expected {
            self.fail(&format!("refused: {e}"));
        }
        // Nothing of it may be there.
        match self.trees.last_of(self.thread) {
            Ok(last) if last == self.number => {}
            Ok(last) => self.fail(&format!("transaction {last} is there, which failed: {e}")),
            Err(e) => self.fail(&format!("what was last cannot be read: {e}")),
        }
        self.number += 1;
        self.journal.is_withdrawn(self.number);
        self.number -= 1;
        self.shared.refused.fetch_add(1, SeqCst);
        if self.shared.disk_is_full.load(SeqCst) {
            self.shared.pause(5);
        }
    }

    /// All was acknowledged, and the database was closed.
    pub(super) fn is_closed(&mut self) {
        self.journal.is_safe(self.number);
    }
}
