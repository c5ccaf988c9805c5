//! Why what is encrypted cannot be read or written.
use std::io;

use thiserror::Error;

use crate::key_block::{FORMAT, KEYS_FILE};
use crate::master::{KeyError, KeyName};

/// An error of encryption. Nothing was changed.
#[derive(Debug, Error)]
pub enum CryptError {
    /// Nothing was said of keys.
    #[error(
        "{what} is encrypted: it needs {name} (--key-file, or Config::encryption, or the server's \
         key management)"
    )]
    NoKeyGiven {
        /// The database, or a backup.
        what: &'static str,
        /// The key that it needs.
        name: KeyName,
    },
    /// The provider does not have the key.
    #[error("{what} needs {name}: {cause}")]
    NoKey {
        /// The database, or a backup.
        what: &'static str,
        /// The key that it needs.
        name: KeyName,
        /// What the provider says.
        #[source]
        cause: KeyError,
    },
    /// The provider has another key of that name.
    #[error("{what} was not encrypted with {name} as it is given: it is another key")]
    WrongKey {
        /// The database, or a backup.
        what: &'static str,
        /// The name under which it was given.
        name: KeyName,
    },
    /// No newest version can be had of the key to encrypt with.
    #[error("no key to encrypt with: {0}")]
    NoNewKey(#[source] KeyError),
    /// Another version's.
    #[error("'{KEYS_FILE}' has format {found}, this version of Weir reads format {FORMAT}")]
    OtherFormat {
        /// What was found.
        found: u32,
    },
    /// Another version's.
    #[error("the backup's seal has format {found}, this version of Weir reads format {reads}")]
    OtherSeal {
        /// What was found.
        found: u32,
        /// What is read.
        reads: u32,
    },
    /// A sealed stream does not even have its head.
    #[error("reading the head of a sealed backup: {0}")]
    Stream(#[source] io::Error),
    /// Neither copy of the wrapped key is whole.
    #[error(
        "'{KEYS_FILE}' is damaged in both of its copies: without it nothing in the directory can \
         be read; put the file back from a copy of the directory"
    )]
    Damaged,
    /// The system refused.
    #[error("{doing} '{KEYS_FILE}': {cause}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The answer.
        #[source]
        cause: io::Error,
    },
    /// The system has no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(String),
}

impl CryptError {
    pub(crate) fn io(doing: &'static str) -> impl Fn(io::Error) -> CryptError {
        move |cause| CryptError::Io { doing, cause }
    }
}

/// Fills `bytes` from the system's random numbers.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), CryptError> {
    getrandom::fill(bytes).map_err(|e| CryptError::Random(e.to_string()))
}
