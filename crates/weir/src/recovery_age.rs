//! How old the checkpoint may become for the sake of the next opening: its time, and its memory.
use crate::engine::Engine;

/// Opening holds the log behind the checkpoint in memory, and up to as much again of what it makes
/// of it, until the pages have been brought forward: of the machine's memory, a quarter for the
/// log leaves half for the rest.
const SHARE_OF_MEMORY: u64 = 4;
/// Log that is read back in a second, where that was not measured: less than on any machine where
/// it was.
const READ_BACK_BYTES_PER_SECOND: u64 = 200_000_000;
/// A checkpoint younger than this would be written for all the time.
const AGE_BYTES_MIN: u64 = 1 << 20;

/// The greatest age at which the next opening needs no more than its share of the memory.
fn by_memory(machine_bytes: u64) -> u64 {
    (machine_bytes / SHARE_OF_MEMORY).max(AGE_BYTES_MIN)
}

/// The machine's memory, if it says; a container's limit is not looked at.
fn machine_bytes() -> Option<u64> {
    total_of(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

impl Engine {
    /// Bounds the age from now on so that opening takes about so many seconds, if given, and in any
    /// case so that it finds the memory that it needs.
    pub(crate) fn bound_recovery(&self, seconds: Option<f64>) {
        let by_time = seconds.map(|seconds| self.recovery_bytes(seconds));
        let by_memory = machine_bytes().map(by_memory);
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
        assert_eq!(by_memory(32 << 30), 8 << 30);
        assert_eq!(by_memory(1 << 10), AGE_BYTES_MIN);
        let meminfo = "MemTotal:       24689300 kB\nMemFree:        23 kB\n";
        assert_eq!(total_of(meminfo), Some(24_689_300 << 10));
        for strange in ["", "MemFree: 1 kB", "MemTotal: kB", "MemTotal: 99999999999999999 kB"] {
            assert_eq!(total_of(strange), None, "{strange}");
        }
        assert!(machine_bytes().is_some_and(|bytes| bytes > 64 << 20), "Linux says so");
    }
}
