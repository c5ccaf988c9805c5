//! Appending chunks to a stream. One thread at a time writes to a stream, in order, so that a sync
//! after a chunk's write makes every earlier chunk of its segment durable, too.
use weir_base::{ALIGN, AlignedBuf};
use weir_device::WriteOp;

use crate::core::Core;
use crate::error::StoreError;
use crate::format::{
    BlockHead, CHUNK_ENTRIES_MAX, ChunkHead, Entry, Footer, FooterEntry, SegmentHead,
};
use crate::ids::{Place, SegmentNo, UNIT};
use crate::segments::{Opening, StreamKind};
use crate::stream::{Appended, Item, Landed, OpenSegment, Packed};

/// Writes that go to the device together.
type Writes = Vec<(u64, AlignedBuf)>;

impl Core {
    /// Appends items in chunks, as many as a stream's segment has room for in each, and takes them
    /// out of `items`; what was written is added to `landed`. Nothing is durable when it returns.
    pub(crate) fn append(
        &self,
        kind: StreamKind,
        items: &mut Vec<Item>,
        landed: &mut Vec<Landed>,
    ) -> Result<Appended, StoreError> {
        self.check_halted()?;
        let mut stream = self.streams[kind as usize].lock();
        let (mut writes, mut closed) = (Writes::new(), Vec::new());
        let mut outcome = Ok(Appended::All);
        while !items.is_empty() {
            if stream.open.is_none() {
                let is_freeing = matches!(items.first(), Some(Item::Forget { .. }));
                match self.open_segment(kind, is_freeing) {
                    Ok(Some(open)) => stream.open = Some(open),
                    Ok(None) => outcome = Ok(Appended::NoRoom),
                    Err(e) => outcome = Err(e),
                }
            }
            let Some(open) = &mut stream.open else { break };
            let fitting = self.fitting(open, items);
            if fitting == 0 {
                // Free records alone fill a segment, too: they are not in its footer.
                assert!(open.next > 0, "an empty segment has room for a block");
                writes.push(self.footer(open));
                closed.push(open.number);
                stream.open = None;
                continue;
            }
            let rest = items.split_off(fitting);
            let chunk = std::mem::replace(items, rest);
            landed.push(self.lay_out(open, chunk, &mut writes));
        }
        let ops: Vec<WriteOp<'_>> =
            writes.iter().map(|(offset, buf)| WriteOp { offset: *offset, buf }).collect();
        // The stream stays locked: the next chunk is written after this one.
        let written = self.file.write_many(&ops);
        written.map_err(|e| self.halt(StoreError::device("writing to 'segments'", e)))?;
        // Only now: a closed segment may be free, and another stream's, at once.
        let mut segments = self.segments.lock();
        closed.into_iter().for_each(|number| segments.close(number));
        outcome
    }

    /// Closes the segment that a stream has open, if it is the segment `from` or behind it: what
    /// is appended next goes elsewhere.
    pub(crate) fn close_open(&self, kind: StreamKind, from: SegmentNo) -> Result<(), StoreError> {
        let mut stream = self.streams[kind as usize].lock();
        let Some(open) = stream.open.as_mut().filter(|open| open.number >= from) else {
            return Ok(());
        };
        let number = open.number;
        if open.next > 0 {
            let (offset, bytes) = self.footer(open);
            let written = self.file.write_at(offset, &bytes);
            written.map_err(|e| self.halt(StoreError::device("writing to 'segments'", e)))?;
        }
        stream.open = None;
        self.segments.lock().close(number);
        Ok(())
    }

    /// How many items, from the first on, have room in the segment beside its footer.
    fn fitting(&self, open: &OpenSegment, items: &[Item]) -> usize {
        let begin = open.next.max(ALIGN);
        let (mut units, mut count, mut blocks) = (0, 0, open.entries.len());
        for item in items.iter().take(CHUNK_ENTRIES_MAX) {
            if let Item::Block(packed) = item {
                units += packed.bytes.len() / UNIT;
                blocks += 1;
            }
            let chunk = (ChunkHead::bytes(count + 1) + units * UNIT).next_multiple_of(ALIGN);
            if begin + chunk + Footer::bytes(blocks) > self.segment_bytes {
                break;
            }
            count += 1;
        }
        count
    }

