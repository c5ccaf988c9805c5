//! The file `keys`: the key that enciphers all other files, wrapped by a master key. Two copies
//! that are written in turn, each in a sector of its own.
//!
//! ```text
//! 0   "WEIRKEYS"   8 format u32   12 crc32c of bytes 16..256   16 sequence number u64
//! 24  master key u32   28 its version u32   32 bytes that `pages` is enciphered by u32
//! 36  zeros   48 nonce   60 zeros   64 the wrapped key, with its tag: 48 bytes   112 zeros, to 256
//! ```
//! It is wrapped by AES-256-GCM (NIST SP 800-38D) with a random nonce, and bytes 0..12 and 16..48
//! as what goes with it.
use std::sync::Arc;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use weir_base::{ALIGN, AlignedBuf, checksum};
use weir_device::{BlockFile, Volume};
use zeroize::Zeroizing;

use crate::error::{CryptError, random};
use crate::master::{KeyName, MasterKey};

/// The file's name.
pub const KEYS_FILE: &str = "keys";
/// The format that this version writes, and the only one that it reads.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: &[u8; 8] = b"WEIRKEYS";
const COPY_BYTES: usize = 256;
const NONCE: std::ops::Range<usize> = 48..60;
const WRAPPED: std::ops::Range<usize> = 64..96;
const TAG: std::ops::Range<usize> = 96..112;
const DATABASE: &str = "the database";

/// The key that enciphers files.
pub(crate) type DataKey = Zeroizing<[u8; 32]>;

/// A copy, still wrapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyBlock {
    pub(crate) sequence: u64,
    pub(crate) name: KeyName,
    /// Bytes that the file of pages in place is enciphered by.
    pub(crate) page_bytes: u32,
    nonce: [u8; 12],
    wrapped: [u8; 32],
    tag: [u8; 16],
}

impl KeyBlock {
    pub(crate) fn wrap(
        key: &DataKey,
        sequence: u64,
        page_bytes: u32,
        (name, master): (KeyName, &MasterKey),
    ) -> Result<KeyBlock, CryptError> {
        let mut nonce = [0; 12];
        random(&mut nonce)?;
        let mut block =
            KeyBlock { sequence, name, page_bytes, nonce, wrapped: **key, tag: [0; 16] };
        let associated = block.associated();
        let gcm = Aes256Gcm::new(master.bytes().into());
        let tag = gcm
            .encrypt_inout_detached(&nonce.into(), &associated, block.wrapped.as_mut_slice().into())
            .map_err(|_| CryptError::Damaged)?;
        block.tag = tag.into();
        Ok(block)
    }

    pub(crate) fn unwrap(&self, master: &MasterKey) -> Result<DataKey, CryptError> {
        let mut key = Zeroizing::new(self.wrapped);
        let gcm = Aes256Gcm::new(master.bytes().into());
        let opened = gcm.decrypt_inout_detached(
            &self.nonce.into(),
            &self.associated(),
            key.as_mut_slice().into(),
            &self.tag.into(),
        );
        // The checksum was right: these are the bytes that were written.
        opened.map_err(|_| CryptError::WrongKey { what: DATABASE, name: self.name })?;
        Ok(key)
    }

    fn associated(&self) -> [u8; 44] {
        let whole = self.encode();
        std::array::from_fn(|i| if i < 12 { whole[i] } else { whole[i + 4] })
    }

    fn encode(&self) -> [u8; COPY_BYTES] {
        let mut out = [0; COPY_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..28].copy_from_slice(&self.name.id.to_le_bytes());
        out[28..32].copy_from_slice(&self.name.version.to_le_bytes());
        out[32..36].copy_from_slice(&self.page_bytes.to_le_bytes());
        out[NONCE].copy_from_slice(&self.nonce);
        out[WRAPPED].copy_from_slice(&self.wrapped);
        out[TAG].copy_from_slice(&self.tag);
        let crc = checksum(&out[16..]);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None`: it is not whole.
    fn decode(bytes: &[u8]) -> Result<Option<KeyBlock>, CryptError> {
        let long = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..8] != *MAGIC {
            return Ok(None);
        }
        if long(8) != FORMAT {
            return Err(CryptError::OtherFormat { found: long(8) });
        }
        let page_bytes = long(32);
        if long(12) != checksum(&bytes[16..COPY_BYTES])
            || ![4096, 8192, 16384].contains(&page_bytes)
        {
            return Ok(None);
        }
        Ok(Some(KeyBlock {
            sequence: u64::from_le_bytes(std::array::from_fn(|i| bytes[16 + i])),
            name: KeyName { id: long(24), version: long(28) },
            page_bytes,
            nonce: std::array::from_fn(|i| bytes[NONCE.start + i]),
            wrapped: std::array::from_fn(|i| bytes[WRAPPED.start + i]),
            tag: std::array::from_fn(|i| bytes[TAG.start + i]),
        }))
    }
}

/// The file.
pub(crate) struct KeysFile {
    file: Arc<dyn BlockFile>,
}

impl KeysFile {
    /// Makes it, durably.
    pub(crate) fn create(volume: &dyn Volume, block: &KeyBlock) -> Result<KeysFile, CryptError> {
        let failed = CryptError::io("making");
        let file = volume.create(KEYS_FILE, 2 * ALIGN as u64).map_err(&failed)?;
        let file = KeysFile { file };
        file.write(0, block)?;
        file.write(1, block)?;
        volume.sync_directory().map_err(&failed)?;
        Ok(file)
    }

    /// The newest copy that is whole.
    pub(crate) fn open(volume: &dyn Volume) -> Result<(KeysFile, KeyBlock), CryptError> {
        let failed = CryptError::io("reading");
        let file = KeysFile { file: volume.open(KEYS_FILE).map_err(&failed)? };
        let (mut newest, mut other) = (None, None);
        for copy in 0..2 {
            let mut buf = AlignedBuf::zeroed(ALIGN);
            if (copy + 1) * ALIGN as u64 > file.file.len() {
                continue;
            }
            file.file.read_at(copy * ALIGN as u64, &mut buf).map_err(&failed)?;
            match KeyBlock::decode(&buf) {
                Ok(Some(block)) if newest.is_none_or(|n: KeyBlock| n.sequence < block.sequence) => {
                    newest = Some(block);
                }
                Ok(_) => {}
                Err(e) => other = Some(e),
            }
        }
        match (newest, other) {
            (Some(block), _) => Ok((file, block)),
            (None, Some(e)) => Err(e),
            (None, None) => Err(CryptError::Damaged),
        }
    }

    /// Writes a copy durably: 0 or 1.
    pub(crate) fn write(&self, copy: u64, block: &KeyBlock) -> Result<(), CryptError> {
        let mut buf = AlignedBuf::zeroed(ALIGN);
        buf[..COPY_BYTES].copy_from_slice(&block.encode());
        self.file.write_durable_at(copy * ALIGN as u64, &buf).map_err(CryptError::io("writing"))
    }
}
