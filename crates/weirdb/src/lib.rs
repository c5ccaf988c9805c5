//! An embedded transactional key-value store. It lives in the process that uses it, keeps ordered
//! maps of byte strings (*trees*) in a directory, and commits to stable storage at a rate that
//! stays even: pages are written all the time, as fast as the disk asks for and no faster.
//!
//! ```
//! # fn main() -> Result<(), weirdb::Error> {
//! # let dir = tempfile::tempdir().expect("a directory");
//! # let path = dir.path().join("birds.db");
//! use weirdb::{Db, TxnOptions};
//!
//! let db = Db::open(&path)?;
//! let birds = db.open_tree("birds")?;
//! birds.put("heron", "grey")?;
//! assert_eq!(birds.get("heron")?.as_deref(), Some(&b"grey"[..]));
//!
//! // Several changes, all of them or none; run again if it meets another transaction.
//! db.transact(TxnOptions::new(), |txn| {
//!     txn.insert(&birds, "egret", "white")?;
//!     txn.remove(&birds, "heron").map(drop)
//! })?;
//!
//! // A snapshot: threads may share it, and no writer waits for it.
//! let now = db.read();
//! for row in now.range(&birds, "a".."n").rev() {
//!     let (key, value) = row?;
//!     println!("{key:?} is {value:?}");
//! }
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | open, close, make trees | [`Db`], [`Config`] |
//! | do one thing | the methods of [`Tree`], each a transaction of its own |
//! | read a moment | [`Db::read`], [`ReadTxn`] |
//! | have types for keys and values | [`TypedTree`]; `serde` with the feature of that name |
//! | change several rows | [`Db::transact`], or [`Db::write`] and [`WriteTxn::commit`] |
//! | change many rows without reading | [`Batch`], [`Tree::bulk_load`] |
//! | not wait for the disk | [`WriteTxn::commit_nowait`], [`Commit`] |
//! | copy the database while it works, row by row | [`ReadTxn::backup`] |
//! | back up pages and log: all, what was changed, any moment | [`Db::write_backup`], [`restore`] |
//! | go on with a backup that was cut off | [`Db::resume_backup`] |
//! | make a tree dense after many removals | [`Tree::compact`] |
//! | serve many clients: locks, interrupting, metrics | the module of the feature `server` |
//! | try crashes in one's own tests | the module of the feature `testing` |
//!
//! # Isolation
//!
//! Any number of transactions read and write at the same time. Readers take no lock and are never
//! waited for. Writers lock the rows that they change, and meet only there: one that wants a row
//! that another has changed waits for it ([`TxnOptions::lock_wait`]); a circle of such waits is
//! found when it comes to be, and one of them is rolled back ([`Conflict::Deadlock`]).
//!
//! A [`WriteTxn`] is at [`Isolation::Snapshot`] unless told otherwise: it reads from one snapshot,
//! and fails with [`Conflict::Changed`] when it writes a row that was changed since. So no update
//! is lost; what remains possible is write skew: two transactions that each read what the other
//! writes. [`Isolation::Serializable`] forbids that too, by locking what is read.
//! [`WriteTxn::get_for_update`] and [`WriteTxn::range_for_update`] lock at any level.
//!
//! [`Db::transact`] runs a closure again when it met another transaction. By hand:
//! [`Error::is_retryable`].
//!
//! # Durability
//!
//! When [`WriteTxn::commit`] returns, the commit is on stable storage ([`Durability::Synced`]),
//! unless the database ([`Config::durability`]) or the transaction ([`TxnOptions::durability`])
//! asks for less. One sync serves all that wait for one. Commits become durable in their order:
//! after a crash all commits up to some moment are there, whole, and none of the later ones.
//! Nothing else is lost, whatever the durability: a crash never leaves a database that cannot be
//! opened.
//!
//! Others see a commit before it is durable, and a commit that builds on it becomes durable later.
//! A failed write or sync halts the database ([`Error::Halted`]): nothing is acknowledged after it,
//! and no sync is tried again. A full disk halts nothing: the writer that needs room is refused
//! ([`Error::DiskFull`]), and all others go on.
//!
//! # Errors
//!
//! [`Error`] is by what can be done about it: [`Error::Conflict`] (again), [`Error::Exists`] and
//! [`Error::InvalidInput`] (something else), [`Error::DiskFull`] (make room), [`Error::Damaged`]
//! (restore), [`Error::Halted`] (look at the device, open again), [`Error::Closed`]. Unless it says
//! otherwise nothing was changed, and the transaction goes on. Enums of errors and settings are
//! `#[non_exhaustive]`.
//!
//! A panic of a closure that this crate calls leaves nothing locked and nothing half done. A panic
//! of one of its own threads (a bug) halts the database and is named in [`Error::Halted`].
//!
//! # Limits
//!
//! | what | limit |
//! |---|---|
//! | a key | three eighths of a page: 3,072 bytes with pages of 8 KiB |
//! | a value | 4 GiB less one byte; it is read and written as a whole |
//! | the name of a tree | 1 to 255 bytes |
//! | rows of a tree, trees | as many as the pages hold: [`Config::pages_max`], at most 2^32 |
//! | locks of all transactions | memory: a quarter of [`Config::cache_bytes`] |
//! | processes | one has the database open; or several that only read ([`Config::read_only`]) |
//!
//! What was read is a copy ([`Slice`]): the engine does not lend its pages. [`Tree::get_into`]
//! reads into memory that is used again.
//!
//! # Platform
//!
//! 64-bit Linux, with the GNU C library or musl. x86-64 is what it is tested and measured on; on
//! 64-bit ARM the tests of the crates below the engine, and the examples, passed under emulation,
//! which shows nothing of speed, nor of the order in which such processors write memory (there, the
//! model checker's word is all there is). On a local file system; a page cache or a network between
//! the engine and the disk must keep what `fsync` promises. It uses `io_uring` and `O_DIRECT` where
//! it may, and does without otherwise. Memory: [`Config::cache_bytes`] and three eighths as much at
//! most for locks and old versions. Threads: ten, which sleep when there is nothing to do.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]
#[cfg(not(target_os = "linux"))]
compile_error!("weirdb runs on Linux only: it uses io_uring, O_DIRECT and flock");
#[cfg(not(target_pointer_width = "64"))]
compile_error!("weirdb runs on 64-bit machines only: it maps files and memory larger than 4 GiB");

