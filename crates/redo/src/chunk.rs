//! A stretch of the log in memory: whole groups, without the headers of blocks.
use std::ops::Range;

use weir_base::{HUGE_PAGE, LargeBuf, Lsn, varint};

use crate::position::{Span, lsn_of, sn_of};

/// A whole group in a [`Chunk`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupAt {
    /// Its place in the log.
    pub span: Span,
    /// Its place in [`Chunk::payload`], its length before it included.
    pub frame: Range<usize>,
    /// Its body there.
    pub body: Range<usize>,
}

/// A run of whole groups, for work in other threads.
#[derive(Default)]
pub struct Chunk {
    /// Room for more payload than it has.
    memory: LargeBuf,
    /// How much payload it has, without block headers, from the first group's length on.
    len: usize,
    /// How much payload of the log lies before it.
    sn: u64,
}

impl Chunk {
    /// Payload without block headers.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    /// The groups in it, in order.
    pub fn groups(&self) -> impl Iterator<Item = GroupAt> {
        self.groups_in(0..self.len)
    }

    /// The groups in a stretch of the payload that begins and ends where groups do.
    pub fn groups_in(&self, stretch: Range<usize>) -> impl Iterator<Item = GroupAt> {
        let payload = &self.payload()[..stretch.end];
        let mut from = (stretch.start, self.lsn_at(stretch.start));
        std::iter::from_fn(move || {
            let mut rest = &payload[from.0..];
            // Every length in it was looked at before.
            let len = varint::take(&mut rest)? as usize;
            let start = payload.len() - rest.len();
            let to = (start + len, self.lsn_at(start + len));
            let span = Span { start: from.1, end: to.1 };
            let frame = from.0..to.0;
            from = to;
            Some(GroupAt { span, frame, body: start..to.0 })
        })
    }

    /// The groups with their bodies.
    pub fn bodies(&self) -> impl Iterator<Item = (Span, &[u8])> {
        self.groups().map(|group| (group.span, &self.payload()[group.body]))
    }

    /// An empty one that begins there.
    pub(crate) fn at(from: Lsn) -> Chunk {
        Chunk { sn: sn_of(from), ..Chunk::default() }
    }

    /// Empties it, to begin there; what memory it has it keeps.
    pub(crate) fn begin(&mut self, from: Lsn) {
        (self.sn, self.len) = (sn_of(from), 0);
    }

    /// Where a byte of the payload lies in the log.
    #[must_use]
    pub fn lsn_at(&self, offset: usize) -> Lsn {
        lsn_of(self.sn + offset as u64)
    }

    /// Where its last group ends.
    pub(crate) fn end(&self) -> Lsn {
        self.lsn_at(self.len)
    }

    /// Itself, unless its memory is larger than two reads want.
    pub(crate) fn if_ordinary(self) -> Option<Chunk> {
        (self.memory.len() <= 2 * HUGE_PAGE).then_some(self)
    }

    /// Takes away what is behind `len` bytes.
    pub(crate) fn cut(&mut self, len: usize) -> Vec<u8> {
        let rest = self.payload()[len..].to_vec();
        self.len = len;
        rest
    }

    /// Makes room for so many more bytes.
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.len + more > self.memory.len() {
            let mut larger = LargeBuf::zeroed(self.len + more.max(self.len));
            larger[..self.len].copy_from_slice(self.payload());
            self.memory = larger;
        }
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.memory[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}
