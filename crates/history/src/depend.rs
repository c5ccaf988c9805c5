//! What each transaction owes to which other: the edges of Adya's serialisation graph (A. Adya,
//! "Weak Consistency", 1999), and the faults that need no graph to be seen. Reading versions back
//! from the values, and the order of versions from what each write overwrote, is Elle's way (K.
//! Kingsbury and P. Alvaro, VLDB 2020).

use crate::record::{End, History, Key, Lock, Op, Version};
use crate::versions::Versions;
use std::collections::HashMap;

/// The three kinds of dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Overwrote what the other had written.
    Ww,
    /// Read what the other had written.
    Wr,
    /// Read what the other then overwrote.
    Rw,
}

/// One dependency: `to` comes after `from` in any serial order that explains the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Which kind.
    pub kind: Kind,
    /// Index of the earlier transaction in the history.
    pub from: usize,
    /// Index of the later one.
    pub to: usize,
    /// The key that both touched.
    pub key: Key,
    /// The version that `from` wrote (ww, wr) or read (rw).
    pub earlier: Version,
    /// The version that `to` wrote (ww, rw) or read (wr).
    pub later: Version,
    /// Index of the operation in `from`: for ww and wr the write, for rw the read.
    pub from_op: usize,
    /// Index of the operation in `to`: for ww and rw the write, for wr the read.
    pub to_op: usize,
    /// How the read among the two locked; `Lock::None` for ww.
    pub lock: Lock,
    /// The read was of a range, and found no row under this key.
    pub phantom: bool,
    /// The read found a row.
    pub present: bool,
}

/// What is wrong with a single operation, whatever the order of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Saw a write that was rolled back.
    Aborted(Version),
    /// Saw a write that its transaction replaced before it ended.
    Intermediate(Version),
    /// Did not see what the transaction itself had written last.
    Internal {
        /// What it should have seen.
        own: Version,
        /// What it saw; `None`: no row.
        seen: Option<Version>,
    },
    /// Saw what no transaction wrote there; `None`: no row, where there was always one.
    Garbage(Option<Version>),
    /// Two transactions overwrote the same version, which only one of them can have seen.
    Forked {
        /// The version.
        over: Version,
        /// The other transaction that overwrote it.
        other: u32,
    },
}

/// A fault and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faulty {
    /// Index of the transaction.
    pub txn: usize,
    /// Index of its operation.
    pub op: usize,
    /// The key.
    pub key: Key,
    /// How the operation locked; a write counts as `Lock::Update`.
    pub lock: Lock,
    /// What is wrong.
    pub fault: Fault,
}

/// Everything that a history says about the order of its transactions.
#[derive(Default)]
pub(crate) struct Dependencies {
    pub(crate) edges: Vec<Dependency>,
    pub(crate) faults: Vec<Faulty>,
    /// Reads of no row where more than one state has none: they tell nothing.
    pub(crate) vague: u64,
}

/// It was unknown how it ended, and nothing of it was found again.
fn is_lost(history: &History, versions: &Versions, txn: usize) -> bool {
    history.transactions[txn].end == End::Unknown && !versions.committed[txn]
}

/// One key as one read saw it.
#[derive(Clone, Copy)]
struct Look {
    txn: usize,
    op: usize,
    key: Key,
    seen: Option<Version>,
    lock: Lock,
    range: bool,
}

impl Dependencies {
    pub(crate) fn of(history: &History) -> Dependencies {
        let versions = Versions::of(history);
        let mut found = Dependencies::default();
        found.overwritings(history, &versions);
        for index in 0..history.transactions.len() {
            found.reads(history, &versions, index);
        }
        // Maps gave the overwritings in no order; the same history has the same report.
        found.edges.sort_by_key(|e| (e.from, e.to, e.kind, e.key, e.from_op, e.to_op));
        found.faults.sort_by_key(|f| (f.txn, f.op, f.key));
        found
    }

    fn overwritings(&mut self, history: &History, versions: &Versions) {
        for (key, earlier, next) in versions.overwritten() {
            let mut writers: Vec<_> = next.to_vec();
            writers.sort_unstable();
            writers.dedup_by_key(|&mut (txn, ..)| txn);
            for pair in writers.windows(2) {
                let fault =
                    Fault::Forked { over: earlier, other: history.transactions[pair[0].0].id };
                let (txn, op, _) = pair[1];
                self.faults.push(Faulty { txn, op, key, lock: Lock::Update, fault });
            }
            let Some(write) = versions.writes.get(&(key, earlier)) else { continue };
            for &(to, to_op, later) in next {
                self.edges.push(Dependency {
                    kind: Kind::Ww,
                    from: write.txn,
                    to,
                    key,
                    earlier,
                    later,
                    from_op: write.op,
                    to_op,
                    lock: Lock::None,
                    phantom: false,
                    present: true,
                });
            }
        }
    }

