//! Reading stretches of a log that are known to be durable: while the log goes on, or after a crash
//! when more than the end of it is wanted.
use std::ops::ControlFlow;
use std::sync::Arc;

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{AlignedBuf, DbId, Lsn, align_down, align_up};
use weir_device::Volume;

use crate::chunk::Chunk;
use crate::error::{RedoError, Result};
use crate::log::Log;
use crate::position::{block_start, blocks_end};
use crate::read::{Piece, pieces_into};
use crate::recent::Recent;
use crate::scan::Scanner;
use crate::segment::{Segment, load};

/// The files of a log as they were at one moment. What lies behind the checkpoint of that moment
/// can be read until a later checkpoint has passed it.
pub struct Reader {
    chain: Vec<Segment>,
    db: DbId,
    /// Memory to read into: filling it with zeros takes as long as reading, and where a hypervisor
    /// collects what is free, to have it again takes longer still.
    spare: Mutex<rank::LogReadBuffers, Vec<Spare>>,
    /// That of a log that goes on.
    recent: Option<Arc<Recent>>,
}

/// What one stretch is read with: a piece of the disk, and the groups in it.
#[derive(Default)]
struct Spare {
    piece: Option<AlignedBuf>,
    chunk: Chunk,
}

impl Reader {
    /// Over the log in a volume, from the checkpoint on.
    ///
    /// # Errors
    /// Damage, missing or foreign files, and what the device reports.
    pub fn open(volume: &dyn Volume, db: DbId, checkpoint: Lsn) -> Result<Reader> {
        let chain = load(volume, db)?.chain(checkpoint)?;
        Ok(Reader { chain, db, spare: Mutex::default(), recent: None })
    }

    /// Hands out the whole groups of a stretch, about two MiB at a time, and returns where the last
    /// of them ends. `from` is the start of a group; all before `to` must be durable. A group that
    /// goes on behind `to` is left out. `visit` may take a chunk out of its place, to keep it; the
    /// next one lies in the memory of what it leaves there.
    ///
    /// # Errors
    /// [`RedoError::Missing`] where files have been used again; damage; what the device reports;
    /// the first of `visit`.
    pub fn chunks(
        &self,
        from: Lsn,
        to: Lsn,
        mut visit: impl FnMut(&mut Chunk) -> Result<()>,
    ) -> Result<Lsn> {
        let holder = self.chain.iter().position(|segment| segment.holds(block_start(from)));
        let Some(holder) = holder else {
            return Err(RedoError::Missing { lsn: from, what: "a stretch of it begins there" });
        };
        let chain = &self.chain[holder..];
        let first = block_start(from);
        let mut visited = Ok(());
        let mut scanner = Scanner::new(chain, self.db, from, first, |chunk: &mut Chunk| {
            let end = chunk.end();
            visited = visit(chunk);
            if visited.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(end) }
        });
        scanner.end_at(to);
        let mut spare = self.spare.lock().pop().unwrap_or_default();
        scanner.gather_in(std::mem::take(&mut spare.chunk));
        let stretch = align_down(first)..align_up(blocks_end(to));
        let recent = self.recent.as_deref();
        let take = |piece: &Piece| scanner.take(piece);
        let read = pieces_into(chain, stretch, &mut spare.piece, recent, take);
        let end = read.and_then(|()| scanner.finish_stretch());
        spare.chunk = scanner.into_memory();
        self.spare.lock().push(spare);
        visited.and(end)
    }
}

impl Log {
    /// The log as it is now, to read what is durable of it. With an earlier one, into its memory.
    #[must_use]
    pub fn reader(&self, earlier: Option<Reader>) -> Reader {
        let spare = earlier.map(|earlier| earlier.spare).unwrap_or_default();
        let recent = Some(Arc::clone(&self.recent));
        Reader { chain: self.segments.chain(), db: self.segments.db(), spare, recent }
    }

    /// Keeps the last `bytes` that are written in memory, where readers of the log find them as
    /// long as they are there; 0 gives the memory back.
    pub fn keep_recent(&self, bytes: u64) {
        self.recent.keep(bytes);
    }

    /// The position before which all blocks are durable and will not be written again, as those in
    /// the page of the log's end are.
    #[must_use]
    pub fn settled(&self) -> Lsn {
        Lsn(align_down(self.durable().0))
    }
}
