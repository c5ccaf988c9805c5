//! The disk of the model: a file of segments and a file of two root slots, in cells that are
//! written whole or not at all; what is not synced may be lost, each cell for itself.
use std::collections::HashMap;

use fastrand::Rng;

/// Cells a segment: the header, then chunk headers, each followed by its blocks.
pub(crate) const SLOTS: usize = 9;
/// Pages that one leaf of the map speaks of.
pub(crate) const LEAF_PAGES: usize = 4;

/// A chunk's number: the life it was written in above the count within it, so that it grows for
/// ever.
pub(crate) type Seq = u64;
const LIFE_SHIFT: u32 = 32;

/// The number before a life's first chunk.
pub(crate) fn first_seq(life: u64) -> Seq {
    life << LIFE_SHIFT
}

/// The life that a chunk was written in.
pub(crate) fn life_of(seq: Seq) -> u64 {
    seq >> LIFE_SHIFT
}

/// Where a block lies, and in which chunk it was written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spot {
    pub(crate) segment: usize,
    pub(crate) slot: usize,
    pub(crate) seq: Seq,
}

/// What a chunk's header says of one block, or of a page that is no more.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Entry {
    Page { page: usize, lsn: u64 },
    Leaf,
    Forget { page: usize },
}

/// A segment that recovery looks into: it may be opened, or was, under this epoch; nothing from
/// `end` on is believed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Span {
    pub(crate) segment: usize,
    pub(crate) epoch: u64,
    pub(crate) end: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Root {
    pub(crate) generation: u64,
    pub(crate) life: u64,
    pub(crate) ckpt_seq: Seq,
    pub(crate) leaves: Vec<Option<Spot>>,
    pub(crate) scan: Vec<Span>,
    pub(crate) next_epoch: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Cell {
    Empty,
    Torn,
    Header {
        epoch: u64,
        life: u64,
    },
    /// All chunks up to `durable` were so when this one was written.
    Chunk {
        epoch: u64,
        seq: Seq,
        durable: Seq,
        entries: Vec<Entry>,
    },
    Page {
        page: usize,
        lsn: u64,
        seq: Seq,
    },
    Leaf {
        leaf: usize,
        seq: Seq,
        at: Vec<Option<Spot>>,
    },
    Root(Box<Root>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Address {
    Slot(usize, usize),
    Root(usize),
}

#[derive(Default)]
pub(crate) struct Disk {
    durable: HashMap<Address, Cell>,
    unsynced: Vec<(Address, Cell)>,
}

impl Disk {
    pub(crate) fn write(&mut self, at: Address, cell: Cell) {
        self.unsynced.push((at, cell));
    }

    pub(crate) fn read(&self, at: Address) -> &Cell {
        let newest = self.unsynced.iter().rev().find(|(other, _)| *other == at);
        let found = newest.map(|(_, cell)| cell).or_else(|| self.durable.get(&at));
        found.unwrap_or(&Cell::Empty)
    }

    pub(crate) fn slot(&self, segment: usize, slot: usize) -> &Cell {
        self.read(Address::Slot(segment, slot))
    }

    pub(crate) fn sync_segments(&mut self) {
        self.sync(|at| matches!(at, Address::Slot(..)));
    }

    pub(crate) fn sync_roots(&mut self) {
        self.sync(|at| matches!(at, Address::Root(_)));
    }

    fn sync(&mut self, is_of_file: impl Fn(&Address) -> bool) {
        let (durable, rest) = self.unsynced.drain(..).partition(|(at, _)| is_of_file(at));
        self.unsynced = rest;
        let durable: Vec<(Address, Cell)> = durable;
        self.durable.extend(durable);
    }

    /// Of what was not synced each cell is there or not; a root may also be neither the old nor the
    /// new.
    pub(crate) fn lose_power(&mut self, dice: &mut Rng) {
        for (at, cell) in std::mem::take(&mut self.unsynced) {
            match (at, dice.u8(..6)) {
                (Address::Root(_), 0) => drop(self.durable.insert(at, Cell::Torn)),
                (_, 0..3) => {}
                _ => drop(self.durable.insert(at, cell)),
            }
        }
    }
}
