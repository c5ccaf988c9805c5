//! Encryption at rest: all files of a volume enciphered in place (HCTR2 with AES-256), the key that
//! does so wrapped by a master key that comes from outside, and streams sealed for backups
//! (AES-256-GCM). Knows nothing of pages, logs or trees.
#![forbid(unsafe_code)]
mod error;
mod file;
mod hctr2;
mod key_block;
mod key_file;
mod master;
mod stream;
mod volume;

pub use error::CryptError;
pub use hctr2::{Hctr2, UNIT_STEP};
pub use key_block::KEYS_FILE;
pub use key_file::KeyFile;
#[doc(hidden)]
pub use key_file::parse_key_line;
#[doc(hidden)]
pub use master::TestKey;
pub use master::{Encryption, KeyBytes, KeyError, KeyName, KeyProvider, MasterKey};
pub use stream::{SEALED_MAGIC, SealedPlace, SealedReader, SealedWriter};
pub use volume::{CryptVolume, Files};
