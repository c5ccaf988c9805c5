//! What is known of each segment, which chunks are under way, and which pages have a write under
//! way: memory only, under one lock.
use std::collections::{BTreeSet, HashSet, VecDeque};

use weir_base::Lsn;

use crate::format::Span;
use crate::ids::{Epoch, Place, SegmentNo, Seq};

/// Where a segment stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Nothing in it is needed.
    Free,
    /// Free, and a root says that it may be opened.
    Planned,
    /// A stream appends to it.
    Open,
    /// Nothing is appended to it any more.
    Closed,
}

/// What appends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamKind {
    /// Pages as they are flushed.
    User,
    /// Pages that the cleaner copies.
    Clean,
    /// Leaves of the map, and free records.
    Meta,
}

/// One segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) status: Status,
    pub(crate) epoch: Epoch,
    /// Holds leaves of the map or free records; pages otherwise.
    pub(crate) is_meta: bool,
    /// Units of blocks that the map, or a root, names.
    pub(crate) live: u64,
    /// Chunks in it that are not published.
    pub(crate) flying: u32,
    /// The newest chunk with free records.
    pub(crate) forgets: Seq,
    /// The newest chunk.
    pub(crate) newest: Seq,
    /// Where what is believed ends, in blocks of 4096 bytes.
    pub(crate) end: u32,
    /// A block that is needed cannot be read: it cannot be cleaned.
    pub(crate) is_damaged: bool,
}

impl Segment {
    pub(crate) fn free(end: u32) -> Segment {
        Segment {
            status: Status::Free,
            epoch: Epoch(0),
            is_meta: false,
            live: 0,
            flying: 0,
            forgets: Seq(0),
            newest: Seq(0),
            end,
            is_damaged: false,
        }
    }

    /// Nothing in it is needed, nothing appended.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.status, Status::Free | Status::Planned)
    }
}

/// All segments, and what is under way.
pub(crate) struct Segments {
    pub(crate) list: Vec<Segment>,
    /// Blocks of 4096 bytes a segment; units a segment.
    pub(crate) blocks: u32,
    pub(crate) units: u64,
    /// What a durable root allows to be opened.
    pub(crate) plan: VecDeque<(SegmentNo, Epoch)>,
    pub(crate) next_epoch: Epoch,
    pub(crate) life: u64,
    /// The newest chunk's number.
    pub(crate) seq: Seq,
    unpublished: BTreeSet<Seq>,
    /// R2: pages with a write under way.
    busy: HashSet<u32>,
    /// The map checkpoint of the durable root.
    pub(crate) ckpt_seq: Seq,
    /// Blocks that are needed, and their units.
    pub(crate) live_blocks: u64,
    live_units: u64,
    /// The newest LSN of any page that was written.
    pub(crate) newest: Lsn,
    /// Page writes that room is held for.
    pub(crate) reserved: u64,
    /// Page writes since the last map checkpoint began.
    pub(crate) pages_since: u64,
    /// Segments opened since then.
    pub(crate) opened_since: usize,
    pub(crate) halted: Option<String>,
}

impl Segments {
    pub(crate) fn new(segments: u32, segment_bytes: usize, life: u64) -> Segments {
        let blocks = (segment_bytes / weir_base::ALIGN) as u32;
        Segments {
            list: vec![Segment::free(blocks); segments as usize],
            blocks,
            units: (segment_bytes / crate::ids::UNIT) as u64,
            plan: VecDeque::new(),
            next_epoch: Epoch(1),
            life,
            seq: Seq::before(life),
            unpublished: BTreeSet::new(),
            busy: HashSet::new(),
            ckpt_seq: Seq(0),
            live_blocks: 0,
            live_units: 0,
            newest: Lsn::ZERO,
            reserved: 0,
            pages_since: 0,
            opened_since: 0,
            halted: None,
        }
    }

    /// More segments, free ones.
    pub(crate) fn extend(&mut self, segments: u32) {
        let fresh = Segment::free(self.blocks);
        self.list.resize(self.list.len().max(segments as usize), fresh);
    }

    /// Fewer segments, if nothing behind `segments` is needed, and `least_free` of them are free;
    /// `false`: it is not so.
    pub(crate) fn cut(&mut self, segments: usize, least_free: usize) -> bool {
        let Some(behind) = self.list.get(segments..) else { return false };
        if !behind.iter().all(Segment::is_free) || self.free_in(segments) < least_free {
            return false;
        }
        self.list.truncate(segments);
        self.plan.retain(|(number, _)| (number.0 as usize) < segments);
        true
    }

    /// The last segment that is not free, and where it stands.
    pub(crate) fn last_used(&self) -> Option<(SegmentNo, &Segment)> {
        let last = self.list.iter().rposition(|s| !s.is_free())?;
        Some((SegmentNo(last as u32), &self.list[last]))
    }

