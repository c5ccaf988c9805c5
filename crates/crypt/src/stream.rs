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
//!
//! One that was cut off is gone on with behind a piece that is whole, with another key: what stood
//! behind it, of which others may have copies, was sealed with nonces that must not be used again
//! (`docs/decisions/sealed-resume.md`). In the place of a piece stands a seam then:
//!
//! ```text
//! 0   ff ff ff ff   4 pieces before it u64   12 master key u32   16 its version u32   20 nonce
//! 32  the new key, wrapped, with its tag: 48 bytes   80 crc32c of these u32
//! ```
//! The tag that stands before it (of the last piece, or of a wrapped key where there is none) goes
//! with the wrapped key: a seam fits nowhere else. The numbers of pieces go on.
use std::io::{self, ErrorKind, Read, Write};

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use weir_base::checksum;
use zeroize::Zeroizing;

use crate::error::{CryptError, random};
use crate::master::{Encryption, KeyName};

/// The first bytes of a sealed stream.
pub const SEALED_MAGIC: [u8; 8] = *b"WEIRSEAL";
const FORMAT: u32 = 1;
const HEAD_BYTES: usize = 80;
/// Bytes of a piece, at most.
const PIECE_BYTES: usize = 64 << 10;
/// What stands where a piece has its length.
const SEAM: u32 = u32::MAX;
const SEAM_BYTES: usize = 84;
/// Of a head or a seam, where the wrapped key begins, and where its tag ends.
const WRAPPED_AT: usize = 32;
const WRAPPED_END: usize = 80;
const TAG_BYTES: usize = 16;
const BACKUP: &str = "the backup";

/// A place of a sealed stream behind which it can be gone on with, if it was cut off: bytes of the
/// plaintext are behind the last piece that stays.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedPlace {
    at: u64,
    pieces: u64,
    tag: [u8; TAG_BYTES],
    rest: Zeroizing<Vec<u8>>,
}

impl SealedPlace {
    /// Bytes of the stream that stay.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// All that is to be known of it. It holds plaintext: it is to be sealed where it is kept.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(PLACE_BYTES + self.rest.len()));
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.pieces.to_le_bytes());
        out.extend_from_slice(&self.tag);
        out.extend_from_slice(&self.rest);
        out
    }

    /// As [`SealedPlace::to_bytes`] made them. `None`: those are no such bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<SealedPlace> {
        let (head, rest) = bytes.split_at_checked(PLACE_BYTES)?;
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let tag = std::array::from_fn(|i| head[16 + i]);
        let rest = (rest.len() < PIECE_BYTES).then(|| Zeroizing::new(rest.to_vec()))?;
        Some(SealedPlace { at: long(0), pieces: long(8), tag, rest })
    }
}

const PLACE_BYTES: usize = 16 + TAG_BYTES;

impl std::fmt::Debug for SealedPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedPlace").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Seals what is written. What was written since the last flush may be missing when it is dropped.
/// When a write has failed, all that follow do, too.
pub struct SealedWriter<W> {
    out: W,
    gcm: Aes256Gcm,
    number: u64,
    piece: Zeroizing<Vec<u8>>,
    /// What is written before the first piece.
    head: Vec<u8>,
    has_failed: bool,
}

impl<W: Write> SealedWriter<W> {
    /// Begins a stream, sealed with the newest version of the key of `encryption`. Nothing is
    /// written before the first piece is.
    ///
    /// # Errors
    /// [`CryptError`].
    pub fn begin(out: W, encryption: &Encryption) -> Result<SealedWriter<W>, CryptError> {
        let mut head = SEALED_MAGIC.to_vec();
        head.extend_from_slice(&FORMAT.to_le_bytes());
        Self::with_new_key(out, encryption, head, None)
    }

    /// Goes on with a stream that was cut off: `out` gets what belongs behind [`SealedPlace::at`].
    /// No piece is sealed as one that the stream has had there before. Nothing is written before
    /// the first piece is.
    ///
    /// # Errors
    /// [`CryptError`].
    pub fn go_on(
        out: W,
        place: &SealedPlace,
        encryption: &Encryption,
    ) -> Result<SealedWriter<W>, CryptError> {
        let mut head = SEAM.to_le_bytes().to_vec();
        head.extend_from_slice(&place.pieces.to_le_bytes());
        let mut writer = Self::with_new_key(out, encryption, head, Some(&place.tag))?;
        let crc = checksum(&writer.head);
        writer.head.extend_from_slice(&crc.to_le_bytes());
        writer.number = place.pieces;
        writer.piece.extend_from_slice(&place.rest);
        Ok(writer)
    }