    fn lay_out(&self, open: &mut OpenSegment, chunk: Vec<Item>, writes: &mut Writes) -> Landed {
        let (seq, durable) = self.segments.lock().begin_chunk(open.number);
        let begin = u64::from(open.number.0) * self.segment_bytes as u64;
        if open.next == 0 {
            let mut first = AlignedBuf::zeroed(ALIGN);
            let head = SegmentHead { segment: open.number, epoch: open.epoch, life: seq.life() };
            head.encode(self.db, &mut first);
            writes.push((begin, first));
            open.next = ALIGN;
        }
        let entry = |item: &Item| match item {
            Item::Block(Packed { head, bytes, .. }) => Entry::Block {
                kind: head.kind,
                number: head.number,
                lsn: head.lsn,
                units: (bytes.len() / UNIT) as u16,
            },
            Item::Forget { first, count, lsn } => {
                Entry::Forget { first: *first, count: *count, lsn: *lsn }
            }
        };
        let entries = chunk.iter().map(entry).collect();
        let (segment, epoch) = (open.number, open.epoch);
        let head = ChunkHead { segment, epoch, seq, durable, entries };
        let mut bytes = AlignedBuf::zeroed(head.chunk_bytes());
        head.encode(self.db, &mut bytes);
        let mut landed = Landed { segment, seq, blocks: Vec::new(), forgets: Vec::new() };
        for ((at, _), item) in head.placed().zip(chunk) {
            match item {
                Item::Forget { first, count, .. } => landed.forgets.push((first, count)),
                Item::Block(packed) => {
                    let block = &mut bytes[at..at + packed.bytes.len()];
                    block.copy_from_slice(&packed.bytes);
                    let head = BlockHead { seq, ..packed.head };
                    head.seal(self.db, block);
                    let within = (open.next + at) / UNIT;
                    let position = begin / UNIT as u64 + within as u64;
                    let place = Place::new(position, block.len() / UNIT, seq);
                    let (kind, number) = (head.kind, head.number);
                    open.entries.push(FooterEntry { kind, number, at: within as u32 });
                    landed.blocks.push((head, place, packed.source));
                }
            }
        }
        if !landed.forgets.is_empty() {
            self.segments.lock().get(segment).forgets = seq;
        }
        let len = bytes.len();
        writes.push((begin + open.next as u64, bytes));
        open.next += len;
        landed
    }

    /// A segment for a stream; `None`: no more may be opened (LOGSTORE-5). User writes leave what
    /// the cleaner and a map checkpoint need; free records what a map checkpoint needs, which makes
    /// their segments free again: a full store gets room by them.
    fn open_segment(
        &self,
        kind: StreamKind,
        is_freeing: bool,
    ) -> Result<Option<OpenSegment>, StoreError> {
        let reserve = self.reserve();
        let keep = match kind {
            StreamKind::User => reserve.clean + reserve.meta,
            StreamKind::Meta if is_freeing => reserve.meta,
            StreamKind::Clean | StreamKind::Meta => 0,
        };
        for is_planned in [false, true] {
            match self.segments.lock().open(kind, keep) {
                Opening::Open(number, epoch) => {
                    self.stats.segments_opened.add(1);
                    return Ok(Some(OpenSegment { number, epoch, next: 0, entries: Vec::new() }));
                }
                Opening::NoRoom => return Ok(None),
                Opening::NoPlan if is_planned => return Ok(None),
                Opening::NoPlan => {}
            }
            self.refresh_root()?;
        }
        Ok(None)
    }

    /// The footer of a full segment. Nothing waits for it: without it the cleaner reads the headers
    /// of the chunks.
    fn footer(&self, open: &mut OpenSegment) -> (u64, AlignedBuf) {
        let entries = std::mem::take(&mut open.entries);
        let mut bytes = AlignedBuf::zeroed(Footer::bytes(entries.len()));
        let footer = Footer { segment: open.number, epoch: open.epoch, entries };
        footer.encode(self.db, &mut bytes);
        let end = (u64::from(open.number.0) + 1) * self.segment_bytes as u64;
        (end - bytes.len() as u64, bytes)
    }
}