    fn reads(&mut self, history: &History, versions: &Versions, index: usize) {
        let txn = &history.transactions[index];
        // The transaction's own standing writes so far: operation, key, version, removed.
        let mut own: Vec<(usize, Key, Version, bool)> = Vec::new();
        for (at, op) in txn.ops.iter().enumerate() {
            match op {
                &Op::Write { key, nth, dead, .. } => {
                    own.push((at, key, Version { txn: txn.id, nth }, dead));
                }
                &Op::Undo { from } => own.retain(|&(at, ..)| at < from),
                &Op::Read { key, seen, lock } => {
                    let look = Look { txn: index, op: at, key, seen, lock, range: false };
                    self.look(history, versions, &own, look);
                }
                Op::Scan { keys, seen, lock } => {
                    let rows: HashMap<Key, Version> = seen.iter().copied().collect();
                    for &key in versions.keys_in(keys) {
                        let seen = rows.get(&key).copied();
                        let look = Look { txn: index, op: at, key, seen, lock: *lock, range: true };
                        self.look(history, versions, &own, look);
                    }
                }
            }
        }
    }

    fn look(
        &mut self,
        history: &History,
        versions: &Versions,
        own: &[(usize, Key, Version, bool)],
        look: Look,
    ) {
        let mine = own.iter().rev().find(|&&(_, key, ..)| key == look.key);
        if let Some(&(_, _, version, dead)) = mine {
            if look.seen != (!dead).then_some(version) {
                self.fault(look, Fault::Internal { own: version, seen: look.seen });
            }
            return;
        }
        match look.seen {
            Some(seen) => self.saw_row(history, versions, look, seen),
            None => self.saw_nothing(history, versions, look),
        }
    }

    fn saw_row(&mut self, history: &History, versions: &Versions, look: Look, seen: Version) {
        if seen.txn == 0 {
            if seen != history.first_version(look.key) || seen == Version::UNBORN {
                return self.fault(look, Fault::Garbage(Some(seen)));
            }
            return self.read_of(versions, look, seen);
        }
        match versions.writes.get(&(look.key, seen)) {
            // Its own, but rolled back by a savepoint.
            Some(write) if write.txn == look.txn => self.fault(look, Fault::Aborted(seen)),
            // Lost in a crash, and the reader with it: it was there at the time.
            Some(write) if is_lost(history, versions, write.txn) && !write.undone => {}
            Some(write) if !versions.committed[write.txn] || write.undone => {
                self.fault(look, Fault::Aborted(seen));
            }
            Some(write) if write.dead => self.fault(look, Fault::Garbage(Some(seen))),
            Some(write) => {
                if !write.last {
                    self.fault(look, Fault::Intermediate(seen));
                }
                self.read_of(versions, look, seen);
            }
            None => self.fault(look, Fault::Garbage(Some(seen))),
        }
    }

    fn saw_nothing(&mut self, history: &History, versions: &Versions, look: Look) {
        match *versions.absences(look.key) {
            _ if versions.is_doubtful(look.key) => self.vague += 1,
            [only] => self.read_of(versions, look, only),
            [] => {
                // No state without a row was ever committed: was one under way?
                let removed = history.transactions.iter().flat_map(|txn| {
                    txn.ops.iter().filter_map(move |op| match *op {
                        Op::Write { key, nth, dead: true, .. } if key == look.key => {
                            Some(Version { txn: txn.id, nth })
                        }
                        _ => None,
                    })
                });
                let own = history.transactions[look.txn].id;
                let mut removed = removed.filter(|removed| removed.txn != own);
                let fault = removed.find_map(|removed| {
                    let write = versions.writes.get(&(look.key, removed))?;
                    Some(match versions.committed[write.txn] && !write.undone {
                        true => Fault::Intermediate(removed),
                        false => Fault::Aborted(removed),
                    })
                });
                self.fault(look, fault.unwrap_or(Fault::Garbage(None)));
            }
            _ => self.vague += 1,
        }
    }

    /// A read of a committed version: its writer comes before, a transaction that overwrote it
    /// comes after.
    fn read_of(&mut self, versions: &Versions, look: Look, seen: Version) {
        let read = Dependency {
            kind: Kind::Wr,
            from: look.txn,
            to: look.txn,
            key: look.key,
            earlier: seen,
            later: seen,
            from_op: look.op,
            to_op: look.op,
            lock: look.lock,
            phantom: look.range && look.seen.is_none(),
            present: look.seen.is_some(),
        };
        if let Some(write) = versions.writes.get(&(look.key, seen)) {
            self.edges.push(Dependency { from: write.txn, from_op: write.op, ..read });
        }
        for &(to, to_op, later) in versions.next(look.key, seen) {
            if to != look.txn {
                self.edges.push(Dependency { kind: Kind::Rw, to, to_op, later, ..read });
            }
        }
    }

    fn fault(&mut self, look: Look, fault: Fault) {
        let Look { txn, op, key, lock, .. } = look;
        self.faults.push(Faulty { txn, op, key, lock, fault });
    }
}
