//! Opening: the newest root, the leaves that it names, and the chunks that are newer. Nothing is
//! written before what was found is durable, and a root says so.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use weir_base::{ALIGN, AlignedBuf, DbId, Lsn, PageNo, align_down, align_up};
use weir_device::{BlockFile, ReadOp};

use crate::core::SEGMENTS_FILE;
use crate::error::StoreError;
use crate::format::{
    BlockHead, ChunkHead, ChunkLen, Entry, Kind, LEAF_PLACES, Root, SegmentHead, Span, decode_leaf,
};
use crate::ids::{Place, Seq, UNIT};

/// Blocks of the map that are read at a time.
const BLOCKS_AT_ONCE: usize = 256;
/// Bytes that are looked through at a time for what follows a damaged header.
const LOOK_BYTES: usize = 1 << 20;

/// What lies on disk, as far as recovery reads it.
pub(crate) struct Reader {
    pub(crate) db: DbId,
    pub(crate) file: Arc<dyn BlockFile>,
    pub(crate) segment_bytes: usize,
}

/// A chunk that was found.
struct Chunk {
    head: ChunkHead,
    offset: u64,
}

/// A use of a segment that was found.
pub(crate) struct Used {
    /// With the end of what is believed.
    pub(crate) span: Span,
    pub(crate) newest: Seq,
    pub(crate) forgets: Seq,
}

/// What the chunks since the map checkpoint say.
#[derive(Default)]
pub(crate) struct Newer {
    /// Of each page the newest chunk that names it, and where it lies; nowhere: it is no more.
    pub(crate) pages: HashMap<u32, (Seq, Place)>,
    pub(crate) used: Vec<Used>,
    /// The newest LSN of these pages.
    pub(crate) newest: Lsn,
}

impl Reader {
    fn damaged(what: String, offset: u64, cause: &'static str) -> StoreError {
        StoreError::Damaged { what, file: SEGMENTS_FILE, offset, cause }
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let read = self.file.read_at(offset, buf);
        read.map_err(|e| StoreError::device(format!("reading '{SEGMENTS_FILE}'"), e))
    }

    /// The leaves' places and then the pages' places that the root's map has.
    pub(crate) fn leaves(&self, root: &Root) -> Result<Vec<Place>, StoreError> {
        let mut leaves = Vec::new();
        self.map_blocks(Kind::Index, &root.index, &mut |_, places| leaves.extend(places))?;
        leaves.resize((root.pages as usize).div_ceil(LEAF_PLACES), Place::NONE);
        Ok(leaves)
    }

    /// Reads blocks of the map; `found` gets the number and the places of each, in order. One
    /// that is nowhere has no places.
    pub(crate) fn map_blocks(
        &self,
        kind: Kind,
        at: &[Place],
        found: &mut dyn FnMut(u32, Vec<Place>),
    ) -> Result<(), StoreError> {
        for (part, places) in at.chunks(BLOCKS_AT_ONCE).enumerate() {
            let around = |place: &Place| {
                let begin = align_down(place.offset());
                let end = align_up(place.offset() + place.bytes() as u64);
                (begin, AlignedBuf::zeroed((end - begin) as usize))
            };
            let mut bufs: Vec<(u64, AlignedBuf)> = places.iter().map(around).collect();
            let mut ops: Vec<ReadOp<'_>> = bufs
                .iter_mut()
                .filter(|(_, buf)| !buf.is_empty())
                .map(|(offset, buf)| ReadOp { offset: *offset, buf })
                .collect();
            let read = self.file.read_many(&mut ops);
            read.map_err(|e| StoreError::device(format!("reading '{SEGMENTS_FILE}'"), e))?;
            for (i, (place, (begin, buf))) in places.iter().zip(&bufs).enumerate() {
                let number = (part * BLOCKS_AT_ONCE + i) as u32;
                if place.is_none() {
                    found(number, vec![Place::NONE; LEAF_PLACES]);
                    continue;
                }
                let block = &buf[(place.offset() - begin) as usize..];
                let is_it = |head: &BlockHead| {
                    head.kind == kind && head.number == number && place.is_of(head.seq)
                };
                let sound = BlockHead::parse(self.db, block).filter(|(head, _)| is_it(head));
                let places = sound.and_then(|(_, payload)| decode_leaf(payload));
                let what = || format!("{kind:?} block {number} of the map");
                let cause = "it is not the block that was written there";
                found(number, places.ok_or_else(|| Self::damaged(what(), place.offset(), cause))?);
            }
        }
        Ok(())
    }

    /// Looks through what may hold chunks newer than the root's map checkpoint.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when a chunk is missing that is known to have been durable.
    pub(crate) fn newer(&self, root: &Root) -> Result<Newer, StoreError> {
        let mut newer = Newer::default();
        let (mut chunks, mut beyond) = (Vec::new(), Vec::new());
        for span in &root.scan {
            let from = chunks.len();
            let end = self.chain(span, &mut chunks)?;
            if let Some((offset, seq)) = self.beyond(span, end, chunks.len() > from)? {
                beyond.push((offset, seq));
            }
            if chunks.len() > from {
                let span = Span { end: (end / ALIGN) as u32, ..*span };
                let newest = chunks[from..].iter().map(|c: &Chunk| c.head.seq).max();
                let newest = newest.unwrap_or_default();
                newer.used.push(Used { span, newest, forgets: Seq(0) });
            }
        }
        let mut durable: BTreeMap<u64, Seq> = BTreeMap::new();
        for Chunk { head, .. } in &chunks {
            // R9: of other lives a chunk says nothing.
            if head.durable.life() == head.seq.life() {
                let known = durable.entry(head.seq.life()).or_default();
                *known = head.durable.max(*known);
            }
        }
        let is_durable = |seq: Seq| durable.get(&seq.life()).is_some_and(|known| seq <= *known);
        if let Some((offset, _)) = beyond.iter().find(|(_, seq)| is_durable(*seq)) {
            let cause = "the header of a chunk that was durable is not there";
            return Err(Self::damaged("a chunk".to_owned(), *offset, cause));
        }
        // R4: only what is newer than the map.
        for chunk in chunks.iter().filter(|chunk| chunk.head.seq > root.ckpt_seq) {
            let forgets = self.take(chunk, is_durable(chunk.head.seq), &mut newer)?;
            let is_of = |used: &&mut Used| used.span.epoch == chunk.head.epoch;
            if let Some(used) = newer.used.iter_mut().find(is_of).filter(|_| forgets) {
                used.forgets = used.forgets.max(chunk.head.seq);
            }
        }
        Ok(newer)
    }

