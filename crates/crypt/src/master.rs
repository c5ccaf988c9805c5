//! Master keys, and where they come from.
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::error::CryptError;

/// A key that wraps other keys: 256 bits. It is overwritten when it is dropped, and is shown by
/// nothing.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// Takes a key of 32 bytes as it is. Of 16 or 24 bytes, which key management for servers may
    /// have, a digest is taken: it is as hard to guess as they are.
    ///
    /// # Errors
    /// [`KeyError`] for another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<MasterKey, KeyError> {
        let mut key = Zeroizing::new([0; 32]);
        match bytes.len() {
            32 => key.copy_from_slice(bytes),
            16 | 24 => {
                let digest = Sha256::new().chain_update(b"weir master key").chain_update(bytes);
                key.copy_from_slice(&digest.finalize());
            }
            len => return Err(KeyError(format!("a key has 16, 24 or 32 bytes, not {len}"))),
        }
        Ok(MasterKey(key))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// Bytes of a key on their way, overwritten when they are dropped.
pub type KeyBytes = Zeroizing<Vec<u8>>;

/// Which key: its number, and its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyName {
    /// The key's number.
    pub id: u32,
    /// Its version: grows by each rotation.
    pub version: u32,
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}, version {}", self.id, self.version)
    }
}

/// Why a provider has no key, in words that do not hold it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct KeyError(pub String);

/// Where master keys come from: a file, a server's key management, a vault. It is asked when a
/// database is opened or made, when its key is rotated, and for each backup.
pub trait KeyProvider: Send + Sync {
    /// The newest version of the key `id`.
    ///
    /// # Errors
    /// [`KeyError`] when there is no such key, or none can be had now.
    fn newest_version(&self, id: u32) -> Result<u32, KeyError>;

    /// The key of that name. Older versions are needed for as long as a database or a backup names
    /// them.
    ///
    /// # Errors
    /// [`KeyError`] when there is no such key, or none can be had now.
    fn key(&self, name: KeyName) -> Result<MasterKey, KeyError>;
}

/// One key under every name: for tests and fuzz targets, which have no secrets.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct TestKey(pub [u8; 32]);

impl KeyProvider for TestKey {
    fn newest_version(&self, _id: u32) -> Result<u32, KeyError> {
        Ok(1)
    }

    fn key(&self, _name: KeyName) -> Result<MasterKey, KeyError> {
        MasterKey::from_bytes(&self.0)
    }
}

/// That a database is encrypted, and with which key.
#[derive(Clone)]
pub struct Encryption {
    /// Has the keys.
    pub provider: Arc<dyn KeyProvider>,
    /// The key that a new database, a rotation and a backup use.
    pub key_id: u32,
}

impl Encryption {
    /// With key 1 of this provider.
    #[must_use]
    pub fn new(provider: Arc<dyn KeyProvider>) -> Encryption {
        Encryption { provider, key_id: 1 }
    }

    /// The newest version of the key.
    pub(crate) fn newest(&self) -> Result<(KeyName, MasterKey), CryptError> {
        let id = self.key_id;
        let version = self.provider.newest_version(id).map_err(CryptError::NoNewKey)?;
        let name = KeyName { id, version };
        Ok((name, self.provider.key(name).map_err(CryptError::NoNewKey)?))
    }
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}
