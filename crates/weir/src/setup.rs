//! How log and pool are set up for a database's configuration.
use weir_base::DbId;
use weir_pool::PoolConfig;
use weir_redo::LogConfig;

use crate::config::Config;

/// Of a log of so many bytes.
pub(crate) fn log_config(db: DbId, capacity_bytes: u64) -> LogConfig {
    // A buffer beyond a quarter of the log would only use it up.
    let buffer_bytes = (capacity_bytes / 8).clamp(64 << 10, 8 << 20);
    LogConfig { db, capacity_bytes, buffer_bytes }
}

/// `age_bytes`: how old the checkpoint is, which may be more than the log has room for after it was
/// made smaller.
pub(crate) fn pool_config(config: &Config, log_bytes: u64, age_bytes: u64) -> PoolConfig {
    let log_bytes = log_bytes.max(age_bytes);
    PoolConfig {
        bytes: config.pool_bytes,
        pages_max: config.pages_max,
        log_usual_bytes: log_bytes,
        // Room for the log to grow sixteenfold while the database is open.
        log_span_bytes: log_bytes.saturating_mul(32),
        // Until the threads run, a thread that needs a frame frees one.
        manual: true,
        skip_log_gate: config.skip_log_gate,
    }
}
