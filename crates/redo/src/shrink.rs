//! The exposed age limit while the capacity shrinks: a slope instead of a step.
use std::sync::atomic::{AtomicBool, Ordering};
use weir_base::Lsn;
use weir_base::lock::Mutex;
use weir_base::rank;

/// A capacity was lowered when the log ended at `at`.
#[derive(Clone, Copy)]
struct Slope {
    limit: u64,
    at: Lsn,
}

pub(crate) struct Limit {
    shrinking: AtomicBool,
    slope: Mutex<rank::LogSlope, Option<Slope>>,
}

impl Limit {
    pub(crate) fn new() -> Limit {
        Limit { shrinking: AtomicBool::new(false), slope: Mutex::new(None) }
    }

    /// The capacity was changed when the limit stood at `limit`.
    pub(crate) fn start(&self, limit: u64, at: Lsn) {
        *self.slope.lock() = Some(Slope { limit, at });
        self.shrinking.store(true, Ordering::Release);
    }

    /// The limit that holds now on the way to `target`: it falls by one byte for every two that
    /// are appended, until it or the age is at the target.
    pub(crate) fn now(&self, target: u64, end: Lsn, checkpoint: Lsn) -> u64 {
        if !self.shrinking.load(Ordering::Acquire) {
            return target;
        }
        let mut slope = self.slope.lock();
        let Some(Slope { limit, at }) = *slope else { return target };
        let sloped = limit.saturating_sub(end.bytes_since(at) / 2);
        if sloped > target && end.bytes_since(checkpoint) > target {
            return sloped;
        }
        *slope = None;
        self.shrinking.store(false, Ordering::Release);
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_at_once_down_on_a_slope() {
        let limit = Limit::new();
        assert_eq!(limit.now(1000, Lsn(5000), Lsn(4100)), 1000);
        limit.start(1000, Lsn(5000));
        assert_eq!(limit.now(2000, Lsn(5000), Lsn(4100)), 2000);
        limit.start(2000, Lsn(5000));
        assert_eq!(limit.now(500, Lsn(5000), Lsn(4000)), 2000);
        assert_eq!(limit.now(500, Lsn(6000), Lsn(4500)), 1500);
        assert_eq!(limit.now(500, Lsn(8000), Lsn(7000)), 500, "the slope has arrived");
        assert_eq!(limit.now(500, Lsn(8000), Lsn(7000)), 500);
        limit.start(2000, Lsn(5000));
        assert_eq!(limit.now(500, Lsn(5000), Lsn(4800)), 500, "the age is there already");
    }
}
