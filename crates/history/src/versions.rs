//! The order of each key's versions, as the writes tell it: which transaction overwrote which.

use crate::record::{End, History, Key, Level, Lock, Op, Version};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A write, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// Index of its transaction.
    pub(crate) txn: usize,
    /// Index of the operation.
    pub(crate) op: usize,
    pub(crate) over: Version,
    pub(crate) dead: bool,
    /// Not rolled back, and the last of its transaction on this key.
    pub(crate) last: bool,
    /// Rolled back by going back to a savepoint.
    pub(crate) undone: bool,
}

/// A committed transaction (index) that overwrote something, with which operation and version.
pub(crate) type Overwriter = (usize, usize, Version);

/// All versions of all keys.
pub(crate) struct Versions {
    pub(crate) writes: HashMap<(Key, Version), Write>,
    /// By transaction: whether its writes count.
    pub(crate) committed: Vec<bool>,
    /// By version: the transaction that overwrote it.
    next: HashMap<(Key, Version), Vec<Overwriter>>,
    /// By key: the committed states without a row, the first one included.
    absences: HashMap<Key, Vec<Version>>,
    /// Keys that a transaction removed of which it is unknown how it ended: no row can be of its
    /// doing.
    doubtful: HashSet<Key>,
    /// Every key that any transaction named, or that was there at first; sorted.
    pub(crate) keys: Vec<Key>,
}

impl Versions {
    pub(crate) fn of(history: &History) -> Versions {
        let writes = writes(history);
        let committed = committed(history, &writes);
        let mut versions = Versions {
            writes,
            committed,
            next: HashMap::new(),
            absences: HashMap::new(),
            doubtful: HashSet::new(),
            keys: keys(history),
        };
        versions.order(history);
        versions
    }

    fn order(&mut self, history: &History) {
        for &key in &self.keys {
            if !history.setup.contains(&key) {
                self.absences.entry(key).or_default().push(Version::UNBORN);
            }
        }
        for (index, txn) in history.transactions.iter().enumerate() {
            if !self.committed[index] {
                if txn.end == End::Unknown {
                    self.doubtful.extend(txn.ops.iter().filter_map(|op| match *op {
                        Op::Write { key, dead: true, .. } => Some(key),
                        _ => None,
                    }));
                }
                continue;
            }
            for op in &txn.ops {
                let &Op::Write { key, nth, .. } = op else { continue };
                let version = Version { txn: txn.id, nth };
                let write = self.writes[&(key, version)];
                if write.last && write.dead {
                    self.absences.entry(key).or_default().push(version);
                }
                if write.undone {
                    continue;
                }
                if let Some(before) = self.before(key, version) {
                    self.next.entry((key, before)).or_default().push((index, write.op, version));
                }
            }
        }
    }

    /// The other transaction's committed version that `version` overwrote. Writes that were rolled
    /// back do not count: what stood before them stands again. `None`: it overwrote its own
    /// transaction's, or something that no transaction wrote.
    fn before(&self, key: Key, version: Version) -> Option<Version> {
        let mut write = self.writes.get(&(key, version))?;
        let own = write.txn;
        // A chain of rolled-back writes that bites its own tail would have no end.
        for _ in 0..=self.writes.len() {
            if write.over.txn == 0 {
                return Some(write.over);
            }
            let over = self.writes.get(&(key, write.over))?;
            if over.txn == own && !over.undone {
                return None;
            }
            if self.committed[over.txn] && !over.undone {
                return Some(write.over);
            }
            write = over;
        }
        None
    }

    /// The transaction that overwrote this version. More than one is a fault.
    pub(crate) fn next(&self, key: Key, version: Version) -> &[Overwriter] {
        self.next.get(&(key, version)).map_or(&[], Vec::as_slice)
    }

    /// All overwritings: key, version, and the transaction that overwrote it.
    pub(crate) fn overwritten(&self) -> impl Iterator<Item = (Key, Version, &[Overwriter])> {
        self.next.iter().map(|(&(key, version), next)| (key, version, next.as_slice()))
    }

