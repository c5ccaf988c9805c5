//! Locks with a rank: `parking_lot`'s, whose type says where they stand in the one order
//! ([`crate::rank`]). Without checks they are the same machine code.
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::held::{HeldRank, Ranked};

/// A mutex of rank `R`.
pub struct Mutex<R, T> {
    rank: PhantomData<fn() -> R>,
    inner: parking_lot::Mutex<T>,
}

/// The mutex, held.
pub struct MutexGuard<'a, T> {
    inner: parking_lot::MutexGuard<'a, T>,
    _held: HeldRank,
}

impl<R: Ranked, T> Mutex<R, T> {
    /// A mutex that no thread holds.
    pub const fn new(value: T) -> Self {
        Mutex { rank: PhantomData, inner: parking_lot::Mutex::new(value) }
    }

    /// Waits for it.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        HeldRank::may_wait::<R>();
        MutexGuard { inner: self.inner.lock(), _held: HeldRank::got::<R>() }
    }

    /// Takes it if no thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.inner.try_lock().map(|inner| MutexGuard { inner, _held: HeldRank::got::<R>() })
    }

    /// Waits for it, at most so long.
    #[inline]
    #[track_caller]
    pub fn try_lock_for(&self, limit: Duration) -> Option<MutexGuard<'_, T>> {
        HeldRank::may_wait::<R>();
        self.inner
            .try_lock_for(limit)
            .map(|inner| MutexGuard { inner, _held: HeldRank::got::<R>() })
    }

    /// What it guards, of a mutex that is this caller's alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }

    /// What it guarded.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<R: Ranked, T: Default> Default for Mutex<R, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<R, T: fmt::Debug> fmt::Debug for Mutex<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A condition that is waited for under a [`Mutex`] of any rank.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// One that no thread waits for.
    #[must_use]
    pub const fn new() -> Self {
        Condvar(parking_lot::Condvar::new())
    }

    /// Lets go of the mutex, waits, and takes it again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.0.wait(&mut guard.inner);
    }

    /// As [`Condvar::wait`], at most so long. `true`: that long.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> bool {
        self.0.wait_for(&mut guard.inner, timeout).timed_out()
    }

    /// Wakes one thread. `true`: there was one.
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Wakes all threads; returns how many there were.
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

/// A lock of rank `R` that many may have to read, or one to write.
pub struct RwLock<R, T> {
    rank: PhantomData<fn() -> R>,
    inner: parking_lot::RwLock<T>,
}

/// The lock, held for reading.
pub struct RwLockReadGuard<'a, T> {
    inner: parking_lot::RwLockReadGuard<'a, T>,
    _held: HeldRank,
}

/// The lock, held for writing.
pub struct RwLockWriteGuard<'a, T> {
    inner: parking_lot::RwLockWriteGuard<'a, T>,
    _held: HeldRank,
}

impl<R: Ranked, T> RwLock<R, T> {
    /// A lock that no thread holds.
    pub const fn new(value: T) -> Self {
        RwLock { rank: PhantomData, inner: parking_lot::RwLock::new(value) }
    }

    /// Waits to read. Not while this thread reads already: a writer that waits comes first.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        HeldRank::may_wait::<R>();
        RwLockReadGuard { inner: self.inner.read(), _held: HeldRank::got::<R>() }
    }

    /// Waits to read, also while this thread reads already: a writer that waits does not come
    /// first. For ranks of which a thread may have several.
    #[inline]
    #[track_caller]
    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        HeldRank::may_wait::<R>();
        RwLockReadGuard { inner: self.inner.read_recursive(), _held: HeldRank::got::<R>() }
    }

    /// Reads if no thread writes, or waits to.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.inner.try_read().map(|inner| RwLockReadGuard { inner, _held: HeldRank::got::<R>() })
    }

    /// What it guards, of a lock that is this caller's alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }

    /// Waits to write.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        HeldRank::may_wait::<R>();
        RwLockWriteGuard { inner: self.inner.write(), _held: HeldRank::got::<R>() }
    }
}

impl<R: Ranked, T: Default> Default for RwLock<R, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<R, T: fmt::Debug> fmt::Debug for RwLock<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::{LogFiles, LogWriter, PageLatch};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn locks_are_taken_in_the_order_of_their_ranks() {
        let (writer, files) = (Mutex::<LogWriter, _>::new(1), RwLock::<LogFiles, _>::new(2));
        let sum = *writer.lock() + *files.read();
        assert_eq!(sum, 3);
        let held = writer.lock();
        *files.write() += *held;
        drop(held);
        let held = files.read();
        let refused = || catch_unwind(AssertUnwindSafe(|| *writer.lock())).is_err();
        assert_eq!(refused(), crate::held::are_ranks_checked());
        // What is only tried for does not wait.
        assert!(writer.try_lock().is_some());
        drop(held);
        assert!(!refused());
    }

    #[test]
    fn a_rank_is_taken_twice_only_where_the_table_says_so() {
        let (one, other) = (Mutex::<LogFiles, _>::new(()), Mutex::<LogFiles, _>::new(()));
        let held = one.lock();
        let refused = catch_unwind(AssertUnwindSafe(|| drop(other.lock()))).is_err();
        assert_eq!(refused, crate::held::are_ranks_checked());
        drop(held);
        let (one, other) = (Mutex::<PageLatch, _>::new(()), Mutex::<PageLatch, _>::new(()));
        let held = one.lock();
        drop(other.lock());
        drop(held);
    }

    #[test]
    fn other_threads_hold_their_own() {
        let (files, writer) = (Mutex::<LogFiles, _>::new(()), Mutex::<LogWriter, _>::new(()));
        let held = files.lock();
        std::thread::scope(|scope| drop(scope.spawn(|| drop(writer.lock())).join()));
        drop(held);
        drop(writer.lock());
    }
}
