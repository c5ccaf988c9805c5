//! Reading a log back: verifies every block, finds the end, hands out the groups.
//!
//! The end is where a block has room left, or where zeros or a block of an earlier pass lie. Both
//! are also what a lost write looks like. So the scan goes on behind the end as far as any write
//! can have been in flight: a block there that was sealed when the place of the end was known to be
//! durable proves that the log is damaged, not ended (REDO-8).
use crate::block::{BlockHeader, BlockVerdict, Epoch, Seed, judge};
use crate::chunk::Chunk;
use crate::error::{RedoError, Result};
use crate::log::{GROUP_BODY_MAX, GROUP_BODY_MIN};
use crate::position::{
    BLOCK, BLOCK_HEADER, BLOCK_PAYLOAD, PAGE, Span, block_start, blocks_end, first_in_block,
    is_inside_block, is_place,
};
use crate::read::{Piece, pieces};
use crate::segment::{Segment, load};
use std::ops::ControlFlow;
use weir_base::{DbId, Lsn, align_down, varint};
use weir_device::Volume;

/// How to scan.
#[derive(Default)]
pub struct ScanOptions<'a> {
    /// Reads in a second thread while the groups of the last read are handed out.
    pub read_ahead: bool,
    /// Called after each read with the bytes of log gone through so far.
    pub progress: Option<&'a mut dyn FnMut(u64)>,
}

/// What a scan found; what [`crate::Log::resume`] goes on from.
#[derive(Clone, Debug)]
pub struct ScanEnd {
    /// Just behind the last whole group.
    pub end: Lsn,
    /// Where the scan began.
    pub from: Lsn,
    /// Whole groups handed out.
    pub groups: u64,
    /// Whether the scan went to the end; `false` when the visitor broke it off.
    pub complete: bool,
    /// Just behind the last payload byte: later than `end` when a group was cut off.
    pub(crate) physical_end: Lsn,
    /// The epoch of the last block.
    pub(crate) epoch: Epoch,
    /// Blocks that are not the log's lie before this disk position.
    pub(crate) stale_until: u64,
    /// All of those are of the epoch before: a resume had marked the end and was cut off.
    pub(crate) marked: bool,
}

impl ScanEnd {
    /// Of a scan that something stopped at `end`, just behind a whole group.
    #[must_use]
    pub fn stopped(from: Lsn, end: Lsn) -> ScanEnd {
        let epoch = Epoch::default();
        ScanEnd {
            end,
            from,
            groups: 0,
            complete: false,
            physical_end: end,
            epoch,
            stale_until: 0,
            marked: false,
        }
    }
}

/// Reads the log from `from`, the start of a group or the end of the log, to its end, and hands
/// each group's body to `visit`, which may break off.
///
/// # Errors
/// Damage, missing or foreign files, and what the device reports; each with file and offset.
pub fn scan(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
    options: ScanOptions<'_>,
    mut visit: impl FnMut(Span, &[u8]) -> ControlFlow<()>,
) -> Result<ScanEnd> {
    run(volume, db, from, options, |chunk| {
        for (span, body) in chunk.bodies() {
            if visit(span, body).is_break() {
                return ControlFlow::Break(span.end);
            }
        }
        ControlFlow::Continue(())
    })
}

/// [`scan`] for recovery with several threads: hands out the groups of about two MiB of log at a
/// time, to keep.
///
/// # Errors
/// As [`scan`].
pub fn scan_chunks(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
    options: ScanOptions<'_>,
    mut visit: impl FnMut(Chunk) -> ControlFlow<()>,
) -> Result<ScanEnd> {
    run(volume, db, from, options, |chunk| {
        let end = chunk.end();
        let chunk = std::mem::take(chunk);
        if visit(chunk).is_break() { ControlFlow::Break(end) } else { ControlFlow::Continue(()) }
    })
}

