//! Large sequential reads over the segments of a log, in this thread or ahead in a second one.
use crate::error::{RedoError, Result};
use crate::segment::Segment;
use std::ops::ControlFlow;
use std::sync::mpsc::{channel, sync_channel};
use weir_base::{AlignedBuf, HUGE_PAGE};

/// The size of a read: with block headers, so that its payload and the rest of a group before it
/// fit in a huge page.
const PIECE_BYTES: u64 = HUGE_PAGE as u64;
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

/// The reads that cover the segments from `from` on: segment and position.
fn places(chain: &[Segment], from: u64) -> impl Iterator<Item = (&Segment, u64)> {
    chain.iter().filter(move |segment| segment.end() > from).flat_map(move |segment| {
        let start = segment.header.start.max(from);
        (start..segment.end()).step_by(PIECE_BYTES as usize).map(move |at| (segment, at))
    })
}

fn read(segment: &Segment, at: u64, spare: Option<AlignedBuf>) -> Result<Piece> {
    let len = (segment.end() - at).min(PIECE_BYTES) as usize;
    let spare = spare.filter(|spare| spare.len() >= len);
    let mut buf = spare.unwrap_or_else(|| AlignedBuf::zeroed(len));
    let offset = segment.offset(at);
    let done = segment.slot.file.read_at(offset, &mut buf[..len]);
    done.map_err(|error| RedoError::io("read", &segment.slot.name(), offset, error))?;
    Ok(Piece { buf, len, at })
}

/// Hands out the log from disk position `from` (a multiple of a page) on, until `take` has enough
/// or the segments end.
pub(crate) fn pieces(
    chain: &[Segment],
    from: u64,
    read_ahead: bool,
    mut take: impl FnMut(&Piece) -> Result<ControlFlow<()>>,
) -> Result<()> {
    if !read_ahead {
        let mut spare = None;
        for (segment, at) in places(chain, from) {
            let piece = read(segment, at, spare.take())?;
            if take(&piece)?.is_break() {
                break;
            }
            spare = Some(piece.buf);
        }
        return Ok(());
    }
    std::thread::scope(|scope| {
        let (full, ready) = sync_channel(PIECES_AHEAD);
        let (give_back, empty) = channel();
        scope.spawn(move || {
            for (segment, at) in places(chain, from) {
                let piece = read(segment, at, empty.try_recv().ok());
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
