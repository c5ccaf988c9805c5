//! The grid: a quad-tree over all doubles, whose cells have keys in the order of a Z-curve.
//!
//! An axis has 2^48 places. Up to 256 from zero they lie at even distances, so that degrees, unit
//! squares and pixels have no place where the scale changes; beyond that, each power of two has as
//! many places as those 256 together, as floating point has it. So there is a place for each
//! double, and no bounds have to be known before.
//!
//! A cell of level L is a square of 2^(48-L) places a side: level 0 is all, level 48 a place. Its
//! key is the bits of its coordinates in turns (G. M. Morton, "A computer oriented geodetic data
//! base and a new technique in file sequencing", 1966), most significant first, zero where the
//! level is too coarse to say; then the level. So a cell comes right before all cells that lie in
//! it.
use smallvec::SmallVec;

use crate::mbr::Mbr;

/// Bits of a coordinate on the grid.
pub(crate) const BITS: u32 = 48;
/// The greatest power of two below which places lie at even distances.
const LINEAR_BITS: u32 = 8;
/// Bits of a place within one of an axis's pieces (below 2^8, then each power of two): what is left
/// beside the sign and 10 bits for the piece.
const PIECE_BITS: u32 = BITS - 11;

/// How long the key of an entry is, in bytes.
pub const KEY_BYTES: usize = 13;

/// The key of an entry, or a bound of a range of keys.
pub(crate) type Key = [u8; KEY_BYTES];

/// The place of a coordinate on its axis; no greater coordinate has a lesser one.
pub(crate) fn place(at: f64) -> u64 {
    let half = 1u64 << (BITS - 1);
    let far = at.abs();
    let linear = f64::from(1u32 << LINEAR_BITS);
    let steps = if far < linear {
        // Less than 2^PIECE_BITS: the product is exact but for the cut.
        (far * ((1u64 << PIECE_BITS) as f64 / linear)) as u64
    } else {
        // Infinity comes behind the greatest number.
        let bits = far.to_bits();
        let piece = (bits >> 52) - 1023 - u64::from(LINEAR_BITS) + 1;
        let within = (bits & ((1 << 52) - 1)) >> (52 - PIECE_BITS);
        (piece << PIECE_BITS) | within
    };
    if at < 0.0 { half - 1 - steps } else { half + steps }
}

/// A rectangle on the grid: the places of its corners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Places {
    pub(crate) min: [u64; 2],
    pub(crate) max: [u64; 2],
}

impl Places {
    pub(crate) fn of(mbr: &Mbr) -> Places {
        Places { min: mbr.min().map(place), max: mbr.max().map(place) }
    }

    /// The least level whose cells are so small that a rectangle of this size may have a point in
    /// no more than two of them a side, and half as fine: most rectangles then need one or two.
    fn level(&self) -> u32 {
        let side = (0..2).map(|a| self.max[a] - self.min[a]).max().unwrap_or(0);
        let bits = u64::BITS - side.leading_zeros();
        BITS - if side == 0 { 0 } else { (bits + 1).min(BITS) }
    }

    pub(crate) fn meets(&self, other: &Places) -> bool {
        (0..2).all(|a| self.min[a] <= other.max[a] && other.min[a] <= self.max[a])
    }

    fn holds(&self, other: &Places) -> bool {
        (0..2).all(|a| self.min[a] <= other.min[a] && other.max[a] <= self.max[a])
    }
}

/// A cell: its coordinates in cells of its level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    at: [u64; 2],
    level: u32,
}

/// Puts a zero in front of each bit.
fn spread(at: u64) -> u128 {
    let mut out = u128::from(at);
    for (shift, mask) in [
        (32, 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff),
        (16, 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333_3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555_5555_5555_5555_5555),
    ] {
        out = (out | (out << shift)) & mask;
    }
    out
}

impl Cell {
    /// The cell of a level that a place lies in.
    pub(crate) fn of(place: [u64; 2], level: u32) -> Cell {
        Cell { at: place.map(|at| at >> (BITS - level)), level }
    }

    pub(crate) fn level(self) -> u32 {
        self.level
    }

    /// The first place on the curve.
    pub(crate) fn first(self) -> u128 {
        let [x, y] = self.at.map(spread);
        ((x << 1) | y) << (2 * (BITS - self.level))
    }

    /// Behind the last place on the curve.
    pub(crate) fn end(self) -> u128 {
        self.first() + (1u128 << (2 * (BITS - self.level)))
    }

    pub(crate) fn key(self) -> Key {
        key(self.first(), self.level)
    }

    /// Whether another one, of no coarser level, lies in it.
    pub(crate) fn holds(self, other: &Cell) -> bool {
        let finer = other.level - self.level.min(other.level);
        self.level <= other.level && self.at == other.at.map(|at| at >> finer)
    }

    /// Which share of it lies in a window.
    pub(crate) fn share(self, window: &Places) -> f64 {
        let own = self.places();
        let along = |a: usize| {
            let (from, to) = (own.min[a].max(window.min[a]), own.max[a].min(window.max[a]));
            (to + 1).saturating_sub(from) as f64 / (own.max[a] - own.min[a] + 1) as f64
        };
        along(0) * along(1)
    }

    pub(crate) fn above(self) -> Option<Cell> {
        let level = self.level.checked_sub(1)?;
        Some(Cell { at: self.at.map(|at| at >> 1), level })
    }

    /// The four cells that it is made of, in the order of their keys; a place has none.
    pub(crate) fn parts(self) -> impl Iterator<Item = Cell> {
        let level = self.level + 1;
        let parts = if level > BITS { 0 } else { 4u64 };
        (0..parts).map(move |part| {
            let at = [(self.at[0] << 1) | (part >> 1), (self.at[1] << 1) | (part & 1)];
            Cell { at, level }
        })
    }

    fn places(self) -> Places {
        let min = self.at.map(|at| at << (BITS - self.level));
        Places { min, max: min.map(|at| at + ((1 << (BITS - self.level)) - 1)) }
    }

    pub(crate) fn meets(self, window: &Places) -> bool {
        window.meets(&self.places())
    }

    pub(crate) fn lies_in(self, window: &Places) -> bool {
        window.holds(&self.places())
    }
}

/// The key of a place on the curve and a level; behind the last place, what all keys are below.
pub(crate) fn key(first: u128, level: u32) -> Key {
    let mut key = [u8::MAX; KEY_BYTES];
    if first < 1 << (2 * BITS) {
        key[..KEY_BYTES - 1].copy_from_slice(&first.to_be_bytes()[4..]);
        key[KEY_BYTES - 1] = level as u8;
    }
    key
}

/// The cells that a rectangle is kept under: one to four of one level that hold it together, in the
/// order of their keys.
pub(crate) fn cover(places: &Places) -> SmallVec<[Cell; 4]> {
    let level = places.level();
    let (from, to) = (Cell::of(places.min, level), Cell::of(places.max, level));
    let mut cells: SmallVec<[Cell; 4]> = SmallVec::new();
    for x in from.at[0]..=to.at[0] {
        for y in from.at[1]..=to.at[1] {
            cells.push(Cell { at: [x, y], level });
        }
    }
    cells.sort_unstable_by_key(|cell| cell.first());
    cells
}
