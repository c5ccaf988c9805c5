//! Explicit locks of interactive transactions: keys and ranges of keys, held shared or alone, and
//! which transaction waits for which. A row's active writer is its exclusive lock without an entry
//! here, until the first waiter makes it explicit.
//!
//! # Queues
//! A request waits for the holders that conflict with it and for the earlier waiters that do, be
//! their places keys or ranges, so no transaction starves. A transaction that would wait for a
//! transaction that waits for what it holds goes before the others. The transaction that takes an
//! entry out of a queue grants those that can go on, and wakes only them.
//!
//! # A key that becomes free
//! Handing a key to a thread that sleeps leaves it idle until that runs. So a key that no
//! transaction holds any more is *released unfairly*: the first waiter is notified, stays first,
//! and until it has looked, the transaction that runs and wants the key alone may have it. Notified
//! and finding that few came, it takes the key. If many did, it naps (`NAP`), and then takes the
//! key, or *bars* it: newcomers wait again and the next transaction that releases the key hands it
//! over. (docs/decisions/hot-rows.md)
//!
//! Released unfairly are only keys whose first waiter wants them alone and in turn, while no
//! transaction waits for a range of the tree; everything else is handed over at once. Those that
//! wait already never overtake each other. Always: the first waiter of a key waits for a holder of
//! its, or is about to look.
//!
//! A transaction that passes is a holder that no transaction waited for when their waits began. If
//! it goes on to wait, the search for deadlocks finds what it holds explicitly; if it only writes
//! the row, that becomes explicit when the first waiter has looked, and the search starts again
//! from all that wait there. So a deadlock is found at once or one nap later.
//!
//! # Which waiters report
//! A listener (`WaitListener`) is called by the thread that waits, when its wait begins. The
//! transaction that gets in the way later (a newcomer that passes, a writer whose lock becomes
//! explicit, one that goes before the others) notifies those that tell, and they look and tell
//! again: only them, as a hot row has hundreds that do not.
//!
//! # Protocol of the callers
//! - `register` comes before a transaction's first write. Its outcome is visible to all that look
//!   at its rows before `end` is called.
//! - A writer of a row asks `blocks` under the leaf's latch; if so it gives the latch back,
//!   calls `acquire`, and looks again. A locking reader looks at the row again after `acquire`, or
//!   sees that its page is still in the state that it was read in.
//! - A transaction that drops a tree locks all of it, waits for those that have changed it, and
//!   calls `tree_dropped` when it has committed, before `end`: the transaction that waited there is
//!   then refused. A transaction that is granted a lock asks `is_dropped` before it believes what
//!   it reads.
//! - A transaction that scans locks the range first and looks at the rows afterwards. A row with an
//!   active writer it asks for with `acquire`, naming the writer, and then looks again: ranges do
//!   not wait for writers that are not explicit. A transaction that writes in the range after that
//!   is blocked by `blocks`.
//!
//! # Locks
//! In this order: a shard's mutex (several in ascending order, only to end a deadlock), then an
//! owner's mutex. The mutexes of the registry are taken alone. All are held for memory work only
//! and may be taken under a leaf's latch; no latch is ever taken under them, and no thread sleeps
//! holding one except on its own owner's, which the condition gives back. Threads are woken when no
//! shard is locked.
//!
//! The holders of a range are found by a look at its rows only where these are few, else by a
//! search in what each owner holds; and the keys that a transaction waits for have a list of their
//! own. So neither a transaction that asks nor a transaction that releases looks at all that others
//! have locked.
//!
//! `end` closes its owner's list under the owner's mutex before it releases anything. A transaction
//! that makes a lock explicit holds the shard's mutex, then adds to that list only while it is
//! open: so either `end` finds the entry, or it never comes to be.
mod blockers;
mod deadlock;
mod holders;
mod kept;
mod kind;
mod lock_error;
mod lock_holder;
mod look;
mod own_keys;
mod owner;
mod place;
mod ranges;
mod shard;
mod sleep;
mod sync;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod tree_locks;
mod usual;
mod waits;

pub use kind::Kind;
pub use lock_error::{Edge, LockError};
pub use look::SeenLock;
pub use owner::Owner;
pub use place::{Place, PlaceBuf};
pub use sleep::WaitListener;
pub use table::{LockStats, LockTable, Wait};