fn run(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
    mut options: ScanOptions<'_>,
    emit: impl FnMut(&mut Chunk) -> ControlFlow<Lsn>,
) -> Result<ScanEnd> {
    if !is_place(from) {
        let what = "no redo can begin at this position";
        return Err(RedoError::Missing { lsn: from, what });
    }
    let chain = load(volume, db)?.chain(from)?;
    // The block before a boundary is looked at to see that the log reaches `from`.
    let is_first = chain[0].header.start == block_start(from);
    if is_first && chain[0].header.seq != 1 && !is_inside_block(from) {
        let what = "the block before the checkpoint lies there";
        return Err(RedoError::Missing { lsn: Lsn(from.0 - BLOCK), what });
    }
    let first = block_start(from) - if is_first || is_inside_block(from) { 0 } else { BLOCK };
    let mut scanner = Scanner::new(&chain, db, from, first, emit);
    let start = align_down(first);
    let mut gone_through = 0;
    pieces(&chain, start..u64::MAX, options.read_ahead, |piece| {
        let flow = scanner.take(piece)?;
        gone_through += piece.bytes().len() as u64;
        if let Some(progress) = &mut options.progress {
            progress(gone_through);
        }
        Ok(flow)
    })?;
    scanner.finish()
}

/// Where the log was found to end.
struct End {
    /// The block that has room left or is not there.
    number: u64,
    /// Whether the block is there.
    held: bool,
    at: Lsn,
    stale_until: u64,
    stale_epochs: Option<(Epoch, bool)>,
}

pub(crate) struct Scanner<'a, Emit> {
    chain: &'a [Segment],
    seed: Seed,
    from: Lsn,
    /// The block expected next.
    number: u64,
    epoch: Epoch,
    /// Payload that is not handed out yet, and the whole groups found in it.
    chunk: Chunk,
    groups: u64,
    end: Option<End>,
    /// Set when the visitor broke off, to where it did.
    broken_off: Option<Lsn>,
    look_ahead_blocks: u64,
    /// Where to stop, in a log that is known to go on at least that far.
    upto: Option<Lsn>,
    emit: Emit,
}

