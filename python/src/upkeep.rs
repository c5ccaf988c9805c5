//! Backups of pages and log in files, and trees made dense.
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use weirdb::{
    BackupOptions, BackupProgress, CompactOptions, Compacted, KeyFile, PageBackup, RestoreOptions,
};

use crate::octets::Octets;
use crate::{exception, open_exception};

/// Pages, bytes of log, all bytes, the position that it goes up to.
pub(crate) type Made = (u64, u64, u64, u64);
/// Leaves that are dense, pages freed, pages moved, where to go on.
pub(crate) type Dense = (u64, u64, u64, Option<Vec<u8>>);

/// Rows of a bulk load between two looks for a signal.
const SIGNAL_ROWS: usize = 4096;

/// Without such a function only signals are looked for, in one of so many steps: that takes the
/// interpreter's lock, for which other threads may have this one wait.
const LOOK_STEPS: u32 = 16;

/// A function that is shown how far something is, and ends it by `False` or by raising; so does
/// what a signal's handler raises, as that of Ctrl-C.
pub(crate) struct Watcher {
    then: Option<Py<PyAny>>,
    raised: Option<PyErr>,
    steps: u32,
}

impl Watcher {
    pub(crate) fn of(then: Option<Py<PyAny>>) -> Self {
        Watcher { then, raised: None, steps: 0 }
    }

    fn goes_on(&mut self, seen: impl for<'py> PyCallArgs<'py>) -> bool {
        if self.raised.is_some() {
            return false;
        }
        self.steps = self.steps.wrapping_add(1);
        if self.then.is_none() && !self.steps.is_multiple_of(LOOK_STEPS) {
            return true;
        }
        let answer = Python::attach(|py| -> PyResult<bool> {
            // Those that raise do so in the interpreter's main thread, and in no other.
            py.check_signals()?;
            let Some(then) = &self.then else { return Ok(true) };
            let answer = then.call1(py, seen)?;
            Ok(!answer.bind(py).is(&*pyo3::types::PyBool::new(py, false)))
        });
        answer.unwrap_or_else(|e| {
            self.raised = Some(e);
            false
        })
    }

    fn sees(&mut self, at: BackupProgress) -> bool {
        self.goes_on((at.pages, at.pages_of, at.bytes))
    }

    /// What was raised comes before what came of that.
    fn end<T>(self, done: PyResult<T>) -> PyResult<T> {
        match self.raised {
            Some(e) => Err(e),
            None => done,
        }
    }
}

fn made(done: PageBackup) -> Made {
    (done.pages, done.log_bytes, done.bytes, done.position)
}

/// How a backup is made: since which, and how fast.
pub(crate) struct How {
    pub(crate) since: Option<PathBuf>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) bytes_per_second: Option<u64>,
}

impl How {
    fn options(&self) -> PyResult<BackupOptions> {
        let mut options = BackupOptions::new();
        if let Some(bytes) = self.bytes_per_second {
            options = options.bytes_per_second(bytes);
        }
        let Some(since) = &self.since else { return Ok(options) };
        let since = BufReader::new(File::open(since)?);
        let options = match &self.key_file {
            None => options.since(since),
            Some(keys) => options.since_sealed(since, &KeyFile::at(keys)),
        };
        options.map_err(exception)
    }
}

/// Makes a backup in a new file; `None`: it was ended.
pub(crate) fn write_backup(
    py: Python<'_>,
    db: &weirdb::Db,
    path: &Path,
    how: &How,
    mut watcher: Watcher,
) -> PyResult<Option<Made>> {
    let done = py.detach(|| -> PyResult<_> {
        let options = how.options()?;
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let out = io::BufWriter::with_capacity(1 << 20, &file);
        let done = db.write_backup(out, &options, |at| watcher.sees(at)).map_err(exception)?;
        file.sync_all()?;
        Ok(done.map(made))
    });
    watcher.end(done)
}

/// Goes on with a backup in a file that was cut off; `None`: it was ended.
pub(crate) fn resume_backup(
    py: Python<'_>,
    db: &weirdb::Db,
    path: &Path,
    bytes_per_second: Option<u64>,
    mut watcher: Watcher,
) -> PyResult<Option<Made>> {
    let how = How { since: None, key_file: None, bytes_per_second };
    let done = py.detach(|| -> PyResult<_> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let there = BufReader::with_capacity(1 << 20, file.try_clone()?);
        let out = |offset| {
            file.set_len(offset)?;
            (&file).seek(SeekFrom::Start(offset))?;
            Ok(io::BufWriter::with_capacity(1 << 20, &file))
        };
        let done = db.resume_backup(there, out, &how.options()?, |at| watcher.sees(at));
        let done = done.map_err(exception)?;
        file.sync_all()?;
        Ok(done.map(made))
    });
    watcher.end(done)
}

/// Makes a database of a full backup and those since it.
#[pyfunction]
#[pyo3(signature = (path, backups, *, key_file=None, progress=None))]
pub(crate) fn restore(
    py: Python<'_>,
    path: PathBuf,
    backups: Vec<PathBuf>,
    key_file: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<bool> {
    let mut watcher = Watcher::of(progress);
    let done = py.detach(|| -> PyResult<bool> {
        let input = |path: PathBuf| -> PyResult<Box<dyn Read>> {
            let file = File::open(&path);
            let file = file.map_err(|e| PyOSError::new_err(format!("{}: {e}", path.display())))?;
            Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
        };
        let backups = backups.into_iter().map(input).collect::<PyResult<Vec<_>>>()?;
        let mut options = RestoreOptions::new();
        if let Some(keys) = key_file {
            options = options.key_file(&KeyFile::at(keys));
        }
        let done = weirdb::restore(path, backups, &options, |bytes| watcher.goes_on((bytes,)));
        done.map_err(|e| open_exception(&e))
    });
    watcher.end(done)
}

/// Makes a tree dense, from a key on.
pub(crate) fn compact(
    py: Python<'_>,
    tree: &weirdb::Tree,
    start: Option<&[u8]>,
    bytes_per_second: Option<u64>,
    mut watcher: Watcher,
) -> PyResult<Dense> {
    let mut options = CompactOptions::new();
    if let Some(bytes) = bytes_per_second {
        options = options.bytes_per_second(bytes);
    }
    if let Some(key) = start {
        options = options.from(key);
    }
    let dense = |done: Compacted| (done.leaves, done.pages_freed, done.pages_moved, done.next);
    let done = py.detach(|| {
        tree.compact(&options, |at| watcher.goes_on((at.leaves, at.pages_freed, at.pages_moved)))
    });
    watcher.end(done.map(dense).map_err(exception))
}

/// All rows of an iterator. One that is not written in Python looks for no signal itself.
pub(crate) fn rows_of(rows: &Bound<'_, PyAny>) -> PyResult<Vec<(Octets, Octets)>> {
    let mut taken = Vec::new();
    for row in rows.try_iter()? {
        if taken.len() % SIGNAL_ROWS == 0 {
            rows.py().check_signals()?;
        }
        taken.push(row?.extract()?);
    }
    Ok(taken)
}
