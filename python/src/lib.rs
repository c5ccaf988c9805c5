//! `weirdb` for Python. What Python code sees is in `python/weirdb/__init__.py` and its stubs; this
//! is the part below it, which releases the interpreter's lock around each call of the engine.
mod octets;
mod rows;
mod upkeep;

use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{create_exception, wrap_pyfunction};
use weirdb::{Conflict, Durability, Isolation, LockWait, OpenError, Slice, TxnOptions};

use octets::{Bound_, Many, Octets, Value, bytes, many};
use rows::Rows;
use upkeep::{Dense, How, Made, Watcher};

create_exception!(_weirdb, Error, pyo3::exceptions::PyException);
create_exception!(_weirdb, ConflictError, Error);
create_exception!(_weirdb, DeadlockError, ConflictError);
create_exception!(_weirdb, LockTimeoutError, ConflictError);
create_exception!(_weirdb, ExistsError, Error);
create_exception!(_weirdb, NoTreeError, Error);
create_exception!(_weirdb, InvalidInputError, Error);
create_exception!(_weirdb, TransactionOverError, Error);
create_exception!(_weirdb, DiskFullError, Error);
create_exception!(_weirdb, DamagedError, Error);
create_exception!(_weirdb, HaltedError, Error);
create_exception!(_weirdb, ClosedError, Error);
create_exception!(_weirdb, ForkedError, ClosedError);
create_exception!(_weirdb, ReadOnlyError, Error);
create_exception!(_weirdb, OpeningError, Error);
create_exception!(_weirdb, DatabaseLockedError, OpeningError);
create_exception!(_weirdb, KeyMissingError, OpeningError);

/// Rows that an iterator takes at once.
const ROWS: usize = 256;

type Row = (Slice, Slice);
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn exception(e: weirdb::Error) -> PyErr {
    let words = e.to_string();
    match e {
        weirdb::Error::Conflict(Conflict::Deadlock(_)) => DeadlockError::new_err(words),
        weirdb::Error::Conflict(Conflict::LockTimeout { .. } | Conflict::Locked) => {
            LockTimeoutError::new_err(words)
        }
        weirdb::Error::Conflict(_) => ConflictError::new_err(words),
        weirdb::Error::Exists(_) => ExistsError::new_err(words),
        weirdb::Error::NoTree(_) => NoTreeError::new_err(words),
        weirdb::Error::InvalidInput(_) | weirdb::Error::TooLarge(_) => {
            InvalidInputError::new_err(words)
        }
        weirdb::Error::TransactionOver => TransactionOverError::new_err(words),
        weirdb::Error::DiskFull { .. } => DiskFullError::new_err(words),
        weirdb::Error::Damaged { .. } => DamagedError::new_err(words),
        weirdb::Error::Halted { .. } => HaltedError::new_err(words),
        weirdb::Error::Closed => ClosedError::new_err(words),
        weirdb::Error::Forked => ForkedError::new_err(words),
        weirdb::Error::ReadOnly => ReadOnlyError::new_err(words),
        weirdb::Error::Open(e) => open_exception(&e),
        weirdb::Error::Io { source, .. } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, words)),
            None => PyOSError::new_err(words),
        },
        _ => Error::new_err(words),
    }
}

fn open_exception(e: &OpenError) -> PyErr {
    let words = e.to_string();
    match e {
        OpenError::DatabaseLocked { .. } => DatabaseLockedError::new_err(words),
        OpenError::Key { .. } => KeyMissingError::new_err(words),
        OpenError::Damaged { .. } => DamagedError::new_err(words),
        OpenError::DiskFull { .. } => DiskFullError::new_err(words),
        OpenError::Config(_) => InvalidInputError::new_err(words),
        _ => OpeningError::new_err(words),
    }
}

fn over() -> PyErr {
    TransactionOverError::new_err("the transaction has ended")
}

/// What one thread uses at a time; another one waits without the interpreter's lock.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn durability(word: &str) -> PyResult<Durability> {
    Ok(match word {
        "synced" => Durability::Synced,
        "written" => Durability::Written,
        "lazy" => Durability::Lazy,
        _ => return Err(PyValueError::new_err("durability is synced, written or lazy")),
    })
}