    pub(crate) fn get(&mut self, segment: SegmentNo) -> &mut Segment {
        &mut self.list[segment.0 as usize]
    }

    pub(crate) fn segment_of(&self, place: Place) -> SegmentNo {
        SegmentNo((place.position() / self.units) as u32)
    }

    /// Segments that are free, planned ones included.
    pub(crate) fn free_count(&self) -> usize {
        self.free_in(self.list.len())
    }

    /// Of the first so many segments those that are free, planned ones included.
    pub(crate) fn free_in(&self, segments: usize) -> usize {
        self.list.iter().take(segments).filter(|s| s.is_free()).count()
    }

    /// Whether chunks have been begun that are not published, or pages are marked.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.unpublished.is_empty() || !self.busy.is_empty()
    }

    /// Segments that the next map checkpoint makes free: closed ones of free records (R5).
    pub(crate) fn pinned_count(&self) -> usize {
        let is_pinned = |s: &&Segment| {
            s.status == Status::Closed && s.live == 0 && s.flying == 0 && s.forgets > self.ckpt_seq
        };
        self.list.iter().filter(is_pinned).count()
    }

    /// Units of blocks that are needed, everywhere.
    pub(crate) fn live(&self) -> u64 {
        self.live_units
    }

    /// R9: up to here all chunks of this life are published, and so durable.
    pub(crate) fn watermark(&self) -> Seq {
        self.unpublished.first().map_or(self.seq, |oldest| oldest.back())
    }

    /// Takes free segments into a plan until it has `max`: each under a new epoch (R3). They may be
    /// opened when a root that names them is durable.
    pub(crate) fn plan_more(&mut self, max: usize) -> Vec<(SegmentNo, Epoch)> {
        let mut fresh = Vec::new();
        for (number, segment) in (0..).zip(&mut self.list) {
            if self.plan.len() + fresh.len() >= max {
                break;
            }
            if segment.status == Status::Free {
                segment.status = Status::Planned;
                fresh.push((SegmentNo(number), self.next_epoch));
                self.next_epoch = Epoch(self.next_epoch.0 + 1);
            }
        }
        fresh
    }

    /// Opens a planned segment, if at least `keep` free ones are left then.
    pub(crate) fn open(&mut self, stream: StreamKind, keep: usize) -> Opening {
        if self.free_count() <= keep {
            return Opening::NoRoom;
        }
        let Some((number, epoch)) = self.plan.pop_front() else { return Opening::NoPlan };
        self.opened_since += 1;
        let fresh = Segment::free(self.blocks);
        let is_meta = stream == StreamKind::Meta;
        *self.get(number) = Segment { status: Status::Open, epoch, is_meta, ..fresh };
        Opening::Open(number, epoch)
    }

    /// Numbers a chunk that is about to be written to `segment`.
    pub(crate) fn begin_chunk(&mut self, segment: SegmentNo) -> (Seq, Seq) {
        let durable = self.watermark();
        self.seq = self.seq.next();
        let seq = self.seq;
        self.unpublished.insert(seq);
        let segment = self.get(segment);
        segment.flying += 1;
        segment.newest = seq;
        (seq, durable)
    }

    /// The chunk is durable and the map knows of it.
    pub(crate) fn end_chunk(&mut self, segment: SegmentNo, seq: Seq) {
        self.unpublished.remove(&seq);
        self.get(segment).flying -= 1;
        self.reap(segment);
    }

    pub(crate) fn close(&mut self, segment: SegmentNo) {
        self.get(segment).status = Status::Closed;
        self.reap(segment);
    }

    pub(crate) fn add_live(&mut self, place: Place) {
        self.live_blocks += 1;
        self.live_units += place.units() as u64;
        let segment = self.segment_of(place);
        self.get(segment).live += place.units() as u64;
    }

    pub(crate) fn drop_live(&mut self, place: Place) {
        if place.is_none() {
            return;
        }
        let number = self.segment_of(place);
        let segment = self.get(number);
        debug_assert!(segment.live >= place.units() as u64, "what dies was alive");
        segment.live -= place.units() as u64;
        self.live_blocks -= 1;
        self.live_units -= place.units() as u64;
        self.reap(number);
    }

    /// R1, R5: frees the segment if nothing in it is needed.
    pub(crate) fn reap(&mut self, number: SegmentNo) {
        let ckpt_seq = self.ckpt_seq;
        let segment = self.get(number);
        let is_needed = segment.live > 0 || segment.flying > 0 || segment.forgets > ckpt_seq;
        if segment.status == Status::Closed && !is_needed {
            segment.status = Status::Free;
            segment.is_damaged = false;
        }
    }

    /// After recovery: what is needed stays closed (R7).
    pub(crate) fn adopt(&mut self) {
        for number in 0..self.list.len() as u32 {
            self.get(SegmentNo(number)).status = Status::Closed;
            self.reap(SegmentNo(number));
        }
    }

    /// A map checkpoint is durable.
    pub(crate) fn checkpointed(&mut self, ckpt_seq: Seq) {
        self.ckpt_seq = ckpt_seq;
        (0..self.list.len() as u32).for_each(|number| self.reap(SegmentNo(number)));
    }

    /// What recovery must look into for chunks newer than `seq`.
    pub(crate) fn spans_since(&self, seq: Seq) -> Vec<Span> {
        let may_hold = |s: &Segment| match s.status {
            Status::Open => true,
            Status::Closed => s.newest > seq,
            Status::Free | Status::Planned => false,
        };
        let used = (0..).zip(&self.list).filter(|(_, s)| may_hold(s)).map(|(number, s)| Span {
            segment: SegmentNo(number),
            epoch: s.epoch,
            end: s.end,
        });
        used.chain(self.planned()).collect()
    }

    /// The plan.
    pub(crate) fn planned(&self) -> impl Iterator<Item = Span> {
        self.plan.iter().map(|&(segment, epoch)| Span { segment, epoch, end: self.blocks })
    }

    /// R2: marks all of `pages`, or none if one of them is marked.
    pub(crate) fn mark_all(&mut self, pages: &[u32]) -> bool {
        if pages.iter().any(|page| self.busy.contains(page)) {
            return false;
        }
        self.busy.extend(pages);
        true
    }

    /// R2: marks a page unless it is.
    pub(crate) fn mark(&mut self, page: u32) -> bool {
        self.busy.insert(page)
    }

    pub(crate) fn unmark(&mut self, page: u32) {
        self.busy.remove(&page);
    }
}

