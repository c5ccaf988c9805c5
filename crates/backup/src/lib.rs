//! A backup as a stream of bytes: pages as they lie on disk, and the log that belongs to them. It
//! is written front to back and read front to back, so that it can go through a pipe, and each part
//! of it is verified on its own.
#![forbid(unsafe_code)]
mod error;
mod format;
mod needed;
mod partial;
mod reader;
mod store_kind;
mod verify;
mod writer;

pub use error::BackupError;
pub use format::{Begin, Consistent, Content, End, FORMAT, MAGIC, Resumed};
pub use needed::{Needed, PageSet};
pub use partial::{Found, Partial, found};
pub use reader::{Frame, Place, Reader};
pub use store_kind::StoreKind;
pub use verify::{Verified, verify, verify_rest};
pub use writer::Writer;
