//! A crash, and what is made of what it left: by the store, and against the truth.
use crate::disk::{Address, Cell, Entry, LEAF_PAGES, Root, Seq, Span, Spot, first_seq, life_of};
use crate::engine::{Change, Engine, LEAVES, PAGES, SEGMENTS, Segment, State};
use crate::rules::Flaw;

/// What a chunk says of a page: where it lies, or that it is no more.
type Found = Option<(Seq, Option<Spot>)>;

struct Scan {
    found: Vec<Found>,
    used: Vec<Span>,
    segments: Vec<Segment>,
    newest: Seq,
}

impl Engine {
    /// The process ends, with or without the machine, and the store is opened again.
    pub(crate) fn crash(&mut self) -> Result<(), String> {
        self.crashes += 1;
        if self.dice.u8(..3) != 0 {
            self.disk.lose_power(&mut self.dice);
        }
        self.recover()
    }

    fn recover(&mut self) -> Result<(), String> {
        self.disk.sync_roots();
        if self.flaw != Flaw::RootBeforeAdopted {
            self.disk.sync_segments();
        }
        let root = self.newest_root()?;
        let base = self.read_leaves(&root)?;
        let mut scan = self.scan(&root);
        let mut is_leaf_dirty = vec![false; LEAVES];
        let mut map = base;
        for page in 0..PAGES {
            if let Some((_, spot)) = scan.found[page] {
                map[page] = spot;
                is_leaf_dirty[page / LEAF_PAGES] = true;
            }
        }
        let lsns = self.read_all(&map)?;
        self.judge(&lsns)?;
        for spot in map.iter().chain(&root.leaves).flatten() {
            scan.segments[spot.segment].live += 1;
        }
        for segment in &mut scan.segments {
            let is_needed = segment.live > 0 || segment.forgets > root.ckpt_seq;
            segment.state = if is_needed { State::Closed } else { State::Free };
        }
        (self.map, self.is_leaf_dirty) = (map, is_leaf_dirty);
        self.begin_life(root, scan);
        self.find_dirty(&lsns);
        self.write_recovery_root()
    }

    fn newest_root(&self) -> Result<Root, String> {
        let mut newest: Option<&Root> = None;
        for slot in 0..2 {
            if let Cell::Root(root) = self.disk.read(Address::Root(slot))
                && newest.is_none_or(|other| other.generation < root.generation)
            {
                newest = Some(root);
            }
        }
        newest.cloned().ok_or_else(|| "no root".to_owned())
    }

    fn read_leaves(&self, root: &Root) -> Result<Vec<Option<Spot>>, String> {
        let mut map = Vec::new();
        for (leaf, spot) in root.leaves.iter().enumerate() {
            let Some(spot) = spot else {
                map.extend([None; LEAF_PAGES]);
                continue;
            };
            match self.disk.slot(spot.segment, spot.slot) {
                Cell::Leaf { leaf: found, seq, at } if *found == leaf && *seq == spot.seq => {
                    map.extend(at);
                }
                other => return Err(format!("leaf {leaf} at {spot:?}: {other:?}")),
            }
        }
        map.truncate(PAGES);
        Ok(map)
    }

    fn scan(&mut self, root: &Root) -> Scan {
        let mut scan = Scan {
            found: vec![None; PAGES],
            used: Vec::new(),
            segments: vec![Segment::FREE; SEGMENTS],
            newest: root.ckpt_seq,
        };
        let mut chunks = Vec::new();
        for span in &root.scan {
            let &Cell::Header { epoch, life } = self.disk.slot(span.segment, 0) else { continue };
            if epoch != span.epoch {
                continue;
            }
            let mut next = 1;
            while next < span.end
                && let Cell::Chunk { epoch, seq, durable, entries } =
                    self.disk.slot(span.segment, next)
                && *epoch == span.epoch
                && life_of(*seq) == life
            {
                chunks.push((span.segment, next, *seq, *durable));
                next += 1 + entries.iter().filter(|e| !matches!(e, Entry::Forget { .. })).count();
            }
            let segment = &mut scan.segments[span.segment];
            (segment.epoch, segment.end) = (epoch, next);
            scan.used.push(Span { end: next, ..*span });
        }
        for &(segment, header, seq, _) in &chunks {
            // Of another life nothing is said: a block that a crash tore stays torn, and the next
            // life's chunks know only of those after it.
            let is_believed = |durable: &u64| {
                life_of(*durable) == life_of(seq) || self.flaw == Flaw::WatermarkOfAnyLife
            };
            let said = chunks.iter().map(|chunk| chunk.3).filter(is_believed);
            let durable = said.max().unwrap_or(0);
            self.take_chunk(&mut scan, root.ckpt_seq, (segment, header, seq), durable);
        }
        scan
    }