    /// Follows the chunks of one use of a segment; returns where they end.
    fn chain(&self, span: &Span, chunks: &mut Vec<Chunk>) -> Result<usize, StoreError> {
        let begin = u64::from(span.segment.0) * self.segment_bytes as u64;
        let end = (span.end as usize * ALIGN).min(self.segment_bytes);
        let (mut next, from) = (ALIGN, chunks.len());
        while next + ALIGN <= end {
            let offset = begin + next as u64;
            let Some(head) = self.chunk_head(offset, end - next)? else { break };
            let is_of_use = head.epoch == span.epoch && head.segment == span.segment;
            // R7: a segment is written in one life.
            let first = chunks.get(from).map_or(head.seq, |chunk| chunk.head.seq);
            if !is_of_use || head.seq.life() != first.life() || next + head.chunk_bytes() > end {
                break;
            }
            next += head.chunk_bytes();
            chunks.push(Chunk { head, offset });
        }
        Ok(next)
    }

    fn chunk_head(&self, offset: u64, room: usize) -> Result<Option<ChunkHead>, StoreError> {
        let mut buf = AlignedBuf::zeroed(ALIGN);
        self.read(offset, &mut buf)?;
        let ChunkLen::Bytes(len) = ChunkHead::len_of(&buf) else { return Ok(None) };
        if len > ALIGN {
            if len > room {
                return Ok(None);
            }
            buf = AlignedBuf::zeroed(align_up(len as u64) as usize);
            self.read(offset, &mut buf)?;
        }
        Ok(ChunkHead::parse(self.db, &buf))
    }

    /// Whether chunks of the same use follow the place at which its chain ends: then a header is
    /// missing there, which a crash may have torn. Returns that place and the first chunk behind
    /// it.
    fn beyond(
        &self,
        span: &Span,
        end: usize,
        is_used: bool,
    ) -> Result<Option<(u64, Seq)>, StoreError> {
        let begin = u64::from(span.segment.0) * self.segment_bytes as u64;
        if !is_used {
            let mut first = AlignedBuf::zeroed(ALIGN);
            self.read(begin, &mut first)?;
            let head = SegmentHead::parse(self.db, &first);
            if head.is_none_or(|head| head.epoch != span.epoch) {
                return Ok(None);
            }
        }
        let stop = (span.end as usize * ALIGN).min(self.segment_bytes);
        let mut at = end;
        while at < stop {
            let mut buf = AlignedBuf::zeroed(LOOK_BYTES.min(stop - at));
            self.read(begin + at as u64, &mut buf)?;
            for block in (0..buf.len()).step_by(ALIGN) {
                if let Some(head) = ChunkHead::parse(self.db, &buf[block..])
                    && head.epoch == span.epoch
                {
                    return Ok(Some((begin + end as u64, head.seq)));
                }
            }
            at += buf.len();
        }
        Ok(None)
    }

    /// What a chunk says of pages; `true`: that some are no more. Its blocks are read only if
    /// nothing says that they were durable; then a torn one is left out alone (R4).
    fn take(&self, chunk: &Chunk, is_durable: bool, newer: &mut Newer) -> Result<bool, StoreError> {
        let seq = chunk.head.seq;
        let mut bytes = AlignedBuf::zeroed(if is_durable { 0 } else { chunk.head.chunk_bytes() });
        if !is_durable {
            self.read(chunk.offset, &mut bytes)?;
        }
        let (mut forgets, mut newest) = (false, newer.newest);
        let mut note = |page: PageNo, place| {
            let newest = newer.pages.entry(page.0).or_insert((seq, place));
            if newest.0 < seq {
                *newest = (seq, place);
            }
        };
        for (at, entry) in chunk.head.placed() {
            match *entry {
                Entry::Forget { first, count, .. } => {
                    forgets = true;
                    for page in first.0..first.0.saturating_add(u32::from(count)) {
                        note(PageNo(page), Place::NONE);
                    }
                }
                Entry::Block { kind: Kind::Page, number, lsn, units } => {
                    let is_whole = is_durable
                        || BlockHead::parse(self.db, &bytes[at..]).is_some_and(|(head, _)| {
                            (head.kind, head.number, head.lsn, head.seq)
                                == (Kind::Page, number, lsn, seq)
                        });
                    if is_whole {
                        let position = (chunk.offset + at as u64) / UNIT as u64;
                        note(PageNo(number), Place::new(position, usize::from(units), seq));
                        newest = newest.max(lsn);
                    }
                }
                Entry::Block { .. } => {}
            }
        }
        newer.newest = newest;
        Ok(forgets)
    }
}
