//! The keys of an encrypted database: `--key-file`, which every command knows.
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use weir::{Encryption, KeyFile};

/// Set once, before any command runs.
static GIVEN: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Notes what the command line says.
pub(crate) fn set(key_file: Option<PathBuf>) {
    let _ = GIVEN.set(key_file);
}

/// The keys of the databases and backups that the command reads; `None`: they are not encrypted.
pub(crate) fn given() -> Option<Encryption> {
    GIVEN.get().cloned().flatten().map(encryption_of)
}

/// The keys in a file.
pub(crate) fn encryption_of(key_file: PathBuf) -> Encryption {
    Encryption::new(Arc::new(KeyFile::at(key_file)))
}
