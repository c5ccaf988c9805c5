//! What can go wrong in the background.
use std::sync::Arc;

use thiserror::Error;
use weir_pool::PoolError;
use weir_redo::RedoError;

/// Why a background step failed. All but a full disk halt the engine.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// Pages could not be written.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The log could not be written.
    #[error(transparent)]
    Redo(#[from] RedoError),
    /// The control file could not be written.
    #[error("writing the control file failed: {0}")]
    Control(Arc<std::io::Error>),
}
