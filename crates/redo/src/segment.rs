//! A segment: a file `redo-NN` that holds a stretch of the log behind a header page.
//!
//! ```text
//! 0    "WEIRREDO"        8   format version u32 (12: zero)
//! 16   database number   24  sequence number       32  start: disk position in the log
//! 40   payload bytes     48  unsynced bytes at most 508 crc32c of bytes 0..508
//! 512  zeros             4096 the log's blocks
//! ```
//! All that matters lies in one sector, so a header is old or new, never torn.
use crate::error::{RedoError, Result};
use crate::position::PAGE;
use std::sync::Arc;
use weir_base::{AlignedBuf, DbId, Lsn, checksum};
use weir_device::{BlockFile, Volume};

const MAGIC: &[u8; 8] = b"WEIRREDO";
const FORMAT: u32 = 1;
const PREFIX: &str = "redo-";
const SECTOR: usize = 512;

/// No segment reaches up to here: positions, and distances between them, fit 63 bits.
pub(crate) const POSITIONS_END: u64 = 1 << 63;

/// The header page's size: where the log begins in a file.
pub(crate) const SEGMENT_HEADER: u64 = PAGE;

/// What a segment's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    /// Segments are used in this order, without gaps.
    pub(crate) seq: u64,
    /// The disk position (a block's, so a multiple of [`PAGE`]) where it starts.
    pub(crate) start: u64,
    /// Bytes of log that it holds.
    pub(crate) payload: u64,
    /// Blocks sealed while this header stood lie at most this far behind the first one that was
    /// not durable: how far a scan must look behind the end.
    pub(crate) unsynced_max: u64,
}

/// A file that can hold a segment.
#[derive(Clone)]
pub(crate) struct Slot {
    pub(crate) number: u32,
    pub(crate) file: Arc<dyn BlockFile>,
}

impl Slot {
    pub(crate) fn name(&self) -> String {
        slot_name(self.number)
    }
    /// Bytes of log that fit.
    pub(crate) fn payload(&self) -> u64 {
        weir_base::align_down(self.file.len()).saturating_sub(SEGMENT_HEADER)
    }
}

/// A slot with its header.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) slot: Slot,
    pub(crate) header: SegmentHeader,
}

impl Segment {
    pub(crate) fn end(&self) -> u64 {
        self.header.start + self.header.payload
    }
    pub(crate) fn holds(&self, at: u64) -> bool {
        (self.header.start..self.end()).contains(&at)
    }
    /// Where the disk position `at` of the log lies in the file.
    pub(crate) fn offset(&self, at: u64) -> u64 {
        debug_assert!(self.holds(at));
        SEGMENT_HEADER + (at - self.header.start)
    }
}

/// A row of `weir stat`: one file of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentInfo {
    /// The file's name.
    pub file: String,
    /// Its place in the order of use; `None` for a file that holds nothing needed.
    pub sequence: Option<u64>,
    /// Where it starts.
    pub start: Lsn,
    /// Bytes of log that it holds.
    pub bytes: u64,
}

pub(crate) fn slot_name(number: u32) -> String {
    format!("{PREFIX}{number:02}")
}

/// The number of a slot by its file name; `None` for other files.
fn slot_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (slot_name(number) == name).then_some(number)
}