mod alone;
mod batch;
mod bounds;
mod commit;
mod compact;
mod config;
mod convert;
mod db;
mod error;
mod keys;
mod locked_rows;
mod options;
mod page_backup;
mod read;
mod reader;
mod rows;
#[cfg(feature = "server")]
pub mod server;
mod shared;
mod slice;
mod stats;
#[cfg(feature = "testing")]
pub mod testing;
mod tree;
mod typed;
mod write;

pub use batch::Batch;
pub use commit::{Commit, Durable};
pub use compact::{CompactOptions, Compacted};
pub use config::{Codec, Config, Create, RecoveryPhase, RecoveryProgress, Store, TornPages};
pub use db::{Db, Notice};
pub use error::{Cause, Conflict, Error, OpenError};
pub use keys::{KeyError, KeyFile, KeyProvider};
pub use locked_rows::LockedRows;
pub use options::{Durability, Isolation, LockWait, TxnOptions};
pub use page_backup::{BackupOptions, BackupProgress, PageBackup, RestoreOptions, restore};
pub use read::ReadTxn;
pub use reader::Reader;
pub use rows::Rows;
pub use slice::Slice;
pub use stats::{Backup, CheckReport, Recovery, Stats, TreeCheck};
pub use tree::Tree;
pub use typed::key::{AsKey, Key, KeyBytes, Prefix};
#[cfg(feature = "serde")]
pub use typed::value::Serde;
pub use typed::value::{Malformed, Value};
#[cfg(feature = "serde")]
#[doc(hidden)]
pub use typed::value::{serde_decode, serde_encode};
pub use typed::{TypedRows, TypedTree};
pub use write::{Savepoint, Swap, WriteTxn};
