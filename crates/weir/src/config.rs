//! What a user may set. Nothing of it is needed to run well but memory and log size.
use std::sync::Arc;

pub use weir_backup::StoreKind;
use weir_base::{Lsn, TreeId, TxnId, format_size};
use weir_crypt::Encryption;
use weir_pool::DoubleWriteConfig;
use weir_recovery::Progress;

use crate::error::Error;
use crate::force::{Force, STEPS};
use crate::places::CATALOG_TREE;

/// Bytes a page unless the creator says otherwise. `docs/decisions/page-size.md` has the
/// measurements.
pub(crate) const PAGE_SIZE_DEFAULT: usize = 8192;

/// Which threads do the background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the engine.
    Threads,
    /// None: a thread that is held up does a step of it. For deterministic simulation.
    Manual,
}

/// Whether opening may make a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// When there is none.
    IfMissing,
    /// Never: there must be one.
    Never,
    /// There must be none.
    Always,
    /// There must be none, and it is not to be opened before it is whole ([`crate::Db::copy_to`]).
    #[doc(hidden)]
    Copy,
}

/// Learns how far recovery has come.
pub type RecoveryListener = dyn Fn(&Progress) + Send + Sync;

/// Where the numbers of a new database begin, and where those of a transaction's changes end.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The log's first position, a multiple of 4096. Not zero: a page that was never changed has
    /// LSN zero.
    pub lsn: Lsn,
    /// The first transaction.
    pub txn: TxnId,
    /// The first tree behind the catalog.
    pub tree: TreeId,
    /// Changes that one transaction may make.
    pub changes_max: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        let tree = TreeId(CATALOG_TREE.0 + 1);
        Numbers { lsn: Lsn(4096), txn: TxnId(1), tree, changes_max: u32::MAX }
    }
}

/// How a database is opened.
#[derive(Clone)]
pub struct Config {
    /// Memory for pages, in bytes; what transactions hold of locks may take a quarter as much
    /// besides, 4 MiB at least. The default is 1 GiB, or a quarter of the memory that the
    /// process may use (`weir_device::memory_bytes`) where that is less.
    pub pool_bytes: u64,
    /// The log's capacity in bytes, at creation; later openings keep what the database has (see
    /// [`crate::Db::set_log_bytes`]). 0: 64 MiB, or what the database has. No more of it is used
    /// than a quarter of the memory that the process may use (`weir_device::memory_bytes`), or half
    /// of what the pool leaves of it: opening after a crash holds it there.
    pub log_bytes: u64,
    /// Bytes a page: 4096, 8192 or 16384, at creation. 0: the default, or what the database has.
    pub page_size: usize,
    /// Where pages are kept, at creation. `None`: in place, or as the database has it.
    pub store: Option<StoreKind>,
    /// With which keys the database is encrypted: at creation, whether it is, and which key later
    /// openings need. `None`: it is not, and one that is cannot be opened.
    pub encryption: Option<Encryption>,
    /// How pages that are kept in place are kept from tearing; of no effect otherwise.
    pub doublewrite: DoubleWriteConfig,
    /// Whether to make the database.
    pub create: Create,
    /// Whether the database is only looked at: no file of it is changed, on media that cannot be
    /// written or by a user that may only read, and several may do so at the same time. After a
    /// crash it is recovered all the same, for this process alone: what that writes goes to a
    /// nameless temporary file, in memory where there can be none. Changes are refused with
    /// [`Error::ReadOnly`].
    pub read_only: bool,
    /// For a database that is damaged and does not open, or stops readers: a step from 1 to 4, each
    /// with what those before it leave out; 0: as ever. With any of them the database is only
    /// looked at, as with `read_only`, no page is written even for this process alone, nothing goes
    /// on in the background, and changes are refused with [`Error::ForcedRecovery`].
    ///
    /// 1: what cannot be read is passed over by all that walks (damaged leaves, all that lies below
    /// damaged inner pages, rows whose long values cannot be read); one row that is asked for by
    /// its key, and a tree whose root is damaged, is still an error. Transactions without an end
    /// are not rolled back, and not seen. 2: such a transaction whose undo cannot be read counts as
    /// committed. 3: the log is applied up to the first damage in it. 4: it is not applied, and
    /// files may be of different moments. With 3 and 4 rows are of no single moment.
    /// [`crate::Db::recovery_remarks`] says what was found. Where no step opens the database, or
    /// rows behind a damaged inner page are wanted: `weir salvage`.
    pub force_recovery: u8,
    /// Which threads do the background work.
    pub background: Background,
    /// Threads that bring pages forward after a crash, beside the thread that uses them; 0: half
    /// the cores.
    pub recovery_threads: usize,
    /// Called with how far recovery has come.
    pub recovery_progress: Option<Arc<RecoveryListener>>,
    /// The most pages that the database may ever have.
    pub pages_max: u32,
    /// For the simulator's canary alone: plants the bug of writing pages ahead of the log.
    #[doc(hidden)]
    pub skip_log_gate: bool,
    /// For the laboratory alone: makes another policy in the place of the engine's own.
    #[doc(hidden)]
    pub lab: Option<Arc<crate::lab::MakeSetup>>,
    /// For tests: memory for versions of rows that old snapshots see, in bytes, in the place of an
    /// eighth of the pool.
    #[doc(hidden)]
    pub versions_max_bytes: Option<u64>,
    /// For tests: bytes of log in a stretch whose contents are written down, with nothing left out
    /// for being young.
    #[doc(hidden)]
    pub contents_bytes: Option<u64>,
    /// For tests: log that opening may hold in memory, in bytes, in the place of what memory and
    /// pool leave.
    #[doc(hidden)]
    pub held_log_bytes: Option<u64>,
    /// For tests: memory for locks, in bytes, in the place of a quarter of the pool.
    #[doc(hidden)]
    pub locks_max_bytes: Option<u64>,
    /// For tests: where numbers begin and end, so that what happens where they grow large is seen.
    #[doc(hidden)]
    pub first: Numbers,
    /// As `skip_log_gate`, in transactions.
    #[doc(hidden)]
    pub planted: weir_txn::PlantedBug,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            pool_bytes: pool_bytes_default(weir_device::memory_bytes()),
            log_bytes: 0,
            page_size: 0,
            store: None,
            encryption: None,
            doublewrite: DoubleWriteConfig::default(),
            create: Create::IfMissing,
            read_only: false,
            force_recovery: 0,
            background: Background::Threads,
            recovery_threads: 0,
            recovery_progress: None,
            pages_max: 1 << 31,
            skip_log_gate: false,
            lab: None,
            versions_max_bytes: None,
            contents_bytes: None,
            held_log_bytes: None,
            locks_max_bytes: None,
            first: Numbers::default(),
            planted: weir_txn::PlantedBug::Nothing,
        }
    }
}

