//! Keys of encrypted databases, asked for through functions of the embedder's.
use std::ffi::c_void;
use std::sync::Arc;

use weir::{Encryption, KeyBytes, KeyError, KeyName, KeyProvider, MasterKey};

use crate::outcome::{Failure, wrong};

/// The longest key, in bytes.
const KEY_BYTES_MAX: usize = 32;

/// Where the keys of an encrypted database come from. The functions are called from any thread,
/// when the database is opened, twice a minute for a newer version, and for each backup, until it
/// is closed; they must not call the engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_key_provider {
    /// What the functions are given.
    pub context: *mut c_void,
    /// Writes the newest version of the key to `version`. 0: done; anything else: there is none.
    pub newest_version:
        Option<unsafe extern "C" fn(context: *mut c_void, key_id: u32, version: *mut u32) -> i32>,
    /// Writes the key of that version to `key`, where there is room for `*key_bytes` (32), and its
    /// length to `key_bytes`: 16, 24 or 32. 0: done; anything else: there is none.
    pub key: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            key_id: u32,
            version: u32,
            key: *mut u8,
            key_bytes: *mut usize,
        ) -> i32,
    >,
}

/// A provider whose functions are there.
struct Provider {
    context: *mut c_void,
    newest_version: unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> i32,
    key: unsafe extern "C" fn(*mut c_void, u32, u32, *mut u8, *mut usize) -> i32,
}

// SAFETY: the embedder promises that any thread may call the functions with the context.
unsafe impl Send for Provider {}
// SAFETY: the same.
unsafe impl Sync for Provider {}

impl KeyProvider for Provider {
    fn newest_version(&self, id: u32) -> Result<u32, KeyError> {
        let mut version = 0;
        // SAFETY: the embedder's function, as `weir_key_provider` describes it; `version` lives.
        match unsafe { (self.newest_version)(self.context, id, &raw mut version) } {
            0 => Ok(version),
            _ => Err(KeyError(format!("the key management has no key {id}"))),
        }
    }

    fn key(&self, name: KeyName) -> Result<MasterKey, KeyError> {
        let (mut key, mut len) = (KeyBytes::new(vec![0; KEY_BYTES_MAX]), KEY_BYTES_MAX);
        let (id, version) = (name.id, name.version);
        // SAFETY: the embedder's function, as `weir_key_provider` describes it; there is room for
        // as much as is said.
        let done = unsafe { (self.key)(self.context, id, version, key.as_mut_ptr(), &raw mut len) };
        match done {
            0 if len <= KEY_BYTES_MAX => MasterKey::from_bytes(&key[..len]),
            _ => Err(KeyError(format!("the key management does not have {name}"))),
        }
    }
}

/// `None` where there is no provider.
pub(crate) fn encryption(
    keys: Option<&weir_key_provider>,
    key_id: u32,
) -> Result<Option<Encryption>, Failure> {
    let Some(keys) = keys else { return Ok(None) };
    let (Some(newest_version), Some(key)) = (keys.newest_version, keys.key) else {
        return Err(wrong("a weir_key_provider lacks a function"));
    };
    let provider = Arc::new(Provider { context: keys.context, newest_version, key });
    let key_id = if key_id == 0 { 1 } else { key_id };
    Ok(Some(Encryption { provider, key_id }))
}
