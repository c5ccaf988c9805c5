//! More or less memory for pages while the database is open.
use weir_base::format_size;

use crate::config::POOL_BYTES_MIN;
use crate::db::Db;
use crate::error::Error;

/// A pause after each step, in which what has left memory and is wanted comes back.
const STEP_MICROS: u64 = 5_000;
/// A look again at pages that are in use comes after so long,
const LOOK_MICROS: u64 = 1_000;
/// and they are waited for so long without one of them leaving.
const STUCK_MICROS: u64 = 5_000_000;

impl Db {
    /// Gives pages more or less memory while the database is in use: in force when this returns,
    /// until the database is closed. More is had at once, up to the memory that the process may
    /// use (`weir_device::memory_bytes`); less little by little: what is in the memory that is
    /// given up is written if it is dirty, and read again when it is wanted. Memory for locks and
    /// old versions keeps the bounds that it had at opening.
    ///
    /// # Errors
    /// [`Error::Config`] when that is too little or too much, or when pages that are in use keep
    /// the memory for seconds: it is then as large as it was, or a part of the way there
    /// ([`Db::stats`] says so). Others when pages cannot be written.
    pub fn set_pool_bytes(&self, bytes: u64) -> Result<(), Error> {
        let engine = &self.engine;
        engine.check_not_forced()?;
        engine.check_open()?;
        if bytes < POOL_BYTES_MIN {
            return Err(Error::Config(format!(
                "a pool of {} is too small; the least is {}",
                format_size(bytes),
                format_size(POOL_BYTES_MIN)
            )));
        }
        let mut stuck_since = None;
        let mut wait = |given_up: u32| {
            if given_up > 0 {
                stuck_since = None;
                engine.clock.sleep_micros(STEP_MICROS);
                return true;
            }
            let now = engine.clock.now_micros();
            let since = *stuck_since.get_or_insert(now);
            engine.clock.sleep_micros(LOOK_MICROS);
            now.saturating_sub(since) < STUCK_MICROS && engine.check_open().is_ok()
        };
        engine.pool.resize(bytes, &mut wait).map_err(|e| engine.failed(e.into()))
    }
}
