//! How a database is opened.
use std::fmt;
use std::sync::Arc;

use crate::keys::{KeyFile, KeyProvider, Keys};
use crate::options::Durability;

/// How a database is opened. Nothing of it must be set: the defaults are for a program that does
/// other things, too.
///
/// ```
/// # fn main() -> Result<(), weirdb::Error> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let path = dir.path().join("birds");
/// use weirdb::{Config, Durability};
///
/// let db = Config::new().cache_bytes(64 << 20).durability(Durability::Written).open(&path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Config {
    pub(crate) cache_bytes: Option<u64>,
    pub(crate) log_bytes: Option<u64>,
    pub(crate) page_bytes: Option<usize>,
    pub(crate) pages_max: Option<u32>,
    pub(crate) recovery_threads: Option<usize>,
    pub(crate) store: Option<Store>,
    pub(crate) torn_pages: TornPages,
    pub(crate) keys: Option<Keys>,
    pub(crate) create: Create,
    pub(crate) read_only: bool,
    pub(crate) force_recovery: u8,
    pub(crate) durability: Durability,
    pub(crate) recovery_progress: Option<Arc<Listener>>,
}

type Listener = dyn Fn(RecoveryProgress) + Send + Sync;

/// Whether opening may make a database.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Create {
    /// When there is none.
    #[default]
    IfMissing,
    /// Never: there must be one.
    Never,
    /// There must be none.
    Always,
}

/// Where a database keeps its pages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Store {
    /// Each at a place of its own, kept whole as [`TornPages`] says.
    InPlace,
    /// Packed, one behind the other in segments that are cleaned up: less is written.
    Log,
}

/// How pages of a tree are packed, in a database that keeps them in segments ([`Store::Log`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Codec {
    /// Not at all.
    None,
    /// By LZ4: fast.
    Lz4,
    /// By zstd: smaller.
    Zstd,
}

impl Codec {
    pub(crate) fn raw(self) -> weir::PageCodec {
        match self {
            Codec::None => weir::PageCodec::None,
            Codec::Lz4 => weir::PageCodec::Lz4,
            Codec::Zstd => weir::PageCodec::Zstd,
        }
    }
}

impl Store {
    pub(crate) fn raw(self) -> weir::StoreKind {
        match self {
            Store::InPlace => weir::StoreKind::InPlace,
            Store::Log => weir::StoreKind::Log,
        }
    }
}

/// How pages are kept from being found half written after a power failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum TornPages {
    /// Each is written twice, and put right from the other copy.
    #[default]
    Repair,
    /// What is about to be written is noted first: opening fails after a torn write, and names the
    /// page.
    Detect,
    /// Nothing is done, for devices that write whole pages or nothing. A torn page is found when it
    /// is read.
    Ignore,
}

/// How far recovery has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecoveryProgress {
    /// What it does now.
    pub phase: RecoveryPhase,
    /// Done in this phase: bytes of log, or transactions.
    pub done: u64,
    /// Of so many, if that is known.
    pub of: Option<u64>,
}

/// A phase of recovery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RecoveryPhase {
    /// Reading the log; bytes.
    Scan,
    /// Applying a log that is larger than the memory for it; bytes.
    Redo,
    /// Finding out what unfinished transactions have changed; transactions.
    Undo,
}

impl Config {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Memory for pages, at least 256 KiB; row locks and old versions may take three eighths as
    /// much besides. Unless set: a quarter of what the process may use, at most 1 GiB.
    #[must_use]
    pub fn cache_bytes(self, bytes: u64) -> Self {
        Config { cache_bytes: Some(bytes), ..self }
    }

    /// The log's capacity, 640 KiB to 1 TiB, for a new database (`Db::set_log_bytes` for others).
    /// Unless set: 64 MiB. A larger one lets more changes of a page be written at once.
    #[must_use]
    pub fn log_bytes(self, bytes: u64) -> Self {
        Config { log_bytes: Some(bytes), ..self }
    }

    /// Bytes of a page, 4096, 8192 or 16384, for a new database; later openings must ask for what
    /// it has, or nothing. Unless set: 8192.
    #[must_use]
    pub fn page_bytes(self, bytes: usize) -> Self {
        Config { page_bytes: Some(bytes), ..self }
    }

    /// The most pages that the database may have, at least 64. Unless set: 2^31. A larger one is as
    /// a full disk.
    #[must_use]
    pub fn pages_max(self, pages: u32) -> Self {
        Config { pages_max: Some(pages), ..self }
    }

    /// Threads that apply the log after a crash, beside those that use the pages. Unless set: half
    /// the processors.
    #[must_use]
    pub fn recovery_threads(self, threads: usize) -> Self {
        Config { recovery_threads: Some(threads), ..self }
    }

    /// Where pages are kept, for a new database; later openings must ask for what it has, or
    /// nothing. Unless set: [`Store::InPlace`].
    #[must_use]
    pub fn store(self, store: Store) -> Self {
        Config { store: Some(store), ..self }
    }

    /// How pages are kept from being found half written. Unless set: [`TornPages::Repair`].
    #[must_use]
    pub fn torn_pages(self, torn_pages: TornPages) -> Self {
        Config { torn_pages, ..self }
    }