fn isolation(word: &str) -> PyResult<Isolation> {
    Ok(match word {
        "read committed" => Isolation::ReadCommitted,
        "repeatable read" => Isolation::RepeatableRead,
        "snapshot" => Isolation::Snapshot,
        "serializable" => Isolation::Serializable,
        _ => {
            let known = "isolation is read committed, repeatable read, snapshot or serializable";
            return Err(PyValueError::new_err(known));
        }
    })
}

fn options(
    level: Option<&str>,
    durable: Option<&str>,
    lock_wait: Option<f64>,
) -> PyResult<TxnOptions> {
    let mut options = TxnOptions::new();
    if let Some(level) = level {
        options = options.isolation(isolation(level)?);
    }
    if let Some(durable) = durable {
        options = options.durability(durability(durable)?);
    }
    if let Some(seconds) = lock_wait {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|e| PyValueError::new_err(format!("lock_wait: {e}")))?;
        options = options.lock_wait(match time.is_zero() {
            true => LockWait::Never,
            false => LockWait::AtMost(time),
        });
    }
    Ok(options)
}

fn bounds(from: Option<Octets>, to: Option<Octets>) -> Range {
    let from = from.map_or(Bound::Unbounded, |key| Bound::Included(key.to_vec()));
    let to = to.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
    (from, to)
}

/// An open database.
#[pyclass(frozen)]
struct Database {
    db: weirdb::Db,
}

#[pyfunction]
#[pyo3(signature = (path, *, cache_bytes=None, log_bytes=None, page_bytes=None, durability="synced",
    create="if_missing", read_only=false, force_recovery=0, store=None, key_file=None,
    on_recovery=None))]
#[allow(clippy::too_many_arguments)] // By name.
fn open(
    py: Python<'_>,
    path: std::path::PathBuf,
    cache_bytes: Option<u64>,
    log_bytes: Option<u64>,
    page_bytes: Option<usize>,
    durability: &str,
    create: &str,
    read_only: bool,
    force_recovery: u8,
    store: Option<&str>,
    key_file: Option<std::path::PathBuf>,
    on_recovery: Option<Py<PyAny>>,
) -> PyResult<Database> {
    let mut config = weirdb::Config::new().durability(self::durability(durability)?);
    config = config.read_only(read_only).force_recovery(force_recovery).create(match create {
        "if_missing" => weirdb::Create::IfMissing,
        "never" => weirdb::Create::Never,
        "always" => weirdb::Create::Always,
        _ => return Err(PyValueError::new_err("create is if_missing, never or always")),
    });
    if let Some(bytes) = cache_bytes {
        config = config.cache_bytes(bytes);
    }
    if let Some(bytes) = log_bytes {
        config = config.log_bytes(bytes);
    }
    if let Some(bytes) = page_bytes {
        config = config.page_bytes(bytes);
    }
    if let Some(store) = store {
        config = config.store(match store {
            "in_place" => weirdb::Store::InPlace,
            "log" => weirdb::Store::Log,
            _ => return Err(PyValueError::new_err("store is in_place or log")),
        });
    }
    if let Some(path) = key_file {
        config = config.key_file(&weirdb::KeyFile::at(path));
    }
    if let Some(then) = on_recovery {
        config = config.on_recovery(move |at| report_recovery(&then, at));
    }
    let db = py.detach(|| config.open(path)).map_err(|e| open_exception(&e))?;
    Ok(Database { db })
}

/// What it raises is shown as what a thread raises, and stops nothing.
fn report_recovery(then: &Py<PyAny>, at: weirdb::RecoveryProgress) {
    let phase = match at.phase {
        weirdb::RecoveryPhase::Scan => "scan",
        weirdb::RecoveryPhase::Redo => "redo",
        weirdb::RecoveryPhase::Undo => "undo",
        _ => "other",
    };
    Python::attach(|py| {
        if let Err(e) = then.call1(py, (phase, at.done, at.of)) {
            e.write_unraisable(py, Some(then.bind(py)));
        }
    });
}

#[pymethods]
impl Database {
    fn tree(&self, py: Python<'_>, name: &str) -> PyResult<Tree> {
        let tree = py.detach(|| self.db.open_tree(name)).map_err(exception)?;
        Ok(Tree { tree })
    }

    fn get_tree(&self, py: Python<'_>, name: &str) -> PyResult<Option<Tree>> {
        let tree = py.detach(|| self.db.get_tree(name)).map_err(exception)?;
        Ok(tree.map(|tree| Tree { tree }))
    }

    fn drop_tree(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        py.detach(|| self.db.drop_tree(name)).map_err(exception)
    }