    /// `head`: what stands before the master key's name; `tag`: what the new key goes with besides.
    fn with_new_key(
        out: W,
        encryption: &Encryption,
        mut head: Vec<u8>,
        tag: Option<&[u8; TAG_BYTES]>,
    ) -> Result<SealedWriter<W>, CryptError> {
        let (name, master) = encryption.newest()?;
        let mut key = Zeroizing::new([0; 32]);
        random(&mut *key)?;
        head.extend_from_slice(&name.id.to_le_bytes());
        head.extend_from_slice(&name.version.to_le_bytes());
        let with = goes_with(&head, tag);
        let mut nonce = [0; 12];
        random(&mut nonce)?;
        head.extend_from_slice(&nonce);
        let mut wrapped = Zeroizing::new(*key);
        let sealed = Aes256Gcm::new(master.bytes().into()).encrypt_inout_detached(
            &nonce.into(),
            &with,
            wrapped.as_mut_slice().into(),
        );
        head.extend_from_slice(&*wrapped);
        head.extend_from_slice(&sealed.map_err(|_| CryptError::Damaged)?);
        let gcm = Aes256Gcm::new((&*key).into());
        let piece = Zeroizing::new(Vec::with_capacity(PIECE_BYTES));
        Ok(SealedWriter { out, gcm, number: 0, piece, head, has_failed: false })
    }

    fn put_piece(&mut self) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier part of the stream could not be written"));
        }
        // Until all is written: what is in the piece is not sealed a second time, by which it would
        // be plain, nor anything else under its number.
        self.has_failed = true;
        self.out.write_all(&self.head)?;
        self.head.clear();
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
        self.has_failed = false;
        Ok(())
    }
}

