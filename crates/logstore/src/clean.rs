//! The cleaner: one victim, its live pages copied as they are packed, or asked to be flushed where
//! they are dirty: a copy of a dirty page would be dead within a wrap of the log.
use weir_base::{AlignedBuf, PageNo, align_down, align_up};
use weir_device::ReadOp;

use crate::core::Core;
use crate::error::StoreError;
use crate::format::{BLOCK_HEAD, BlockHead, FOOTER_TAIL, Footer, Kind};
use crate::ids::{Place, SegmentNo, UNIT};
use crate::policy::{Candidate, victim};
use crate::segments::{Segments, Status, StreamKind};
use crate::stream::{Item, Packed};

/// What the cleaner asks of the pool.
pub trait Dirty {
    /// Whether the page is in memory, changed since it was written: it will be written soon anyway,
    /// and is not copied.
    fn is_dirty(&self, page: PageNo) -> bool;
}

/// No page is dirty: all are copied.
pub struct NeverDirty;

impl Dirty for NeverDirty {
    fn is_dirty(&self, _: PageNo) -> bool {
        false
    }
}

/// What a step of cleaning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// The segment that was worked on; none: no segment is worth it.
    pub victim: Option<u32>,
    /// Pages copied.
    pub copied: u64,
    /// Bytes of blocks copied.
    pub copied_bytes: u64,
    /// Dirty pages that still lie in the victim: flushed, they free it. In the order in which they
    /// lie.
    pub flush_wanted: Vec<PageNo>,
    /// Pages that a write is under way of already.
    pub busy: u64,
    /// Pages that could not be read: the victim is not chosen again until they are written anew.
    pub damaged: Vec<PageNo>,
}

impl Core {
    /// Which segment would be cleaned next, and the share of it that is live.
    pub(crate) fn next_victim(&self) -> Option<(SegmentNo, f64)> {
        let segments = self.segments.lock();
        let may_be = |s: &crate::segments::Segment| {
            s.status == Status::Closed && !s.is_meta && !s.is_damaged && s.live > 0
        };
        let candidates = (0..).zip(&segments.list).filter(|(_, s)| may_be(s));
        let candidates = candidates.map(|(segment, s)| Candidate { segment, live: s.live });
        let number = victim(candidates, segments.units)?;
        let live = segments.list[number as usize].live as f64;
        Some((SegmentNo(number), live / segments.units as f64))
    }

    /// One step, of at most `budget_bytes` of copies (at least one page's). Under the cleaner's
    /// lock.
    pub(crate) fn clean(
        &self,
        budget_bytes: usize,
        dirty: &dyn Dirty,
    ) -> Result<Cleaned, StoreError> {
        self.check_halted()?;
        let Some((victim, _)) = self.next_victim() else { return Ok(Cleaned::default()) };
        self.clean_out(victim, budget_bytes, dirty)
    }

    /// As [`Core::clean`], of this segment.
    pub(crate) fn clean_out(
        &self,
        victim: SegmentNo,
        budget_bytes: usize,
        dirty: &dyn Dirty,
    ) -> Result<Cleaned, StoreError> {
        let mut cleaned = Cleaned { victim: Some(victim.0), ..Cleaned::default() };
        let chosen = self.choose(victim, budget_bytes, dirty, &mut cleaned)?;
        let mut items = self.read_copies(victim, &chosen, &mut cleaned)?;
        // Neighbours stay neighbours.
        items.sort_by_key(|item| match item {
            Item::Block(packed) => packed.head.number,
            Item::Forget { first, .. } => first.0,
        });
        let mut landed = Vec::new();
        self.append(StreamKind::Clean, &mut items, &mut landed)?;
        let left: Vec<u32> = items
            .iter()
            .filter_map(|item| match item {
                Item::Block(packed) => Some(packed.head.number),
                Item::Forget { .. } => None,
            })
            .collect();
        self.unmark(&left);
        if !landed.is_empty() {
            self.sync()?;
            self.publish(&landed);
        }
        let blocks = landed.iter().flat_map(|chunk| &chunk.blocks);
        for (_, place, _) in blocks {
            cleaned.copied += 1;
            cleaned.copied_bytes += place.bytes() as u64;
        }
        self.stats.pages_copied.add(cleaned.copied);
        self.stats.bytes_copied.add(cleaned.copied_bytes);
        if self.segments.lock().get(victim).live == 0 {
            self.stats.segments_cleaned.add(1);
        }
        Ok(cleaned)
    }