/// A pool that fits beside other programs, also in a small container.
fn pool_bytes_default(memory_bytes: Option<u64>) -> u64 {
    memory_bytes.map_or(1 << 30, |memory| (memory / 4).clamp(POOL_BYTES_MIN, 1 << 30))
}

impl Config {
    /// As it is meant: a forced opening only reads.
    pub(crate) fn settled(self) -> Config {
        let read_only = self.read_only || Force::at(self.force_recovery).is_on();
        Config { read_only, ..self }
    }

    /// Memory that locks may take, in bytes.
    pub(crate) fn locks_max(&self) -> u64 {
        self.locks_max_bytes.unwrap_or_else(|| (self.pool_bytes / 4).max(4 << 20))
    }
}

/// The log's capacity unless the creator says otherwise.
pub(crate) const LOG_BYTES_DEFAULT: u64 = 64 << 20;
/// The least: below it, groups could not pass through the log.
pub(crate) const LOG_BYTES_MIN: u64 = 640 << 10;
/// The most.
pub(crate) const LOG_BYTES_MAX: u64 = 1 << 40;
/// The least memory: a few dozen pages.
pub(crate) const POOL_BYTES_MIN: u64 = 256 << 10;

impl Config {
    /// # Errors
    /// [`Error::Config`] that names the setting, its value and what is allowed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Config(what));
        if ![0, 4096, 8192, 16384].contains(&self.page_size) {
            return wrong(format!(
                "a page size of {} bytes is not possible; choose 4096, 8192 or 16384",
                self.page_size
            ));
        }
        if self.log_bytes != 0 {
            check_log_bytes(self.log_bytes)?;
        }
        if self.pool_bytes < POOL_BYTES_MIN {
            return wrong(format!(
                "a pool of {} is too small; the least is {}",
                format_size(self.pool_bytes),
                format_size(POOL_BYTES_MIN)
            ));
        }
        let DoubleWriteConfig { files, pages, .. } = self.doublewrite;
        if !(1..=DoubleWriteConfig::FILES_MAX).contains(&files) {
            let most = DoubleWriteConfig::FILES_MAX;
            return wrong(format!("a doublewrite area of {files} files; there are 1 to {most}"));
        }
        if !(1..=DoubleWriteConfig::PAGES_MAX).contains(&pages) {
            let most = DoubleWriteConfig::PAGES_MAX;
            return wrong(format!("{pages} pages a doublewrite batch; there are 1 to {most}"));
        }
        if self.force_recovery > STEPS {
            return wrong(format!(
                "there is no step {} of a forced opening; the last is {STEPS}",
                self.force_recovery
            ));
        }
        if self.pages_max < 64 {
            return wrong(format!("at most {} pages is too few; the least is 64", self.pages_max));
        }
        Ok(())
    }
}

/// # Errors
/// [`Error::Config`].
pub(crate) fn check_log_bytes(bytes: u64) -> Result<(), Error> {
    if !(LOG_BYTES_MIN..=LOG_BYTES_MAX).contains(&bytes) {
        return Err(Error::Config(format!(
            "a log of {} is not possible; the least is {}, the most {}",
            format_size(bytes),
            format_size(LOG_BYTES_MIN),
            format_size(LOG_BYTES_MAX)
        )));
    }
    Ok(())
}
