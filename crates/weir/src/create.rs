//! Making a database. A marker file says that it is not finished: a crash in between leaves nothing
//! that could be taken for a database, and nothing that was there before is ever overwritten.
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use weir_base::{DbId, Era};
use weir_btree::{Env, Tree as RawTree};
use weir_change::{Group, Header};
use weir_checkpoint::{CONTROL_FILE, Control, ControlFile};
use weir_device::Volume;
use weir_pool::{Cause, ERA_PAGES, Pool};
use weir_redo::{Durability, Log};
use weir_space::Space;

use crate::config::{Config, Create, LOG_BYTES_DEFAULT, PAGE_SIZE_DEFAULT};
use crate::error::Error;
use crate::page_store::create_store;
use crate::places::{CATALOG_ROOT, CATALOG_TREE};
use crate::setup::{log_config, pool_config};

const MARKER_FILE: &str = "creating";
/// There from before a copy has anything until it is whole and closed.
const COPY_FILE: &str = "copying";
/// Pages that a new data file has room for.
const FIRST_PAGES: u32 = 64;

/// What lies in the directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DirectoryState {
    Nothing,
    Database,
    /// A creation that was cut short: nothing in it can be of use.
    Unfinished,
    /// A copy that was cut short: it is meant as a backup, so that nothing is made there.
    HalfCopy,
    /// Something else: these files.
    Foreign(Vec<String>),
}

fn is_ours(name: &str) -> bool {
    name == CONTROL_FILE
        || name == weir_crypt::KEYS_FILE
        || name == MARKER_FILE
        || name == COPY_FILE
        || name == crate::advise::FILE
        || name == crate::warm::FILE
        || name == crate::contents::FILE
        || crate::asked::is_ours(name)
        || name.starts_with(crate::backup_asked::REQUEST_FILE)
        || name == crate::backup_asked::PIPE_FILE
        || name.starts_with(crate::runs::FILE_PREFIX)
        || name.starts_with("redo-")
        || crate::page_store::is_ours(name)
}

pub(crate) fn look(volume: &dyn Volume) -> Result<DirectoryState, Error> {
    let listed = |e| Error::io("listing the database's directory", e);
    Ok(classify(volume.list().map_err(listed)?))
}

/// Retries at a directory before anything is made in it, the lock file included.
///
/// # Errors
/// [`Error::Directory`] when it is none, holds something else, or lacks the database that must be
/// there.
pub(crate) fn check_directory(dir: &Path, create: Create) -> Result<(), Error> {
    let names = match std::fs::read_dir(dir) {
        Ok(entries) => entries.filter_map(Result::ok),
        Err(e) if e.kind() == ErrorKind::NotADirectory => {
            let dir = dir.display();
            return Err(Error::Directory(format!("{dir} is a file, not a database's directory")));
        }
        Err(e) if e.kind() == ErrorKind::NotFound && create == Create::Never => return Err(none()),
        // What cannot be listed is reported by a thread that opens it.
        Err(_) => return Ok(()),
    };
    match classify(names.map(|e| e.file_name().to_string_lossy().into_owned()).collect()) {
        DirectoryState::Foreign(names) => Err(foreign(&names, create)),
        DirectoryState::Nothing if create == Create::Never => Err(none()),
        _ => Ok(()),
    }
}

fn none() -> Error {
    Error::Directory("there is no database in this directory".into())
}

fn half_copy() -> Error {
    let words =
        "this directory holds a copy that was not finished; remove its files and copy again";
    Error::Directory(words.into())
}

fn there_is_one() -> Error {
    Error::Directory("there is a database in this directory already".into())
}

fn classify(mut names: Vec<String>) -> DirectoryState {
    names.retain(|name| name != "LOCK");
    names.sort();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(COPY_FILE) && names.iter().all(|name| is_ours(name)) {
        DirectoryState::HalfCopy
    } else if names == [weir_crypt::KEYS_FILE]
        || has(MARKER_FILE) && names.iter().all(|name| is_ours(name))
    {
        DirectoryState::Unfinished
    } else if has(CONTROL_FILE) {
        DirectoryState::Database
    } else if names.is_empty() {
        DirectoryState::Nothing
    } else {
        DirectoryState::Foreign(names)
    }
}

fn foreign(names: &[String], create: Create) -> Error {
    let some: Vec<&str> = names.iter().map(String::as_str).take(5).collect();
    let what = if names.iter().all(|name| is_ours(name)) {
        "the control file of the database is missing; put it back from a backup"
    } else if create == Create::Never {
        "there is no database in this directory, but other files"
    } else {
        "this directory holds other files; choose an empty or a new one"
    };
    Error::Directory(format!("{what} (found: {})", some.join(", ")))
}

/// Makes sure that there is a database, as far as `config` allows to make one.
pub(crate) fn prepare(volume: &Arc<dyn Volume>, config: &Config) -> Result<(), Error> {
    match (look(&**volume)?, config.create) {
        (DirectoryState::HalfCopy, _) => Err(half_copy()),
        (DirectoryState::Database, Create::Always | Create::Copy) => Err(there_is_one()),
        (DirectoryState::Database, _) => {
            if !config.read_only {
                crate::runs::remove_left(&**volume);
            }
            Ok(())
        }
        (DirectoryState::Nothing | DirectoryState::Unfinished, Create::Never) => Err(none()),
        (DirectoryState::Nothing, _) => create(volume, config),
        (DirectoryState::Unfinished, _) => {
            remove_unfinished(volume)?;
            create(volume, config)
        }
        (DirectoryState::Foreign(names), create) => Err(foreign(&names, create)),
    }
}