impl<W: Write> Write for SealedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_failed {
            self.put_piece()?;
        }
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
/// that was cut off; one that is not as it was sealed is an error (`InvalidData`). Where it was
/// gone on with under a key that cannot be had or is wrong, that is an error of another kind, which
/// says so.
pub struct SealedReader<R> {
    name: KeyName,
    input: R,
    encryption: Encryption,
    gcm: Aes256Gcm,
    /// Pieces read.
    number: u64,
    /// Where the present piece begins, and what stands behind it.
    piece_at: u64,
    at: u64,
    /// The tags before the present piece, and of it.
    tag_before: [u8; TAG_BYTES],
    tag: [u8; TAG_BYTES],
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
        let mut head = [0; WRAPPED_END];
        input.read_exact(&mut head).map_err(CryptError::Stream)?;
        let found = long(&head, 8);
        if found != FORMAT {
            return Err(CryptError::OtherSeal { found, reads: FORMAT });
        }
        let name = name_in(&head);
        let encryption = encryption.ok_or(CryptError::NoKeyGiven { what: BACKUP, name })?;
        let (gcm, tag) = open_key(&head, None, encryption)?;
        Ok(Self::of(input, encryption, (name, gcm, tag), (0, HEAD_BYTES as u64)))
    }

    /// Goes on at that place, with the bytes from there on, which are those of
    /// [`SealedWriter::go_on`] for it: what is handed out is what stands behind the place.
    ///
    /// # Errors
    /// As [`SealedReader::open`]; [`CryptError::Stream`] where it does not go on there.
    pub fn go_on(
        input: R,
        place: &SealedPlace,
        encryption: &Encryption,
    ) -> Result<SealedReader<R>, CryptError> {
        let name = KeyName { id: encryption.key_id, version: 0 };
        // There is no key yet: the seam has the first.
        let none = (name, Aes256Gcm::new(&[0; 32].into()), place.tag);
        let mut reader = Self::of(input, encryption, none, (place.pieces, place.at));
        let other = || io::Error::new(ErrorKind::InvalidData, "it does not go on where it ended");
        let mut length = [0; 4];
        let read = fill(&mut reader.input, &mut length).map_err(CryptError::Stream)?;
        if read < length.len() || u32::from_le_bytes(length) != SEAM {
            return Err(CryptError::Stream(other()));
        }
        if !reader.take_seam(length)? {
            return Err(CryptError::Stream(other()));
        }
        reader.take_piece().map_err(CryptError::Stream)?;
        if !reader.piece.starts_with(&place.rest) {
            return Err(CryptError::Stream(other()));
        }
        reader.taken = place.rest.len();
        Ok(reader)
    }

    fn of(
        input: R,
        encryption: &Encryption,
        (name, gcm, tag): (KeyName, Aes256Gcm, [u8; TAG_BYTES]),
        (number, at): (u64, u64),
    ) -> SealedReader<R> {
        SealedReader {
            name,
            input,
            encryption: encryption.clone(),
            gcm,
            number,
            piece_at: at,
            at,
            tag_before: tag,
            tag,
            piece: Zeroizing::new(Vec::new()),
            taken: 0,
            has_ended: false,
        }
    }

    /// The key that opens it, up to where it was gone on with.
    #[must_use]
    pub fn key_name(&self) -> KeyName {
        self.name
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> SealedPlace {
        let (at, pieces, tag, rest) = match self.taken == self.piece.len() {
            true => (self.at, self.number, self.tag, &[][..]),
            false => (self.piece_at, self.number - 1, self.tag_before, &self.piece[..self.taken]),
        };
        SealedPlace { at, pieces, tag, rest: Zeroizing::new(rest.to_vec()) }
    }

    fn take_piece(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        let mut read = fill(&mut self.input, &mut length)?;
        while read == length.len() && u32::from_le_bytes(length) == SEAM {
            match self.take_seam(length) {
                Ok(true) => {}
                Ok(false) => return self.torn(true),
                Err(CryptError::Stream(e)) if e.kind() == ErrorKind::InvalidData => {
                    return self.torn(false);
                }
                Err(CryptError::Stream(e)) => return Err(e),
                Err(e) => return Err(io::Error::other(e)),
            }
            read = fill(&mut self.input, &mut length)?;
        }
        let len = u32::from_le_bytes(length) as usize;
        if read == 0 {
            // Cut short: what reads it knows that something is missing.
            self.has_ended = true;
            return Ok(());
        }
        let mut tag = [0; TAG_BYTES];
        if read < length.len() || len > PIECE_BYTES {
            return self.torn(read < length.len());
        }
        let mut piece = Zeroizing::new(vec![0; len]);
        if fill(&mut self.input, &mut piece)? < len || fill(&mut self.input, &mut tag)? < TAG_BYTES
        {
            return self.torn(true);
        }
        let opened = self.gcm.decrypt_inout_detached(
            &nonce_of(self.number).into(),
            &length,
            piece.as_mut_slice().into(),
            &tag.into(),
        );
        if opened.is_err() {
            return self.torn(false);
        }
        (self.piece, self.taken) = (piece, 0);
        self.number += 1;
        self.piece_at = self.at;
        self.at += (length.len() + len + TAG_BYTES) as u64;
        self.tag_before = std::mem::replace(&mut self.tag, tag);
        Ok(())
    }

    /// Reads what is behind the first bytes of a seam, and has the key of what follows. `false`: it
    /// was cut off.
    fn take_seam(&mut self, first: [u8; 4]) -> Result<bool, CryptError> {
        let mut seam = [0; SEAM_BYTES];
        seam[..4].copy_from_slice(&first);
        let read = fill(&mut self.input, &mut seam[4..]).map_err(CryptError::Stream)?;
        if read < SEAM_BYTES - 4 {
            return Ok(false);
        }
        let pieces = u64::from_le_bytes(std::array::from_fn(|i| seam[4 + i]));
        if checksum(&seam[..WRAPPED_END]) != long(&seam, WRAPPED_END) || pieces != self.number {
            let words = "this is not how it was gone on with here";
            return Err(CryptError::Stream(io::Error::new(ErrorKind::InvalidData, words)));
        }
        let head = std::array::from_fn(|i| seam[i]);
        (self.gcm, self.tag) = open_key(&head, Some(&self.tag), &self.encryption)?;
        self.at += SEAM_BYTES as u64;
        Ok(true)
    }

    /// A piece that is not whole is handed out in no part. Where the stream ends in it, it ends.
    fn torn(&mut self, is_cut: bool) -> io::Result<()> {
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
        if bytes.is_empty() {
            return Ok(0);
        }
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

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// The master key that a head or a seam names.
fn name_in(head: &[u8; WRAPPED_END]) -> KeyName {
    KeyName { id: long(head, 12), version: long(head, 16) }
}

/// What is authenticated together with a wrapped key.
fn goes_with(front: &[u8], tag: Option<&[u8; TAG_BYTES]>) -> Vec<u8> {
    [front, tag.map_or(&[][..], |tag| tag)].concat()
}

/// The key that a head, or a seam behind `tag`, wraps; and its own tag.
fn open_key(
    head: &[u8; WRAPPED_END],
    tag: Option<&[u8; TAG_BYTES]>,
    encryption: &Encryption,
) -> Result<(Aes256Gcm, [u8; TAG_BYTES]), CryptError> {
    let (name, what) = (name_in(head), BACKUP);
    let master = encryption.provider.key(name);
    let master = master.map_err(|cause| CryptError::NoKey { what, name, cause })?;
    let mut key: Zeroizing<[u8; 32]> =
        Zeroizing::new(std::array::from_fn(|i| head[WRAPPED_AT + i]));
    let nonce: [u8; 12] = std::array::from_fn(|i| head[20 + i]);
    let own: [u8; TAG_BYTES] = std::array::from_fn(|i| head[WRAPPED_AT + 32 + i]);
    let opened = Aes256Gcm::new(master.bytes().into()).decrypt_inout_detached(
        &nonce.into(),
        &goes_with(&head[..20], tag),
        key.as_mut_slice().into(),
        &own.into(),
    );
    opened.map_err(|_| CryptError::WrongKey { what, name })?;
    Ok((Aes256Gcm::new((&*key).into()), own))
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
