//! A file whose units are enciphered on their way out and deciphered on their way in.
use std::io;
use std::sync::Arc;

use weir_base::AlignedBuf;
use weir_device::{BlockFile, ReadOp, WriteOp};

use crate::hctr2::Hctr2;

/// Units of files whose writes may tear: what a disk writes as a whole.
pub(crate) const SECTOR_BYTES: usize = 512;

/// A file over one that holds noise.
pub(crate) struct CryptFile {
    pub(crate) below: Arc<dyn BlockFile>,
    pub(crate) cipher: Arc<Hctr2>,
    /// What stands for the file's name in each tweak.
    pub(crate) name_tag: u64,
    pub(crate) unit_bytes: usize,
}

impl CryptFile {
    fn tweak(&self, offset: u64) -> u128 {
        u128::from(self.name_tag) << 64 | u128::from(offset)
    }

    fn encrypt(&self, offset: u64, buf: &mut [u8]) {
        for (unit, at) in buf.chunks_mut(self.unit_bytes).zip((offset..).step_by(self.unit_bytes)) {
            self.cipher.encrypt(self.tweak(at), unit);
        }
    }

    /// A unit of zeros is one that was never written, and reads as zeros: no unit that was written
    /// has only zeros here, but for one in 2^4096.
    fn decrypt(&self, offset: u64, buf: &mut [u8]) {
        for (unit, at) in buf.chunks_mut(self.unit_bytes).zip((offset..).step_by(self.unit_bytes)) {
            if unit.iter().any(|&byte| byte != 0) {
                self.cipher.decrypt(self.tweak(at), unit);
            }
        }
    }

    fn has_whole_units(&self, offset: u64, len: usize) -> bool {
        let unit = self.unit_bytes as u64;
        offset.is_multiple_of(unit) && (len as u64).is_multiple_of(unit)
    }

    fn check_whole(&self, offset: u64, len: usize) -> io::Result<()> {
        if self.has_whole_units(offset, len) {
            return Ok(());
        }
        let unit = self.unit_bytes;
        let words = format!("an encrypted file is written by {unit} bytes, not {len} at {offset}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, words))
    }

    /// The same writes of what they encipher to, which is put into `all`.
    fn encrypt_all<'a>(
        &self,
        writes: &[WriteOp<'_>],
        all: &'a mut AlignedBuf,
    ) -> io::Result<Vec<WriteOp<'a>>> {
        *all = AlignedBuf::zeroed(writes.iter().map(|write| write.buf.len()).sum());
        let mut rest: &mut [u8] = all;
        let mut encrypted = Vec::with_capacity(writes.len());
        for write in writes {
            self.check_whole(write.offset, write.buf.len())?;
            let (buf, behind) = rest.split_at_mut(write.buf.len());
            rest = behind;
            buf.copy_from_slice(write.buf);
            self.encrypt(write.offset, buf);
            encrypted.push(WriteOp { offset: write.offset, buf });
        }
        Ok(encrypted)
    }

    /// Reads all units that have a part of it.
    fn read_parts(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let unit = self.unit_bytes as u64;
        let from = offset - offset % unit;
        let wanted = offset + buf.len() as u64;
        let to = wanted.next_multiple_of(unit).min(self.below.len().max(wanted));
        let mut whole = AlignedBuf::zeroed((to - from) as usize);
        self.below.read_at(from, &mut whole)?;
        let (units, odd) = whole.split_at_mut(whole_units(to - from, unit));
        self.decrypt(from, units);
        // Behind the last whole unit of the file nothing was ever written.
        debug_assert!(odd.len() < self.unit_bytes);
        let at = (offset - from) as usize;
        buf.copy_from_slice(&whole[at..at + buf.len()]);
        Ok(())
    }
}

fn whole_units(len: u64, unit: u64) -> usize {
    (len - len % unit) as usize
}

impl BlockFile for CryptFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if !self.has_whole_units(offset, buf.len()) {
            return self.read_parts(offset, buf);
        }
        self.below.read_at(offset, buf)?;
        self.decrypt(offset, buf);
        Ok(())
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.check_whole(offset, buf.len())?;
        self.below.write_at(offset, &self.encrypted(offset, buf))
    }

    fn write_cached_at(&self, offset: u64, buf: &[u8]) -> io::Result<bool> {
        self.check_whole(offset, buf.len())?;
        self.below.write_cached_at(offset, &self.encrypted(offset, buf))
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.check_whole(offset, buf.len())?;
        self.below.write_durable_at(offset, &self.encrypted(offset, buf))
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        if reads.iter().any(|read| !self.has_whole_units(read.offset, read.buf.len())) {
            for read in reads {
                self.read_at(read.offset, read.buf)?;
            }
            return Ok(());
        }
        self.below.read_many(reads)?;
        for read in reads {
            self.decrypt(read.offset, read.buf);
        }
        Ok(())
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        let mut all = AlignedBuf::zeroed(0);
        self.below.write_many(&self.encrypt_all(writes, &mut all)?)
    }

    fn has_atomic_writes(&self, len: usize) -> bool {
        self.has_whole_units(0, len) && self.below.has_atomic_writes(len)
    }

    fn write_many_atomically(&self, writes: &[WriteOp<'_>]) -> io::Result<bool> {
        let mut all = AlignedBuf::zeroed(0);
        self.below.write_many_atomically(&self.encrypt_all(writes, &mut all)?)
    }

    fn sync(&self) -> io::Result<()> {
        self.below.sync()
    }

    fn len(&self) -> u64 {
        self.below.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.below.grow(len)
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        self.below.shrink(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.below.punch(offset, len)
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.below.reserve(offset, len)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.below.allocated_bytes()
    }

    fn lock_alone(&self) -> io::Result<bool> {
        self.below.lock_alone()
    }
}

impl CryptFile {
    fn encrypted(&self, offset: u64, buf: &[u8]) -> AlignedBuf {
        let mut out = AlignedBuf::zeroed(buf.len());
        out.copy_from_slice(buf);
        self.encrypt(offset, &mut out);
        out
    }
}
