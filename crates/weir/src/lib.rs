//! Weir: a transactional storage engine whose throughput line is flat. This crate is what a program
//! embeds: open a database, make trees, read, write, scan; see [`Db`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! use weir::{Batch, Config, Db, Durability};
//!
//! let db = Db::open(dir.path(), Config::default())?;
//! let birds = db.open_tree("birds")?;
//! birds.put(b"heron", b"grey", Durability::Synced)?;
//! assert_eq!(birds.get(b"heron")?.as_deref(), Some(&b"grey"[..]));
//!
//! let mut batch = Batch::new();
//! batch.put(&birds, b"egret", b"white");
//! batch.delete(&birds, b"heron");
//! db.write(&batch, Durability::Synced)?;
//!
//! let mut cursor = birds.cursor();
//! let mut found = cursor.seek_first()?;
//! while found {
//!     println!("{:?}", cursor.key());
//!     found = cursor.next()?;
//! }
//! db.close()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
mod acks;
mod advise;
mod asked;
mod backup;
mod backup_asked;
mod backup_chain;
mod backup_pace;
mod backup_run;
mod backup_start;
mod catalog;
mod catalog_entries;
mod catch_up;
mod check;
mod check_asked;
mod codec_asked;
mod commit;
mod compact;
mod compact_asked;
mod compactor;
mod config;
mod contents;
mod copy;
mod create;
mod cursor;
mod data_file;
mod db;
mod details;
mod encryption;
mod engine;
mod error;
mod force;
mod forced;
mod halt;
mod holes;
#[doc(hidden)]
pub mod lab;
mod load;
mod look;
mod metrics;
mod observe;
#[doc(hidden)]
pub mod on_disk;
mod open;
mod page_store;
mod places;
mod pool_size;
mod prepared;
mod read_log;
mod recovery_age;
mod repair;
mod report;
mod restore;
mod runs;
mod savepoint;
mod scrub;
mod scrub_pace;
mod sealed;
mod setup;
mod sorter;
mod stats;
mod steps;
mod tree;
mod txn;
mod txn_cursor;
mod txn_options;
mod undecided;
mod unused;
mod warm;
mod workers;

pub use advise::{Advice, Observed};
#[doc(hidden)]
pub use asked::{Answered, Asked, CHECK, CODEC, COMPACT, Question};
pub use backup::{BackedUp, BackupBase, BackupOptions, BackupProgress};
#[doc(hidden)]
pub use backup_asked::AskedBackup;
#[doc(hidden)]
pub use backup_start::end_backup;
pub use backup_start::found_backup;
pub use check::CheckReport;
#[doc(hidden)]
pub use codec_asked::{CodecAnswer, CodecRequest};
pub use commit::Commit;
#[doc(hidden)]
pub use compact_asked::{CompactAnswer, CompactRequest};
pub use compactor::{CompactOptions, Compacted};
#[doc(hidden)]
pub use config::Numbers;
pub use config::{Background, Config, Create, RecoveryListener, StoreKind};
pub use copy::{Copied, CopyOptions};
pub use cursor::Cursor;
pub use db::{Batch, Db};
pub use details::{DamagedPlace, Details};
#[doc(hidden)]
pub use encryption::open_volume;
pub use encryption::{Unsealed, unseal};
pub use error::Error;
pub use load::Load;
pub use look::SeenLock;
pub use metrics::{Metric, MetricKind};
pub use prepared::PreparedTxn;
#[doc(hidden)]
pub use repair::repair_page_on;
pub use repair::{RepairedPage, repair_page};
pub use report::RecoveryReport;
#[doc(hidden)]
pub use restore::restore_onto;
pub use restore::{RestoreOptions, RestorePoint, Restored, restore};
pub use runs::Pair;
pub use savepoint::Savepoint;
pub use scrub::{ScrubLook, ScrubReport};
pub use sorter::{Sorted, Sorter};
pub use stats::{PageWrites, StatsSnapshot};
pub use tree::Tree;
pub use txn::Txn;
pub use txn_cursor::TxnCursor;
pub use txn_options::TxnOptions;
pub use weir_backup::{Found as FoundBackup, Partial as PartialBackup};
pub use weir_base::{
    Clock, DbId, Listener, Lsn, ManualClock, Notice, SystemClock, ThreadCounts, TxnId, format_size,
    parse_size,
};
#[doc(hidden)]
pub use weir_btree::KeysAhead;
pub use weir_btree::{TreeReport, TreeSize};
#[doc(hidden)]
pub use weir_crypt::SealedReader;
#[doc(hidden)]
pub use weir_crypt::TestKey;
pub use weir_crypt::{Encryption, KeyBytes, KeyError, KeyFile, KeyName, KeyProvider, MasterKey};
pub use weir_device::{
    BlockFile, DiskSpec, FaultyVolume, FileVolume, InUse, IoStats, SimVolume, ThrottledVolume,
    Volume, forget_cached, punches_holes, try_lock_file,
};
pub use weir_pool::{
    DoubleWriteConfig, DoubleWriteMode, Mended, PageCodec, PageFinding, StoreLook,
};
pub use weir_recovery::{Phase, Progress};
pub use weir_redo::Durability;
#[doc(hidden)]
pub use weir_txn::PlantedBug;
pub use weir_txn::{Extent, Isolation, LockError, NewRow, Snapshot, TxnError, Wait, WaitListener};
