//! The atomics that the lock-free parts use: the standard library's, or loom's when the model
//! checker runs them.
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

pub(crate) use std::sync::atomic::Ordering;

/// Many of them.
#[cfg(not(loom))]
pub(crate) type Words = weir_base::LargeArray<AtomicU64>;

/// Many of them.
#[cfg(loom)]
pub(crate) type Words = Box<[AtomicU64]>;

/// So many, all 0.
#[cfg(not(loom))]
pub(crate) fn words(len: u64) -> Words {
    weir_base::LargeArray::zeroed(len as usize)
}

/// So many, all 0.
#[cfg(loom)]
pub(crate) fn words(len: u64) -> Words {
    (0..len).map(|_| AtomicU64::new(0)).collect()
}

/// Lets another thread run.
#[cfg(not(loom))]
pub(crate) fn yield_now() {
    std::thread::yield_now();
}

/// Lets another thread run.
#[cfg(loom)]
pub(crate) fn yield_now() {
    loom::thread::yield_now();
}

/// A word that threads sleep on until its value changes.
#[cfg(not(loom))]
#[derive(Default)]
pub(crate) struct Futex(AtomicU32);

#[cfg(not(loom))]
impl Futex {
    pub(crate) fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
    /// Sleeps while the value is `seen`; may return early.
    pub(crate) fn wait(&self, seen: u32) {
        atomic_wait::wait(&self.0, seen);
    }
    pub(crate) fn change_and_wake_all(&self) {
        self.0.fetch_add(1, Ordering::Release);
        atomic_wait::wake_all(&self.0);
    }
    pub(crate) fn change_and_wake_one(&self) {
        self.0.fetch_add(1, Ordering::Release);
        atomic_wait::wake_one(&self.0);
    }
}

/// A word that threads sleep on until its value changes, as loom can follow it.
#[cfg(loom)]
#[derive(Default)]
pub(crate) struct Futex {
    value: loom::sync::Mutex<u32>,
    changed: loom::sync::Condvar,
}

#[cfg(loom)]
impl Futex {
    pub(crate) fn value(&self) -> u32 {
        *self.value.lock().unwrap()
    }
    pub(crate) fn wait(&self, seen: u32) {
        let mut value = self.value.lock().unwrap();
        while *value == seen {
            value = self.changed.wait(value).unwrap();
        }
    }
    pub(crate) fn change_and_wake_all(&self) {
        *self.value.lock().unwrap() += 1;
        self.changed.notify_all();
    }
    pub(crate) fn change_and_wake_one(&self) {
        *self.value.lock().unwrap() += 1;
        self.changed.notify_one();
    }
}
