//! How old the checkpoint may become for the sake of the next opening: its time, and its memory.
use weir_device::memory_bytes;

use crate::engine::Engine;

/// Of the memory that the process may use, the log behind the checkpoint takes at most this part
/// while the database is opened,
const SHARE_OF_MEMORY: u64 = 4;
/// and with as much again of what opening makes of it no more than pool and program leave.
const PROGRAM_BYTES: u64 = 32 << 20;
/// Of a log that is larger, opening holds windows, each with so much at least.
const HELD_BYTES_MIN: u64 = 8 << 20;
/// Log that is read back in a second, where that was not measured: less than on any machine where
/// it was.
const READ_BACK_BYTES_PER_SECOND: u64 = 200_000_000;
/// A checkpoint younger than this would be written for all the time.
const AGE_BYTES_MIN: u64 = 1 << 20;

/// How much log opening may hold in memory until its pages have been brought up to date, beside a
/// pool of `pool_bytes`, where the process may use `memory_bytes`.
pub(crate) fn held_log_bytes(memory_bytes: u64, pool_bytes: u64) -> u64 {
    let beside = memory_bytes.saturating_sub(pool_bytes.saturating_add(PROGRAM_BYTES)) / 2;
    (memory_bytes / SHARE_OF_MEMORY).min(beside).max(HELD_BYTES_MIN)
}

impl Engine {
    /// Bounds the age from now on so that opening takes about so many seconds, if given, and in any
    /// case so that it finds the memory that it needs.
    pub(crate) fn bound_recovery(&self, seconds: Option<f64>) {
        let by_time = seconds.map(|seconds| self.recovery_bytes(seconds));
        let by_memory = memory_bytes().map(|memory| held_log_bytes(memory, self.config.pool_bytes));
        self.checkpointer.set_recovery_age_bytes(by_time.into_iter().chain(by_memory).min());
    }

    /// The age at which opening after a crash takes so many seconds.
    fn recovery_bytes(&self, seconds: f64) -> u64 {
        let rate = self.read_back_bytes_per_second().unwrap_or(READ_BACK_BYTES_PER_SECOND);
        ((rate as f64 * seconds) as u64).max(AGE_BYTES_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_an_opening_fits_into_memory() {
        assert_eq!(held_log_bytes(32 << 30, 1 << 30), 8 << 30);
        assert_eq!(held_log_bytes(300 << 20, 64 << 20), 75 << 20);
        assert_eq!(held_log_bytes(4 << 30, 3 << 30), 496 << 20);
        assert_eq!(held_log_bytes(1 << 10, 1 << 30), HELD_BYTES_MIN);
    }
}
