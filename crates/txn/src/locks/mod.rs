//! Explicit locks of interactive transactions: rows held shared or alone, gaps, wishes to insert,
//! and who waits for whom. A row's active writer is its exclusive lock without an entry here, until
//! the first waiter makes it explicit.
//!
//! # Queues
//! Each place (a key of a tree, or its end) has a queue while something is locked there. A request
//! waits for the holders that conflict with it and for the earlier waiters that do, so nobody
//! starves; who asks for more of what it has goes before the others, who would wait for it anyway.
//! Whoever takes an entry out of a queue grants those that can go on, and wakes only them.
//!
//! # Protocol of the callers
//! - `register` comes before a transaction's first write. Its outcome is visible to all who look at
//!   its rows before `end` is called.
//! - A writer or locking reader asks `blocks` under the leaf's latch; if told true it gives the
//!   latch back, calls `acquire`, and looks again. A locking reader that found no active writer
//!   looks at the row again under a latch after `acquire`.
//! - Who inserts or removes a key calls `gap_split` or `gap_join` under the same latch.
//!
//! # Locks
//! In this order: a shard's mutex (several in ascending order, only to end a deadlock), then an
//! owner's mutex. The mutexes of the registry are taken alone. All are held for memory work only
//! and may be taken under a leaf's latch; no latch is ever taken under them, and no thread sleeps
//! holding one except on its own owner's, which the condition gives back. Threads are woken when no
//! shard is locked.
//!
//! `end` closes its owner's list under the owner's mutex before it releases anything. Who makes a
//! lock explicit or lets a gap be inherited holds the shard's mutex, then adds to that list only
//! while it is open: so either `end` finds the entry, or it never comes to be.
mod deadlock;
mod gaps;
mod kind;
mod owner;
mod queue;
mod refused;
mod shard;
mod sync;
mod table;
#[cfg(test)]
mod tests;

pub use kind::{Kind, Place, PlaceBuf};
pub use owner::Owner;
pub use refused::{Edge, Refused};
pub use table::{LockStats, LockTable, Wait};
