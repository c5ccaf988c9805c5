//! The leader's work: gather, seal, write, tell.
use crate::block::seal;
use crate::error::{RedoError, Result};
use crate::gather::{Alone, Gather};
use crate::log::{Log, Reach};
use crate::position::{
    BLOCK, BLOCK_PAYLOAD, block_start, blocks_end, first_in_block, is_inside_block, lsn_of,
};
use crate::segment::Segment;
use std::sync::atomic::Ordering;
use weir_base::{AlignedBuf, Lsn, align_down, align_up};

/// What only the leader touches.
pub(crate) struct Writer {
    /// Blocks are copied here and sealed: appenders go on filling the tail's block in the ring.
    stage: AlignedBuf,
    /// The segment written to last.
    segment: Option<Segment>,
    /// Segments with writes that are not synced.
    unsynced: Vec<Segment>,
    /// Of those writes the system's cache keeps some.
    in_cache: bool,
    gather: Gather,
}

impl Writer {
    pub(crate) fn new(write_max: u64) -> Writer {
        Writer {
            stage: AlignedBuf::zeroed(write_max as usize),
            segment: None,
            unsynced: Vec::new(),
            in_cache: false,
            gather: Gather::default(),
        }
    }
}

/// The leadership of a round. A leader that panics, where panics unwind, leaves it to none: what it
/// has written of the round is not known, so the log halts, and those that wait get its error.
struct Leads<'a>(&'a Log);

impl Drop for Leads<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("of a caller");
            self.0.halt_for(format!("the thread {name} panicked while it wrote the log"));
            self.0.rounds.finish();
        }
    }
}

impl Log {
    /// Leads one round: writes all that is published, as far as `reach` says. `own` is what the
    /// leader itself waits for. Failures halt the log.
    pub(crate) fn lead(&self, reach: Reach, own: Option<Lsn>) {
        let _leads = Leads(self);
        let mut guard = self.writer.lock();
        let writer = &mut *guard;
        let sync = reach == Reach::Durable;
        if let Some(own) = own
            && sync
        {
            self.gather(&mut writer.gather, own);
        }
        if let Some(own) = own {
            // A thread may have reserved a place before ours and still be filling it.
            let mut tries_left = 8;
            while lsn_of(self.follow()) < own && tries_left > 0 {
                crate::sync::yield_now();
                tries_left -= 1;
            }
        }
        let at_close = self.arrived.0.load(Ordering::Relaxed);
        let target = lsn_of(self.follow());
        if target > self.reached(reach) && !self.is_halted() {
            self.rounds.close(target.0);
            let start = self.micros();
            if let Err(error) = self.write_out(writer, target, reach) {
                self.halt(&error);
            }
            self.stats.group_commits.add(1);
            if sync {
                let now = self.micros();
                let at_end = self.arrived.0.load(Ordering::Relaxed);
                writer.gather.finished(at_close, at_end, now - start, now);
                self.linger_micros.store(writer.gather.linger_micros(), Ordering::Relaxed);
            }
        }
        drop(guard);
        self.rounds.finish();
    }

    /// Waits, when that pays, for others to join the round, as long as a thread takes the processor
    /// meanwhile.
    fn gather(&self, gather: &mut Gather, own: Lsn) {
        let before = self.arrived.0.load(Ordering::Relaxed);
        let Some(plan) = gather.plan(before) else { return };
        let start = self.micros();
        let mut after = before;
        let (mut waited, mut alone) = (0, Alone::default());
        while after < plan.until_arrived && waited < plan.micros_max && own > self.durable() {
            let began = waited;
            crate::sync::yield_now();
            after = self.arrived.0.load(Ordering::Relaxed);
            waited = self.micros() - start;
            if alone.is_sure(waited - began) && !plan.patient {
                break;
            }
        }
        self.stats.gather_micros.add(waited);
    }

