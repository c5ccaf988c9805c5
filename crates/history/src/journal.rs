//! Keeps the history of what sessions do. Values are chosen here, so that each names its writer;
//! which version a write replaced is noted while the writer still holds the row (HIST-3).

use crate::record::{End, History, Key, Level, Lock, Op, Transaction, Version};
use crate::session::{Refused, Session};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Where the sessions of one store write down what they did.
#[derive(Debug)]
pub struct Journal {
    setup: Vec<Key>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    tick: u64,
    transactions: u32,
    /// By key, what was written last, rolled back or not.
    latest: HashMap<Key, Version>,
    ended: Vec<Transaction>,
}

impl Journal {
    /// For a store in which these keys have rows, each of the value
    /// [`Version::SETUP`]`.to_value()`.
    pub fn over(setup: impl IntoIterator<Item = Key>) -> Arc<Journal> {
        let setup: Vec<Key> = setup.into_iter().collect();
        let latest = setup.iter().map(|&key| (key, Version::SETUP)).collect();
        Arc::new(Journal { setup, kept: Mutex::new(Kept { latest, ..Kept::default() }) })
    }

    /// The rows that the store must hold before the first session begins.
    pub fn rows(&self) -> impl Iterator<Item = (Key, u64)> {
        self.setup.iter().map(|&key| (key, Version::SETUP.to_value()))
    }

    /// A moment: what ends from now on ends after it.
    pub fn now(&self) -> u64 {
        self.kept.lock().tick()
    }

    /// The store has crashed, and commits that returned after this moment were not durable: it is
    /// unknown how they ended. Open transactions are each reported by [`Recorded::crashed`].
    pub fn doubt(&self, since: u64) {
        for txn in &mut self.kept.lock().ended {
            if txn.ended > since && txn.end == End::Committed {
                txn.end = End::Unknown;
            }
        }
    }

    /// What has been done so far by transactions that have ended.
    pub fn history(&self) -> History {
        let mut history = History::over(self.setup.iter().copied());
        history.transactions = self.kept.lock().ended.clone();
        history
    }
}

impl Kept {
    fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }
}

/// A session whose transactions are written down.
#[derive(Debug)]
pub struct Recorded<S> {
    session: S,
    journal: Arc<Journal>,
    open: Option<Transaction>,
    writes: u32,
    /// Operations before the savepoint.
    savepoint: usize,
}

impl<S: Session> Recorded<S> {
    /// Writes down what `session` does.
    pub fn new(session: S, journal: &Arc<Journal>) -> Recorded<S> {
        Recorded { session, journal: journal.clone(), open: None, writes: 0, savepoint: 0 }
    }

    /// A transaction is under way.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The store's session itself.
    pub fn session(&mut self) -> &mut S {
        &mut self.session
    }

    /// Begins a transaction.
    pub fn begin(&mut self, level: Level) -> Result<(), Refused> {
        assert!(self.open.is_none(), "the last transaction has not ended");
        let (id, began) = {
            let mut kept = self.journal.kept.lock();
            kept.transactions += 1;
            (kept.transactions, kept.tick())
        };
        self.session.begin(level)?;
        (self.writes, self.savepoint) = (0, 0);
        let end = End::Aborted;
        self.open = Some(Transaction { id, level, began, ended: 0, end, ops: Vec::new() });
        Ok(())
    }

    /// The version under `key`.
    pub fn get(&mut self, key: Key, lock: Lock) -> Result<Option<Version>, Refused> {
        let answer = self.session.get(key, lock);
        let seen = self.answered(answer)?.map(Version::from_value);
        self.note(Op::Read { key, seen, lock });
        Ok(seen)
    }

    /// The versions in a range.
    pub fn scan(&mut self, keys: Range<Key>, lock: Lock) -> Result<Vec<(Key, Version)>, Refused> {
        let answer = self.session.scan(keys.clone(), lock);
        let rows = self.answered(answer)?.into_iter();
        let seen: Vec<_> = rows.map(|(key, value)| (key, Version::from_value(value))).collect();
        self.note(Op::Scan { keys, seen: seen.clone(), lock });
        Ok(seen)
    }

