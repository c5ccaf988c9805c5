//! Reading: one page, or many with few reads of the device.

use weir_base::{AlignedBuf, Lsn, PageNo, align_down, align_up};
use weir_device::ReadOp;

use crate::core::SEGMENTS_FILE;
use crate::error::StoreError;
use crate::format::{BLOCK_HEAD, BlockHead, Kind};
use crate::ids::{Place, UNIT};
use crate::store::LogStore;

/// What lies so near each other is read as one: pages that were written together lie so.
const GAP_MAX: u64 = 16 << 10;
/// Bytes of one read, at most.
const READ_MAX: u64 = 256 << 10;

/// A page to read, and where to.
pub struct PageRead<'a> {
    /// Which page.
    pub page: PageNo,
    /// Page-sized.
    pub buf: &'a mut [u8],
    /// Its LSN, or why it could not be read; of a page that was not read yet,
    /// [`StoreError::Absent`].
    pub outcome: Result<Lsn, StoreError>,
}

/// A stretch of the file that is read as one, and which of the pages lie in it.
struct Stretch {
    begin: u64,
    end: u64,
    pages: Vec<(usize, Place)>,
}

/// Stretches that have all the places, in the order of the file.
fn stretches(mut places: Vec<(usize, Place)>) -> Vec<Stretch> {
    places.sort_unstable_by_key(|(_, place)| place.position());
    let mut stretches: Vec<Stretch> = Vec::new();
    for (i, place) in places {
        let begin = align_down(place.offset());
        let end = align_up(place.offset() + place.bytes() as u64);
        match stretches.last_mut() {
            Some(last) if begin <= last.end + GAP_MAX && end - last.begin <= READ_MAX => {
                last.end = last.end.max(end);
                last.pages.push((i, place));
            }
            _ => stretches.push(Stretch { begin, end, pages: vec![(i, place)] }),
        }
    }
    stretches
}

impl LogStore {
    /// Reads one page into `buf` and returns its LSN.
    ///
    /// # Errors
    /// [`StoreError::NoSuchPage`], [`StoreError::Absent`], [`StoreError::Damaged`],
    /// [`StoreError::Device`].
    ///
    /// # Panics
    /// When `buf` is not a page long.
    pub fn read(&self, page: PageNo, buf: &mut [u8]) -> Result<Lsn, StoreError> {
        let mut place = self.place_of(page)?;
        loop {
            let read = self.core.read_around(place.offset(), place.bytes());
            let outcome = read.and_then(|(bytes, at)| {
                self.unpack(page, place, &bytes[at..at + place.bytes()], buf)
            });
            let now = self.place_of(page)?;
            // The segment may have been cleaned and used again while it was read.
            if outcome.is_ok() || now == place {
                return outcome;
            }
            self.core.stats.rereads.add(1);
            place = now;
        }
    }

    /// Reads many pages with a deep queue, neighbours with one read; each has its own outcome.
    pub fn read_many(&self, reads: &mut [PageRead<'_>]) {
        let place = |(i, read): (usize, &PageRead<'_>)| Some((i, self.place_of(read.page).ok()?));
        let stretches = stretches(reads.iter().enumerate().filter_map(place).collect());
        let mut bufs: Vec<AlignedBuf> =
            stretches.iter().map(|s| AlignedBuf::zeroed((s.end - s.begin) as usize)).collect();
        let op = |(s, buf): (&Stretch, _)| ReadOp { offset: s.begin, buf };
        let mut ops: Vec<ReadOp<'_>> =
            stretches.iter().zip(bufs.iter_mut().map(|buf| &mut buf[..])).map(op).collect();
        let is_read = self.core.file.read_many(&mut ops).is_ok();
        drop(ops);
        let mut is_done = vec![false; reads.len()];
        for (stretch, bytes) in stretches.iter().zip(&bufs).filter(|_| is_read) {
            for (i, place) in &stretch.pages {
                let read = &mut reads[*i];
                let block = &bytes[(place.offset() - stretch.begin) as usize..][..place.bytes()];
                read.outcome = self.unpack(read.page, *place, block, read.buf);
                is_done[*i] = read.outcome.is_ok();
            }
        }
        // What was not there, moved meanwhile, or failed.
        for (read, _) in reads.iter_mut().zip(is_done).filter(|(_, is_done)| !is_done) {
            read.outcome = self.read(read.page, read.buf);
        }
    }

    pub(crate) fn place_of(&self, page: PageNo) -> Result<Place, StoreError> {
        if page.0 >= self.pages() {
            return Err(StoreError::NoSuchPage(page));
        }
        let place = self.core.map.get(page);
        if place.is_none() { Err(StoreError::Absent(page)) } else { Ok(place) }
    }

    fn unpack(
        &self,
        page: PageNo,
        place: Place,
        block: &[u8],
        buf: &mut [u8],
    ) -> Result<Lsn, StoreError> {
        assert_eq!(buf.len(), self.core.page_bytes, "a page's buffer");
        let damaged = |cause| StoreError::Damaged {
            what: format!("page {page}"),
            file: SEGMENTS_FILE,
            offset: place.offset(),
            cause,
        };
        let sound = BlockHead::parse(self.core.db, block);
        let (head, payload) = sound.ok_or_else(|| damaged("no block of this store is there"))?;
        if head.kind != Kind::Page || head.number != page.0 {
            return Err(damaged("another block is there"));
        }
        if !place.is_of(head.seq) {
            return Err(damaged("an older block is there: the device lost a write"));
        }
        debug_assert_eq!((BLOCK_HEAD + payload.len()).div_ceil(UNIT), place.units());
        if !self.core.packing.unpack(head.codec, payload, buf) {
            return Err(damaged("its bytes cannot be unpacked"));
        }
        Ok(head.lsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Seq;

    #[test]
    fn neighbours_are_read_as_one() {
        let at = |kib: u64, units| Place::new(kib * 1024 / UNIT as u64, units, Seq(1));
        // Beside each other, near, far; and one that would make the read too long.
        let places = vec![(0, at(100, 60)), (1, at(104, 60)), (2, at(112, 128)), (3, at(400, 60))];
        let found = stretches(places.into_iter().rev().collect());
        let told: Vec<_> =
            found.iter().map(|s| (s.begin >> 10, s.end >> 10, s.pages.len())).collect();
        assert_eq!(told, [(100, 120, 3), (400, 404, 1)]);
        let row = (0..100).map(|i| (i as usize, at(8 * i, 128))).collect();
        let found = stretches(row);
        assert!(found.iter().all(|s| s.end - s.begin <= READ_MAX));
        assert_eq!(found.iter().map(|s| s.pages.len()).sum::<usize>(), 100);
        assert_eq!(found.len(), 800 / 256 + 1);
    }
}
