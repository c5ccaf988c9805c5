//! Keys of encrypted databases.
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the keys come from that open an encrypted database: a [`KeyFile`], a vault, a server's key
/// management. It is asked when a database is opened or made, twice a minute for a newer version,
/// and for each backup. The database's own key, which enciphers data, is wrapped by them.
pub trait KeyProvider: Send + Sync {
    /// The newest version of the key.
    ///
    /// # Errors
    /// [`KeyError`] when none can be had.
    fn newest_version(&self) -> Result<u32, KeyError>;

    /// The key of that version: 32 random bytes (16 and 24 are taken as well). Older versions are
    /// needed for as long as a database or a backup names them.
    ///
    /// # Errors
    /// [`KeyError`] when it cannot be had.
    fn key(&self, version: u32) -> Result<Vec<u8>, KeyError>;
}

/// Why there is no key, in words that do not hold it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub String);

/// Keys in a file: a line for each version, with its number, a space, and 64 hexadecimal digits.
/// `weir key new` makes one, and so does [`KeyFile::generate`].
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The keys in this file.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> KeyFile {
        KeyFile { path: path.into() }
    }

    /// Makes the file with a random key, which only its owner can read.
    ///
    /// # Errors
    /// `AlreadyExists`, and what the operating system reports.
    pub fn generate(path: impl AsRef<Path>) -> std::io::Result<KeyFile> {
        weir::KeyFile::generate(path.as_ref(), false)?;
        Ok(KeyFile::at(path.as_ref()))
    }
}

/// What a configuration was given.
#[derive(Clone)]
pub(crate) struct Keys(weir::Encryption);

impl Keys {
    pub(crate) fn of_file(file: &KeyFile) -> Keys {
        Keys(weir::Encryption::new(Arc::new(weir::KeyFile::at(&file.path))))
    }

    pub(crate) fn of_provider(provider: impl KeyProvider + 'static) -> Keys {
        Keys(weir::Encryption::new(Arc::new(Provider(provider))))
    }

    pub(crate) fn raw(&self) -> weir::Encryption {
        self.0.clone()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

struct Provider<P>(P);

impl<P: KeyProvider> weir::KeyProvider for Provider<P> {
    fn newest_version(&self, _id: u32) -> Result<u32, weir::KeyError> {
        self.0.newest_version().map_err(|e| weir::KeyError(e.0))
    }

    fn key(&self, name: weir::KeyName) -> Result<weir::MasterKey, weir::KeyError> {
        // Overwritten when it is dropped.
        let key = weir::KeyBytes::new(self.0.key(name.version).map_err(|e| weir::KeyError(e.0))?);
        weir::MasterKey::from_bytes(&key)
    }
}
