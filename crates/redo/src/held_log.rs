//! The log kept for a reader that copies it while it goes on.
use std::sync::Arc;

use weir_base::Lsn;

use crate::log::Log;

/// Keeps the log's files from being used again, from a position on, until it is dropped; or until
/// the log beyond it is twice its capacity, or the disk has no room for more: the log goes on.
pub struct LogHold {
    log: Arc<Log>,
    number: usize,
    from: Lsn,
}

impl LogHold {
    /// What lies behind is still there.
    #[must_use]
    pub fn from(&self) -> Lsn {
        self.from
    }

    /// The log was wanted: what lies behind may be gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.log.segments.holds.is_lost(self.number)
    }

    /// Needs nothing before `to` any more.
    pub fn advance(&mut self, to: Lsn) {
        self.from = self.from.max(to);
        self.log.segments.holds.advance(self.number, self.from);
    }
}

impl Drop for LogHold {
    fn drop(&mut self) {
        self.log.segments.holds.free(self.number);
    }
}

impl Log {
    /// Keeps the log from its checkpoint of now on, for a reader that may be slow: the log takes
    /// more files meanwhile. `None` when four readers do already.
    #[must_use]
    pub fn hold(self: &Arc<Log>) -> Option<LogHold> {
        let (number, from) = self.segments.hold(|| self.checkpoint())?;
        Some(LogHold { log: self.clone(), number, from })
    }
}