    fn take_chunk(
        &self,
        scan: &mut Scan,
        ckpt_seq: Seq,
        (segment, header, seq): (usize, usize, Seq),
        durable: Seq,
    ) {
        let Cell::Chunk { entries, .. } = self.disk.slot(segment, header) else { return };
        scan.newest = scan.newest.max(seq);
        scan.segments[segment].last_seq = scan.segments[segment].last_seq.max(seq);
        if seq <= ckpt_seq && self.flaw != Flaw::OldChunksTaken {
            return;
        }
        let mut slot = header;
        for entry in entries {
            let (page, spot) = match entry {
                Entry::Forget { page } => {
                    scan.segments[segment].forgets = seq;
                    (*page, None)
                }
                Entry::Leaf => {
                    slot += 1;
                    continue;
                }
                Entry::Page { page, lsn } => {
                    slot += 1;
                    let whole = Cell::Page { page: *page, lsn: *lsn, seq };
                    let is_known = seq <= durable || self.flaw == Flaw::TornBlockTaken;
                    if !is_known && *self.disk.slot(segment, slot) != whole {
                        continue;
                    }
                    (*page, Some(Spot { segment, slot, seq }))
                }
            };
            let is_newer = scan.found[page].is_none_or(|(other, _)| seq > other);
            if is_newer || self.flaw == Flaw::LastFoundTaken {
                scan.found[page] = Some((seq, spot));
            }
        }
    }

    /// The LSN of each page that the map names.
    fn read_all(&self, map: &[Option<Spot>]) -> Result<Vec<Option<u64>>, String> {
        let read = |(page, spot): (usize, &Option<Spot>)| {
            let Some(spot) = spot else { return Ok(None) };
            match self.disk.slot(spot.segment, spot.slot) {
                Cell::Page { page: found, lsn, seq } if *found == page && *seq == spot.seq => {
                    Ok(Some(*lsn))
                }
                other => Err(format!("page {page} at {spot:?}: {other:?}")),
            }
        };
        map.iter().enumerate().map(read).collect()
    }

    /// Everything that the log does not have any more must be in the store.
    fn judge(&self, lsns: &[Option<u64>]) -> Result<(), String> {
        for (page, &found) in lsns.iter().enumerate() {
            let needed = self.history[page].iter().rfind(|change| change.lsn < self.log_from);
            let is_freed_later =
                self.history[page].iter().any(|c| c.lsn >= self.log_from && c.is_free);
            let Some(needed) = needed else { continue };
            match found {
                Some(lsn) if needed.is_free && lsn < needed.lsn => {
                    return Err(format!("page {page}, freed at {needed:?}, is there as of {lsn}"));
                }
                _ if needed.is_free || is_freed_later => {}
                Some(lsn) if lsn >= needed.lsn => {}
                _ => return Err(format!("page {page}: {needed:?} needed, {found:?} found")),
            }
        }
        Ok(())
    }

    fn begin_life(&mut self, root: Root, scan: Scan) {
        self.life = root.life + 1;
        self.next_epoch = root.next_epoch;
        self.new_leaves.clone_from(&root.leaves);
        self.is_marked = vec![false; PAGES];
        self.flights.clear();
        self.open = [None; 3];
        self.seq = first_seq(self.life);
        self.plan.clear();
        (self.checkpoint, self.picked) = (None, Vec::new());
        self.segments = scan.segments;
        if self.flaw == Flaw::AppendedAfterCrash {
            self.life = root.life;
            self.seq = scan.newest.max(first_seq(self.life));
            let is_of_life = |span: &&Span| {
                let header = self.disk.slot(span.segment, 0);
                matches!(header, Cell::Header { life, .. } if *life == self.life)
            };
            let going_on = scan.used.iter().rev().find(is_of_life);
            if let Some(span) = going_on.filter(|span| span.end + 1 < crate::disk::SLOTS) {
                let segment = &mut self.segments[span.segment];
                (segment.state, segment.end) = (State::Open, crate::disk::SLOTS);
                self.open[0] = Some((span.segment, span.end));
            }
        }
        let ends = |span: &Span| Span { end: self.segments[span.segment].end, ..*span };
        self.root = Root { scan: scan.used.iter().map(ends).collect(), ..root };
    }

    /// The log is redone: what the store lacks is dirty again.
    fn find_dirty(&mut self, lsns: &[Option<u64>]) {
        self.forgotten.clear();
        for (page, lsn) in lsns.iter().enumerate() {
            self.dirty[page] = None;
            let Some(last) = self.history[page].last() else { continue };
            let found = lsn.unwrap_or(0);
            if last.is_free {
                if last.lsn >= self.log_from || lsn.is_some() {
                    self.forgotten.insert(page, last.lsn);
                }
            } else if found < last.lsn {
                let is_lacking =
                    |c: &&Change| c.lsn > found && c.lsn >= self.log_from && !c.is_free;
                self.dirty[page] = self.history[page].iter().find(is_lacking).map(|c| c.lsn);
            }
        }
    }

    /// The root of the new life, before which nothing else is written; sometimes the next crash
    /// comes at once.
    fn write_recovery_root(&mut self) -> Result<(), String> {
        if self.dice.u8(..6) == 0 {
            let mut root = self.root.clone();
            self.write_root(&mut root);
            return self.crash();
        }
        self.refresh_root();
        Ok(())
    }
}
