//! A stream that is sealed: a backup, in pieces of AES-256-GCM under a key of the stream's own,
//! which a master key wraps.
//!
//! ```text
//! 0   "WEIRSEAL"   8 format u32   12 master key u32   16 its version u32   20 nonce
//! 32  the stream's key, wrapped, with its tag: 48 bytes   80 pieces:
//!
//! piece   0 bytes of the plaintext u32   4 ciphertext   .. tag, 16
//! ```
//! The nonce of a piece is its number, and its first four bytes go with it: pieces cannot be left
//! out or exchanged. Whether the last one is there what is sealed must say: a backup has an end of
//! its own. (After STREAM: Hoang, Reyhanitabar, Rogaway, Vizar 2015.)
use std::io::{self, ErrorKind, Read, Write};

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use zeroize::Zeroizing;

use crate::error::{CryptError, random};
use crate::master::{Encryption, KeyName, MasterKey};

/// The first bytes of a sealed stream.
pub const SEALED_MAGIC: [u8; 8] = *b"WEIRSEAL";
const FORMAT: u32 = 1;
const HEAD_BYTES: usize = 80;
/// Bytes of a piece, at most.
const PIECE_BYTES: usize = 64 << 10;
const TAG_BYTES: usize = 16;
const BACKUP: &str = "the backup";

/// Seals what is written. What was written since the last flush may be missing when it is dropped.
pub struct SealedWriter<W> {
    out: W,
    gcm: Aes256Gcm,
    number: u64,
    piece: Zeroizing<Vec<u8>>,
    head: Option<[u8; HEAD_BYTES]>,
}

impl<W: Write> SealedWriter<W> {
    /// Begins a stream, sealed with the newest version of the key of `encryption`. Nothing is
    /// written before the first piece is.
    ///
    /// # Errors
    /// [`CryptError`].
    pub fn begin(out: W, encryption: &Encryption) -> Result<SealedWriter<W>, CryptError> {
        let (name, master) = encryption.newest()?;
        let mut key = Zeroizing::new([0; 32]);
        random(&mut *key)?;
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&SEALED_MAGIC);
        head[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        head[12..16].copy_from_slice(&name.id.to_le_bytes());
        head[16..20].copy_from_slice(&name.version.to_le_bytes());
        random(&mut head[20..32])?;
        head[32..64].copy_from_slice(&*key);
        let (front, wrapped) = head.split_at_mut(32);
        let (wrapped, tag) = wrapped.split_at_mut(32);
        let nonce: [u8; 12] = std::array::from_fn(|i| front[20 + i]);
        let sealed = Aes256Gcm::new(master.bytes().into()).encrypt_inout_detached(
            &nonce.into(),
            &front[..20],
            (&mut *wrapped).into(),
        );
        tag.copy_from_slice(&sealed.map_err(|_| CryptError::Damaged)?);
        Ok(SealedWriter {
            out,
            gcm: Aes256Gcm::new((&*key).into()),
            number: 0,
            piece: Zeroizing::new(Vec::with_capacity(PIECE_BYTES)),
            head: Some(head),
        })
    }

    fn put_piece(&mut self) -> io::Result<()> {
        if let Some(head) = self.head.take() {
            self.out.write_all(&head)?;
        }
        let length = (self.piece.len() as u32).to_le_bytes();
        let sealed = self.gcm.encrypt_inout_detached(
            &nonce_of(self.number).into(),
            &length,
            self.piece.as_mut_slice().into(),
        );
        let tag = sealed.map_err(|_| io::Error::other("a piece cannot be sealed"))?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.piece)?;
        self.out.write_all(&tag)?;
        self.number += 1;
        self.piece.clear();
        Ok(())
    }
}

impl<W: Write> Write for SealedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE_BYTES {
            self.put_piece()?;
        }
        Ok(taken)
    }

    /// A piece ends here, so that a reader has all of it.
    fn flush(&mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            self.put_piece()?;
        }
        self.out.flush()
    }
}

/// Reads a sealed stream: what it hands out was sealed, in this order. It ends in front of a piece
/// that was cut off; one that is not as it was sealed is an error (`InvalidData`).
pub struct SealedReader<R> {
    name: KeyName,
    input: R,
    gcm: Aes256Gcm,
    number: u64,
    at: u64,
    piece: Zeroizing<Vec<u8>>,
    taken: usize,
    has_ended: bool,
}