/// The numbers of all slots in the volume, ascending.
pub(crate) fn slot_numbers(volume: &dyn Volume) -> Result<Vec<u32>> {
    let names = volume.list().map_err(|error| RedoError::io("list", ".", 0, error))?;
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| slot_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Writes a slot's header durably: from then on it is a segment.
pub(crate) fn write_header(slot: Slot, db: DbId, header: SegmentHeader) -> Result<Segment> {
    let mut page = AlignedBuf::zeroed(PAGE as usize);
    page[..8].copy_from_slice(MAGIC);
    page[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    let words = [db.0, header.seq, header.start, header.payload, header.unsynced_max];
    for (i, word) in words.iter().enumerate() {
        page[16 + i * 8..24 + i * 8].copy_from_slice(&word.to_le_bytes());
    }
    let crc = checksum(&page[..SECTOR - 4]);
    page[SECTOR - 4..SECTOR].copy_from_slice(&crc.to_le_bytes());
    let written = slot.file.write_durable_at(0, &page);
    written.map_err(|error| RedoError::io("write", &slot.name(), 0, error))?;
    Ok(Segment { slot, header })
}

/// Reads a slot's header; `None` when none was ever written (a file whose creation was cut off).
fn read_header(slot: &Slot, db: DbId) -> Result<Option<SegmentHeader>> {
    if slot.file.len() < PAGE {
        return Ok(None);
    }
    let mut page = AlignedBuf::zeroed(PAGE as usize);
    let read = slot.file.read_at(0, &mut page);
    read.map_err(|error| RedoError::io("read", &slot.name(), 0, error))?;
    parse_header(&page, &slot.name(), db, slot.payload())
}

pub(crate) fn parse_header(
    page: &[u8],
    name: &str,
    db: DbId,
    room: u64,
) -> Result<Option<SegmentHeader>, RedoError> {
    let long = |i: usize| {
        let at = 16 + i * 8;
        u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"))
    };
    let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
    if page[..SECTOR].iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    if &page[..8] != MAGIC {
        return Err(RedoError::damaged(name, 0, "this is not a redo file's header"));
    }
    if word(SECTOR - 4) != checksum(&page[..SECTOR - 4]) {
        return Err(RedoError::damaged(name, 0, "the header's checksum is wrong"));
    }
    if word(8) != FORMAT {
        return Err(RedoError::Format { file: name.to_owned(), found: word(8), known: FORMAT });
    }
    if long(0) != db.0 {
        return Err(RedoError::Foreign {
            file: name.to_owned(),
            found: DbId(long(0)),
            expected: db,
        });
    }
    let header =
        SegmentHeader { seq: long(1), start: long(2), payload: long(3), unsynced_max: long(4) };
    let sane = header.start.is_multiple_of(PAGE)
        && header.payload.is_multiple_of(PAGE)
        && header.payload > 0
        && header.start.checked_add(header.payload).is_some_and(|end| end < POSITIONS_END);
    if !sane {
        return Err(RedoError::damaged(name, 0, "the header's figures contradict each other"));
    }
    if header.payload > room {
        let what = format!(
            "the file is truncated: its header speaks of {} bytes of log, {room} are there",
            header.payload
        );
        return Err(RedoError::damaged(name, SEGMENT_HEADER + room, what));
    }
    Ok(Some(header))
}

/// All the files of a log, as found.
#[derive(Default)]
pub(crate) struct Files {
    /// Those with a header, in order of use.
    pub(crate) segments: Vec<Segment>,
    /// Those without.
    pub(crate) blank: Vec<Slot>,
}

/// Opens every slot in the volume.
///
/// # Errors
/// A header that is damaged, foreign or of another format.
pub(crate) fn load(volume: &dyn Volume, db: DbId) -> Result<Files> {
    let mut files = Files::default();
    for number in slot_numbers(volume)? {
        let name = slot_name(number);
        let opened = volume.open(&name);
        let file = opened.map_err(|error| RedoError::io("open", &name, 0, error))?;
        let slot = Slot { number, file };
        match read_header(&slot, db)? {
            Some(header) => files.segments.push(Segment { slot, header }),
            None => files.blank.push(slot),
        }
    }
    files.segments.sort_by_key(|segment| segment.header.seq);
    Ok(files)
}

impl Files {
    /// Splits off the segments that a log whose needed part begins at `from` consists of: the one
    /// that holds `from` (with its predecessor, when there is one) and all that follow. What is
    /// left in `self` may be recycled.
    ///
    /// # Errors
    /// When one is missing or two claim the same place.
    pub(crate) fn chain(&mut self, from: Lsn) -> Result<Vec<Segment>> {
        let at = crate::position::block_start(from);
        let holder = self.segments.iter().position(|segment| segment.holds(at));
        let Some(holder) = holder else {
            return Err(RedoError::Missing { lsn: from, what: "the checkpoint lies there" });
        };
        let follows = |a: &Segment, b: &Segment| {
            b.header.seq == a.header.seq + 1 && b.header.start == a.end()
        };
        let has_predecessor =
            holder > 0 && follows(&self.segments[holder - 1], &self.segments[holder]);
        let chain = self.segments.split_off(if has_predecessor { holder - 1 } else { holder });
        for pair in chain.windows(2) {
            if pair[0].header.seq == pair[1].header.seq {
                let (name, other) = (pair[1].slot.name(), pair[0].slot.name());
                let what = format!("it has the same sequence number as {other}");
                return Err(RedoError::damaged(&name, 0, what));
            }
            if !follows(&pair[0], &pair[1]) {
                let what = "a later file is there";
                return Err(RedoError::Missing { lsn: Lsn(pair[0].end()), what });
            }
        }
        Ok(chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(slot_number("redo-07"), Some(7));
        assert_eq!(slot_number(&slot_name(123)), Some(123));
        for other in ["redo-7", "redo-", "redo-007", "redo-x", "data", "redo-+7"] {
            assert_eq!(slot_number(other), None, "{other}");
        }
    }
}
