//! Hints kept in files: bytes that are taken for what they say only if they were written whole, by
//! this version, for this database.
use std::sync::Arc;

use weir_base::{AlignedBuf, DbId, align_up, checksum};
use weir_device::{BlockFile, Volume};

/// A checksum in 8 bytes, and as words: magic, database, length of what follows.
pub(crate) const HEAD_BYTES: usize = 32;

/// A kind of hint.
pub(crate) struct Sealed {
    pub(crate) magic: u64,
    /// A longer one there cannot be.
    pub(crate) bytes_max: usize,
}

impl Sealed {
    /// Bytes of the file that are read and written for a hint of so many.
    pub(crate) fn file_bytes(hint_bytes: usize) -> usize {
        align_up((HEAD_BYTES + hint_bytes) as u64) as usize
    }

    /// A hint as the file has it.
    pub(crate) fn seal(&self, hint: &[u8], db: DbId) -> AlignedBuf {
        let mut bytes = AlignedBuf::zeroed(Sealed::file_bytes(hint.len()));
        let words = [self.magic, db.0, hint.len() as u64];
        for (word, to) in words.iter().zip(bytes[8..HEAD_BYTES].chunks_exact_mut(8)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let end = HEAD_BYTES + hint.len();
        bytes[HEAD_BYTES..end].copy_from_slice(hint);
        let crc = checksum(&bytes[8..end]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// How long the hint is of which a file's bytes begin like these; `None` when it is not of this
    /// kind and database or longer than one can be.
    pub(crate) fn hint_bytes(&self, head: &[u8], db: DbId) -> Option<usize> {
        let word = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
        if word(8)? != self.magic || word(16)? != db.0 {
            return None;
        }
        usize::try_from(word(24)?).ok().filter(|&len| len <= self.bytes_max)
    }

    /// The hint in a file's bytes, if they were written whole.
    pub(crate) fn unseal<'b>(&self, bytes: &'b [u8], db: DbId) -> Option<&'b [u8]> {
        let end = HEAD_BYTES + self.hint_bytes(bytes, db)?;
        let crc = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        (checksum(bytes.get(8..end)?) == crc).then(|| &bytes[HEAD_BYTES..end])
    }
}

/// A file for hints, with room for so many bytes.
pub(crate) fn hint_file(
    volume: &dyn Volume,
    name: &str,
    bytes: u64,
) -> std::io::Result<Arc<dyn BlockFile>> {
    if !volume.exists(name)? {
        let file = volume.create(name, bytes)?;
        let _ = volume.sync_directory();
        return Ok(file);
    }
    let file = volume.open(name)?;
    if file.len() < bytes {
        file.grow(bytes)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: DbId = DbId(77);
    const KIND: Sealed = Sealed { magic: 0x1234_5678_9abc, bytes_max: 8 << 20 };

    #[test]
    fn only_what_was_written_whole_and_here_is_read() {
        let hint: Vec<u8> = (0..9_000u32).map(|n| n as u8).collect();
        let whole = KIND.seal(&hint, DB);
        assert_eq!((whole.len(), KIND.unseal(&whole, DB)), (12_288, Some(&hint[..])));
        assert_eq!(KIND.unseal(&KIND.seal(&[], DB), DB), Some(&[][..]));
        assert_eq!(KIND.unseal(&whole, DbId(78)), None, "another database's");
        let other_kind = Sealed { magic: 1, ..KIND };
        assert_eq!(other_kind.unseal(&whole, DB), None, "another kind");
        for at in [0, 3, 8, 15, 16, 24, 25, 31, 32, 4_095, 4_096, 9_031] {
            let mut other = whole.to_vec();
            other[at] ^= 0x40;
            assert_eq!(KIND.unseal(&other, DB), None, "byte {at}");
        }
        // Behind it nothing is looked at: a longer one was there before.
        let mut other = whole.to_vec();
        other[9_032] ^= 1;
        assert_eq!(KIND.unseal(&other, DB), Some(&hint[..]));
        for len in [0, 4, 8, 31, 32, 4_096, 9_031] {
            assert_eq!(KIND.unseal(&whole[..len], DB), None, "cut to {len}");
        }
        for len in [KIND.bytes_max as u64 + 1, 1 << 40, u64::MAX] {
            let mut huge = whole.to_vec();
            huge[24..32].copy_from_slice(&len.to_le_bytes());
            assert_eq!(KIND.hint_bytes(&huge, DB), None, "{len} bytes");
        }
    }
}