    fn rename_tree(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<bool> {
        py.detach(|| self.db.rename_tree(old, new)).map_err(exception)
    }

    fn tree_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.db.tree_names()).map_err(exception)
    }

    fn read(&self, py: Python<'_>) -> Snapshot {
        Snapshot { txn: Mutex::new(Some(py.detach(|| self.db.read()))) }
    }

    #[pyo3(signature = (*, isolation=None, durability=None, lock_wait=None))]
    fn write(
        &self,
        isolation: Option<&str>,
        durability: Option<&str>,
        lock_wait: Option<f64>,
    ) -> PyResult<Transaction> {
        let options = options(isolation, durability, lock_wait)?;
        Ok(Transaction { txn: Mutex::new(Some(self.db.write_with(options))) })
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.db.sync()).map_err(exception)
    }

    #[pyo3(signature = (progress=None))]
    fn check(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
        let mut failed = None;
        let report = py.detach(|| {
            self.db.check(|done, of| {
                let Some(progress) = progress.as_ref().filter(|_| failed.is_none()) else { return };
                Python::attach(|py| failed = progress.call1(py, (done, of)).err());
            })
        });
        match failed {
            Some(e) => Err(e),
            None => Ok(report.map_err(exception)?.problems),
        }
    }

    #[pyo3(signature = (path, *, since=None, key_file=None, bytes_per_second=None, progress=None))]
    fn write_backup(
        &self,
        py: Python<'_>,
        path: std::path::PathBuf,
        since: Option<std::path::PathBuf>,
        key_file: Option<std::path::PathBuf>,
        bytes_per_second: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Made>> {
        let how = How { since, key_file, bytes_per_second };
        upkeep::write_backup(py, &self.db, &path, &how, Watcher::of(progress))
    }

    #[pyo3(signature = (path, *, bytes_per_second=None, progress=None))]
    fn resume_backup(
        &self,
        py: Python<'_>,
        path: std::path::PathBuf,
        bytes_per_second: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Made>> {
        upkeep::resume_backup(py, &self.db, &path, bytes_per_second, Watcher::of(progress))
    }

    fn recovery_remarks(&self) -> Vec<String> {
        self.db.recovery_remarks().to_vec()
    }

    fn metrics(&self, py: Python<'_>) -> Vec<(String, f64)> {
        let all = py.detach(|| self.db.metrics());
        all.into_iter().map(|metric| (metric.name, metric.value)).collect()
    }

    fn prepared<'py>(&self, py: Python<'py>) -> Vec<Bound_<'py>> {
        self.db.prepared().iter().map(|name| PyBytes::new(py, name)).collect()
    }

    fn commit_prepared(&self, py: Python<'_>, name: Octets) -> PyResult<bool> {
        py.detach(|| self.db.commit_prepared(&*name)).map_err(exception)
    }

    fn rollback_prepared(&self, py: Python<'_>, name: Octets) -> PyResult<bool> {
        py.detach(|| self.db.rollback_prepared(&*name)).map_err(exception)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.db.clone().close()).map_err(exception)
    }
}

/// An ordered map of bytes.
#[pyclass(frozen)]
struct Tree {
    tree: weirdb::Tree,
}

#[pymethods]
impl Tree {
    #[getter]
    fn name(&self) -> &str {
        self.tree.name()
    }

