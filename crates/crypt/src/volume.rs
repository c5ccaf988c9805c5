//! A volume all of whose files are encrypted, but for those that processes talk through.
use std::io;
use std::sync::Arc;

use weir_base::lock::Mutex;
use weir_base::{checksum, rank};
use weir_device::{BlockFile, IoStats, PipeEnd, Volume};
use zeroize::Zeroizing;

use crate::error::{CryptError, random};
use crate::file::{CryptFile, SECTOR_BYTES};
use crate::hctr2::Hctr2;
use crate::key_block::{DataKey, KEYS_FILE, KeyBlock, KeysFile};
use crate::master::{Encryption, KeyName};

/// What lies in a volume, enciphered under a key that is there, wrapped, in the file `keys`.
pub struct CryptVolume {
    below: Arc<dyn Volume>,
    cipher: Arc<Hctr2>,
    key: DataKey,
    encryption: Encryption,
    /// Enciphered by `page_bytes` at a time, which lie at multiples of that.
    pages_file: &'static str,
    is_plain: fn(&str) -> bool,
    page_bytes: usize,
    keys: Mutex<rank::WrappedKey, (KeysFile, KeyBlock)>,
}

/// Which of a volume's files are treated in another way.
#[derive(Clone, Copy)]
pub struct Files {
    /// The file that has pages in place, each written as a whole: the cipher takes it page by page.
    pub pages: &'static str,
    /// Whether a file is left as it is: other processes read and write it.
    pub is_plain: fn(&str) -> bool,
}

impl CryptVolume {
    /// Whether what lies in a volume is encrypted.
    ///
    /// # Errors
    /// What the device reports.
    pub fn is_one(volume: &dyn Volume) -> io::Result<bool> {
        volume.exists(KEYS_FILE)
    }

    /// Begins an encrypted volume where none is: with a new key, which is there, durably, when this
    /// returns. `page_bytes`: what the file of pages in place is written by.
    ///
    /// # Errors
    /// [`CryptError`].
    pub fn create(
        below: Arc<dyn Volume>,
        files: Files,
        page_bytes: u32,
        encryption: &Encryption,
    ) -> Result<CryptVolume, CryptError> {
        let mut key: DataKey = Zeroizing::new([0; 32]);
        random(&mut *key)?;
        let (name, master) = encryption.newest()?;
        let block = KeyBlock::wrap(&key, 1, page_bytes, (name, &master))?;
        let file = KeysFile::create(&*below, &block)?;
        Ok(Self::over(below, files, encryption, key, (file, block)))
    }

    /// Opens an encrypted volume. `None` of `encryption` is an error that says which key is needed.
    ///
    /// # Errors
    /// [`CryptError`].
    pub fn open(
        below: Arc<dyn Volume>,
        files: Files,
        encryption: Option<&Encryption>,
    ) -> Result<CryptVolume, CryptError> {
        let (file, block) = KeysFile::open(&*below)?;
        let (name, what) = (block.name, "the database");
        let encryption = encryption.ok_or(CryptError::NoKeyGiven { what, name })?;
        let key = encryption.provider.key(name);
        let key = key.map_err(|cause| CryptError::NoKey { what, name, cause })?;
        let key = block.unwrap(&key)?;
        Ok(Self::over(below, files, encryption, key, (file, block)))
    }

    fn over(
        below: Arc<dyn Volume>,
        files: Files,
        encryption: &Encryption,
        key: DataKey,
        keys: (KeysFile, KeyBlock),
    ) -> CryptVolume {
        CryptVolume {
            below,
            cipher: Arc::new(Hctr2::new(&key)),
            key,
            encryption: encryption.clone(),
            pages_file: files.pages,
            is_plain: files.is_plain,
            page_bytes: keys.1.page_bytes as usize,
            keys: Mutex::new(keys),
        }
    }

    /// The master key that opens it.
    #[must_use]
    pub fn key_name(&self) -> KeyName {
        self.keys.lock().1.name
    }

    /// Where its master keys come from.
    #[must_use]
    pub fn encryption(&self) -> &Encryption {
        &self.encryption
    }

    /// Wraps the key by the newest version of the master key, so that older ones open the volume no
    /// more, while it is at work. Returns the key that opens it now.
    ///
    /// # Errors
    /// [`CryptError`]; the volume is opened by the key of before then, or, when writing failed, by
    /// one of both.
    pub fn rotate(&self) -> Result<KeyName, CryptError> {
        let mut keys = self.keys.lock();
        let (name, master) = self.encryption.newest()?;
        if name == keys.1.name {
            return Ok(name);
        }
        let (sequence, page_bytes) = (keys.1.sequence + 1, keys.1.page_bytes);
        let block = KeyBlock::wrap(&self.key, sequence, page_bytes, (name, &master))?;
        // One after the other: a write that tears leaves the other.
        keys.0.write(0, &block)?;
        keys.0.write(1, &block)?;
        keys.1 = block;
        Ok(name)
    }

    fn wrap(&self, name: &str, below: Arc<dyn BlockFile>) -> Arc<dyn BlockFile> {
        if (self.is_plain)(name) {
            return below;
        }
        let is_pages = name == self.pages_file;
        Arc::new(CryptFile {
            below,
            cipher: self.cipher.clone(),
            name_tag: u64::from(checksum(name.as_bytes())),
            unit_bytes: if is_pages { self.page_bytes } else { SECTOR_BYTES },
        })
    }

    /// The file of keys is none of those that lie in the volume.
    fn check_name(name: &str) -> io::Result<()> {
        if name == KEYS_FILE {
            let words = format!("'{KEYS_FILE}' is the encrypted volume's own");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        Ok(())
    }
}

impl Volume for CryptVolume {
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        Self::check_name(name)?;
        Ok(self.wrap(name, self.below.open(name)?))
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        Self::check_name(name)?;
        Ok(self.wrap(name, self.below.create(name, len)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Self::check_name(name)?;
        self.below.remove(name)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(name != KEYS_FILE && self.below.exists(name)?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.below.list()?;
        names.retain(|name| name != KEYS_FILE);
        Ok(names)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.below.sync_directory()
    }

    fn is_synced_with(&self, device: u64) -> bool {
        self.below.is_synced_with(device)
    }

    fn close(&self) {
        self.below.close();
    }

    fn open_pipe(&self, name: &str) -> io::Result<PipeEnd> {
        self.below.open_pipe(name)
    }

    fn describe(&self) -> String {
        format!("encrypted (AES-256-HCTR2, {}), over {}", self.key_name(), self.below.describe())
    }

    fn io_stats(&self) -> IoStats {
        self.below.io_stats()
    }
}
