//! What streams carry: packed blocks and free records on their way to a segment, and what became of
//! them.
use weir_base::{Lsn, PageNo};

use crate::format::{BLOCK_HEAD, BlockHead, Codec, FooterEntry, Kind};
use crate::ids::{Epoch, Place, SegmentNo, Seq, UNIT, units_of};

/// A packed block on its way.
pub(crate) struct Packed {
    /// What it says of itself; the chunk's number is filled in when it is written.
    pub(crate) head: BlockHead,
    /// Head and payload, with room to whole units.
    pub(crate) bytes: Vec<u8>,
    /// Where a copy comes from: it is published only if the page still lies there.
    pub(crate) source: Option<Place>,
}

impl Packed {
    /// A block whose payload lies in `bytes` behind the room for its head.
    pub(crate) fn new(kind: Kind, number: u32, lsn: Lsn, codec: Codec, mut bytes: Vec<u8>) -> Self {
        let len = (bytes.len() - BLOCK_HEAD) as u32;
        bytes.resize(units_of(bytes.len()) * UNIT, 0);
        let head = BlockHead { kind, codec, number, lsn, seq: Seq(0), len };
        Packed { head, bytes, source: None }
    }
}

/// What a chunk is made of.
pub(crate) enum Item {
    /// A block.
    Block(Packed),
    /// Pages that are no more.
    Forget { first: PageNo, count: u16, lsn: Lsn },
}

/// A chunk that was written, and is not durable yet.
pub(crate) struct Landed {
    pub(crate) segment: SegmentNo,
    pub(crate) seq: Seq,
    /// Its blocks: what, where, and where a copy comes from.
    pub(crate) blocks: Vec<(BlockHead, Place, Option<Place>)>,
    /// Its free records.
    pub(crate) forgets: Vec<(PageNo, u16)>,
}

/// How a stream took a part of a batch.
pub(crate) enum Appended {
    /// All of it.
    All,
    /// Not the items that are left: no segment may be opened for this stream.
    NoRoom,
}

/// The segment that a stream appends to.
pub(crate) struct OpenSegment {
    pub(crate) number: SegmentNo,
    pub(crate) epoch: Epoch,
    /// Where the next chunk begins, from the segment's first byte; 0: nothing is written yet.
    pub(crate) next: usize,
    pub(crate) entries: Vec<FooterEntry>,
}

/// A stream's open segment.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) open: Option<OpenSegment>,
}