    fn get<'py>(&self, py: Python<'py>, key: Octets) -> PyResult<Option<Bound_<'py>>> {
        let found = py.detach(|| self.tree.get(&*key)).map_err(exception)?;
        Ok(bytes(py, found))
    }

    fn get_many<'py>(&self, py: Python<'py>, keys: Vec<Octets>) -> PyResult<Many<'py>> {
        Ok(many(py, py.detach(|| self.tree.get_many(&keys)).map_err(exception)?))
    }

    fn view(&self, py: Python<'_>, key: Octets) -> PyResult<Option<Value>> {
        let found = py.detach(|| self.tree.get(&*key)).map_err(exception)?;
        Ok(found.map(Value::of))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Octets) -> PyResult<Bound_<'py>> {
        let found = py.detach(|| self.tree.get(&*key)).map_err(exception)?;
        bytes(py, found).ok_or_else(|| PyKeyError::new_err(PyBytes::new(py, &key).unbind()))
    }

    fn __contains__(&self, py: Python<'_>, key: Octets) -> PyResult<bool> {
        py.detach(|| self.tree.contains_key(&*key)).map_err(exception)
    }

    fn __setitem__(&self, py: Python<'_>, key: Octets, value: Octets) -> PyResult<()> {
        py.detach(|| self.tree.put(&*key, &*value)).map_err(exception)
    }

    fn __delitem__(&self, py: Python<'_>, key: Octets) -> PyResult<()> {
        match py.detach(|| self.tree.remove(&*key)).map_err(exception)? {
            true => Ok(()),
            false => Err(PyKeyError::new_err(PyBytes::new(py, &key).unbind())),
        }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.tree.len()).map_err(exception)? as usize)
    }

    fn insert(&self, py: Python<'_>, key: Octets, value: Octets) -> PyResult<()> {
        py.detach(|| self.tree.insert(&*key, &*value)).map_err(exception)
    }

    fn remove(&self, py: Python<'_>, key: Octets) -> PyResult<bool> {
        py.detach(|| self.tree.remove(&*key)).map_err(exception)
    }

    fn add(&self, py: Python<'_>, key: Octets, by: i64) -> PyResult<i64> {
        py.detach(|| self.tree.add(&*key, by)).map_err(exception)
    }

    #[pyo3(signature = (key, expected, new))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: Octets,
        expected: Option<Octets>,
        new: Option<Octets>,
    ) -> PyResult<bool> {
        let swap =
            py.detach(|| self.tree.compare_and_swap(&*key, expected.as_deref(), new.as_deref()));
        Ok(swap.map_err(exception)?.is_swapped())
    }

    fn approximate_len(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.tree.approximate_len()).map_err(exception)
    }

    #[pyo3(signature = (start=None, stop=None, *, reverse=false, limit=None))]
    fn range(
        &self,
        start: Option<Octets>,
        stop: Option<Octets>,
        reverse: bool,
        limit: Option<usize>,
    ) -> Rows {
        Rows::of(self.tree.range(bounds(start, stop)), reverse, limit)
    }

    #[pyo3(signature = (prefix, *, reverse=false, limit=None))]
    fn prefix(&self, prefix: Octets, reverse: bool, limit: Option<usize>) -> Rows {
        Rows::of(self.tree.prefix(&*prefix), reverse, limit)
    }

    #[pyo3(signature = (*, start=None, bytes_per_second=None, progress=None))]
    fn compact(
        &self,
        py: Python<'_>,
        start: Option<Octets>,
        bytes_per_second: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Dense> {
        let start = start.as_deref();
        upkeep::compact(py, &self.tree, start, bytes_per_second, Watcher::of(progress))
    }

    /// The rows are taken from their iterator before the load begins, so that the engine is never
    /// held up by it, and an iterator that raises loads nothing.
    fn bulk_load(&self, py: Python<'_>, rows: &pyo3::Bound<'_, PyAny>) -> PyResult<u64> {
        let rows = upkeep::rows_of(rows)?;
        py.detach(|| self.tree.bulk_load(rows)).map_err(exception)
    }
}

/// All trees at one moment.
#[pyclass(frozen)]
struct Snapshot {
    txn: Mutex<Option<weirdb::ReadTxn>>,
}

impl Snapshot {
    fn now(&self) -> PyResult<weirdb::ReadTxn> {
        held(&self.txn).clone().ok_or_else(over)
    }
}

