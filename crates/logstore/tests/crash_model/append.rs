//! Writing chunks, opening segments that a durable root allows, and writing roots.
use crate::disk::{Address, Cell, Entry, Root, SLOTS, Seq, Span, Spot};
use crate::engine::{Engine, Flight, PLAN_MAX, SEGMENTS, Segment, State, Stream, What, page_of};
use crate::rules::Flaw;

impl Engine {
    pub(crate) fn mark_and_write(&mut self, stream: Stream, items: Vec<(What, Cell)>) {
        let pages: Vec<usize> = items.iter().filter_map(|(what, _)| page_of(what)).collect();
        pages.iter().for_each(|&page| self.is_marked[page] = true);
        if !self.write_chunk(stream, items) {
            pages.iter().for_each(|&page| self.is_marked[page] = false);
        }
    }

    /// Appends a chunk; `false`: there is nothing, or no segment, to write.
    pub(crate) fn write_chunk(&mut self, stream: Stream, items: Vec<(What, Cell)>) -> bool {
        let blocks = items.iter().filter(|(what, _)| !matches!(what, What::Forget { .. })).count();
        if items.is_empty() || 1 + blocks > SLOTS - 1 {
            return false;
        }
        if let Some((segment, next)) = self.open[stream as usize]
            && next + 1 + blocks > SLOTS
        {
            self.segments[segment].state = State::Closed;
            self.open[stream as usize] = None;
        }
        if self.open[stream as usize].is_none() && !self.open_segment(stream) {
            return false;
        }
        let Some((segment, header)) = self.open[stream as usize] else { return false };
        let durable = self.watermark();
        self.seq += 1;
        let seq = self.seq;
        let epoch = self.segments[segment].epoch;
        let mut slot = header;
        let mut entries = Vec::new();
        for (what, cell) in items {
            let at = if matches!(what, What::Forget { .. }) { header } else { slot + 1 };
            let spot = Spot { segment, slot: at, seq };
            let (entry, cell) = match (what, cell) {
                (What::Forget { page, .. }, _) => (Entry::Forget { page }, None),
                (What::Leaf { leaf }, Cell::Leaf { at, .. }) => {
                    (Entry::Leaf, Some(Cell::Leaf { leaf, seq, at }))
                }
                (What::Flush { page, lsn } | What::Copy { page, lsn, .. }, _) => {
                    (Entry::Page { page, lsn }, Some(Cell::Page { page, lsn, seq }))
                }
                (What::Leaf { .. }, _) => unreachable!("a leaf brings its bytes"),
            };
            entries.push(entry);
            match cell {
                Some(cell) => {
                    slot += 1;
                    self.disk.write(Address::Slot(segment, slot), cell);
                }
                None => self.segments[segment].forgets = seq,
            }
            self.flights.push(Flight { what, spot, is_synced: false });
        }
        let chunk = Cell::Chunk { epoch, seq, durable, entries };
        self.disk.write(Address::Slot(segment, header), chunk);
        self.segments[segment].last_seq = seq;
        self.open[stream as usize] = Some((segment, slot + 1));
        true
    }

    fn open_segment(&mut self, stream: Stream) -> bool {
        if self.plan.is_empty() && self.flaw == Flaw::OpenedUnplanned {
            self.plan_more();
        } else if self.plan.is_empty() {
            self.refresh_root();
        }
        let Some((segment, epoch)) = self.plan.pop_front() else { return false };
        assert_eq!(self.segments[segment].state, State::Free, "what is planned stays free");
        self.segments[segment] = Segment { state: State::Open, epoch, ..Segment::FREE };
        self.disk.write(Address::Slot(segment, 0), Cell::Header { epoch, life: self.life });
        self.open[stream as usize] = Some((segment, 1));
        true
    }

    pub(crate) fn plan_more(&mut self) {
        for segment in 0..SEGMENTS {
            let is_planned = self.plan.iter().any(|&(other, _)| other == segment);
            let is_free = self.segments[segment].state == State::Free;
            if is_free && !is_planned && self.plan.len() < PLAN_MAX {
                self.plan.push_back((segment, self.next_epoch));
                self.next_epoch += 1;
            }
        }
    }

    /// Another root of the same map, with more segments that may be opened.
    pub(crate) fn refresh_root(&mut self) {
        self.plan_more();
        let scan = self.spans_since(self.root.ckpt_seq);
        self.finish_root(Root { scan, ..self.root.clone() });
    }

    /// What recovery must look into for chunks newer than `seq`.
    pub(crate) fn spans_since(&self, seq: Seq) -> Vec<Span> {
        let may_hold = |s: &usize| match self.segments[*s].state {
            State::Open => true,
            State::Closed => self.segments[*s].last_seq > seq,
            State::Free => false,
        };
        let span = |segment| {
            let of = &self.segments[segment];
            Span { segment, epoch: of.epoch, end: of.end }
        };
        (0..SEGMENTS).filter(may_hold).map(span).chain(self.planned_spans()).collect()
    }

    fn planned_spans(&self) -> impl Iterator<Item = Span> {
        self.plan.iter().map(|&(segment, epoch)| Span { segment, epoch, end: SLOTS })
    }

    pub(crate) fn write_root(&mut self, root: &mut Root) {
        root.generation = self.root.generation + 1;
        root.life = self.life;
        root.next_epoch = self.next_epoch;
        let slot = Address::Root((root.generation % 2) as usize);
        self.disk.write(slot, Cell::Root(Box::new(root.clone())));
    }

    pub(crate) fn finish_root(&mut self, mut root: Root) {
        self.write_root(&mut root);
        self.disk.sync_roots();
        self.root = root;
    }
}
