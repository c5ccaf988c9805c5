//! The log buffer: a ring of bytes laid out exactly as on disk, which many threads fill at
//! disjoint places while one empties it. The only file of this crate with `unsafe`.
//!
//! Which thread may touch which bytes follows from three rules that [`crate::Log`] keeps: a place
//! is written only by the thread that claimed it (REDO-2), only after the previous bytes at the
//! same ring position were given back (REDO-3), and read only below the published point or in the
//! page of the last write, which is not given back (REDO-4).
use crate::position::{BLOCK, BLOCK_HEADER, is_place};
use weir_base::{AlignedBuf, Lsn};

pub(crate) struct Ring {
    /// Owns the memory; touched only through `start`.
    _memory: AlignedBuf,
    start: *mut u8,
    len: u64,
}

// SAFETY: the memory is owned by the ring, and the rules above (kept by `Log`, checked by the loom
// model of `claims`) exclude two threads from touching one byte without a happens-before edge.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of `len` bytes, a power of two of at least one block.
    pub(crate) fn new(len: u64) -> Ring {
        assert!(len.is_power_of_two() && len >= BLOCK, "ring offsets are taken by masking");
        let mut memory = AlignedBuf::zeroed(len as usize);
        let start = memory.as_mut_ptr();
        Ring { _memory: memory, start, len }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Copies `bytes` to the payload places from `at` on, around the block headers; gives the place
    /// behind them. The caller has claimed these places and they are free (REDO-2, REDO-3).
    #[inline]
    pub(crate) fn fill(&self, at: Lsn, mut bytes: &[u8]) -> Lsn {
        assert!(is_place(at) && (bytes.len() as u64) < self.len);
        let mut place = at.0;
        while !bytes.is_empty() {
            let room = (BLOCK - place % BLOCK) as usize;
            let now = room.min(bytes.len());
            let offset = (place & (self.len - 1)) as usize;
            // SAFETY: offset + now stays inside one block, so inside the ring (its length is a
            // multiple of a block); the caller alone may write these places (REDO-2, REDO-3), and
            // `bytes` cannot overlap them because no other thread has a reference into the ring.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), now) };
            bytes = &bytes[now..];
            place += now as u64;
            if place.is_multiple_of(BLOCK) {
                place += BLOCK_HEADER;
            }
        }
        Lsn(place)
    }

    /// Copies the disk positions from `at` on out of the ring, headers included as they are. The
    /// caller is the only reader, and all of them are published and not given back (REDO-4).
    pub(crate) fn copy_out(&self, at: u64, out: &mut [u8]) {
        assert!(out.len() as u64 <= self.len);
        let offset = (at & (self.len - 1)) as usize;
        let first = out.len().min(self.len as usize - offset);
        let (head, rest) = out.split_at_mut(first);
        // SAFETY: both ranges lie inside the ring; published bytes are no longer written, header
        // bytes never are after `new`, and `out` is a thread's own memory (REDO-4).
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.add(offset), head.as_mut_ptr(), head.len());
            std::ptr::copy_nonoverlapping(self.start, rest.as_mut_ptr(), rest.len());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::position::{lsn_of, sn_of};

    #[test]
    fn payload_goes_around_headers_and_around_the_end() {
        let ring = Ring::new(2048);
        let body: Vec<u8> = (0..1700).map(|i| (i % 251) as u8).collect();
        let start = lsn_of(1900);
        let end = ring.fill(start, &body);
        assert_eq!(end, lsn_of(1900 + 1700));
        let mut disk = vec![0xee; (end.0 - start.0) as usize];
        ring.copy_out(start.0, &mut disk);
        for (i, &byte) in body.iter().enumerate() {
            let place = lsn_of(sn_of(start) + i as u64);
            assert_eq!(disk[(place.0 - start.0) as usize], byte);
        }
        let mut header = [1; 12];
        ring.copy_out(2048, &mut header);
        assert_eq!(header, [0; 12], "headers are never filled in the ring");
    }
}
