//! Opening: the newest root, the leaves that it names, and the chunks that are newer. Nothing is
//! written before what was found is durable, and a root says so.
use std::collections::BTreeMap;
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
/// Uses of segments that are followed side by side: their headers are read with one deep queue.
const SPANS_AT_ONCE: usize = 256;
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

/// One use of a segment, as far as its chunks have been followed.
struct Chain {
    span: Span,
    chunks: Vec<Chunk>,
    /// Bytes from the segment's first to where the next chunk would begin.
    end: usize,
    goes_on: bool,
}

impl Chain {
    fn begin(span: &Span) -> Chain {
        Chain { span: *span, chunks: Vec::new(), end: ALIGN, goes_on: true }
    }
}

/// A use of a segment that was found.
pub(crate) struct Used {
    /// With the end of what is believed.
    pub(crate) span: Span,
    pub(crate) newest: Seq,
    pub(crate) forgets: Seq,
}

/// What the chunks since the map checkpoint say, beside where pages lie.
#[derive(Default)]
pub(crate) struct Newer {
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

    /// Looks through what may hold chunks newer than the root's map checkpoint. `found` gets the
    /// place of each page that they name, the oldest chunk's first (nowhere: it is no more).
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when a chunk is missing that is known to have been durable.
    pub(crate) fn newer(
        &self,
        root: &Root,
        found: &mut dyn FnMut(PageNo, Place),
    ) -> Result<Newer, StoreError> {
        let mut newer = Newer::default();
        let (mut chunks, mut beyond) = (Vec::new(), Vec::new());
        for spans in root.scan.chunks(SPANS_AT_ONCE) {
            for Chain { span, chunks: chain, end, .. } in self.chains(spans)? {
                if let Some((offset, seq)) = self.beyond(&span, end, !chain.is_empty())? {
                    beyond.push((offset, seq));
                }
                let Some(newest) = chain.iter().map(|chunk| chunk.head.seq).max() else { continue };
                let span = Span { end: (end / ALIGN) as u32, ..span };
                chunks.extend(chain.into_iter().map(|chunk| (newer.used.len(), chunk)));
                newer.used.push(Used { span, newest, forgets: Seq(0) });
            }
        }
        let mut durable: BTreeMap<u64, Seq> = BTreeMap::new();
        for (_, Chunk { head, .. }) in &chunks {
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
        // R4: only what is newer than the map, and of each page the newest chunk that names it.
        chunks.retain(|(_, chunk)| chunk.head.seq > root.ckpt_seq);
        chunks.sort_unstable_by_key(|(_, chunk)| chunk.head.seq);
        for (used, chunk) in &chunks {
            let seq = chunk.head.seq;
            if self.take(chunk, is_durable(seq), &mut newer.newest, found)? {
                newer.used[*used].forgets = seq;
            }
        }
        Ok(newer)
    }

    /// Follows the chunks of uses of segments side by side: a round reads the next header of each.
    fn chains(&self, spans: &[Span]) -> Result<Vec<Chain>, StoreError> {
        let mut chains: Vec<Chain> = spans.iter().map(Chain::begin).collect();
        let mut bufs: Vec<AlignedBuf> = spans.iter().map(|_| AlignedBuf::zeroed(ALIGN)).collect();
        loop {
            let mut going: Vec<&mut Chain> = chains
                .iter_mut()
                .filter(|chain| chain.goes_on && chain.end + ALIGN <= self.stop_of(&chain.span))
                .collect();
            if going.is_empty() {
                return Ok(chains);
            }
            let mut ops: Vec<ReadOp<'_>> = going
                .iter()
                .zip(&mut bufs)
                .map(|(chain, buf)| ReadOp { offset: self.next_of(chain), buf })
                .collect();
            let read = self.file.read_many(&mut ops);
            read.map_err(|e| StoreError::device(format!("reading '{SEGMENTS_FILE}'"), e))?;
            for (chain, buf) in going.iter_mut().zip(&bufs) {
                chain.goes_on = self.follow(chain, buf)?;
            }
        }
    }

    /// The segment's byte at which what may belong to this use ends.
    fn stop_of(&self, span: &Span) -> usize {
        (span.end as usize * ALIGN).min(self.segment_bytes)
    }

    fn next_of(&self, chain: &Chain) -> u64 {
        u64::from(chain.span.segment.0) * self.segment_bytes as u64 + chain.end as u64
    }

    /// Adds the chunk to a chain whose header begins with `first`; `false`: there is none of it.
    fn follow(&self, chain: &mut Chain, first: &[u8]) -> Result<bool, StoreError> {
        let (offset, span) = (self.next_of(chain), &chain.span);
        let room = self.stop_of(span) - chain.end;
        let Some(head) = self.chunk_head(first, offset, room)? else { return Ok(false) };
        let is_of_use = head.epoch == span.epoch && head.segment == span.segment;
        // R7: a segment is written in one life.
        let life = chain.chunks.first().map_or(head.seq, |chunk| chunk.head.seq).life();
        if !is_of_use || head.seq.life() != life || head.chunk_bytes() > room {
            return Ok(false);
        }
        chain.end += head.chunk_bytes();
        chain.chunks.push(Chunk { head, offset });
        Ok(true)
    }

    /// The chunk's header at `offset` that begins with `first`, and has `room` at most.
    fn chunk_head(
        &self,
        first: &[u8],
        offset: u64,
        room: usize,
    ) -> Result<Option<ChunkHead>, StoreError> {
        match ChunkHead::len_of(first) {
            ChunkLen::Bytes(len) if len <= first.len() => Ok(ChunkHead::parse(self.db, first)),
            ChunkLen::Bytes(len) if len <= room => {
                let mut buf = AlignedBuf::zeroed(align_up(len as u64) as usize);
                self.read(offset, &mut buf)?;
                Ok(ChunkHead::parse(self.db, &buf))
            }
            _ => Ok(None),
        }
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
        let stop = self.stop_of(span);
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
    fn take(
        &self,
        chunk: &Chunk,
        is_durable: bool,
        newest: &mut Lsn,
        found: &mut dyn FnMut(PageNo, Place),
    ) -> Result<bool, StoreError> {
        let seq = chunk.head.seq;
        let mut bytes = AlignedBuf::zeroed(if is_durable { 0 } else { chunk.head.chunk_bytes() });
        if !is_durable {
            self.read(chunk.offset, &mut bytes)?;
        }
        let mut forgets = false;
        for (at, entry) in chunk.head.placed() {
            match *entry {
                Entry::Forget { first, count, .. } => {
                    forgets = true;
                    let pages = first.0..first.0.saturating_add(u32::from(count));
                    pages.for_each(|page| found(PageNo(page), Place::NONE));
                }
                Entry::Block { kind: Kind::Page, number, lsn, units } => {
                    let is_whole = is_durable
                        || BlockHead::parse(self.db, &bytes[at..]).is_some_and(|(head, _)| {
                            (head.kind, head.number, head.lsn, head.seq)
                                == (Kind::Page, number, lsn, seq)
                        });
                    if is_whole {
                        let position = (chunk.offset + at as u64) / UNIT as u64;
                        found(PageNo(number), Place::new(position, usize::from(units), seq));
                        *newest = lsn.max(*newest);
                    }
                }
                Entry::Block { .. } => {}
            }
        }
        Ok(forgets)
    }
}
