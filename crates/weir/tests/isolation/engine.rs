//! The engine as a store that `weir-history` can judge.

use std::ops::Range;
use std::time::Duration;

use weir::{
    Background, Config, Db, Durability, Error, Isolation, Savepoint, SimVolume, Tree, Txn,
    TxnError, TxnOptions, Wait,
};
use weir_history::{Key, Level, Lock, Refused, Session};

/// The levels that the engine has, weak to strong.
pub(crate) const LEVELS: &[Level] = &[
    Level::ReadUncommitted,
    Level::ReadCommitted,
    Level::RepeatableRead,
    Level::Snapshot,
    Level::Serializable,
];

/// Lengths of values: so that rows grow, shrink, and now and then have pages of their own.
const LENGTHS: [usize; 4] = [0, 24, 200, 3_000];

fn isolation(level: Level) -> Isolation {
    match level {
        Level::ReadUncommitted => Isolation::ReadUncommitted,
        Level::ReadCommitted => Isolation::ReadCommitted,
        Level::RepeatableRead => Isolation::RepeatableRead,
        Level::Snapshot => Isolation::Snapshot,
        Level::Serializable => Isolation::Serializable,
    }
}

/// A connection.
pub(crate) struct Connection {
    volume: SimVolume,
    db: Db,
    tree: Tree,
    wait: Wait,
    txn: Option<Txn>,
    savepoint: Option<Savepoint>,
}

/// A small database on a simulated disk, small enough for its pages to come and go.
pub(crate) fn database(volume: &SimVolume, background: Background) -> Db {
    let config = Config {
        pool_bytes: 512 << 10,
        log_bytes: 64 << 20,
        page_size: 4096,
        pages_max: 4096,
        background,
        ..Config::default()
    };
    Db::open_on(std::sync::Arc::new(volume.clone()), config).expect("the database opens")
}

/// Sessions of this database, with these rows in it; they wait so long for locks.
pub(crate) fn connect(
    (volume, db): (&SimVolume, &Db),
    rows: &[(Key, u64)],
    sessions: usize,
    wait: Option<Duration>,
) -> Vec<Connection> {
    let tree = db.open_tree("judged").expect("a tree");
    for &(key, value) in rows {
        tree.put(&key.to_be_bytes(), &row(key, value), Durability::Lazy).expect("a row");
    }
    let connection = |_| Connection {
        volume: volume.clone(),
        db: db.clone(),
        tree: tree.clone(),
        wait: wait.map_or(Wait::No, Wait::Until),
        txn: None,
        savepoint: None,
    };
    (0..sessions).map(connection).collect()
}

/// The value, and behind it bytes that depend on key and value.
fn row(key: Key, value: u64) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    let length = LENGTHS[(value % 31 % 4) as usize];
    bytes.resize(8 + length, (value as u8) ^ (key as u8));
    bytes
}

/// What `row` made, verified to the last byte.
fn value_of(key: Key, bytes: &[u8]) -> u64 {
    let value = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    assert_eq!(bytes, row(key, value), "the row of key {key} is of two minds");
    value
}

fn refused(error: &Error) -> Refused {
    match error {
        Error::Duplicate => Refused::Duplicate,
        _ if error.is_deadlock() => Refused::Deadlock,
        Error::Transaction(TxnError::Conflict) => Refused::Conflict,
        Error::Transaction(TxnError::Lock(
            weir::LockError::WouldWait { .. } | weir::LockError::TimedOut { .. },
        )) => Refused::WouldWait,
        _ => Refused::Failed(error.to_string()),
    }
}

impl Connection {
    fn txn(&mut self) -> (&mut Txn, &Tree) {
        (self.txn.as_mut().expect("a transaction is open"), &self.tree)
    }
}

impl Session for Connection {
    fn begin(&mut self, level: Level) -> Result<(), Refused> {
        let options = TxnOptions { isolation: isolation(level), lock_wait: self.wait };
        let mut txn = self.db.begin(options);
        if level == Level::Snapshot {
            txn.take_snapshot();
        }
        self.savepoint = Some(txn.savepoint());
        self.txn = Some(txn);
        Ok(())
    }

    fn get(&mut self, key: Key, lock: Lock) -> Result<Option<u64>, Refused> {
        let (txn, tree) = self.txn();
        let (name, mut bytes) = (key.to_be_bytes(), Vec::new());
        let found = match lock {
            Lock::None => txn.get_into(tree, &name, &mut bytes),
            Lock::Share => txn.get_for_share(tree, &name, &mut bytes),
            Lock::Update => txn.get_for_update(tree, &name, &mut bytes),
        };
        Ok(found.map_err(|e| refused(&e))?.then(|| value_of(key, &bytes)))
    }

    fn scan(&mut self, keys: Range<Key>, lock: Lock) -> Result<Vec<(Key, u64)>, Refused> {
        let (txn, tree) = self.txn();
        let mut cursor = match lock {
            Lock::None => txn.cursor(tree),
            Lock::Share => txn.cursor_for_share(tree),
            Lock::Update => txn.cursor_for_update(tree),
        };
        cursor.set_bounds(&keys.start.to_be_bytes(), Some(&keys.end.to_be_bytes()));
        let mut rows = Vec::new();
        let mut on = cursor.seek_first(txn).map_err(|e| refused(&e))?;
        while on {
            let key = Key::from_be_bytes(cursor.key().try_into().expect("a key of ours"));
            rows.push((key, value_of(key, cursor.value())));
            on = cursor.next(txn).map_err(|e| refused(&e))?;
        }
        Ok(rows)
    }

    fn put(&mut self, key: Key, value: u64) -> Result<(), Refused> {
        let (txn, tree) = self.txn();
        txn.put(tree, &key.to_be_bytes(), &row(key, value)).map_err(|e| refused(&e))
    }

    fn insert(&mut self, key: Key, value: u64) -> Result<(), Refused> {
        let (txn, tree) = self.txn();
        txn.insert(tree, &key.to_be_bytes(), &row(key, value)).map_err(|e| refused(&e))
    }

    fn delete(&mut self, key: Key) -> Result<bool, Refused> {
        let (txn, tree) = self.txn();
        txn.delete(tree, &key.to_be_bytes()).map_err(|e| refused(&e))
    }

    fn savepoint(&mut self) -> Result<(), Refused> {
        self.savepoint = Some(self.txn().0.savepoint());
        Ok(())
    }

    fn back_to_savepoint(&mut self) -> Result<(), Refused> {
        let savepoint = self.savepoint.expect("set when it began");
        self.txn().0.rollback_to(savepoint).map_err(|e| refused(&e))
    }

    fn commit(&mut self) -> Result<(), Refused> {
        let txn = self.txn.take().expect("a transaction is open");
        txn.commit_durably(Durability::Lazy).map_err(|e| refused(&e))
    }

    fn rollback(&mut self) {
        if let Some(txn) = self.txn.take()
            && !txn.has_ended()
        {
            // Where the disk has crashed it fails, and the next opening rolls it back.
            let done = txn.rollback();
            assert!(done.is_ok() || self.volume.has_crashed(), "{done:?}");
        }
    }
}