    /// Writes a new version.
    pub fn put(&mut self, key: Key) -> Result<(), Refused> {
        let version = self.next_version();
        let answer = self.session.put(key, version.to_value());
        self.answered(answer)?;
        self.note_write(key, version, false);
        Ok(())
    }

    /// Writes a new version where there is no row.
    pub fn insert(&mut self, key: Key) -> Result<(), Refused> {
        let version = self.next_version();
        let answer = self.session.insert(key, version.to_value());
        self.answered(answer)?;
        self.note_write(key, version, false);
        Ok(())
    }

    /// Removes a row; false: there was none.
    pub fn delete(&mut self, key: Key) -> Result<bool, Refused> {
        let version = self.next_version();
        let answer = self.session.delete(key);
        let removed = self.answered(answer)?;
        if removed {
            self.note_write(key, version, true);
        } else if self.open.as_ref().is_some_and(|open| open.level == Level::Serializable) {
            // Only here does every level's promise cover what such a write saw.
            self.note(Op::Read { key, seen: None, lock: Lock::Update });
        }
        Ok(removed)
    }

    /// Sets the savepoint.
    pub fn savepoint(&mut self) -> Result<(), Refused> {
        let answer = self.session.savepoint();
        self.answered(answer)?;
        self.savepoint = self.open.as_ref().map_or(0, |open| open.ops.len());
        Ok(())
    }

    /// Rolls back what was written since the savepoint.
    pub fn back_to_savepoint(&mut self) -> Result<(), Refused> {
        let answer = self.session.back_to_savepoint();
        self.answered(answer)?;
        self.note(Op::Undo { from: self.savepoint });
        Ok(())
    }

    /// Commits.
    pub fn commit(&mut self) -> Result<(), Refused> {
        let answer = self.session.commit();
        match &answer {
            Ok(()) => self.end(End::Committed),
            Err(Refused::WouldWait | Refused::Duplicate) => {}
            Err(Refused::Failed(_)) => {
                self.session.rollback();
                self.end(End::Unknown);
            }
            Err(Refused::Deadlock | Refused::Conflict) => self.rollback(),
        }
        answer
    }

    /// Rolls back.
    pub fn rollback(&mut self) {
        self.session.rollback();
        self.end(End::Aborted);
    }

    /// The store is gone, and the open transaction with it: it is unknown how, if it was
    /// committing.
    pub fn crashed(&mut self, committing: bool) {
        self.end(if committing { End::Unknown } else { End::Aborted });
    }

    fn next_version(&mut self) -> Version {
        // A number is used up by an operation that is refused, too: never one value for two states.
        self.writes += 1;
        Version { txn: self.open.as_ref().map_or(0, |open| open.id), nth: self.writes }
    }

    /// Passes an answer on; a transaction that can only be rolled back is.
    fn answered<T>(&mut self, answer: Result<T, Refused>) -> Result<T, Refused> {
        if let Err(Refused::Deadlock | Refused::Conflict | Refused::Failed(_)) = answer {
            self.rollback();
        }
        answer
    }

    fn note(&mut self, op: Op) {
        if let Some(open) = &mut self.open {
            open.ops.push(op);
        }
    }

    fn note_write(&mut self, key: Key, version: Version, dead: bool) {
        let before = self.journal.kept.lock().latest.insert(key, version);
        let over = before.unwrap_or(Version::UNBORN);
        self.note(Op::Write { key, nth: version.nth, over, dead });
    }

    fn end(&mut self, end: End) {
        let Some(mut open) = self.open.take() else { return };
        let mut kept = self.journal.kept.lock();
        (open.end, open.ended) = (end, kept.tick());
        kept.ended.push(open);
    }
}
