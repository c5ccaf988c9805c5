//! Snapshots, counted while they are held.
use std::sync::Arc;

use weir_base::lines;

use super::Registry;

/// A moment: sees all that was committed then, for as long as it is held.
pub struct Snapshot {
    registry: Arc<Registry>,
    number: u64,
}

impl Snapshot {
    /// One that the registry counts already.
    pub(super) fn new(registry: Arc<Registry>, number: u64) -> Self {
        Snapshot { registry, number }
    }

    /// The newest commit number that it sees.
    #[inline]
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether it is this registry that keeps what it sees.
    #[must_use]
    pub fn is_of(&self, registry: &Arc<Registry>) -> bool {
        Arc::ptr_eq(&self.registry, registry)
    }
}

impl Clone for Snapshot {
    /// The same moment once more: snapshots can be shared between sessions.
    fn clone(&self) -> Self {
        self.registry.gate.close();
        if let Some(held) = self.registry.inner.lock().snapshots.get_mut(&self.number) {
            held.count += 1;
        }
        Snapshot { registry: self.registry.clone(), number: self.number }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.registry.home.is_here() {
            // A copy in a process that was forked from this one, where the thread that has the lock
            // may not be. Whose the moment was keeps it.
            return;
        }
        let mut inner = self.registry.inner.lock();
        let mut is_last = false;
        if let Some(held) = inner.snapshots.get_mut(&self.number) {
            held.count -= 1;
            is_last = held.count == 0;
        }
        if is_last {
            inner.snapshots.remove(&self.number);
            // Before any transaction may do what only this one has held up.
            self.registry.archive.leave(self.number);
        }
        drop(inner);
        lines::wrote("the registry's reference count");
        self.registry.gate.reopen();
    }
}