impl<'a, Emit> Scanner<'a, Emit>
where
    Emit: FnMut(&mut Chunk) -> ControlFlow<Lsn>,
{
    pub(crate) fn new(chain: &'a [Segment], db: DbId, from: Lsn, first: u64, emit: Emit) -> Self {
        let unsynced_max = chain.iter().map(|segment| segment.header.unsynced_max).max();
        Scanner {
            chain,
            seed: Seed::of(db),
            from,
            number: first / BLOCK,
            epoch: Epoch::default(),
            chunk: Chunk::at(from),
            groups: 0,
            end: None,
            broken_off: None,
            look_ahead_blocks: (unsynced_max.unwrap_or(0) + PAGE) / BLOCK,
            upto: None,
            emit,
        }
    }

    /// Gathers groups in the memory of `chunk`, of which nothing else is left.
    pub(crate) fn gather_in(&mut self, mut chunk: Chunk) {
        chunk.begin(self.from);
        self.chunk = chunk;
    }

    /// The memory that groups were gathered in, unless a long group made it larger than a reader
    /// keeps.
    pub(crate) fn into_memory(self) -> Chunk {
        self.chunk.if_ordinary().unwrap_or_default()
    }

    /// Stops before `upto`, where the log does not end.
    pub(crate) fn end_at(&mut self, upto: Lsn) {
        self.upto = Some(upto);
    }

    fn damaged(&self, number: u64, what: impl Into<String>) -> RedoError {
        let at = number * BLOCK;
        let Some(segment) = self.chain.iter().find(|segment| segment.holds(at)) else {
            return RedoError::Missing { lsn: Lsn(at), what: "the log goes on there" };
        };
        let what = format!("{} (log position {at})", what.into());
        RedoError::damaged(&segment.slot.name(), segment.offset(at), what)
    }

    pub(crate) fn take(&mut self, piece: &Piece) -> Result<ControlFlow<()>> {
        self.chunk.reserve((piece.bytes().len() as u64 / BLOCK * BLOCK_PAYLOAD) as usize);
        let skip = (self.number * BLOCK).saturating_sub(piece.at) as usize;
        for block in piece.bytes()[skip..].chunks_exact(BLOCK as usize) {
            if self.upto.is_some_and(|upto| self.number * BLOCK >= blocks_end(upto)) {
                self.hand_out()?;
                return Ok(ControlFlow::Break(()));
            }
            let found = judge(block, self.seed, self.number);
            let taken = match &self.end {
                None => self.read(block, found),
                Some(end) if self.number > end.number + self.look_ahead_blocks => {
                    self.hand_out()?;
                    return Ok(ControlFlow::Break(()));
                }
                Some(_) => self.look_behind_end(found),
            };
            if let Err(damage) = taken {
                // A reader that does with a part gets all of it.
                self.hand_out()?;
                return Err(damage);
            }
            self.number += 1;
        }
        self.hand_out()?;
        Ok(match self.broken_off {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        })
    }

    /// Takes the next block of the log, or the end.
    fn read(&mut self, block: &[u8], found: BlockVerdict) -> Result<()> {
        let from_block = self.from.0 / BLOCK;
        let is_before = self.number < from_block;
        let header = match found {
            BlockVerdict::Current(header) => header,
            BlockVerdict::Damaged => {
                return Err(self.damaged(self.number, "a block's checksum is wrong"));
            }
            BlockVerdict::Zeros | BlockVerdict::Old => {
                let must_be = is_before
                    || self.number == from_block
                        && (is_inside_block(self.from) || self.is_very_first());
                if must_be {
                    return Err(self.too_short());
                }
                self.end = Some(End::at(self.number, false, first_in_block(self.number * BLOCK)));
                return Ok(());
            }
        };
        self.epoch = header.epoch;
        let used = u64::from(header.used);
        if is_before {
            return if used == BLOCK_PAYLOAD { Ok(()) } else { Err(self.too_short()) };
        }
        let skip = if self.number == from_block { self.from.0 % BLOCK - BLOCK_HEADER } else { 0 };
        if used < skip {
            return Err(self.too_short());
        }
        // The block where to stop may hold more.
        if let Some(upto) = self.upto.filter(|upto| block_start(*upto) == self.number * BLOCK) {
            let wanted = upto.0 % BLOCK - BLOCK_HEADER;
            if used < wanted {
                return Err(self.damaged(self.number, "the log ends before what was durable"));
            }
            let payload = (BLOCK_HEADER + skip) as usize..(BLOCK_HEADER + wanted) as usize;
            self.chunk.extend(&block[payload]);
            return Ok(());
        }
        let payload = (BLOCK_HEADER + skip) as usize..(BLOCK_HEADER + used) as usize;
        self.chunk.extend(&block[payload]);
        if used < BLOCK_PAYLOAD {
            let at = first_in_block(self.number * BLOCK).advanced(used);
            self.end = Some(End::at(self.number, true, at));
        }
        Ok(())
    }

    /// Whether the expected block is the first that the log ever had, which is written when the log
    /// is created.
    fn is_very_first(&self) -> bool {
        let first = &self.chain[0].header;
        first.seq == 1 && self.number * BLOCK == first.start
    }

    fn too_short(&self) -> RedoError {
        self.damaged(self.number, format!("the log ends before the checkpoint at {}", self.from))
    }

    /// Judges a block behind the end: left over from a write in flight, or proof of damage?
    fn look_behind_end(&mut self, found: BlockVerdict) -> Result<()> {
        let (number, epoch) = (self.number, self.epoch);
        let Some(end) = &mut self.end else { return Ok(()) };
        match found {
            BlockVerdict::Zeros | BlockVerdict::Old => return Ok(()),
            BlockVerdict::Damaged => end.stale_until = (number + 1) * BLOCK,
            BlockVerdict::Current(header) => {
                end.stale_until = (number + 1) * BLOCK;
                let is_left_over = header.epoch.next() == epoch;
                let all = end.stale_epochs.is_none_or(|(_, all)| all);
                end.stale_epochs = Some((header.epoch, all && is_left_over));
                if !is_left_over && end.was_durable(number, header) {
                    let (end_number, held) = (end.number, end.held);
                    let what = if held {
                        "a block is older than what was synced"
                    } else {
                        "a synced block is missing"
                    };
                    return Err(self.damaged(end_number, what));
                }
            }
        }
        Ok(())
    }

    /// Hands out the whole groups read so far.
    fn hand_out(&mut self) -> Result<()> {
        if self.broken_off.is_some() {
            return Ok(());
        }
        let (whole, groups) = self.parse()?;
        if groups == 0 {
            return Ok(());
        }
        self.groups += groups;
        let end = self.chunk.lsn_at(whole);
        // The beginning of a group that goes on in the next piece.
        let rest = self.chunk.cut(whole);
        if let ControlFlow::Break(at) = (self.emit)(&mut self.chunk) {
            self.broken_off = Some(at);
        }
        self.chunk.begin(end);
        self.chunk.extend(&rest);
        Ok(())
    }

    /// Finds the whole groups in the payload: how many bytes they take, and how many they are.
    fn parse(&self) -> Result<(usize, u64)> {
        let data = self.chunk.payload();
        let (mut at, mut groups) = (0, 0);
        loop {
            let mut rest = &data[at..];
            let Some(len) = varint::take(&mut rest) else {
                if rest.len() >= varint::LEN_MAX {
                    return Err(self.no_group(at));
                }
                return Ok((at, groups));
            };
            if !(GROUP_BODY_MIN as u64..=GROUP_BODY_MAX as u64).contains(&len) {
                return Err(self.no_group(at));
            }
            if (rest.len() as u64) < len {
                return Ok((at, groups));
            }
            at = data.len() - rest.len() + len as usize;
            groups += 1;
        }
    }

    #[cold]
    fn no_group(&self, at: usize) -> RedoError {
        let lsn = self.chunk.lsn_at(at);
        self.damaged(lsn.0 / BLOCK, format!("no group of redo begins at position {lsn}"))
    }

    /// Where the last whole group of a stretch ends.
    pub(crate) fn finish_stretch(&self) -> Result<Lsn> {
        let goes_on = self.upto.is_some_and(|upto| self.number * BLOCK >= blocks_end(upto));
        if self.end.is_some() || !goes_on {
            return Err(self.damaged(self.number, "the log ends before what was durable"));
        }
        Ok(self.chunk.lsn_at(0))
    }

    fn finish(self) -> Result<ScanEnd> {
        let group_end = self.chunk.lsn_at(0);
        if let Some(at) = self.broken_off {
            return Ok(ScanEnd {
                end: at,
                from: self.from,
                groups: self.groups,
                complete: false,
                physical_end: at,
                epoch: self.epoch,
                stale_until: 0,
                marked: false,
            });
        }
        let Some(end) = self.end else {
            // REDO-5: before a segment's last block is written, the next segment stands ready.
            let what = "the files before it are full";
            return Err(RedoError::Missing { lsn: Lsn(self.number * BLOCK), what });
        };
        Ok(ScanEnd {
            end: group_end,
            from: self.from,
            groups: self.groups,
            complete: true,
            physical_end: end.at,
            epoch: self.epoch,
            stale_until: end.stale_until,
            marked: group_end == end.at && end.stale_epochs.is_some_and(|(_, all)| all),
        })
    }
}

impl End {
    fn at(number: u64, held: bool, at: Lsn) -> End {
        End { number, held, at, stale_until: blocks_end(at), stale_epochs: None }
    }

    /// Whether the block `number`, found behind this end, proves that more had been durable.
    fn was_durable(&self, number: u64, header: BlockHeader) -> bool {
        let first_not_durable = number.saturating_sub(u64::from(header.synced_back));
        first_not_durable > self.number
            || first_not_durable == self.number && header.durable_part && !self.held
    }
}