    /// The committed states of this key in which there is no row.
    pub(crate) fn absences(&self, key: Key) -> &[Version] {
        self.absences.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Whether no row under this key may be the doing of a transaction of unknown end.
    pub(crate) fn is_doubtful(&self, key: Key) -> bool {
        self.doubtful.contains(&key)
    }

    /// The known keys from `keys.start` to before `keys.end`.
    pub(crate) fn keys_in(&self, keys: &std::ops::Range<Key>) -> &[Key] {
        let from = self.keys.partition_point(|&key| key < keys.start);
        let to = self.keys.partition_point(|&key| key < keys.end);
        self.keys.get(from..to).unwrap_or(&[])
    }
}

fn writes(history: &History) -> HashMap<(Key, Version), Write> {
    let mut writes: HashMap<(Key, Version), Write> = HashMap::new();
    for (index, txn) in history.transactions.iter().enumerate() {
        // The transaction's standing writes, in order.
        let mut standing: Vec<(usize, Key, Version)> = Vec::new();
        for (at, op) in txn.ops.iter().enumerate() {
            match *op {
                Op::Write { key, nth, over, dead } => {
                    let version = Version { txn: txn.id, nth };
                    let write = Write { txn: index, op: at, over, dead, last: false, undone: true };
                    writes.insert((key, version), write);
                    standing.push((at, key, version));
                }
                Op::Undo { from } => standing.retain(|&(at, ..)| at < from),
                _ => {}
            }
        }
        let mut later = HashSet::new();
        for &(_, key, version) in standing.iter().rev() {
            if let Some(write) = writes.get_mut(&(key, version)) {
                write.undone = false;
                write.last = later.insert(key);
            }
        }
    }
    writes
}

/// Whose writes count. A commit of unknown outcome counts if a transaction whose own writes count
/// saw one of its writes: then it was there after the crash, or what follows from it was. (Having
/// overwritten it says nothing: the note of what stood there may be older than the crash.)
fn committed(history: &History, writes: &HashMap<(Key, Version), Write>) -> Vec<bool> {
    let transactions = &history.transactions;
    let mut committed: Vec<bool> = transactions.iter().map(|t| t.end == End::Committed).collect();
    if !transactions.iter().any(|txn| txn.end == End::Unknown) {
        return committed;
    }
    let mut ahead: Vec<usize> = (0..transactions.len()).filter(|&txn| committed[txn]).collect();
    while let Some(at) = ahead.pop() {
        let mut saw = |key: Key, seen: Version| {
            if let Some(write) = writes.get(&(key, seen))
                && transactions[write.txn].end == End::Unknown
                && !committed[write.txn]
            {
                committed[write.txn] = true;
                ahead.push(write.txn);
            }
        };
        // Dirty reads may see what was lost, and be kept.
        let sees_all = transactions[at].level == Level::ReadUncommitted;
        for op in &transactions[at].ops {
            match op {
                Op::Read { lock: Lock::None, .. } | Op::Scan { lock: Lock::None, .. }
                    if sees_all => {}
                Op::Read { key, seen: Some(seen), .. } => saw(*key, *seen),
                Op::Scan { seen, .. } => seen.iter().for_each(|&(key, seen)| saw(key, seen)),
                _ => {}
            }
        }
    }
    committed
}

fn keys(history: &History) -> Vec<Key> {
    let mut keys: BTreeSet<Key> = history.setup.clone();
    for op in history.transactions.iter().flat_map(|txn| &txn.ops) {
        match op {
            Op::Read { key, .. } | Op::Write { key, .. } => {
                keys.insert(*key);
            }
            Op::Scan { seen, .. } => keys.extend(seen.iter().map(|&(key, _)| key)),
            Op::Undo { .. } => {}
        }
    }
    keys.into_iter().collect()
}