    /// Encrypts a new database with the keys in this file; later openings need it.
    #[must_use]
    pub fn key_file(self, file: &KeyFile) -> Self {
        Config { keys: Some(Keys::of_file(file)), ..self }
    }

    /// As [`Config::key_file`], with keys from elsewhere.
    #[must_use]
    pub fn key_provider(self, provider: impl KeyProvider + 'static) -> Self {
        Config { keys: Some(Keys::of_provider(provider)), ..self }
    }

    /// Whether to make the database. Unless set: when there is none.
    #[must_use]
    pub fn create(self, create: Create) -> Self {
        Config { create, ..self }
    }

    /// Whether the database is only looked at: no file of it is changed, also on media that cannot
    /// be written, and several processes may do so at once. After a crash it is recovered for this
    /// process alone, in memory or a nameless temporary file.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Config { read_only, ..self }
    }

    /// Opens a database that is damaged, and does not open or stops readers, to read what can be
    /// read of it: a step from 1 to 4, each with what those before it leave out; 0, unless set: as
    /// ever. As with [`Config::read_only`] no file is changed; changes are [`Error::ReadOnly`].
    ///
    /// 1: iterators pass over rows that cannot be read ([`Stats::passed_over`] counts); a row asked
    /// for by its key that cannot be read, and a tree of which nothing can, are errors. What
    /// transactions without an end have changed is not seen. 2: it is, where the log of it cannot
    /// be read. 3: the log is applied up to the first damage in it. 4: it is not applied, and files
    /// may be of different moments. [`Db::recovery_remarks`] says what was found.
    ///
    /// [`Error::ReadOnly`]: crate::Error::ReadOnly
    /// [`Stats::passed_over`]: crate::Stats::passed_over
    /// [`Db::recovery_remarks`]: crate::Db::recovery_remarks
    #[must_use]
    pub fn force_recovery(self, step: u8) -> Self {
        Config { force_recovery: step, ..self }
    }

    /// What commits promise that do not say otherwise. Unless set: [`Durability::Synced`].
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        Config { durability, ..self }
    }

    /// Calls `told` while a database is recovered after a crash.
    #[must_use]
    pub fn on_recovery(self, told: impl Fn(RecoveryProgress) + Send + Sync + 'static) -> Self {
        Config { recovery_progress: Some(Arc::new(told)), ..self }
    }

    /// As the engine has it, or why that cannot be.
    pub(crate) fn raw(&self) -> Result<weir::Config, String> {
        let mut raw = weir::Config::default();
        if let Some(bytes) = self.cache_bytes {
            raw.pool_bytes = bytes;
        }
        // A zero would ask the engine for its own choice.
        let zero = |what: &str| format!("0 is no {what}; leave it out for the usual one");
        match self.log_bytes {
            Some(0) => return Err(zero("capacity of a log")),
            Some(bytes) => raw.log_bytes = bytes,
            None => {}
        }
        match self.page_bytes {
            Some(0) => return Err(zero("size of a page")),
            Some(bytes) => raw.page_size = bytes,
            None => {}
        }
        match self.recovery_threads {
            Some(0) => return Err(zero("number of threads")),
            Some(threads) => raw.recovery_threads = threads,
            None => {}
        }
        if let Some(pages) = self.pages_max {
            raw.pages_max = pages;
        }
        raw.store = self.store.map(Store::raw);
        raw.doublewrite.mode = match self.torn_pages {
            TornPages::Repair => weir::DoubleWriteMode::On,
            TornPages::Detect => weir::DoubleWriteMode::DetectOnly,
            TornPages::Ignore => weir::DoubleWriteMode::Off,
        };
        raw.create = match self.create {
            Create::IfMissing => weir::Create::IfMissing,
            Create::Never => weir::Create::Never,
            Create::Always => weir::Create::Always,
        };
        raw.read_only = self.read_only;
        raw.force_recovery = self.force_recovery;
        raw.encryption = self.keys.as_ref().map(Keys::raw);
        raw.recovery_progress = self.recovery_progress.clone().map(|told| {
            let told = move |progress: &weir::Progress| told(progress.into());
            Arc::new(told) as Arc<weir::RecoveryListener>
        });
        Ok(raw)
    }
}

impl From<&weir::Progress> for RecoveryProgress {
    fn from(progress: &weir::Progress) -> Self {
        let phase = match progress.phase {
            weir::Phase::Scan => RecoveryPhase::Scan,
            weir::Phase::Redo => RecoveryPhase::Redo,
            weir::Phase::Undo => RecoveryPhase::Undo,
        };
        let of = (progress.of > 0).then_some(progress.of);
        RecoveryProgress { phase, done: progress.done, of }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("cache_bytes", &self.cache_bytes)
            .field("log_bytes", &self.log_bytes)
            .field("page_bytes", &self.page_bytes)
            .field("pages_max", &self.pages_max)
            .field("recovery_threads", &self.recovery_threads)
            .field("torn_pages", &self.torn_pages)
            .field("keys", &self.keys)
            .field("create", &self.create)
            .field("read_only", &self.read_only)
            .field("force_recovery", &self.force_recovery)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
