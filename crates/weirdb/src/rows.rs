//! Rows in key order, from both ends.
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use crate::bounds::Keys;
use crate::error::Error;
use crate::shared::{Shared, entered};
use crate::slice::Slice;

/// Rows read at once at most, and bytes of them.
const BATCH_ROWS_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 32 << 10;

/// Rows of a tree in key order: keys and values. The iterator is double-ended: `next_back()` and
/// `rev()` come from the greatest key downwards. It reads ahead, a little at first, and shows the
/// rows of one moment whatever others change meanwhile. After an error it ends.
pub struct Rows<'t> {
    source: Option<Source<'t>>,
    keys: Keys,
    front: Side,
    back: Side,
    /// Reading a row locks it, so that none is read ahead.
    one_by_one: bool,
    /// Rows that will be asked for at each end; 0: that is not known.
    expected: usize,
    /// What keeps anything from being read, to be reported first.
    failed: Option<Error>,
}

/// Whose rows.
pub(crate) enum Source<'t> {
    Snapshot { db: Arc<Shared>, tree: weir::Tree, at: weir::Snapshot },
    Txn { db: &'t Arc<Shared>, tree: weir::Tree, txn: &'t Mutex<weir::Txn> },
}

/// One end.
#[derive(Default)]
struct Side {
    walk: Option<Walk>,
    ready: VecDeque<(Slice, Slice)>,
    /// Rows that the next look reads.
    batch: usize,
    /// The key shown last.
    last: Option<Slice>,
    is_done: bool,
}

enum Walk {
    Alone(weir::Cursor),
    In(weir::TxnCursor),
}

/// Rows that were read together.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// Where each key and each value ends.
    ends: Vec<(usize, usize)>,
}

impl Block {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn is_full(&self, rows: usize) -> bool {
        self.ends.len() >= rows || self.bytes.len() >= BATCH_BYTES_MAX
    }

    fn into_rows(self) -> VecDeque<(Slice, Slice)> {
        let (bytes, mut from) = (Arc::new(self.bytes), 0);
        let row = |(key_end, end)| {
            let row = (Slice::part(&bytes, from, key_end), Slice::part(&bytes, key_end, end));
            from = end;
            row
        };
        self.ends.into_iter().map(row).collect()
    }
}

impl<'t> Rows<'t> {
    pub(crate) fn new(source: Source<'t>, keys: Keys, one_by_one: bool) -> Self {
        let source = (!keys.is_empty()).then_some(source);
        let (front, back) = (Side::default(), Side::default());
        Rows { source, keys, front, back, one_by_one, expected: 0, failed: None }
    }

    /// No rows, but this error.
    pub(crate) fn failed(e: Error) -> Self {
        let (front, back) = (Side::default(), Side::default());
        let keys = Keys::all();
        Rows { source: None, keys, front, back, one_by_one: true, expected: 0, failed: Some(e) }
    }

    /// Says that about so many rows will be asked for (at each end that is used), before the first
    /// is: `tree.range(from..).expect_rows(100).take(100)`. There may be more or fewer; but so many
    /// are fetched at once, and what is not in memory of the pages that hold them is read together
    /// where each would be waited for.
    #[must_use]
    pub fn expect_rows(mut self, rows: usize) -> Self {
        self.expected = rows;
        self
    }

    fn step(&mut self, down: bool) -> Option<Result<(Slice, Slice), Error>> {
        if let Some(e) = self.failed.take() {
            self.source = None;
            return Some(Err(e));
        }
        let source = self.source.as_ref()?;
        let (side, other) =
            if down { (&mut self.back, &self.front) } else { (&mut self.front, &self.back) };
        if side.ready.is_empty()
            && !side.is_done
            && let Err(e) = side.read(source, &self.keys, down, self.one_by_one, self.expected)
        {
            self.source = None;
            return Some(Err(e));
        }
        let row = side.ready.pop_front();
        // The other end has been there already.
        let is_met = |key: &Slice| match &other.last {
            Some(other) if down => key <= other,
            Some(other) => key >= other,
            None => false,
        };
        match row {
            Some((key, value)) if !is_met(&key) => {
                side.last = Some(key.clone());
                Some(Ok((key, value)))
            }
            _ => {
                self.source = None;
                None
            }
        }
    }
}

