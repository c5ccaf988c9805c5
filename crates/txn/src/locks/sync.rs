//! The mutex, condition and atomics of the lock table: ours with ranks and the standard library's,
//! or loom's when the model checker runs them.
use std::time::Duration;

pub(super) use std::sync::atomic::Ordering;

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(not(loom))]
pub(super) use weir_base::lock::{Mutex, MutexGuard as Guard};

#[cfg(loom)]
pub(super) use loom::sync::MutexGuard as Guard;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

/// A condition that one thread waits for.
#[cfg(not(loom))]
pub(super) struct Condvar(weir_base::lock::Condvar);

#[cfg(not(loom))]
impl Condvar {
    pub(super) fn new() -> Self {
        Condvar(weir_base::lock::Condvar::new())
    }
    /// Sleeps until woken or for `limit`; says whether the limit ended it.
    pub(super) fn wait<'a, T>(
        &self,
        mut guard: Guard<'a, T>,
        limit: Duration,
    ) -> (Guard<'a, T>, bool) {
        let timed_out = self.0.wait_for(&mut guard, limit);
        (guard, timed_out)
    }
    pub(super) fn wake(&self) {
        self.0.notify_one();
    }
}

/// A mutex that loom follows. Of ranks it knows nothing.
#[cfg(loom)]
pub(super) struct Mutex<R, T>(loom::sync::Mutex<T>, std::marker::PhantomData<fn() -> R>);

#[cfg(loom)]
impl<R, T> Mutex<R, T> {
    pub(super) fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value), std::marker::PhantomData)
    }
    pub(super) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().expect("a panic ends the model")
    }
}

/// A condition that loom follows. It knows no time: a wait that no transaction ends is a deadlock
/// that loom reports.
#[cfg(loom)]
pub(super) struct Condvar(loom::sync::Condvar);

#[cfg(loom)]
impl Condvar {
    pub(super) fn new() -> Self {
        Condvar(loom::sync::Condvar::new())
    }
    pub(super) fn wait<'a, T>(&self, guard: Guard<'a, T>, _: Duration) -> (Guard<'a, T>, bool) {
        (self.0.wait(guard).expect("a panic ends the model"), false)
    }
    pub(super) fn wake(&self) {
        self.0.notify_one();
    }
}
