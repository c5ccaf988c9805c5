//! The store's memory and what it does: random changes of pages, flushes, free records, syncs,
//! cleaning and map checkpoints, interleaved at random.
use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;

use crate::disk::{Cell, Disk, LEAF_PAGES, Root, SLOTS, Seq, Spot, first_seq};
use crate::rules::Flaw;

pub(crate) const PAGES: usize = 14;
pub(crate) const LEAVES: usize = PAGES.div_ceil(LEAF_PAGES);
pub(crate) const SEGMENTS: usize = 18;
/// Segments that may be opened without another root.
pub(crate) const PLAN_MAX: usize = 5;
/// Live blocks that a victim may have.
const VICTIM_LIVE_MAX: usize = 5;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Stream {
    User,
    Clean,
    Meta,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum State {
    Free,
    Open,
    Closed,
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) state: State,
    pub(crate) epoch: u64,
    /// Blocks that the map, or the leaves of a root, name.
    pub(crate) live: usize,
    /// The newest chunk with free records, and the newest at all.
    pub(crate) forgets: Seq,
    pub(crate) last_seq: Seq,
    /// What is behind this is not believed.
    pub(crate) end: usize,
}

impl Segment {
    pub(crate) const FREE: Segment =
        Segment { state: State::Free, epoch: 0, live: 0, forgets: 0, last_seq: 0, end: SLOTS };
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum What {
    Flush { page: usize, lsn: u64 },
    Copy { page: usize, lsn: u64, from: Spot },
    Forget { page: usize, lsn: u64 },
    Leaf { leaf: usize },
}

/// A write that is not published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) what: What,
    pub(crate) spot: Spot,
    pub(crate) is_synced: bool,
}

/// A change of a page, in the log.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Change {
    pub(crate) lsn: u64,
    pub(crate) is_free: bool,
}

pub(crate) struct Checkpoint {
    pub(crate) ckpt_seq: Seq,
    pub(crate) todo: Vec<usize>,
}

/// How often what is done, so that seeds explore different ends of the space.
pub(crate) struct Habits {
    pub(crate) flush_max: usize,
    pub(crate) crash_of_100: usize,
    pub(crate) hot_pages: usize,
}

pub(crate) struct Engine {
    pub(crate) disk: Disk,
    pub(crate) dice: Rng,
    pub(crate) flaw: Flaw,
    pub(crate) habits: Habits,
    // The truth: the log, and up to where it is not needed any more.
    pub(crate) lsn: u64,
    pub(crate) history: Vec<Vec<Change>>,
    pub(crate) log_from: u64,
    // The pool: first change that is not in the store, freed pages whose record is not durable.
    pub(crate) dirty: Vec<Option<u64>>,
    pub(crate) forgotten: BTreeMap<usize, u64>,
    // The store.
    pub(crate) map: Vec<Option<Spot>>,
    pub(crate) is_leaf_dirty: Vec<bool>,
    pub(crate) new_leaves: Vec<Option<Spot>>,
    pub(crate) is_marked: Vec<bool>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) open: [Option<(usize, usize)>; 3],
    pub(crate) seq: Seq,
    pub(crate) life: u64,
    pub(crate) root: Root,
    pub(crate) plan: VecDeque<(usize, u64)>,
    pub(crate) next_epoch: u64,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) picked: Vec<(usize, u64, Spot)>,
    pub(crate) crashes: u64,
}

impl Engine {
    pub(crate) fn new(seed: u64, flaw: Flaw) -> Self {
        let mut dice = Rng::with_seed(seed);
        let habits = Habits {
            flush_max: [1, 2, 4][dice.usize(..3)],
            crash_of_100: [1, 2, 6][dice.usize(..3)],
            hot_pages: [PAGES, PAGES, 4][dice.usize(..3)],
        };
        let root = Root {
            generation: 0,
            life: 1,
            ckpt_seq: 0,
            leaves: vec![None; LEAVES],
            scan: Vec::new(),
            next_epoch: 1,
        };
        let mut engine = Engine {
            disk: Disk::default(),
            dice,
            flaw,
            habits,
            lsn: 1,
            history: vec![Vec::new(); PAGES],
            log_from: 1,
            dirty: vec![None; PAGES],
            forgotten: BTreeMap::new(),
            map: vec![None; PAGES],
            is_leaf_dirty: vec![false; LEAVES],
            new_leaves: vec![None; LEAVES],
            is_marked: vec![false; PAGES],
            flights: Vec::new(),
            segments: vec![Segment::FREE; SEGMENTS],
            open: [None; 3],
            seq: first_seq(1),
            life: 1,
            root,
            plan: VecDeque::new(),
            next_epoch: 1,
            checkpoint: None,
            picked: Vec::new(),
            crashes: 0,
        };
        engine.refresh_root();
        engine
    }

    /// Up to here all chunks are published, and so durable.
    pub(crate) fn watermark(&self) -> Seq {
        let oldest = self.flights.iter().filter(|f| {
            // The flaw: what is written counts as what is synced.
            self.flaw != Flaw::WatermarkEarly || f.spot.seq == self.seq
        });
        oldest.map(|f| f.spot.seq - 1).min().unwrap_or(self.seq)
    }

