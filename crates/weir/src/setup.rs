//! How log and pool are set up for a database's configuration.
use weir_base::DbId;
use weir_pool::{DoubleWriteConfig, PoolConfig};
use weir_redo::LogConfig;

use crate::config::Config;
use crate::force::Force;

/// Of a log of so many bytes, beside a pool of so many.
pub(crate) fn log_config(db: DbId, capacity_bytes: u64, pool_bytes: u64) -> LogConfig {
    // A buffer beyond a quarter of the log would only use it up, and memory beside the pool is to
    // be little beside it: the links of the claims take as much again, and the log would round up.
    let most = (capacity_bytes / 8).min(beside_pool(pool_bytes) / 2).clamp(64 << 10, 8 << 20);
    LogConfig { db, capacity_bytes, buffer_bytes: 1 << most.ilog2() }
}

/// What one kind of memory beside a pool of so many bytes may take, in bytes: an eighth as much,
/// and at least a mebibyte.
pub(crate) fn beside_pool(pool_bytes: u64) -> u64 {
    (pool_bytes / 8).max(1 << 20)
}

/// The doublewrite area that `config` asks for, with batches of at most a 16th of the pool: each
/// thread that writes one holds it twice.
pub(crate) fn doublewrite_of(config: &Config, page_size: usize) -> DoubleWriteConfig {
    let most = (config.pool_bytes / page_size as u64 / 16).max(32) as usize;
    DoubleWriteConfig { pages: config.doublewrite.pages.min(most), ..config.doublewrite }
}

/// The most memory that the pool may be given while the database is open: what the process may use,
/// of which only address space is taken before.
pub(crate) fn pool_bytes_max(config: &Config) -> u64 {
    // Miri would take all of it.
    let memory = if cfg!(miri) { None } else { weir_device::memory_bytes() };
    memory.unwrap_or(0).max(config.pool_bytes)
}

/// `age_bytes`: how old the checkpoint is, which may be more than the log has room for after it was
/// made smaller.
pub(crate) fn pool_config(config: &Config, log_bytes: u64, age_bytes: u64) -> PoolConfig {
    let log_bytes = log_bytes.max(age_bytes);
    PoolConfig {
        bytes: config.pool_bytes,
        pages_max: config.pages_max,
        log_usual_bytes: log_bytes,
        // Half of it is room for the log to grow sixteenfold while the database is open.
        log_span_bytes: log_bytes.saturating_mul(32),
        // Until the threads run, a thread that needs a frame frees one.
        manual: true,
        skip_log_gate: config.skip_log_gate,
        page_use: Force::at(config.force_recovery).page_use(),
    }
}
