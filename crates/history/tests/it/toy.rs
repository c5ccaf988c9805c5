//! A toy store with all five levels, in a few maps, which can be told to break one promise.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use weir_history::{Key, Level, Lock, Refused, Session};

/// Which promise is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// None.
    Nothing,
    /// Writers overwrite what is not committed.
    WriteLocks,
    /// Every plain read sees what is not committed.
    CommittedReads,
    /// REPEATABLE READ and SNAPSHOT read what was last committed.
    Snapshots,
    /// A snapshot shows what came after it under odd keys.
    HalfSnapshots,
    /// SNAPSHOT writes on top of what it does not see.
    FirstUpdaterWins,
    /// Ranges are not locked.
    RangeLocks,
    /// Plain reads at SERIALIZABLE do not lock.
    ReadLocks,
    /// Rolling back leaves the last write standing.
    Rollback,
    /// Going back to a savepoint leaves the writes standing.
    Savepoint,
    /// A commit forgets a write of several.
    Commit,
    /// A crash leaves one write of a lost commit.
    Crash,
}

pub(crate) const BREAKABLE: [Broken; 11] = [
    Broken::WriteLocks,
    Broken::CommittedReads,
    Broken::Snapshots,
    Broken::HalfSnapshots,
    Broken::FirstUpdaterWins,
    Broken::RangeLocks,
    Broken::ReadLocks,
    Broken::Rollback,
    Broken::Savepoint,
    Broken::Commit,
    Broken::Crash,
];

/// Keys, the transaction that locked them, and whether exclusively.
type Held = (Range<Key>, usize, bool);

struct Store {
    broken: Broken,
    clock: u64,
    /// Committed states by key, oldest first.
    rows: BTreeMap<Key, Vec<(u64, Option<u64>)>>,
    /// Uncommitted ones.
    dirty: BTreeMap<Key, (usize, Option<u64>)>,
    held: Vec<Held>,
}

/// One session of it.
pub(crate) struct Toy {
    store: Arc<Mutex<Store>>,
    id: usize,
    level: Level,
    snapshot: Option<u64>,
    /// Keys written, and what of its own this replaced.
    undo: Vec<(Key, Option<Option<u64>>)>,
    savepoint: usize,
}

/// Sessions of a store with these rows.
pub(crate) fn toys(broken: Broken, rows: &[(Key, u64)], sessions: usize) -> Vec<Toy> {
    let rows = rows.iter().map(|&(key, value)| (key, vec![(0, Some(value))])).collect();
    let (dirty, held) = (BTreeMap::new(), Vec::new());
    let store = Arc::new(Mutex::new(Store { broken, clock: 0, rows, dirty, held }));
    let toy = |id| Toy {
        store: store.clone(),
        id,
        level: Level::Serializable,
        snapshot: None,
        undo: Vec::new(),
        savepoint: 0,
    };
    (0..sessions).map(toy).collect()
}

/// The store of this session loses what was not committed, and the newest commits.
pub(crate) fn crash(toy: &Toy, commits_lost: u64) {
    let mut store = toy.store.lock();
    let last = store.clock.saturating_sub(commits_lost);
    let spared = (store.broken == Broken::Crash).then_some(last + 1);
    store.dirty.clear();
    store.held.clear();
    let mut spare = spared;
    for states in store.rows.values_mut() {
        states
            .retain(|&(when, _)| when <= last || spare.take_if(|spared| *spared == when).is_some());
    }
}

impl Store {
    fn latest(&self, key: Key) -> Option<u64> {
        self.rows.get(&key).and_then(|states| states.last()).and_then(|&(_, value)| value)
    }

    fn at(&self, key: Key, snapshot: u64) -> Option<u64> {
        let half = self.broken == Broken::HalfSnapshots && key % 2 == 1;
        let states = self.rows.get(&key)?;
        let state = states.iter().rev().find(|&&(when, _)| when <= snapshot || half)?;
        state.1
    }

    fn lock(&mut self, keys: Range<Key>, id: usize, exclusive: bool) -> Result<(), Refused> {
        let range = keys.end - keys.start > 1;
        if range && self.broken == Broken::RangeLocks {
            return Ok(());
        }
        let meets = |(theirs, other, theirs_exclusive): &Held| {
            *other != id
                && (exclusive || *theirs_exclusive)
                && theirs.start < keys.end
                && keys.start < theirs.end
        };
        let ignore = exclusive && !range && self.broken == Broken::WriteLocks;
        if !ignore && self.held.iter().any(meets) {
            return Err(Refused::WouldWait);
        }
        let held = (keys, id, exclusive);
        if !self.held.contains(&held) {
            self.held.push(held);
        }
        Ok(())
    }
}

impl Toy {
    fn lock_for(&self, lock: Lock, store: &Store) -> Lock {
        let locks = self.level == Level::Serializable && store.broken != Broken::ReadLocks;
        if lock == Lock::None && locks { Lock::Share } else { lock }
    }

    /// A transaction has changed it since the snapshot.
    fn conflicts(&self, store: &Store, key: Key) -> bool {
        let newest = store.rows.get(&key).and_then(|states| states.last()).map_or(0, |s| s.0);
        self.level == Level::Snapshot
            && store.broken != Broken::FirstUpdaterWins
            && self.snapshot.is_some_and(|snapshot| newest > snapshot)
    }