    /// The victim's live pages that are to be copied, marked (R2), with their places.
    fn choose(
        &self,
        victim: SegmentNo,
        budget_bytes: usize,
        dirty: &dyn Dirty,
        cleaned: &mut Cleaned,
    ) -> Result<Vec<(PageNo, Place)>, StoreError> {
        let pages = self.live_pages(victim)?;
        // The pool is asked without a lock held. What becomes dirty after this is copied, once.
        let (flush, copy): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|(page, _)| dirty.is_dirty(*page));
        cleaned.flush_wanted = flush.into_iter().map(|(page, _)| page).collect();
        let mut segments = self.segments.lock();
        let (mut chosen, mut bytes) = (Vec::new(), 0);
        for (page, place) in copy {
            if bytes > 0 && bytes + place.bytes() > budget_bytes {
                break;
            }
            if !segments.mark(page.0) {
                cleaned.busy += 1;
                continue;
            }
            // Looked at only now that nothing else can move it.
            if self.map.get(page) == place {
                bytes += place.bytes();
                chosen.push((page, place));
            } else {
                segments.unmark(page.0);
            }
        }
        Ok(chosen)
    }

    /// The pages that lie in a segment, in the order in which they do: by its footer, and where
    /// that does not account for all that is live, by a walk over the map.
    fn live_pages(&self, number: SegmentNo) -> Result<Vec<(PageNo, Place)>, StoreError> {
        let mut pages = self.pages_by_footer(number)?;
        let found: usize = pages.iter().map(|(_, place)| place.units()).sum();
        if (found as u64) < self.segments.lock().get(number).live {
            pages.clear();
            let units = (self.segment_bytes / UNIT) as u64;
            self.map.visit(&mut |page, place| {
                if place.position() / units == u64::from(number.0) {
                    pages.push((page, place));
                }
            });
        }
        pages.sort_by_key(|(_, place)| place.position());
        Ok(pages)
    }

    fn pages_by_footer(&self, number: SegmentNo) -> Result<Vec<(PageNo, Place)>, StoreError> {
        let end = (u64::from(number.0) + 1) * self.segment_bytes as u64;
        let (last, _) = self.read_around(end - FOOTER_TAIL as u64, FOOTER_TAIL)?;
        let Some(len) = Footer::len_of(&last).filter(|len| *len <= self.segment_bytes) else {
            return Ok(Vec::new());
        };
        let (bytes, _) = self.read_around(end - len as u64, len)?;
        let footer = Footer::parse(self.db, &bytes).filter(|footer| footer.segment == number);
        let begin = u64::from(number.0) * (self.segment_bytes / UNIT) as u64;
        let entries = footer.map(|footer| footer.entries).unwrap_or_default();
        let pages = entries.iter().filter(|entry| entry.kind == Kind::Page).filter_map(|entry| {
            let place = self.map.get(PageNo(entry.number));
            let is_here = !place.is_none() && place.position() == begin + u64::from(entry.at);
            is_here.then_some((PageNo(entry.number), place))
        });
        Ok(pages.collect())
    }

    /// Reads the chosen pages' blocks. What cannot be read is unmarked, and the victim left as it
    /// is.
    fn read_copies(
        &self,
        victim: SegmentNo,
        chosen: &[(PageNo, Place)],
        cleaned: &mut Cleaned,
    ) -> Result<Vec<Item>, StoreError> {
        let around = |(_, place): &(PageNo, Place)| {
            let begin = align_down(place.offset());
            let end = align_up(place.offset() + place.bytes() as u64);
            (begin, AlignedBuf::zeroed((end - begin) as usize))
        };
        let mut bufs: Vec<(u64, AlignedBuf)> = chosen.iter().map(around).collect();
        let mut ops: Vec<ReadOp<'_>> =
            bufs.iter_mut().map(|(offset, buf)| ReadOp { offset: *offset, buf }).collect();
        // One that fails spoils all: then each is read alone.
        let is_read = self.file.read_many(&mut ops).is_ok();
        drop(ops);
        let mut items = Vec::with_capacity(chosen.len());
        for ((page, place), (offset, buf)) in chosen.iter().zip(&mut bufs) {
            let is_read = is_read || self.file.read_at(*offset, buf).is_ok();
            let block = &buf[(place.offset() - *offset) as usize..][..place.bytes()];
            let is_it = |head: &BlockHead| {
                head.kind == Kind::Page && head.number == page.0 && place.is_of(head.seq)
            };
            let sound = BlockHead::parse(self.db, block).filter(|(head, _)| is_it(head));
            match sound.filter(|_| is_read) {
                Some((head, payload)) => {
                    let bytes = block[..BLOCK_HEAD + payload.len()].to_vec();
                    let mut packed = Packed::new(Kind::Page, page.0, head.lsn, head.codec, bytes);
                    packed.source = Some(*place);
                    items.push(Item::Block(packed));
                }
                None => cleaned.damaged.push(*page),
            }
        }
        if !cleaned.damaged.is_empty() {
            let damaged: Vec<u32> = cleaned.damaged.iter().map(|page| page.0).collect();
            self.unmark(&damaged);
            let mut segments = self.segments.lock();
            set_damaged(&mut segments, victim);
        }
        Ok(items)
    }
}

fn set_damaged(segments: &mut Segments, number: SegmentNo) {
    segments.get(number).is_damaged = true;
}