    /// Writes everything before `target`.
    fn write_out(&self, writer: &mut Writer, target: Lsn, reach: Reach) -> Result<()> {
        let sync = reach == Reach::Durable;
        // One durable write is one device operation; but once there are unsynced writes before it,
        // a sync is needed for them anyhow and serves all.
        let each_durable = sync && writer.unsynced.is_empty();
        loop {
            let written = self.written();
            if written >= target {
                break;
            }
            let from = align_down(block_start(written));
            let segment = self.segment_at(writer, from)?;
            let upto = align_up(blocks_end(target))
                .min(from + writer.stage.len() as u64)
                .min(segment.end());
            if upto == segment.end() {
                // REDO-5: a segment is filled only when the next one stands ready.
                self.segments.ensure(upto, self.checkpoint())?;
            }
            let end = target.min(first_in_block(upto));
            self.stats
                .payload_bytes
                .add(crate::position::sn_of(end) - crate::position::sn_of(written));
            if !each_durable && upto - align_down(self.durable().0) > self.unsynced_max {
                self.sync(writer)?;
            }
            self.stage(writer, from, upto, end);
            let bytes = &writer.stage[..(upto - from) as usize];
            let offset = segment.offset(from);
            let file = &segment.slot.file;
            let done = if each_durable {
                file.write_durable_at(offset, bytes).map(|()| false)
            } else if reach == Reach::Cached && !self.past_cache.load(Ordering::Relaxed) {
                file.write_cached_at(offset, bytes)
            } else {
                file.write_at(offset, bytes).map(|()| false)
            };
            writer.in_cache |=
                done.map_err(|error| RedoError::io("write", &segment.slot.name(), offset, error))?;
            self.recent.put(from, bytes);
            self.stats.writes.add(1);
            self.stats.bytes_written.add(upto - from);
            self.written.0.store(end.0, Ordering::Release);
            if !writer.in_cache {
                self.on_device.store(end.0, Ordering::Release);
            }
            if each_durable {
                self.stats.syncs.add(1);
                self.durable.0.store(end.0, Ordering::Release);
            } else if writer.unsynced.last().is_none_or(|last| !is_same(last, &segment)) {
                writer.unsynced.push(segment);
            }
        }
        // What the cache keeps only a sync brings to the device.
        if sync && !each_durable || reach == Reach::Device && writer.in_cache {
            self.sync(writer)?;
        }
        Ok(())
    }

    /// Makes all that is written durable.
    fn sync(&self, writer: &mut Writer) -> Result<()> {
        for segment in writer.unsynced.drain(..) {
            let synced = segment.slot.file.sync();
            synced.map_err(|error| RedoError::io("sync", &segment.slot.name(), 0, error))?;
            self.stats.syncs.add(1);
        }
        writer.in_cache = false;
        self.on_device.store(self.written().0, Ordering::Release);
        self.durable.0.store(self.written().0, Ordering::Release);
        Ok(())
    }

    fn segment_at(&self, writer: &mut Writer, at: u64) -> Result<Segment> {
        if let Some(segment) = &writer.segment
            && segment.holds(at)
        {
            return Ok(segment.clone());
        }
        let what = "the log is to be written there";
        let found = self.segments.find(at).ok_or(RedoError::Missing { lsn: Lsn(at), what })?;
        writer.segment = Some(found.clone());
        Ok(found)
    }

    /// Copies and seals the blocks `from..upto`, of which those with payload before `end` are in
    /// use, and gives their places in the ring back, except those of the last page, which the next
    /// write writes again (REDO-4).
    fn stage(&self, writer: &mut Writer, from: u64, upto: u64, end: Lsn) {
        let stage = &mut writer.stage[..(upto - from) as usize];
        let filled = if is_inside_block(end) { end.0 } else { block_start(end) };
        let (used, unused) = stage.split_at_mut((filled.min(upto) - from) as usize);
        self.ring.copy_out(from, used);
        unused.fill(0);
        let keep = align_down(filled).max(self.given_back.0.load(Ordering::Relaxed));
        self.given_back.0.store(keep, Ordering::Release);
        self.rounds.room_made();
        let durable = self.durable();
        let in_use = blocks_end(end).min(upto);
        for at in (from..in_use).step_by(BLOCK as usize) {
            let block = &mut stage[(at - from) as usize..][..BLOCK as usize];
            let used = (end.0 - first_in_block(at).0).min(BLOCK_PAYLOAD);
            seal(block, self.seed, at / BLOCK, used, self.epoch, durable);
        }
    }
}

fn is_same(a: &Segment, b: &Segment) -> bool {
    a.header.seq == b.header.seq
}
