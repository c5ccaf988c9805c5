//! What an isolation level promises, as an order of moments. Each transaction has a few: its begin,
//! the moment of its snapshot, each operation, its end. A dependency says that one moment was
//! before another, and which moments these are depends on the level. A circle of moments cannot
//! have happened, so it breaks the level's promise; levels may be mixed in one history.
//!
//! | dependency | first moment | second moment |
//! |---|---|---|
//! | ww, wr | end of the writer | of the write, of the read |
//! | rw, plain read | of the read | end of the writer |
//! | rw, read whose lock is held | end of the reader | of the write |
//!
//! The moment of a read is its own operation at READ COMMITTED and for locking reads (the moment
//! before it for a row that a locking read of a range without gap locks did not find), the snapshot
//! for plain reads at REPEATABLE READ and for everything at SNAPSHOT; a plain read at READ
//! UNCOMMITTED has none; a SERIALIZABLE transaction is one single moment. At SNAPSHOT a write, too,
//! comes after the end of the transaction that it overwrites only if the snapshot does: the first
//! updater wins.

use crate::depend::{Dependency, Kind};
use crate::graph::{Edge, FREE};
use crate::record::{End, History, Level, Lock, Op};

/// Nothing here: the moment belongs to no transaction.
pub(crate) const NO_TRANSACTION: u32 = u32::MAX;

/// The moments of some of a history's transactions, numbered from 0.
pub(crate) struct Points<'a> {
    history: &'a History,
    /// Instead of each transaction's own.
    level: Option<Level>,
    base: Vec<u32>,
    /// By moment: the index of its transaction, or [`NO_TRANSACTION`].
    pub(crate) owner: Vec<u32>,
    /// Orders within transactions and between the dependencies added.
    pub(crate) edges: Vec<Edge>,
}

