//! Follows the log while it grows and says of each stretch what it holds: a step that a background
//! thread or a simulation calls.
use std::collections::VecDeque;

use weir_base::{Lsn, PageNo, TreeId, TxnId, checksum_more};
use weir_change::{DecodeError, decode};
use weir_redo::{Chunk, Reader, RedoError};

use crate::chains::{Place, by_page};
use crate::contents::{Changed, Open, PARTS_MAX, Stretch};
use crate::roll::{Roll, Said};
use crate::unreadable::unreadable;

/// The open transactions are gone through when there are so many, and twice as many as the last
/// time.
const OPEN_MANY: usize = 1_000;

/// How far the log has been followed.
pub struct Indexer {
    /// Where the next stretch begins.
    at: Lsn,
    /// Since where there is no gap.
    origin: Lsn,
    /// Of the stretch before.
    digest: u32,
    roll: Roll,
    /// The next stretch's.
    number: u32,
    /// The stretches so far that the checkpoint has not passed: number and end.
    past: VecDeque<(u32, Lsn)>,
    /// How many were open when those were forgotten that need not be known any more.
    kept: usize,
    /// No group ended in so many bytes behind `at`.
    too_few: u64,
}

impl Indexer {
    /// Goes on at `at`. `origin`: since where it is known which transactions were under way, of
    /// which `open` have no end; `digest` is the last stretch's.
    pub(crate) fn resume(
        at: Lsn,
        origin: Lsn,
        digest: u32,
        open: &[Open],
        next: (TxnId, TreeId),
    ) -> Self {
        let mut roll = Roll::of(open, Place::stretch(0));
        (roll.next_txn, roll.next_tree) = next;
        // Number 0 is all that lies before.
        let past = VecDeque::from([(0, at)]);
        Indexer { at, origin, digest, roll, number: 1, past, kept: 0, too_few: 0 }
    }

    /// Where the next stretch begins.
    #[must_use]
    pub fn at(&self) -> Lsn {
        self.at
    }

    /// Begins anew at a checkpoint, which leaves nothing behind that matters.
    pub fn begin(&mut self, checkpoint: Lsn) {
        let next = (self.roll.next_txn, self.roll.next_tree);
        *self = Indexer::resume(checkpoint, checkpoint, 0, &[], next);
    }

    /// The next stretch, of about so many bytes of log or of one group; `None`: there is not so
    /// much before `settled`, where the log ceases to be durable.
    ///
    /// # Errors
    /// Those of reading. It must begin anew then.
    pub fn next(
        &mut self,
        reader: &Reader,
        checkpoint: Lsn,
        settled: Lsn,
        bytes: u64,
    ) -> Result<Option<Stretch>, RedoError> {
        self.forget(checkpoint);
        let mut want = bytes.max(self.too_few.saturating_mul(4));
        while settled.bytes_since(self.at) >= want {
            let mut met = Met::at(self.at, want.div_ceil(PARTS_MAX as u64));
            let mut digest = self.digest;
            let to = self.at.advanced(want);
            let end = reader.chunks(self.at, to, |chunk| {
                digest = checksum_more(digest, chunk.payload());
                self.take(chunk, &mut met)
            })?;
            if end > self.at {
                return Ok(Some(self.close(end, digest, met)));
            }
            // A group longer than that.
            self.too_few = want;
            want = want.saturating_mul(4);
        }
        Ok(None)
    }

    /// Forgets now and then the transactions that have said nothing behind the checkpoint: not all
    /// that are over say so (one was rolled back to nothing, another's purge tasks were taken
    /// over), and none of them matters any more.
    fn forget(&mut self, checkpoint: Lsn) {
        while self.past.front().is_some_and(|&(_, end)| end <= checkpoint) {
            self.past.pop_front();
        }
        if self.roll.len() > OPEN_MANY.max(2 * self.kept) {
            let first = self.past.front().map_or(self.number, |&(number, _)| number);
            self.roll.forget_before(first);
            self.kept = self.roll.len();
        }
    }

    fn take(&mut self, chunk: &Chunk, met: &mut Met) -> Result<(), RedoError> {
        let place = Place::stretch(self.number);
        for (span, body) in chunk.bodies() {
            met.begin_group(span.start);
            let bad = |e: DecodeError| unreadable(span.start, &e.to_string());
            let (header, ops) = decode(body).map_err(bad)?;
            let mut said = Said::default();
            for op in ops {
                let op = op.map_err(bad)?;
                if let Some(page) = op.page() {
                    met.add(page, op.makes_page());
                }
                self.roll.take_op(&op);
                said.take(&op);
            }
            if let Some(txn) = header.txn.filter(|_| said.is_anything()) {
                met.speakers.push(txn);
            }
            if let Some((txn, first)) = self.roll.take(&header, place, said)
                && first != place
            {
                met.ended.push(txn);
            }
        }
        Ok(())
    }