    pub(crate) fn change_page(&mut self) {
        let page = self.dice.usize(..self.habits.hot_pages);
        let is_there = self.history[page].last().is_some_and(|change| !change.is_free);
        let is_free = is_there && self.dice.u8(..12) == 0 && !self.is_marked[page];
        let is_busy = self.is_marked[page] || self.forgotten.contains_key(&page);
        if !is_there && is_busy {
            return;
        }
        self.lsn += 1;
        self.history[page].push(Change { lsn: self.lsn, is_free });
        if is_free {
            self.dirty[page] = None;
            self.forgotten.insert(page, self.lsn);
        } else if self.dirty[page].is_none() {
            self.dirty[page] = Some(self.lsn);
        }
    }

    /// The log's checkpoint passes what is in the store.
    pub(crate) fn advance_log(&mut self) {
        let mut from = self.dirty.iter().flatten().copied().min().unwrap_or(self.lsn + 1);
        if self.flaw != Flaw::FreedPageClean {
            from = self.forgotten.values().copied().fold(from, u64::min);
        }
        self.log_from = self.log_from.max(from);
    }

    pub(crate) fn flush(&mut self) {
        let wanted = self.dice.usize(1..=self.habits.flush_max);
        let mut items = Vec::new();
        for _ in 0..wanted * 3 {
            let page = self.dice.usize(..PAGES);
            let is_ready = self.dirty[page].is_some()
                && !self.forgotten.contains_key(&page)
                && (!self.is_marked[page] || self.flaw == Flaw::TwoInFlight);
            let is_in = items.iter().any(|(what, _)| page_of(what) == Some(page));
            if items.len() < wanted && is_ready && !is_in {
                let lsn = self.history[page].last().map_or(0, |change| change.lsn);
                items.push((What::Flush { page, lsn }, Cell::Empty));
            }
        }
        self.mark_and_write(Stream::User, items);
    }

    pub(crate) fn write_free_records(&mut self) {
        let free = self.forgotten.iter().filter(|(page, _)| !self.is_marked[**page]);
        let items = free.map(|(&page, &lsn)| (What::Forget { page, lsn }, Cell::Empty)).collect();
        self.mark_and_write(Stream::Meta, items);
    }

    pub(crate) fn sync(&mut self) {
        self.disk.sync_segments();
        self.flights.iter_mut().for_each(|flight| flight.is_synced = true);
    }

    /// Publishes the chunk of a synced write, or of all of them.
    pub(crate) fn publish(&mut self, is_all: bool) {
        let synced: Vec<Seq> =
            self.flights.iter().filter(|f| f.is_synced).map(|f| f.spot.seq).collect();
        if synced.is_empty() {
            return;
        }
        let chosen = synced[self.dice.usize(..synced.len())];
        let (now, later) =
            self.flights.drain(..).partition(|f| f.is_synced && (is_all || f.spot.seq == chosen));
        self.flights = later;
        let now: Vec<Flight> = now;
        now.iter().for_each(|flight| self.publish_one(flight));
    }

    pub(crate) fn publish_one(&mut self, flight: &Flight) {
        let is_exclusive = self.flaw != Flaw::TwoInFlight;
        match flight.what {
            What::Flush { page, lsn } => {
                self.is_marked[page] = false;
                self.set_map(page, Some(flight.spot));
                if self.dirty[page].is_some() {
                    let later = |change: &&Change| change.lsn > lsn && !change.is_free;
                    self.dirty[page] = self.history[page].iter().find(later).map(|c| c.lsn);
                }
            }
            What::Copy { page, from, .. } => {
                if is_exclusive {
                    self.is_marked[page] = false;
                }
                if self.map[page] == Some(from) {
                    self.set_map(page, Some(flight.spot));
                }
            }
            What::Forget { page, lsn } => {
                self.is_marked[page] = false;
                self.set_map(page, None);
                if self.forgotten.get(&page) == Some(&lsn) {
                    self.forgotten.remove(&page);
                }
            }
            What::Leaf { leaf } => {
                if let Some(old) = self.root.leaves[leaf]
                    && self.flaw == Flaw::LeavesFreedEarly
                {
                    self.segments[old.segment].live -= 1;
                    self.root.leaves[leaf] = None;
                }
                self.segments[flight.spot.segment].live += 1;
                self.new_leaves[leaf] = Some(flight.spot);
            }
        }
    }

    fn set_map(&mut self, page: usize, spot: Option<Spot>) {
        if let Some(old) = self.map[page] {
            // With R1 broken the segment may be another one by now.
            let live = &mut self.segments[old.segment].live;
            *live = live.saturating_sub(1);
        }
        if let Some(spot) = spot {
            self.segments[spot.segment].live += 1;
        }
        self.map[page] = spot;
        self.is_leaf_dirty[page / LEAF_PAGES] = true;
    }

    /// R1, R5: segments of which nothing is needed are free.
    pub(crate) fn free_segments(&mut self) {
        for number in 0..SEGMENTS {
            let segment = &self.segments[number];
            let is_flown_to = self.flights.iter().any(|f| f.spot.segment == number)
                && self.flaw != Flaw::UnpublishedNotHeld;
            let is_held =
                segment.forgets > self.root.ckpt_seq && self.flaw != Flaw::FreeRecordsNotHeld;
            if segment.state == State::Closed && segment.live == 0 && !is_flown_to && !is_held {
                self.segments[number].state = State::Free;
            }
        }
    }
}

pub(crate) fn page_of(what: &What) -> Option<usize> {
    match *what {
        What::Flush { page, .. } | What::Copy { page, .. } | What::Forget { page, .. } => {
            Some(page)
        }
        What::Leaf { .. } => None,
    }
}

/// What may be a victim.
pub(crate) fn is_victim(segment: &Segment) -> bool {
    segment.state == State::Closed && (1..=VICTIM_LIVE_MAX).contains(&segment.live)
}