    /// What this session sees under a key, its locks being held.
    fn see(&mut self, store: &Store, key: Key, lock: Lock) -> Option<u64> {
        match store.dirty.get(&key) {
            Some(&(owner, value)) if owner == self.id => return value,
            Some(&(_, value))
                if lock == Lock::None
                    && (self.level == Level::ReadUncommitted
                        || store.broken == Broken::CommittedReads) =>
            {
                return value;
            }
            _ => {}
        }
        let plain = matches!(self.level, Level::RepeatableRead | Level::Snapshot);
        if lock == Lock::None && plain && store.broken != Broken::Snapshots {
            let snapshot = *self.snapshot.get_or_insert(store.clock);
            return store.at(key, snapshot);
        }
        store.latest(key)
    }

    fn write(&mut self, key: Key, value: Option<u64>, only_new: bool) -> Result<bool, Refused> {
        let store = self.store.clone();
        let mut store = store.lock();
        store.lock(key..key + 1, self.id, true)?;
        if self.conflicts(&store, key) {
            return Err(Refused::Conflict);
        }
        let now = self.see(&store, key, Lock::Update);
        if only_new && now.is_some() {
            return Err(Refused::Duplicate);
        }
        if value.is_none() && now.is_none() {
            return Ok(false);
        }
        let own = store.dirty.insert(key, (self.id, value));
        let own = own.filter(|&(owner, _)| owner == self.id).map(|(_, value)| value);
        self.undo.push((key, own));
        Ok(true)
    }

    fn roll_back(&mut self, store: &mut Store, to: usize) {
        while self.undo.len() > to {
            let Some((key, own)) = self.undo.pop() else { return };
            if store.dirty.get(&key).is_none_or(|&(owner, _)| owner != self.id) {
                continue;
            }
            match own {
                Some(value) => store.dirty.insert(key, (self.id, value)),
                None => store.dirty.remove(&key),
            };
        }
    }

    fn end(&mut self, store: &mut Store) {
        store.held.retain(|&(_, owner, _)| owner != self.id);
        store.dirty.retain(|_, &mut (owner, _)| owner != self.id);
        self.undo.clear();
    }
}

impl Session for Toy {
    fn begin(&mut self, level: Level) -> Result<(), Refused> {
        let clock = self.store.lock().clock;
        self.level = level;
        self.snapshot = (level == Level::Snapshot).then_some(clock);
        self.savepoint = 0;
        Ok(())
    }

    fn get(&mut self, key: Key, lock: Lock) -> Result<Option<u64>, Refused> {
        let store = self.store.clone();
        let mut store = store.lock();
        let lock = self.lock_for(lock, &store);
        if lock != Lock::None {
            let held_before = store.held.len();
            store.lock(key..key + 1, self.id, lock == Lock::Update)?;
            if self.conflicts(&store, key) {
                return Err(Refused::Conflict);
            }
            // The weak levels lock rows only.
            let row = self.see(&store, key, lock);
            if row.is_none() && self.level < Level::RepeatableRead {
                store.held.truncate(held_before);
            }
            return Ok(row);
        }
        Ok(self.see(&store, key, lock))
    }

    fn scan(&mut self, keys: Range<Key>, lock: Lock) -> Result<Vec<(Key, u64)>, Refused> {
        let store = self.store.clone();
        let mut store = store.lock();
        let lock = self.lock_for(lock, &store);
        let mut there: BTreeSet<Key> = store.rows.range(keys.clone()).map(|row| *row.0).collect();
        there.extend(store.dirty.range(keys.clone()).map(|row| *row.0));
        if lock != Lock::None && self.level >= Level::RepeatableRead {
            store.lock(keys, self.id, lock == Lock::Update)?;
        } else if lock != Lock::None {
            for &key in &there {
                store.lock(key..key + 1, self.id, lock == Lock::Update)?;
            }
        }
        if lock != Lock::None && there.iter().any(|&key| self.conflicts(&store, key)) {
            return Err(Refused::Conflict);
        }
        if lock == Lock::None && self.level == Level::RepeatableRead {
            // Also where there is nothing to see.
            self.snapshot.get_or_insert(store.clock);
        }
        let rows = there.into_iter();
        Ok(rows.filter_map(|key| Some((key, self.see(&store, key, lock)?))).collect())
    }

    fn put(&mut self, key: Key, value: u64) -> Result<(), Refused> {
        self.write(key, Some(value), false).map(drop)
    }

    fn insert(&mut self, key: Key, value: u64) -> Result<(), Refused> {
        self.write(key, Some(value), true).map(drop)
    }

    fn delete(&mut self, key: Key) -> Result<bool, Refused> {
        self.write(key, None, false)
    }

    fn savepoint(&mut self) -> Result<(), Refused> {
        self.savepoint = self.undo.len();
        Ok(())
    }

    fn back_to_savepoint(&mut self) -> Result<(), Refused> {
        let store = self.store.clone();
        let mut store = store.lock();
        if store.broken != Broken::Savepoint {
            self.roll_back(&mut store, self.savepoint);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Refused> {
        let store = self.store.clone();
        let mut store = store.lock();
        store.clock += 1;
        let clock = store.clock;
        let own = store.dirty.iter().filter(|(_, (owner, _))| *owner == self.id);
        let mut own: Vec<(Key, Option<u64>)> =
            own.map(|(&key, &(_, value))| (key, value)).collect();
        if store.broken == Broken::Commit && own.len() > 2 {
            own.pop();
        }
        for (key, value) in own {
            store.rows.entry(key).or_default().push((clock, value));
        }
        self.end(&mut store);
        Ok(())
    }

    fn rollback(&mut self) {
        let store = self.store.clone();
        let mut store = store.lock();
        if store.broken == Broken::Rollback
            && let Some(&(key, _)) = self.undo.last()
            && let Some(&(_, value)) = store.dirty.get(&key)
        {
            store.clock += 1;
            let clock = store.clock;
            store.rows.entry(key).or_default().push((clock, value));
        }
        self.end(&mut store);
    }
}