impl Side {
    /// Reads some more rows.
    fn read(
        &mut self,
        source: &Source<'_>,
        keys: &Keys,
        down: bool,
        one_by_one: bool,
        expected: usize,
    ) -> Result<(), Error> {
        // Most look at one row, or at many.
        self.batch = match self.batch {
            _ if one_by_one => 1,
            0 => expected.clamp(1, BATCH_ROWS_MAX),
            1 => 16,
            more => (4 * more).min(BATCH_ROWS_MAX),
        };
        let db = source.db();
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => source.walk(keys, expected).map_err(|e| db.fails(e))?,
        };
        let is_first = self.last.is_none();
        let mut block = Block::default();
        let read = if down {
            read_down(&mut walk, source, keys, is_first, self.batch, &mut block)
        } else {
            read_up(&mut walk, source, keys, is_first, self.batch, &mut block)
        };
        self.is_done = read.map_err(|e| db.fails(e))?;
        self.walk = Some(walk);
        self.ready = block.into_rows();
        Ok(())
    }
}

/// `true`: there are no more.
fn read_up(
    walk: &mut Walk,
    source: &Source<'_>,
    keys: &Keys,
    is_first: bool,
    rows: usize,
    block: &mut Block,
) -> Result<bool, weir::Error> {
    let on = if is_first { walk.seek(source, &keys.from)? } else { walk.next(source)? };
    if !on {
        return Ok(true);
    }
    let mut is_done = true;
    walk.visit(source, |key, value| {
        if keys.to.as_ref().is_some_and(|to| **to <= *key) {
            return ControlFlow::Break(());
        }
        block.push(key, value);
        if block.is_full(rows) {
            is_done = false;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok(is_done)
}

/// As [`read_up`].
fn read_down(
    walk: &mut Walk,
    source: &Source<'_>,
    keys: &Keys,
    is_first: bool,
    rows: usize,
    block: &mut Block,
) -> Result<bool, weir::Error> {
    let mut on = match &keys.to {
        _ if !is_first => walk.prev(source)?,
        Some(to) => walk.seek_before(source, to)?,
        None => walk.seek_last(source)?,
    };
    while on {
        let (key, value) = walk.row();
        if *key < *keys.from {
            return Ok(true);
        }
        block.push(key, value);
        if block.is_full(rows) {
            return Ok(false);
        }
        on = walk.prev(source)?;
    }
    Ok(true)
}

impl Source<'_> {
    fn db(&self) -> &Shared {
        match self {
            Source::Snapshot { db, .. } => db,
            Source::Txn { db, .. } => db,
        }
    }

    fn walk(&self, keys: &Keys, expected: usize) -> Result<Walk, weir::Error> {
        Ok(match self {
            Source::Snapshot { tree, at, .. } => {
                let mut cursor = tree.cursor_at(at)?;
                cursor.expect_range(&keys.from, keys.to.as_deref());
                cursor.expect_rows(expected as u64);
                Walk::Alone(cursor)
            }
            Source::Txn { tree, txn, .. } => {
                let mut cursor = entered(txn).cursor(tree);
                cursor.set_bounds(&keys.from, keys.to.as_deref());
                cursor.expect_rows(expected as u64);
                Walk::In(cursor)
            }
        })
    }
}

/// Moves a cursor, which is always of its source's kind.
macro_rules! moves {
    ($walk:expr, $source:expr, $move:ident $(, $argument:expr)*) => {
        match ($walk, $source) {
            (Walk::Alone(cursor), _) => cursor.$move($($argument),*),
            (Walk::In(cursor), Source::Txn { txn, .. }) => {
                cursor.$move(&mut entered(txn) $(, $argument)*)
            }
            (Walk::In(_), Source::Snapshot { .. }) => Err(weir::Error::Closed),
        }
    };
}

impl Walk {
    fn seek(&mut self, source: &Source<'_>, key: &[u8]) -> Result<bool, weir::Error> {
        moves!(self, source, seek, key)
    }

    fn seek_before(&mut self, source: &Source<'_>, key: &[u8]) -> Result<bool, weir::Error> {
        moves!(self, source, seek_before, key)
    }

    fn seek_last(&mut self, source: &Source<'_>) -> Result<bool, weir::Error> {
        moves!(self, source, seek_last)
    }

    fn next(&mut self, source: &Source<'_>) -> Result<bool, weir::Error> {
        moves!(self, source, next)
    }

    fn prev(&mut self, source: &Source<'_>) -> Result<bool, weir::Error> {
        moves!(self, source, prev)
    }

    fn visit(
        &mut self,
        source: &Source<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), weir::Error> {
        moves!(self, source, visit, visit)
    }

    fn row(&self) -> (&[u8], &[u8]) {
        match self {
            Walk::Alone(cursor) => cursor.row(),
            Walk::In(cursor) => (cursor.key(), cursor.value()),
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<(Slice, Slice), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl std::iter::FusedIterator for Rows<'_> {}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("keys", &self.keys).finish_non_exhaustive()
    }
}