#[pymethods]
impl Snapshot {
    fn get<'py>(&self, py: Python<'py>, tree: &Tree, key: Octets) -> PyResult<Option<Bound_<'py>>> {
        let txn = self.now()?;
        let found = py.detach(|| txn.get(&tree.tree, &*key)).map_err(exception)?;
        Ok(bytes(py, found))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        keys: Vec<Octets>,
    ) -> PyResult<Many<'py>> {
        let txn = self.now()?;
        Ok(many(py, py.detach(|| txn.get_many(&tree.tree, &keys)).map_err(exception)?))
    }

    fn view(&self, py: Python<'_>, tree: &Tree, key: Octets) -> PyResult<Option<Value>> {
        let txn = self.now()?;
        let found = py.detach(|| txn.get(&tree.tree, &*key)).map_err(exception)?;
        Ok(found.map(Value::of))
    }

    fn count(&self, py: Python<'_>, tree: &Tree) -> PyResult<u64> {
        let txn = self.now()?;
        py.detach(|| txn.len(&tree.tree)).map_err(exception)
    }

    #[pyo3(signature = (tree, start=None, stop=None, *, reverse=false, limit=None))]
    fn range(
        &self,
        tree: &Tree,
        start: Option<Octets>,
        stop: Option<Octets>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Rows> {
        Ok(Rows::of(self.now()?.range(&tree.tree, bounds(start, stop)), reverse, limit))
    }

    #[pyo3(signature = (tree, prefix, *, reverse=false, limit=None))]
    fn prefix(
        &self,
        tree: &Tree,
        prefix: Octets,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Rows> {
        Ok(Rows::of(self.now()?.prefix(&tree.tree, &*prefix), reverse, limit))
    }

    fn backup(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<u64> {
        let txn = self.now()?;
        Ok(py.detach(|| txn.backup(path)).map_err(exception)?.rows)
    }

    fn close(&self) {
        held(&self.txn).take();
    }
}

/// A transaction.
#[pyclass(frozen)]
struct Transaction {
    txn: Mutex<Option<weirdb::WriteTxn>>,
}

impl Transaction {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut weirdb::WriteTxn) -> Result<T, weirdb::Error> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| held(&self.txn).as_mut().map(act));
        done.ok_or_else(over)?.map_err(exception)
    }

    fn taken(&self, py: Python<'_>) -> PyResult<weirdb::WriteTxn> {
        py.detach(|| held(&self.txn).take()).ok_or_else(over)
    }
}

#[pymethods]
impl Transaction {
    #[pyo3(signature = (tree, key, *, for_update=false))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        key: Octets,
        for_update: bool,
    ) -> PyResult<Option<Bound_<'py>>> {
        let found = self.with(py, |txn| match for_update {
            true => txn.get_for_update(&tree.tree, &*key),
            false => txn.get(&tree.tree, &*key),
        })?;
        Ok(bytes(py, found))
    }

    fn view(&self, py: Python<'_>, tree: &Tree, key: Octets) -> PyResult<Option<Value>> {
        let found = self.with(py, |txn| txn.get(&tree.tree, &*key))?;
        Ok(found.map(Value::of))
    }

    fn put(&self, py: Python<'_>, tree: &Tree, key: Octets, value: Octets) -> PyResult<()> {
        self.with(py, |txn| txn.put(&tree.tree, &*key, &*value))
    }

    fn insert(&self, py: Python<'_>, tree: &Tree, key: Octets, value: Octets) -> PyResult<()> {
        self.with(py, |txn| txn.insert(&tree.tree, &*key, &*value))
    }

    fn remove(&self, py: Python<'_>, tree: &Tree, key: Octets) -> PyResult<bool> {
        self.with(py, |txn| txn.remove(&tree.tree, &*key))
    }

    fn add(&self, py: Python<'_>, tree: &Tree, key: Octets, by: i64) -> PyResult<i64> {
        self.with(py, |txn| txn.add(&tree.tree, &*key, by))
    }

    fn count(&self, py: Python<'_>, tree: &Tree) -> PyResult<u64> {
        self.with(py, |txn| txn.len(&tree.tree))
    }

    /// Some rows of a range, `most` at most, as this transaction sees them now; an iterator asks
    /// again from where they end.
    #[pyo3(signature = (tree, start, after, stop, reverse, most))]
    #[allow(clippy::too_many_arguments)] // What an iterator in Python keeps.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        start: Option<Octets>,
        after: Option<Octets>,
        stop: Option<Octets>,
        reverse: bool,
        most: usize,
    ) -> PyResult<Vec<(Bound_<'py>, Bound_<'py>)>> {
        let (mut from, mut to) = bounds(start, stop);
        match after {
            Some(key) if reverse => to = Bound::Excluded(key.to_vec()),
            Some(key) => from = Bound::Excluded(key.to_vec()),
            None => {}
        }
        let rows: Vec<Row> = self.with(py, |txn| {
            let most = most.min(ROWS);
            let rows = txn.range(&tree.tree, (from, to)).expect_rows(most);
            match reverse {
                true => rows.rev().take(most).collect(),
                false => rows.take(most).collect(),
            }
        })?;
        let shown = |(key, value): Row| (PyBytes::new(py, &key), PyBytes::new(py, &value));
        Ok(rows.into_iter().map(shown).collect())
    }

    /// The first row of a range that it can lock, for a queue.
    #[pyo3(signature = (tree, start=None, stop=None))]
    fn first_unlocked<'py>(
        &self,
        py: Python<'py>,
        tree: &Tree,
        start: Option<Octets>,
        stop: Option<Octets>,
    ) -> PyResult<Option<(Bound_<'py>, Bound_<'py>)>> {
        let row = self.with(py, |txn| {
            let rows = txn.range_for_update(&tree.tree, bounds(start, stop));
            rows.skip_locked().next().transpose()
        })?;
        Ok(row.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }

    fn savepoint(&self, py: Python<'_>) -> PyResult<Savepoint> {
        let point = self.with(py, |txn| Ok(txn.savepoint()))?;
        Ok(Savepoint { point })
    }

    fn rollback_to(&self, py: Python<'_>, savepoint: &Savepoint) -> PyResult<()> {
        self.with(py, |txn| txn.rollback_to(savepoint.point))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let txn = self.taken(py)?;
        py.detach(|| txn.commit()).map_err(exception)
    }

    fn commit_nowait(&self, py: Python<'_>) -> PyResult<Commit> {
        let txn = self.taken(py)?;
        let commit = py.detach(|| txn.commit_nowait()).map_err(exception)?;
        Ok(Commit { commit })
    }

    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let txn = self.taken(py)?;
        py.detach(|| txn.rollback()).map_err(exception)
    }

    fn prepare(&self, py: Python<'_>, name: Octets) -> PyResult<()> {
        let txn = self.taken(py)?;
        py.detach(|| txn.prepare(&*name)).map_err(exception)
    }

    #[getter]
    fn is_open(&self, py: Python<'_>) -> bool {
        py.detach(|| held(&self.txn).is_some())
    }
}

