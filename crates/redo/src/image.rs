//! A log made anew from the groups of another one, at the same positions: of a database that is
//! restored.
use std::ops::Range;
use std::sync::Arc;

use weir_base::{AlignedBuf, DbId, Lsn, align_down, align_up, varint};
use weir_device::{BlockFile, Volume};

use crate::block::{Epoch, Seed, seal};
use crate::chunk::GroupAt;
use crate::error::{RedoError, Result};
use crate::log::{GROUP_BODY_MAX, GROUP_BODY_MIN};
use crate::position::{BLOCK, BLOCK_PAYLOAD, PAGE, Span, block_start, is_place, lsn_of, sn_of};
use crate::segment::{SEGMENT_HEADER, SegmentHeader, Slot, slot_name, slot_numbers, write_header};

/// Written at a time; the file grows by as much.
const STEP_BYTES: usize = 1 << 20;
/// Zeros behind the end: no reader comes to the end of the file, where it would ask for another.
const BEHIND_BYTES: u64 = 64 << 10;

/// The groups in a run of payload that begins at `at`, with nothing left over; `None` when it is no
/// such run.
#[must_use]
pub fn whole_groups(at: Lsn, payload: &[u8]) -> Option<Vec<GroupAt>> {
    if !is_place(at) {
        return None;
    }
    let sn = sn_of(at);
    let mut groups = Vec::new();
    let mut from = 0;
    while from < payload.len() {
        let mut rest = &payload[from..];
        let len = usize::try_from(varint::take(&mut rest)?).ok()?;
        if !(GROUP_BODY_MIN..=GROUP_BODY_MAX).contains(&len) || len > rest.len() {
            return None;
        }
        let start = payload.len() - rest.len();
        let lsn = |offset: usize| lsn_of(sn + offset as u64);
        let span = Span { start: lsn(from), end: lsn(start + len) };
        groups.push(GroupAt { span, frame: from..start + len, body: start..start + len });
        from = start + len;
    }
    Some(groups)
}

/// The log of a database that is being restored, in one file.
pub struct LogImage {
    slot: Slot,
    db: DbId,
    /// The position of the file's first block.
    start: u64,
    /// Of `buf`'s first block.
    buf_at: u64,
    /// Whole blocks, and the one that is being filled.
    buf: AlignedBuf,
    /// Where the next payload byte goes.
    sn: u64,
    from: Lsn,
}

impl LogImage {
    /// Begins a log whose first group is at `from`.
    ///
    /// # Errors
    /// [`RedoError::Exists`] when redo files lie in the volume; what the device reports.
    pub fn begin(volume: &dyn Volume, db: DbId, from: Lsn) -> Result<LogImage> {
        if let Some(&number) = slot_numbers(volume)?.first() {
            return Err(RedoError::Exists { file: slot_name(number) });
        }
        if !is_place(from) {
            let what = "no redo can begin at this position";
            return Err(RedoError::Missing { lsn: from, what });
        }
        let name = slot_name(0);
        let file = volume.create(&name, SEGMENT_HEADER);
        let file = file.map_err(|error| RedoError::io("create", &name, 0, error))?;
        let slot = Slot { number: 0, file };
        let start = align_down(block_start(from));
        let buf = AlignedBuf::zeroed(STEP_BYTES);
        let mut image = LogImage { slot, db, start, buf_at: start, buf, sn: 0, from };
        // What was before the first group is of no matter, but that it was there.
        image.sn = start / BLOCK * BLOCK_PAYLOAD;
        let before = sn_of(from) - image.sn;
        image.append(&vec![0; before as usize])?;
        Ok(image)
    }

    /// Where the next group goes.
    #[must_use]
    pub fn end(&self) -> Lsn {
        lsn_of(self.sn)
    }

    /// Adds whole groups, payload with their lengths.
    ///
    /// # Errors
    /// What the device reports.
    pub fn append(&mut self, mut payload: &[u8]) -> Result<()> {
        while !payload.is_empty() {
            let at = lsn_of(self.sn).0;
            let in_buf = (at - self.buf_at) as usize;
            if in_buf >= STEP_BYTES {
                self.write_out(STEP_BYTES)?;
                continue;
            }
            let room = (BLOCK - at % BLOCK) as usize;
            let (now, rest) = payload.split_at(room.min(payload.len()));
            self.buf[in_buf..in_buf + now.len()].copy_from_slice(now);
            self.sn += now.len() as u64;
            payload = rest;
        }
        Ok(())
    }

    /// Seals and writes the first `len` bytes of the buffer, and begins it anew behind them.
    fn write_out(&mut self, len: usize) -> Result<()> {
        let used = self.blocks_used(len);
        for (i, used) in used.enumerate() {
            let number = self.buf_at / BLOCK + i as u64;
            let block = &mut self.buf[i * BLOCK as usize..][..BLOCK as usize];
            // No block says that another one was durable: nothing behind the end tells of damage.
            seal(block, Seed::of(self.db), number, used, Epoch::default(), self.from);
        }
        let offset = SEGMENT_HEADER + (self.buf_at - self.start);
        let upto = offset + align_up(len as u64);
        let name = self.slot.name();
        let file: &Arc<dyn BlockFile> = &self.slot.file;
        let grown = file.grow(upto.max(file.len()));
        grown.map_err(|error| RedoError::io("grow", &name, offset, error))?;
        let written = file.write_at(offset, &self.buf[..align_up(len as u64) as usize]);
        written.map_err(|error| RedoError::io("write", &name, offset, error))?;
        self.buf_at += len as u64;
        self.buf.fill(0);
        Ok(())
    }

    /// How much of each block that begins in the first `len` bytes is in use.
    fn blocks_used(&self, len: usize) -> impl Iterator<Item = u64> + use<> {
        let (first, sn) = (self.buf_at / BLOCK, self.sn);
        let blocks: Range<u64> = first..first + (len as u64).div_ceil(BLOCK);
        blocks.map(move |block| (sn - block * BLOCK_PAYLOAD).min(BLOCK_PAYLOAD))
    }

    /// Ends the log, durably. Returns where.
    ///
    /// # Errors
    /// What the device reports.
    pub fn finish(mut self) -> Result<Lsn> {
        let end = self.end();
        // The end's own block, also when nothing is in it.
        let last = block_start(end) + BLOCK;
        if last - self.buf_at > STEP_BYTES as u64 {
            self.write_out(STEP_BYTES)?;
        }
        let len = (last - self.buf_at) as usize;
        self.write_out(len)?;
        let name = self.slot.name();
        let payload = align_up(last - self.start) + BEHIND_BYTES;
        let file = &self.slot.file;
        let grown = file.grow((SEGMENT_HEADER + payload).max(file.len()));
        grown
            .and_then(|()| file.sync())
            .map_err(|error| RedoError::io("grow", &name, payload, error))?;
        let header = SegmentHeader { seq: 1, start: self.start, payload, unsynced_max: 0 };
        write_header(self.slot, self.db, header)?;
        Ok(end)
    }
}

const _: () = assert!((STEP_BYTES as u64).is_multiple_of(PAGE));
