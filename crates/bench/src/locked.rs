//! A mutex whose data are sound whatever happened to the thread that had it.
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes it.
pub(crate) fn locked<X>(mutex: &Mutex<X>) -> MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