impl<R: Read> SealedReader<R> {
    /// Reads the head of a stream, which begins with [`SEALED_MAGIC`].
    ///
    /// # Errors
    /// [`CryptError::NoKeyGiven`] without `encryption`, and others; an error of `input` is
    /// [`CryptError::Io`].
    pub fn open(
        mut input: R,
        encryption: Option<&Encryption>,
    ) -> Result<SealedReader<R>, CryptError> {
        let mut head = [0; HEAD_BYTES];
        input.read_exact(&mut head).map_err(CryptError::Stream)?;
        let long = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        if long(8) != FORMAT {
            return Err(CryptError::OtherSeal { found: long(8), reads: FORMAT });
        }
        let (name, what) = (KeyName { id: long(12), version: long(16) }, BACKUP);
        let encryption = encryption.ok_or(CryptError::NoKeyGiven { what, name })?;
        let master = encryption.provider.key(name);
        let master = master.map_err(|cause| CryptError::NoKey { what, name, cause })?;
        let key = unwrap_key(&head, &master).ok_or(CryptError::WrongKey { what, name })?;
        Ok(SealedReader {
            name,
            input,
            gcm: Aes256Gcm::new((&*key).into()),
            number: 0,
            at: HEAD_BYTES as u64,
            piece: Zeroizing::new(Vec::new()),
            taken: 0,
            has_ended: false,
        })
    }

    /// The key that opens it.
    #[must_use]
    pub fn key_name(&self) -> KeyName {
        self.name
    }

    fn take_piece(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        let read = fill(&mut self.input, &mut length)?;
        let len = u32::from_le_bytes(length) as usize;
        if read == 0 {
            // Cut short: what reads it knows that something is missing.
            self.has_ended = true;
            return Ok(());
        }
        let mut tag = [0; TAG_BYTES];
        self.piece.clear();
        self.taken = 0;
        if read < length.len() || len > PIECE_BYTES {
            return self.torn(read < length.len());
        }
        self.piece.resize(len, 0);
        if fill(&mut self.input, &mut self.piece)? < len
            || fill(&mut self.input, &mut tag)? < TAG_BYTES
        {
            return self.torn(true);
        }
        let opened = self.gcm.decrypt_inout_detached(
            &nonce_of(self.number).into(),
            &length,
            self.piece.as_mut_slice().into(),
            &tag.into(),
        );
        if opened.is_err() {
            return self.torn(false);
        }
        self.number += 1;
        self.at += (length.len() + len + TAG_BYTES) as u64;
        Ok(())
    }

    /// A piece that is not whole is handed out in no part. Where the stream ends in it, it ends.
    fn torn(&mut self, is_cut: bool) -> io::Result<()> {
        self.piece.clear();
        self.has_ended = true;
        if is_cut {
            return Ok(());
        }
        let words = format!("the sealed piece at byte {} is not as it was written", self.at);
        Err(io::Error::new(ErrorKind::InvalidData, words))
    }
}

impl<R: Read> Read for SealedReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.piece.len() && !self.has_ended {
            self.take_piece()?;
        }
        let rest = &self.piece[self.taken..];
        let len = rest.len().min(bytes.len());
        bytes[..len].copy_from_slice(&rest[..len]);
        self.taken += len;
        Ok(len)
    }
}

fn unwrap_key(head: &[u8; HEAD_BYTES], master: &MasterKey) -> Option<Zeroizing<[u8; 32]>> {
    let mut key: Zeroizing<[u8; 32]> = Zeroizing::new(std::array::from_fn(|i| head[32 + i]));
    let nonce: [u8; 12] = std::array::from_fn(|i| head[20 + i]);
    let tag: [u8; TAG_BYTES] = std::array::from_fn(|i| head[64 + i]);
    Aes256Gcm::new(master.bytes().into())
        .decrypt_inout_detached(&nonce.into(), &head[..20], key.as_mut_slice().into(), &tag.into())
        .ok()?;
    Some(key)
}

fn nonce_of(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

/// Reads until `bytes` is full or the stream ends. Returns how much was read.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
