//! Large sequential reads over the segments of a log, in this thread or ahead in a second one.
use crate::error::{RedoError, Result};
use crate::recent::Recent;
use crate::segment::Segment;
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{channel, sync_channel};
use weir_base::{AlignedBuf, HUGE_PAGE};

/// The size of a read: with block headers, so that its payload and the rest of a group before it
/// fit in a huge page.
const PIECE_BYTES: u64 = HUGE_PAGE as u64;
/// The size of a read while the log goes on: its own writes wait for each.
const PART_BYTES: usize = 128 << 10;
/// Reads that are done ahead.
const PIECES_AHEAD: usize = 2;

/// A stretch of the log as read, inside one segment.
pub(crate) struct Piece {
    buf: AlignedBuf,
    len: usize,
    /// The disk position of its first byte.
    pub(crate) at: u64,
}

impl Piece {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf[..self.len]
    }
}

/// A read: of which segment, from which position to which.
type Read<'a> = (&'a Segment, Range<u64>);

/// The reads that cover the segments in `stretch`.
fn reads(chain: &[Segment], stretch: Range<u64>) -> impl Iterator<Item = Read<'_>> {
    chain.iter().flat_map(move |segment| {
        let from = segment.header.start.max(stretch.start);
        let to = segment.end().min(stretch.end);
        let piece = move |at| (segment, at..to.min(at + PIECE_BYTES));
        (from..to).step_by(PIECE_BYTES as usize).map(piece)
    })
}

/// `recent`: that of the log, while it goes on.
fn read(
    (segment, stretch): Read<'_>,
    spare: Option<AlignedBuf>,
    recent: Option<&Recent>,
) -> Result<Piece> {
    let (at, len) = (stretch.start, (stretch.end - stretch.start) as usize);
    let spare = spare.filter(|spare| spare.len() >= len);
    let mut buf = spare.unwrap_or_else(|| AlignedBuf::zeroed(len));
    if recent.is_some_and(|recent| recent.copy(at, &mut buf[..len])) {
        return Ok(Piece { buf, len, at });
    }
    let part = if recent.is_some() { PART_BYTES } else { len };
    let mut offset = segment.offset(at);
    for part in buf[..len].chunks_mut(part) {
        let done = segment.slot.file.read_at(offset, part);
        done.map_err(|error| RedoError::io("read", &segment.slot.name(), offset, error))?;
        offset += part.len() as u64;
    }
    Ok(Piece { buf, len, at })
}

/// Hands out the log in `stretch` of the disk (multiples of a page), until `take` has enough or the
/// segments end.
pub(crate) fn pieces(
    chain: &[Segment],
    stretch: Range<u64>,
    read_ahead: bool,
    mut take: impl FnMut(&Piece) -> Result<ControlFlow<()>>,
) -> Result<()> {
    if !read_ahead {
        return pieces_into(chain, stretch, &mut None, None, take);
    }
    std::thread::scope(|scope| {
        let (full, ready) = sync_channel(PIECES_AHEAD);
        let (give_back, empty) = channel();
        scope.spawn(move || {
            for next in reads(chain, stretch) {
                let piece = read(next, empty.try_recv().ok(), None);
                let failed = piece.is_err();
                // The other side has hung up when it has enough.
                if full.send(piece).is_err() || failed {
                    return;
                }
            }
        });
        for piece in ready {
            let piece = piece?;
            if take(&piece)?.is_break() {
                break;
            }
            let _ = give_back.send(piece.buf);
        }
        Ok(())
    })
}

/// As [`pieces`], one after the other, into the same memory: `spare`, which a thread that reads
/// again may keep. What `recent` has comes from there.
pub(crate) fn pieces_into(
    chain: &[Segment],
    stretch: Range<u64>,
    spare: &mut Option<AlignedBuf>,
    recent: Option<&Recent>,
    mut take: impl FnMut(&Piece) -> Result<ControlFlow<()>>,
) -> Result<()> {
    for next in reads(chain, stretch) {
        let piece = read(next, spare.take(), recent)?;
        let flow = take(&piece);
        *spare = Some(piece.buf);
        if flow?.is_break() {
            break;
        }
    }
    Ok(())
}