#[pyclass(frozen)]
struct Savepoint {
    point: weirdb::Savepoint,
}

/// A commit that others see, and that becomes durable.
#[pyclass(frozen)]
struct Commit {
    commit: weirdb::Commit,
}

#[pymethods]
impl Commit {
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.commit.wait()).map_err(exception)
    }

    #[getter]
    fn is_durable(&self) -> bool {
        self.commit.is_durable()
    }

    /// Calls `then` with nothing when it is durable, or with the exception, in a thread of the
    /// engine's. What it raises is shown as what a thread raises, and goes nowhere else.
    fn when_durable(&self, py: Python<'_>, then: Py<PyAny>) {
        py.detach(|| {
            self.commit.when_durable(move |outcome| {
                Python::attach(|py| {
                    let outcome = outcome.map_err(|e| exception(e).into_value(py)).err();
                    if let Err(e) = then.call1(py, (outcome,)) {
                        e.write_unraisable(py, Some(then.bind(py)));
                    }
                });
            });
        });
    }
}

#[pymodule]
fn _weirdb(module: &pyo3::Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(upkeep::restore, module)?)?;
    module.add_class::<Database>()?;
    module.add_class::<Tree>()?;
    module.add_class::<Snapshot>()?;
    module.add_class::<Rows>()?;
    module.add_class::<Value>()?;
    module.add_class::<Transaction>()?;
    module.add_class::<Savepoint>()?;
    module.add_class::<Commit>()?;
    for (name, class) in [
        ("Error", py.get_type::<Error>()),
        ("ConflictError", py.get_type::<ConflictError>()),
        ("DeadlockError", py.get_type::<DeadlockError>()),
        ("LockTimeoutError", py.get_type::<LockTimeoutError>()),
        ("ExistsError", py.get_type::<ExistsError>()),
        ("NoTreeError", py.get_type::<NoTreeError>()),
        ("InvalidInputError", py.get_type::<InvalidInputError>()),
        ("TransactionOverError", py.get_type::<TransactionOverError>()),
        ("DiskFullError", py.get_type::<DiskFullError>()),
        ("DamagedError", py.get_type::<DamagedError>()),
        ("HaltedError", py.get_type::<HaltedError>()),
        ("ClosedError", py.get_type::<ClosedError>()),
        ("ForkedError", py.get_type::<ForkedError>()),
        ("ReadOnlyError", py.get_type::<ReadOnlyError>()),
        ("OpeningError", py.get_type::<OpeningError>()),
        ("DatabaseLockedError", py.get_type::<DatabaseLockedError>()),
        ("KeyMissingError", py.get_type::<KeyMissingError>()),
    ] {
        module.add(name, class)?;
    }
    Ok(())
}
