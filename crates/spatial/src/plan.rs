//! What a window reads of an index, and which of the entries that it meets are to be reported.
use smallvec::SmallVec;

use crate::cell::{BITS, Cell, KEY_BYTES, Key, Places, cover, key};
use crate::mbr::{Mbr, Relation};

/// Into how many cells a window is cut at most: more of them are nearer to the window, and each may
/// be a range to be looked up by itself.
const CELLS_MAX: usize = 32;
/// For an estimate, each of which takes two looks at the tree: a corner may lie in the window.
const ESTIMATED_CELLS_MAX: usize = 4;

/// The range of all keys.
const ALL: (Key, Key) = ([0; KEY_BYTES], [u8::MAX; KEY_BYTES]);

/// Gives what an index keeps of a rectangle: keys, ascending, and what goes with each.
pub fn entries(mbr: &Mbr, mut visit: impl FnMut(&[u8], &[u8])) {
    let mut payload = Vec::with_capacity(32);
    mbr.encode(&mut payload);
    cover(&Places::of(mbr)).iter().for_each(|cell| visit(&cell.key(), &payload));
}

/// The reading of an index by a window.
#[derive(Clone, Debug)]
pub struct Plan {
    window: Mbr,
    relation: Relation,
    /// Ascending and apart: from a key on, and below another.
    ranges: Vec<(Key, Key)>,
}

/// Ranges of keys that most of what a window reads lies in, and which share of each is the
/// window's, if it is even: for an estimate. Cells around the window are left out.
#[must_use]
pub fn estimated(window: &Mbr, relation: Relation) -> Vec<(Key, Key, f64)> {
    let places = Places::of(window);
    let whole = |(from, to)| vec![(from, to, 1.0)];
    match relation {
        Relation::Disjoint => whole(ALL),
        // Its entries are known.
        Relation::Equal => whole(point(cover(&places)[0])),
        Relation::Contains => whole(point(Cell::of(places.min, BITS))),
        Relation::Intersects | Relation::Within => {
            let cells = cut(&places, ESTIMATED_CELLS_MAX).into_iter();
            let part = |cell: Cell| {
                let (from, to) = with_parts(cell);
                (from, to, cell.share(&places))
            };
            cells.map(part).collect()
        }
    }
}

impl Plan {
    /// For rows whose rectangles lie so to the window.
    #[must_use]
    pub fn new(window: Mbr, relation: Relation) -> Plan {
        let places = Places::of(&window);
        let cells = match relation {
            Relation::Disjoint | Relation::Equal => Vec::new(),
            // What holds the window holds its corner.
            Relation::Contains => vec![Cell::of(places.min, BITS)],
            Relation::Intersects | Relation::Within => cut(&places, CELLS_MAX),
        };
        let mut ranges = match relation {
            Relation::Disjoint => vec![ALL],
            // Its entries are known.
            Relation::Equal => vec![point(cover(&places)[0])],
            Relation::Contains => vec![point(cells[0])],
            Relation::Intersects | Relation::Within => joined(&cells),
        };
        let wide = ranges.len();
        for cell in around(&cells) {
            let at = ranges[..wide].partition_point(|(_, to)| *to <= cell.0);
            if at == wide || cell.0 < ranges[at].0 {
                ranges.push(cell);
            }
        }
        ranges.sort_unstable();
        Plan { window, relation, ranges }
    }

    /// Ranges of keys to be read, ascending and apart from each other: from the first of each on,
    /// and below the second.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.ranges.iter().map(|(from, to)| (&from[..], &to[..]))
    }

    /// The number of the first range that ends behind a key. `None`: all end before it.
    #[must_use]
    pub fn range_of(&self, key: &[u8]) -> Option<usize> {
        let at = self.ranges.partition_point(|(_, to)| &to[..] <= key);
        (at < self.ranges.len()).then_some(at)
    }

    fn reads(&self, key: &[u8]) -> bool {
        self.range_of(key).is_some_and(|at| &self.ranges[at].0[..] <= key)
    }

    /// Whether an entry that lies in one of the ranges is to be reported: its row fits, and it is
    /// the first of its row's entries that are met. `None`: the entry is malformed.
    #[must_use]
    pub fn reports(&self, key: &[u8], payload: &[u8]) -> Option<bool> {
        let row = Mbr::decode(payload)?;
        if !self.window.fits(self.relation, &row) {
            return Some(false);
        }
        let cells = cover(&Places::of(&row));
        let first = cells.iter().map(|cell| cell.key()).find(|cell| self.reads(cell));
        Some(first.is_some_and(|first| &first[..] == key))
    }
}

/// The range of a cell alone.
fn point(cell: Cell) -> (Key, Key) {
    (cell.key(), key(cell.first(), cell.level() + 1))
}

/// The cells that cells in the order of their keys lie in, as ranges, each once.
fn around(cells: &[Cell]) -> impl Iterator<Item = (Key, Key)> {
    let before = std::iter::once(None).chain(cells.iter().map(Some));
    cells.iter().zip(before).flat_map(|(cell, before)| {
        let above = std::iter::successors(cell.above(), |cell| cell.above());
        // What the cell before lies in as well was given with that one, and all above.
        above.take_while(move |above| !before.is_some_and(|cell| above.holds(cell))).map(point)
    })
}

/// The range of a cell and all that lies in it.
fn with_parts(cell: Cell) -> (Key, Key) {
    (cell.key(), key(cell.end(), 0))
}

/// Cells and all that lies in them, as ranges; those that follow on each other as one. Between two
/// such cells there are only keys of cells that the latter lies in.
fn joined(cells: &[Cell]) -> Vec<(Key, Key)> {
    let mut ranges: Vec<(Key, Key)> = Vec::new();
    let mut end = None;
    for &cell in cells {
        let (from, to) = with_parts(cell);
        match ranges.last_mut() {
            Some(last) if end == Some(cell.first()) => last.1 = to,
            _ => ranges.push((from, to)),
        }
        end = Some(cell.end());
    }
    ranges
}

/// Cuts a window into cells: the largest that is not within it is taken apart, until there are too
/// many. In the order of their keys.
fn cut(window: &Places, cells_max: usize) -> Vec<Cell> {
    let mut level = BITS;
    while Cell::of(window.min, level) != Cell::of(window.max, level) {
        level -= 1;
    }
    let mut done: Vec<Cell> = Vec::new();
    let mut open = vec![Cell::of(window.min, level)];
    while !open.is_empty() {
        let mut next = Vec::new();
        for (at, &cell) in open.iter().enumerate() {
            let parts: SmallVec<[Cell; 4]> =
                cell.parts().filter(|part| part.meets(window)).collect();
            let others = done.len() + next.len() + (open.len() - at - 1);
            if cell.lies_in(window) || parts.is_empty() || others + parts.len() > cells_max {
                done.push(cell);
            } else {
                next.extend(parts);
            }
        }
        open = next;
    }
    done.sort_unstable_by_key(|cell| cell.first());
    done
}