/// Whether a segment could be opened.
pub(crate) enum Opening {
    /// This one, under this epoch.
    Open(SegmentNo, Epoch),
    /// Another root is needed first.
    NoPlan,
    /// Too few are free.
    NoRoom,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> Segments {
        let mut all = Segments::new(6, 1 << 20, 1);
        let plan = all.plan_more(4);
        all.plan.extend(plan);
        all
    }

    fn opened(all: &mut Segments, stream: StreamKind) -> SegmentNo {
        match all.open(stream, 0) {
            Opening::Open(number, _) => number,
            _ => panic!("a segment"),
        }
    }

    #[test]
    fn a_segment_is_free_when_nothing_in_it_is_needed() {
        let mut all = segments();
        let number = opened(&mut all, StreamKind::User);
        let (seq, durable) = all.begin_chunk(number);
        assert_eq!((durable, all.watermark()), (Seq::before(1), Seq::before(1)));
        let place = Place::new(u64::from(number.0) * all.units + 64, 3, seq);
        all.add_live(place);
        all.close(number);
        all.drop_live(place);
        assert_eq!(all.get(number).status, Status::Closed, "R1: a chunk is on its way");
        all.end_chunk(number, seq);
        assert_eq!((all.get(number).status, all.watermark()), (Status::Free, seq));

        let number = opened(&mut all, StreamKind::Meta);
        let (seq, _) = all.begin_chunk(number);
        all.get(number).forgets = seq;
        all.end_chunk(number, seq);
        all.close(number);
        assert_eq!(all.get(number).status, Status::Closed, "R5: until the next map checkpoint");
        assert_eq!(all.spans_since(seq.back()).len(), 1 + all.plan.len());
        all.checkpointed(seq);
        assert_eq!(all.get(number).status, Status::Free);
    }

    #[test]
    fn no_epoch_is_given_twice_and_what_is_planned_is_not_planned_again() {
        let mut all = segments();
        assert!(all.plan_more(4).is_empty());
        opened(&mut all, StreamKind::User);
        let more = all.plan_more(4);
        assert_eq!(more, [(SegmentNo(4), Epoch(5))]);
        assert_eq!(all.free_count(), 5);
        assert!(matches!(all.open(StreamKind::Clean, 5), Opening::NoRoom));
    }

    #[test]
    fn only_what_is_free_is_cut_off() {
        let mut all = segments();
        assert_eq!(opened(&mut all, StreamKind::User), SegmentNo(0));
        assert_eq!(opened(&mut all, StreamKind::Clean), SegmentNo(1));
        all.close(SegmentNo(0));
        assert_eq!(all.last_used().map(|last| last.0), Some(SegmentNo(1)));
        assert!(!all.cut(1, 0) && !all.cut(7, 0) && !all.cut(3, 3));
        assert!(all.cut(3, 2));
        // What was planned there is not opened any more.
        assert_eq!((all.list.len(), all.plan.len()), (3, 1));
        all.close(SegmentNo(1));
        assert!(all.last_used().is_none());
    }

    #[test]
    fn one_write_of_a_page_is_under_way() {
        let mut all = segments();
        assert!(all.mark_all(&[1, 2]) && !all.mark_all(&[3, 2]) && all.mark(3) && !all.mark(3));
        all.unmark(2);
        assert!(all.mark_all(&[2]));
    }
}
