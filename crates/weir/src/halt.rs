//! Halting: nothing is written any more.
use weir_checkpoint::Checkpointer;
use weir_pool::Pool;

/// Stops all writing for good.
pub(crate) fn halt(pool: &Pool, checkpointer: &Checkpointer, why: &str) {
    pool.halt(why);
    checkpointer.admission().wake();
}
