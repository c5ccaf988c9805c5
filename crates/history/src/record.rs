//! What a history is: per transaction what it read and wrote, in order, and how it ended.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// A row's key. An adapter makes bytes of it that sort as the numbers do.
pub type Key = u32;

/// Names one state of one key: the `nth` write of transaction `txn`. Written as the row's value, so
/// that a reader knows whose write it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The writer; 0 is what was there before all transactions.
    pub txn: u32,
    /// Which of its writes, from 1.
    pub nth: u32,
}

impl Version {
    /// The row that the setup put under a key.
    pub const SETUP: Version = Version { txn: 0, nth: 1 };
    /// The absence of a row that the setup did not put.
    pub const UNBORN: Version = Version { txn: 0, nth: 0 };

    /// As a row's value.
    pub fn to_value(self) -> u64 {
        u64::from(self.txn) << 32 | u64::from(self.nth)
    }

    /// From a row's value.
    pub fn from_value(value: u64) -> Version {
        // Truncation is meant: the two halves of the value.
        Version { txn: (value >> 32) as u32, nth: value as u32 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Version::UNBORN => f.write_str("no row yet"),
            Version::SETUP => f.write_str("the first row"),
            Version { txn, nth } => write!(f, "T{txn}'s write {nth}"),
        }
    }
}

/// Isolation levels, as MariaDB's users know them and one more; ordered from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Reads see whatever is there. Writes are locked to the end.
    ReadUncommitted,
    /// Each statement reads what was committed when it began.
    ReadCommitted,
    /// Plain reads from one snapshot; locking reads and writes on the latest committed row.
    RepeatableRead,
    /// Everything from one snapshot; a write over what came after it is refused.
    Snapshot,
    /// As if one after the other.
    Serializable,
}

impl Level {
    /// All of them, weak to strong.
    pub const ALL: [Level; 5] = [
        Level::ReadUncommitted,
        Level::ReadCommitted,
        Level::RepeatableRead,
        Level::Snapshot,
        Level::Serializable,
    ];
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::ReadUncommitted => "READ UNCOMMITTED",
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Snapshot => "SNAPSHOT",
            Level::Serializable => "SERIALIZABLE",
        })
    }
}

/// How a read locks what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lock {
    /// A consistent read.
    None,
    /// `for share`.
    Share,
    /// `for update`.
    Update,
}

/// One thing that a transaction did, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read one key.
    Read {
        /// Which.
        key: Key,
        /// The row found; `None`: no row.
        seen: Option<Version>,
        /// How.
        lock: Lock,
    },
    /// Read all rows of a range: keys of the range that are not in `seen` had no row.
    Scan {
        /// First key, and the one behind the last.
        keys: Range<Key>,
        /// The rows found, in any order.
        seen: Vec<(Key, Version)>,
        /// How.
        lock: Lock,
    },
    /// Put a row, or removed it. The version is the transaction's own, `nth` counting its writes.
    Write {
        /// Which key.
        key: Key,
        /// Which of the transaction's writes this is, from 1.
        nth: u32,
        /// The state that was overwritten: this is what makes the order of versions known.
        over: Version,
        /// The row was removed.
        dead: bool,
    },
    /// Back to a savepoint: the writes among `ops[from..]` so far are rolled back.
    Undo {
        /// Index of the first operation that is rolled back.
        from: usize,
    },
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The commit returned success.
    Committed,
    /// Rolled back, by the client or the store.
    Aborted,
    /// Unknown: a crash during the commit, or before the commit was durable. Taken for committed if
    /// one that counts as committed saw what it wrote.
    Unknown,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its number in [`Version::txn`]; never 0, never used twice in a history.
    pub id: u32,
    /// What it asked for.
    pub level: Level,
    /// A tick of the recorder's before its begin was called.
    pub began: u64,
    /// A tick of the recorder's after its commit or rollback had returned.
    pub ended: u64,
    /// How it ended.
    pub end: End,
    /// What it did.
    pub ops: Vec<Op>,
}

/// A whole recorded history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Keys that had a row before the first transaction.
    pub setup: BTreeSet<Key>,
    /// The transactions, in any order.
    pub transactions: Vec<Transaction>,
}

impl History {
    /// An empty history over rows that are there at the start.
    pub fn over(setup: impl IntoIterator<Item = Key>) -> History {
        History { setup: setup.into_iter().collect(), transactions: Vec::new() }
    }

    /// What was under `key` before all transactions.
    pub fn first_version(&self, key: Key) -> Version {
        if self.setup.contains(&key) { Version::SETUP } else { Version::UNBORN }
    }

    /// Adds a committed transaction with the next number, at no particular time; for histories that
    /// are written by hand.
    pub fn add(&mut self, level: Level, ops: Vec<Op>) -> &mut Transaction {
        let at = self.transactions.len();
        // Counts of transactions fit 32 bits: versions name them so.
        let id = at as u32 + 1;
        self.transactions.push(Transaction {
            id,
            level,
            began: 0,
            ended: u64::MAX,
            end: End::Committed,
            ops,
        });
        &mut self.transactions[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_survive_being_values() {
        for version in [Version::SETUP, Version::UNBORN, Version { txn: u32::MAX, nth: 7 }] {
            assert_eq!(Version::from_value(version.to_value()), version);
        }
    }

    #[test]
    fn levels_are_ordered() {
        assert!(Level::ALL.is_sorted());
    }
}