    fn close(&mut self, end: Lsn, digest: u32, mut met: Met) -> Stretch {
        met.speakers.sort_unstable();
        met.speakers.dedup();
        met.ended.sort_unstable();
        let stretch = Stretch {
            start: self.at,
            end,
            origin: self.origin,
            before: self.digest,
            digest,
            next_txn: self.roll.next_txn,
            next_tree: self.roll.next_tree,
            pages: met.pages(),
            parts: met.parts,
            open: met.speakers.iter().filter_map(|&txn| self.roll.get(txn)).collect(),
            ended: met.ended,
        };
        (self.at, self.digest) = (end, digest);
        self.past.push_back((self.number, end));
        self.number += 1;
        self.too_few = 0;
        stretch
    }
}

/// The pages of a stretch as they are met, part by part.
struct Met {
    part_bytes: u64,
    /// Where the parts begin.
    parts: Vec<Lsn>,
    /// Where the next one may.
    next_part: Lsn,
    pages: Vec<Changed>,
    /// The transactions that have said what may be left of them.
    speakers: Vec<TxnId>,
    /// The transactions that were open before and are over.
    ended: Vec<TxnId>,
}

impl Met {
    fn at(start: Lsn, part_bytes: u64) -> Self {
        let next_part = start.advanced(part_bytes);
        Met {
            part_bytes,
            parts: vec![start],
            next_part,
            pages: Vec::new(),
            speakers: Vec::new(),
            ended: Vec::new(),
        }
    }

    #[inline]
    fn begin_group(&mut self, start: Lsn) {
        if start >= self.next_part && self.parts.len() < PARTS_MAX {
            self.parts.push(start);
            self.next_part = start.advanced(self.part_bytes);
        }
    }

    #[inline]
    fn add(&mut self, page: PageNo, makes: bool) {
        let parts = 1 << (self.parts.len() - 1);
        let changed = Changed { page, makes, parts };
        match self.pages.last_mut() {
            Some(last) if last.page == page => join(last, changed),
            _ => self.pages.push(changed),
        }
    }

    /// Each page once, ascending.
    fn pages(&self) -> Vec<Changed> {
        let order = by_page(self.pages.iter().map(|met| met.page));
        let mut pages: Vec<Changed> = Vec::with_capacity(order.len());
        for met in order.into_iter().map(|key| self.pages[key as u32 as usize]) {
            match pages.last_mut() {
                Some(last) if last.page == met.page => join(last, met),
                _ => pages.push(met),
            }
        }
        pages
    }
}

/// A later change of the same page.
#[inline]
fn join(page: &mut Changed, later: Changed) {
    if later.makes {
        *page = later;
    } else {
        page.parts |= later.parts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_once_with_the_parts_that_matter() {
        let mut met = Met::at(Lsn(1000), 100);
        let groups: [(u64, &[(u32, bool)]); 6] = [
            (1000, &[(9, false), (9, true), (3, false), (5, false)]),
            (1099, &[(9, false), (3, false), (1, false)]),
            (1150, &[(1, true), (5, false), (9, false)]),
            // The part before was longer than the rest: this one begins here.
            (1220, &[(5, true), (3, false), (5, false)]),
            (1249, &[(9, false)]),
            (1500, &[(5, false)]),
        ];
        for (start, pages) in groups {
            met.begin_group(Lsn(start));
            pages.iter().for_each(|&(page, makes)| met.add(PageNo(page), makes));
        }
        assert_eq!(met.parts, [1000, 1150, 1500].map(Lsn));
        let named: Vec<_> = met.pages().iter().map(|c| (c.page.0, c.makes, c.parts)).collect();
        let expected = [(1, true, 0b10), (3, false, 0b11), (5, true, 0b110), (9, true, 0b11)];
        assert_eq!(named, expected);
    }

    #[test]
    fn there_are_no_more_parts_than_can_be_named() {
        let mut met = Met::at(Lsn(0), 10);
        for start in 0..1_000 {
            met.begin_group(Lsn(start));
            met.add(PageNo(7), false);
        }
        assert_eq!((met.parts.len(), met.pages()[0].parts), (PARTS_MAX, u32::MAX));
    }
}