impl<'a> Points<'a> {
    /// Of these transactions, by index.
    pub(crate) fn new(
        history: &'a History,
        level: Option<Level>,
        which: impl Iterator<Item = usize>,
    ) -> Points<'a> {
        let mut points = Points {
            history,
            level,
            base: vec![NO_TRANSACTION; history.transactions.len()],
            owner: Vec::new(),
            edges: Vec::new(),
        };
        for txn in which {
            // Indices fit: transactions have 32-bit numbers.
            points.base[txn] = points.owner.len() as u32;
            let moments = match points.level(txn) {
                Level::Serializable => 1,
                _ => history.transactions[txn].ops.len() + 3,
            };
            points.owner.extend(std::iter::repeat_n(txn as u32, moments));
            if moments > 1 {
                points.order_within(txn);
            }
        }
        points
    }

    fn level(&self, txn: usize) -> Level {
        self.level.unwrap_or(self.history.transactions[txn].level)
    }

    fn begin(&self, txn: usize) -> u32 {
        self.base[txn]
    }

    fn snapshot(&self, txn: usize) -> u32 {
        self.base[txn] + u32::from(self.level(txn) != Level::Serializable)
    }

    fn op(&self, txn: usize, op: usize) -> u32 {
        match self.level(txn) {
            Level::Serializable => self.base[txn],
            _ => self.base[txn] + 2 + op as u32,
        }
    }

    fn end(&self, txn: usize) -> u32 {
        self.op(txn, self.history.transactions[txn].ops.len())
    }

    fn order_within(&mut self, txn: usize) {
        let ops = &self.history.transactions[txn].ops;
        let plain = ops.iter().position(|op| {
            matches!(op, Op::Read { lock: Lock::None, .. } | Op::Scan { lock: Lock::None, .. })
        });
        let needs_snapshot = match self.level(txn) {
            Level::Snapshot => 0,
            _ => plain.unwrap_or(ops.len()),
        };
        let mut before = self.begin(txn);
        for op in 0..=ops.len() {
            let now = self.op(txn, op);
            self.free(before, now);
            before = now;
        }
        self.free(self.begin(txn), self.snapshot(txn));
        self.free(self.snapshot(txn), self.op(txn, needs_snapshot));
    }

    fn free(&mut self, from: u32, to: u32) {
        self.edges.push(Edge { from, to, label: FREE });
    }

    fn read_point(&self, txn: usize, op: usize, lock: Lock) -> Option<u32> {
        match (self.level(txn), lock) {
            (Level::ReadUncommitted, Lock::None) => None,
            (Level::Snapshot, _) | (Level::RepeatableRead, Lock::None) => Some(self.snapshot(txn)),
            _ => Some(self.op(txn, op)),
        }
    }

    /// When at the earliest the reader saw what was overwritten after. A range that is read with
    /// locks and without gaps is not read at one moment: it waits for a row that is locked, and
    /// behind it a row may appear that its writer ends with.
    fn absence_point(&self, read: &Dependency) -> Option<u32> {
        let Dependency { from, from_op, lock, .. } = *read;
        let scans = matches!(self.history.transactions[from].ops[from_op], Op::Scan { .. });
        match self.level(from) {
            Level::ReadUncommitted | Level::ReadCommitted if lock != Lock::None && scans => {
                Some(if from_op == 0 { self.begin(from) } else { self.op(from, from_op - 1) })
            }
            _ => self.read_point(from, from_op, lock),
        }
    }

    fn write_point(&self, txn: usize, op: usize) -> u32 {
        match self.level(txn) {
            Level::Snapshot => self.snapshot(txn),
            _ => self.op(txn, op),
        }
    }

    /// The read keeps others from overwriting what it saw until its transaction ends.
    fn is_held(&self, read: &Dependency) -> bool {
        let gaps_too = self.level(read.from) >= Level::RepeatableRead;
        read.lock != Lock::None && (read.present || gaps_too)
    }

    /// Adds what this dependency says under the levels, if it says anything.
    pub(crate) fn add(&mut self, dependency: &Dependency, label: u32) {
        let &Dependency { kind, from, to, to_op, lock, .. } = dependency;
        let order = match kind {
            Kind::Ww => Some((self.end(from), self.write_point(to, to_op))),
            Kind::Wr => self.read_point(to, to_op, lock).map(|read| (self.end(from), read)),
            Kind::Rw if self.is_held(dependency) => Some((self.end(from), self.op(to, to_op))),
            Kind::Rw => self.absence_point(dependency).map(|read| (read, self.end(to))),
        };
        if let Some((from, to)) = order {
            self.edges.push(Edge { from, to, label });
        }
    }

    /// Adds that `from` had ended when `to` began.
    pub(crate) fn add_time(&mut self, from: usize, to: usize, label: u32) {
        let (from, to) = (self.end(from), self.begin(to));
        self.edges.push(Edge { from, to, label });
    }

    /// Adds all that the ticks tell: which transaction had committed when which began. The edge
    /// that leaves transaction t has the label `labels + t`.
    pub(crate) fn add_all_time(&mut self, labels: u32) {
        let transactions = &self.history.transactions;
        let mut begins: Vec<usize> = (0..transactions.len()).collect();
        begins.sort_by_key(|&txn| transactions[txn].began);
        // One moment per begin, each before the next: an edge per pair would be too many.
        let chain = self.owner.len() as u32;
        self.owner.extend(std::iter::repeat_n(NO_TRANSACTION, begins.len()));
        for (at, &txn) in begins.iter().enumerate() {
            let moment = chain + at as u32;
            if at > 0 {
                self.free(moment - 1, moment);
            }
            self.free(moment, self.begin(txn));
        }
        for (txn, transaction) in transactions.iter().enumerate() {
            let later = begins.partition_point(|&b| transactions[b].began <= transaction.ended);
            if transaction.end == End::Committed && later < begins.len() {
                let (from, to) = (self.end(txn), chain + later as u32);
                self.edges.push(Edge { from, to, label: labels + txn as u32 });
            }
        }
    }
}