/// The marker goes last: a crash in between leaves the directory unfinished, as it was.
fn remove_behind(volume: &Arc<dyn Volume>, marker: &str) -> Result<(), Error> {
    let failed = |e| Error::io("removing what was not finished", e);
    for name in volume.list().map_err(failed)? {
        if is_ours(&name) && name != marker {
            volume.remove(&name).map_err(failed)?;
        }
    }
    remove_last(volume, marker).map_err(failed)
}

/// Removes what a creation that was cut short has left.
pub(crate) fn remove_unfinished(volume: &Arc<dyn Volume>) -> Result<(), Error> {
    let failed = |e| Error::io("removing what was not finished", e);
    if volume.exists(MARKER_FILE).map_err(failed)? {
        return remove_behind(volume, MARKER_FILE);
    }
    // There is a key for it alone.
    volume.remove(weir_crypt::KEYS_FILE).map_err(failed)?;
    volume.sync_directory().map_err(failed)
}

/// Removes a marker, durably, when all that it stands for is durably in the directory, or gone.
fn remove_last(volume: &Arc<dyn Volume>, marker: &str) -> std::io::Result<()> {
    volume.sync_directory()?;
    volume.remove(marker)?;
    volume.sync_directory()
}

fn create(volume: &Arc<dyn Volume>, config: &Config) -> Result<(), Error> {
    let failed = |e| Error::io("creating the database", e);
    let marker = if config.create == Create::Copy { COPY_FILE } else { MARKER_FILE };
    mark(volume, marker)?;
    let made = fill(volume, config);
    if let Err(e) = made {
        // A full disk, say. What was there before is there still; leave nothing of ours.
        let _ = remove_behind(volume, marker);
        return Err(e);
    }
    if config.create == Create::Copy {
        return Ok(());
    }
    volume.remove(MARKER_FILE).map_err(failed)?;
    volume.sync_directory().map_err(failed)
}

/// Marks a directory that must hold nothing as that of a copy which is not finished.
pub(crate) fn begin_copy(volume: &Arc<dyn Volume>) -> Result<(), Error> {
    match look(&**volume)? {
        DirectoryState::Nothing => {}
        DirectoryState::Foreign(names) => return Err(foreign(&names, Create::Copy)),
        DirectoryState::HalfCopy => return Err(half_copy()),
        DirectoryState::Database | DirectoryState::Unfinished => return Err(there_is_one()),
    }
    mark(volume, COPY_FILE)
}

fn mark(volume: &Arc<dyn Volume>, marker: &str) -> Result<(), Error> {
    let failed = |e| Error::io("creating the database", e);
    volume.create(marker, 0).map_err(failed)?;
    volume.sync_directory().map_err(failed)
}

/// A copy is whole and closed: from now on it is a database like any other.
pub(crate) fn finish_copy(volume: &Arc<dyn Volume>) -> Result<(), Error> {
    remove_last(volume, COPY_FILE).map_err(|e| Error::io("finishing the copy", e))
}

/// A copy has failed: leaves nothing of it.
pub(crate) fn abandon_copy(volume: &Arc<dyn Volume>) -> Result<(), Error> {
    remove_behind(volume, COPY_FILE)
}

fn fill(volume: &Arc<dyn Volume>, config: &Config) -> Result<(), Error> {
    let page_size = if config.page_size == 0 { PAGE_SIZE_DEFAULT } else { config.page_size };
    let log_bytes = if config.log_bytes == 0 { LOG_BYTES_DEFAULT } else { config.log_bytes };
    let db = DbId(fastrand::u64(1..));
    let log = Arc::new(Log::create(
        volume.clone(),
        log_config(db, log_bytes, config.pool_bytes),
        config.first.lsn,
    )?);
    let start = log.end();
    let store = create_store(volume, db, page_size, FIRST_PAGES, config)?;
    let pool = Arc::new(Pool::new(&pool_config(config, log_bytes, 0), store, log.clone())?);
    pool.begin_at(start);
    let space = Arc::new(Space::create(pool.clone(), config.pages_max)?);
    let env = Env::new(pool, space);
    let claimed = env.space.claim(3)?;
    if claimed != [CATALOG_ROOT, ERA_PAGES[0], ERA_PAGES[1]] {
        return Err(Error::Damaged("a new database does not begin empty".into()));
    }
    let mut group = Group::begin(Header::default());
    RawTree::create(&env, &mut group, CATALOG_TREE, CATALOG_ROOT)?;
    env.space.log_used(&mut group, &ERA_PAGES)?;
    group.commit(&log)?;
    // Written at once: a new database has nothing to recover.
    log.flush(Durability::Synced)?;
    while env.pool.residence().dirty > 0 {
        let pages = env.pool.take_oldest(env.pool.store().batch_max(), log.published());
        env.pool.write_back(0, &pages, Cause::Shutdown, 1, &mut |_| {})?;
    }
    let era = Era { number: 1, mark: fastrand::u64(1..) };
    env.pool.store().set_era(era)?;
    let control = Control {
        db,
        sequence: 0,
        page_size: page_size as u32,
        checkpoint: log.durable(),
        log_bytes,
        next_txn: config.first.txn,
        next_tree: config.first.tree,
        clean: true,
        openings: 0,
        pages: FIRST_PAGES,
        maps: 1,
        era,
        synced: log.durable(),
    };
    ControlFile::create(volume, control).map_err(|e| Error::io("creating the control file", e))?;
    Ok(())
}
