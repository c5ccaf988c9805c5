//! Which files make up the log: preparing them ahead of the end, using them again behind the
//! checkpoint, and following the capacity up and down.
//!
//! A segment becomes part of the log by one durable write of its header, so a crash leaves it in
//! or out. A file is taken out only when all its blocks lie before the checkpoint (REDO-7).
use crate::error::{RedoError, Result};
use crate::fill::{Filling, create_file};
use crate::holds::Holds;
use crate::position::{BLOCK, PAGE, block_start};
use crate::segment::{
    Files, POSITIONS_END, SEGMENT_HEADER, Segment, SegmentHeader, SegmentInfo, Slot, write_header,
};
use crate::stats::RedoStats;
use crate::table::Table;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{DbId, Lsn};
use weir_device::Volume;

/// Into how many files a log's capacity is divided.
pub(crate) const SLOTS: u64 = 32;
/// More than the longest segment of the largest log: no new one begins so near the last position.
const POSITIONS_LEFT: u64 = 1 << 42;
/// No segment holds less.
const SEGMENT_MIN: u64 = 16 << 10;
/// More files than this there can never be, whatever the capacity did.
const FILES_MAX: usize = 4 * SLOTS as usize;
/// Segments that maintenance keeps ready behind the one being written.
const AHEAD: usize = 2;
/// Readers that are slow hold so many times the capacity of the log.
const HELD_CAPACITIES: u64 = 2;
/// While files cannot be created and none is wanted, every so many steps try it all the same.
const RETRY_STEPS: u32 = 64;

/// The least capacity of a log.
pub(crate) const CAPACITY_MIN: u64 = SLOTS * (SEGMENT_MIN + SEGMENT_HEADER);

/// Bytes of log in each file of a log of that capacity.
pub(crate) fn segment_payload(capacity: u64) -> u64 {
    (capacity / SLOTS).saturating_sub(SEGMENT_HEADER).max(SEGMENT_MIN) / PAGE * PAGE
}

/// The greatest age that all the files of a log of that capacity have room for.
fn asked(capacity: u64) -> u64 {
    segment_payload(capacity) * (SLOTS - 2)
}

/// A file that is made ahead while the log grows is at most so many times the largest that there
/// is: it must be ready before those are full.
const GROWTH: u64 = 2;

/// How urgently a segment is wanted.
#[derive(Clone, Copy)]
enum Haste {
    /// In the background: the right size, within the capacity.
    Ahead(Demand),
    /// A writer waits: whatever is quickest, beyond the capacity if it must be.
    Now,
}

/// What the files must have room for.
#[derive(Clone, Copy)]
struct Demand {
    /// The log's end.
    end: Lsn,
    /// The age.
    age: u64,
    /// The age that is allowed now.
    limit: u64,
}

/// The files of an open log.
pub(crate) struct Segments {
    volume: Arc<dyn Volume>,
    db: DbId,
    /// Written into each new header: how far blocks are sealed ahead of what is durable.
    unsynced_max: u64,
    table: Mutex<rank::LogFiles, Table>,
    /// Held by the thread that changes files, so that slots are not given out twice. Taken before
    /// `table`. The file that is made ahead, from one step of maintenance to the next.
    changing: Mutex<rank::LogFilesChanging, Option<Filling>>,
    capacity: AtomicU64,
    /// The last attempt to create a file failed, or none was made since the capacity was raised:
    /// only what there is counts.
    cramped: AtomicBool,
    /// Steps taken while it did.
    cramped_steps: AtomicU32,
    limit: AtomicU64,
    held: AtomicU64,
    pub(crate) holds: Holds,
    pub(crate) stats: Arc<RedoStats>,
}

impl Segments {
    /// Takes over the files of an existing log: `chain` in order, `rest` for use again.
    pub(crate) fn new(
        volume: Arc<dyn Volume>,
        db: DbId,
        capacity: u64,
        unsynced_max: u64,
        chain: Vec<Segment>,
        rest: Files,
        stats: Arc<RedoStats>,
    ) -> Segments {
        let unused = rest.segments.into_iter().map(|segment| segment.slot);
        let free = unused.chain(rest.blank).filter(|slot| slot.payload() >= SEGMENT_MIN).collect();
        let segments = Segments {
            volume,
            db,
            unsynced_max,
            table: Mutex::new(Table { active: chain.into(), free, coming: None }),
            changing: Mutex::default(),
            capacity: AtomicU64::new(capacity.max(CAPACITY_MIN)),
            cramped: AtomicBool::new(false),
            cramped_steps: AtomicU32::new(0),
            limit: AtomicU64::new(0),
            held: AtomicU64::new(0),
            holds: Holds::new(),
            stats,
        };
        segments.recount();
        segments
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Acquire)
    }

    pub(crate) fn set_capacity(&self, bytes: u64) {
        let bytes = bytes.max(CAPACITY_MIN);
        if self.capacity.swap(bytes, Ordering::AcqRel) < bytes {
            // Whether the disk has room for more is for the next step to find out: writers let on
            // to an age that no file is there for could be quicker.
            self.cramped.store(true, Ordering::Release);
            self.cramped_steps.store(RETRY_STEPS - 1, Ordering::Relaxed);
        }
        self.recount();
    }

    /// The greatest age in bytes that the files have room for: one may be filled up to its last
    /// block at the front, and one must stand ready at the end.
    pub(crate) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Acquire)
    }

    /// The age that must not be passed even while the limit is on its way down: what the files
    /// have room for when no other can be created.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Acquire)
    }

    /// Computes the limit anew: from all files that the capacity allows, or, when another could
    /// not be created, from those that there are. They may be larger than the capacity allows: what
    /// was asked for is the limit then, too, as far as they have room for it.
    fn recount(&self) {
        let held = match self.cramped.load(Ordering::Acquire) {
            true => self.table.lock().age_max(segment_payload(self.capacity()), None),
            false => u64::MAX,
        };
        self.held.store(held, Ordering::Release);
        self.limit.store(held.min(asked(self.capacity())), Ordering::Release);
    }

    /// Whose log it is.
    pub(crate) fn db(&self) -> DbId {
        self.db
    }

    /// The segments of the log, in order.
    pub(crate) fn chain(&self) -> Vec<Segment> {
        self.table.lock().active.iter().cloned().collect()
    }

    /// The segment that holds disk position `at`.
    pub(crate) fn find(&self, at: u64) -> Option<Segment> {
        self.table.lock().active.iter().rev().find(|segment| segment.holds(at)).cloned()
    }

    /// Where the last prepared segment ends.
    pub(crate) fn prepared_end(&self) -> u64 {
        self.table.lock().active.back().map_or(0, Segment::end)
    }

    fn ahead(&self, end: u64) -> usize {
        let table = self.table.lock();
        table.active.iter().rev().take_while(|segment| segment.header.start > end).count()
    }

    /// One step of maintenance, with the log's end, its checkpoint and the age that is allowed now:
    /// prepares a segment or removes a surplus file. `false`: nothing to do.
    ///
    /// # Errors
    /// A full disk (the log goes on with the files there are) or a failed write.
    pub(crate) fn step(&self, end: Lsn, checkpoint: Lsn, limit: u64) -> Result<bool> {
        let mut filling = self.changing.lock();
        let needed = self.needed(end, checkpoint);
        self.release(needed);
        let demand = Demand { end, age: end.bytes_since(needed), limit };
        let mut stepped = self.step_with(&mut filling, demand);
        if let Err(e) = &stepped
            && e.is_lack_of_space()
            && self.give_up_held(checkpoint)
        {
            stepped = Ok(true);
        }
        self.recount();
        stepped
    }

    fn step_with(&self, filling: &mut Option<Filling>, demand: Demand) -> Result<bool> {
        let payload = segment_payload(self.capacity().max(demand.limit));
        if self.ahead(block_start(demand.end)) < AHEAD {
            self.prepare(filling, Haste::Ahead(demand))
        } else if self.fill(filling, demand.end)? {
            Ok(true)
        } else if filling.is_none() && self.is_retry_due() {
            // No thread might ask for a segment any more: with too little room all writers wait.
            self.begin(filling, payload, demand.end)
        } else {
            self.remove_surplus(filling, demand)
        }
    }

    /// Begins a file for the background to fill.
    fn begin(&self, filling: &mut Option<Filling>, payload: u64, end: Lsn) -> Result<bool> {
        let room = self.prepared_end().saturating_sub(block_start(end));
        let size = payload + SEGMENT_HEADER;
        let begun = self.make(|number| Filling::begin(&*self.volume, number, size, end, room))?;
        self.table.lock().coming = Some(begun.slot.clone());
        *filling = Some(begun);
        Ok(true)
    }

    /// Goes on with it, if more is due.
    fn fill(&self, filling: &mut Option<Filling>, end: Lsn) -> Result<bool> {
        let due = filling.as_ref().is_some_and(|filling| filling.is_due(end));
        if due { self.fill_by(filling, 1) } else { Ok(false) }
    }

    /// Fills so many pieces of the file that is on its way.
    fn fill_by(&self, filling: &mut Option<Filling>, pieces: u64) -> Result<bool> {
        let Some(file) = filling else { return Ok(false) };
        let filled = file.fill(&*self.volume, pieces);
        if let Ok(false) = filled {
            return Ok(true);
        }
        *filling = None;
        let coming = self.table.lock().coming.take();
        match filled {
            Ok(_) => {
                self.table.lock().free.extend(coming);
                self.stats.segments_created.add(1);
                Ok(true)
            }
            Err(error) => {
                // What is there of it is of no use, and that it cannot be removed changes nothing.
                let _ = coming.map(|slot| self.remove(slot));
                self.cramped.store(true, Ordering::Release);
                Err(error)
            }
        }
    }

    fn is_retry_due(&self) -> bool {
        self.cramped.load(Ordering::Acquire)
            && (self.cramped_steps.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(RETRY_STEPS)
    }

    /// Makes all files that the capacity allows, to be used when their turn comes.
    ///
    /// # Errors
    /// A full disk, or a failed write.
    pub(crate) fn preallocate(&self) -> Result<()> {
        let _changing = self.changing.lock();
        let payload = segment_payload(self.capacity());
        while self.table.lock().bytes() + payload + SEGMENT_HEADER <= self.capacity() {
            self.add_free(payload)?;
        }
        self.recount();
        Ok(())
    }

    /// Prepares the segment that begins at `at`, if there is none; a writer waits for it.
    pub(crate) fn ensure(&self, at: u64, checkpoint: Lsn) -> Result<()> {
        while self.prepared_end() <= at {
            let mut filling = self.changing.lock();
            if self.prepared_end() <= at {
                self.release(self.needed(Lsn(at), checkpoint));
                let mut prepared = self.prepare(&mut filling, Haste::Now);
                if prepared.is_err() && self.give_up_held(checkpoint) {
                    prepared = self.prepare(&mut filling, Haste::Now);
                }
                self.recount();
                prepared?;
                self.stats.segments_late.add(1);
            }
        }
        Ok(())
    }

    /// What must stay: from the checkpoint on, and what readers hold of twice the capacity.
    fn needed(&self, end: Lsn, checkpoint: Lsn) -> Lsn {
        let least = end.0.saturating_sub(HELD_CAPACITIES * self.capacity());
        self.holds.needed(checkpoint, Lsn(least))
    }

    /// Gives up what readers hold behind the checkpoint: there is no room for it. `false`: there
    /// was nothing.
    fn give_up_held(&self, checkpoint: Lsn) -> bool {
        let before = self.table.lock().free.len();
        self.release(self.holds.needed(checkpoint, checkpoint));
        self.table.lock().free.len() > before
    }

    /// Keeps what is needed from the checkpoint on ([`Holds::take`]).
    pub(crate) fn hold(&self, checkpoint: impl FnOnce() -> Lsn) -> Option<(usize, Lsn)> {
        // So nothing behind it is being given up.
        let _changing = self.changing.lock();
        let from = checkpoint();
        self.holds.take(from).map(|number| (number, from))
    }

    /// Moves what lies wholly before the checkpoint's block and the one before (which a scan looks
    /// at to see that the log is whole up to the checkpoint) to the free files.
    fn release(&self, checkpoint: Lsn) {
        let mut table = self.table.lock();
        while table.active.len() > 1
            && table.active[0].end() + BLOCK <= block_start(checkpoint)
            && let Some(segment) = table.active.pop_front()
        {
            table.free.push(segment.slot);
        }
    }

    /// The file that has been free for longest among those that suit: so none lies unused for ever
    /// while others go round.
    fn take_free(&self, suits: impl Fn(&Slot) -> bool) -> Option<Slot> {
        let mut table = self.table.lock();
        let found = table.free.iter().position(suits)?;
        Some(table.free.remove(found))
    }

    /// As [`Segments::take_free`], but only a file without which the others have room for all that
    /// is allowed now. To remove another one would rely on the disk's having room for a new file
    /// afterwards, and others may be quicker to take it.
    fn take_spare(&self, demand: Demand, suits: impl Fn(&Slot) -> bool) -> Option<Slot> {
        let capacity = self.capacity();
        let payload = segment_payload(capacity);
        let need = demand.age.max(demand.limit).max(asked(capacity));
        let mut table = self.table.lock();
        let spare = |slot: &Slot| table.age_max(payload, Some(slot.number)) >= need;
        let found = table.free.iter().position(|slot| suits(slot) && spare(slot))?;
        Some(table.free.remove(found))
    }

    /// Adds one segment at the end of the log. `false` when the capacity allows none now.
    fn prepare(&self, filling: &mut Option<Filling>, haste: Haste) -> Result<bool> {
        let end = self.prepared_end();
        if end >= POSITIONS_END - POSITIONS_LEFT {
            return Err(RedoError::UsedUp { at: Lsn(end) });
        }
        let capacity = self.capacity();
        let limit = if let Haste::Ahead(demand) = haste { demand.limit } else { 0 };
        // While the capacity is on its way down, files are sized for what is still allowed: else
        // there would be very many of them. Near enough is good enough then.
        let shrinking = limit > capacity;
        let payload = segment_payload(capacity.max(limit));
        let (least, most) = if shrinking { (payload / 2, payload * 2) } else { (payload, payload) };
        if let Some(slot) = self.take_free(|slot| (least..=most).contains(&slot.payload())) {
            return self.recycle(slot);
        }
        match haste {
            Haste::Now => {
                // All that is left to do of one that is on its way is less than all of another.
                if self.table.lock().free.is_empty() {
                    self.fill_by(filling, u64::MAX)?;
                }
                if let Some(slot) = self.take_free(|_| true) {
                    return self.recycle(slot);
                }
            }
            Haste::Ahead(demand) => return self.prepare_ahead(filling, payload, demand),
        }
        match self.create(payload) {
            Ok(slot) => self.append(slot, payload),
            Err(error) => self.recycle_any_or(error),
        }
    }

    /// Without a new file any free one must do.
    fn recycle_any_or(&self, error: RedoError) -> Result<bool> {
        self.take_free(|_| true).map_or(Err(error), |slot| self.recycle(slot))
    }

    /// Without a file of the right size: goes on with one, or begins one. Those of another size
    /// must do meanwhile.
    fn prepare_ahead(
        &self,
        filling: &mut Option<Filling>,
        payload: u64,
        demand: Demand,
    ) -> Result<bool> {
        if filling.is_none() {
            let largest = self.table.lock().files().map(Slot::payload).max().unwrap_or(0);
            let payload = payload.min((GROWTH * largest).max(SEGMENT_MIN));
            if !self.make_place(payload, demand)? {
                return Ok(false);
            }
            let begun = self.begin(filling, payload, demand.end);
            return begun.or_else(|error| self.recycle_any_or(error));
        }
        let is_last = self.ahead(block_start(demand.end)) == 0;
        match self.fill(filling, demand.end) {
            Ok(false) if is_last => {
                self.take_free(|_| true).map_or(Ok(false), |slot| self.recycle(slot))
            }
            filled => filled.or_else(|error| self.recycle_any_or(error)),
        }
    }

    /// Removes files of another size to make place for one of `payload` bytes within the capacity.
    /// `false` when there is none to remove.
    fn make_place(&self, payload: u64, demand: Demand) -> Result<bool> {
        // While the log shrinks it is above its capacity anyhow: then as much as is taken away may
        // be added.
        let allowed = self.capacity().max(self.table.lock().bytes());
        while self.table.lock().bytes() + payload + SEGMENT_HEADER > allowed {
            let smaller = self.take_free(|slot| slot.payload() < payload);
            match smaller.or_else(|| self.take_spare(demand, |_| true)) {
                Some(slot) => self.remove(slot)?,
                // All of them are needed until the log has enough of the right size: those come
                // first, and these go as surplus.
                None => return Ok(!self.table.lock().free.is_empty()),
            }
        }
        Ok(true)
    }

    fn recycle(&self, slot: Slot) -> Result<bool> {
        self.stats.segments_recycled.add(1);
        let payload = slot.payload();
        self.append(slot, payload)
    }

    fn append(&self, slot: Slot, payload: u64) -> Result<bool> {
        let last = self.table.lock().active.back().map(|last| (last.header.seq, last.end()));
        let (seq, start) = last.expect("a log has at least one segment");
        let header =
            SegmentHeader { seq: seq + 1, start, payload, unsynced_max: self.unsynced_max };
        let segment = write_header(slot, self.db, header)?;
        self.table.lock().active.push_back(segment);
        Ok(true)
    }

    /// Creates a file to be used when its turn comes.
    fn add_free(&self, payload: u64) -> Result<bool> {
        let slot = self.create(payload)?;
        self.table.lock().free.push(slot);
        Ok(true)
    }

    fn create(&self, payload: u64) -> Result<Slot> {
        let size = payload + SEGMENT_HEADER;
        let created = self.make(|number| create_file(&*self.volume, number, size));
        created.inspect(|_| self.stats.segments_created.add(1))
    }

    /// Makes a file under the next free number, and notes whether one can be had.
    fn make<T>(&self, make: impl FnOnce(u32) -> Result<T>) -> Result<T> {
        let made = self.next_number().and_then(make);
        self.cramped.store(made.is_err(), Ordering::Release);
        made
    }

    fn next_number(&self) -> Result<u32> {
        let table = self.table.lock();
        let files = table.all().count();
        if files >= FILES_MAX {
            return Err(RedoError::Full { files });
        }
        let free = (0..).find(|&number| table.all().all(|slot| slot.number != number));
        Ok(free.expect("numbers do not run out"))
    }

    fn remove(&self, slot: Slot) -> Result<()> {
        let name = slot.name();
        let removed = self.volume.remove(&name).and_then(|()| self.volume.sync_directory());
        removed.map_err(|error| RedoError::io("remove", &name, 0, error))?;
        self.stats.segments_removed.add(1);
        Ok(())
    }

    fn remove_surplus(&self, filling: &mut Option<Filling>, demand: Demand) -> Result<bool> {
        let (capacity, limit) = (self.capacity(), demand.limit);
        // On the way down, what the age that is still allowed takes is no surplus.
        if self.table.lock().bytes() <= capacity.max(limit + limit / 8) {
            return Ok(false);
        }
        let payload = segment_payload(capacity);
        let is_other = |slot: &Slot| slot.payload() != payload;
        let others_free = self.table.lock().free.iter().any(is_other);
        match self.take_spare(demand, |slot| is_other(slot) || !others_free) {
            Some(slot) => self.remove(slot).map(|()| true),
            // A file that is too large can be spared when enough of the right size are there.
            None if others_free
                && limit <= capacity
                && filling.is_none()
                && !self.cramped.load(Ordering::Acquire) =>
            {
                self.begin(filling, payload, demand.end)
            }
            None => Ok(false),
        }
    }

    /// A row for each file, the log's own first.
    pub(crate) fn infos(&self) -> Vec<SegmentInfo> {
        let table = self.table.lock();
        let active = table.active.iter().map(|segment| SegmentInfo {
            file: segment.slot.name(),
            sequence: Some(segment.header.seq),
            start: Lsn(segment.header.start),
            bytes: segment.header.payload,
        });
        let free = table.free.iter().map(|slot| SegmentInfo {
            file: slot.name(),
            sequence: None,
            start: Lsn::ZERO,
            bytes: slot.payload(),
        });
        active.chain(free).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_fit_into_the_capacity() {
        for capacity in [CAPACITY_MIN, 1 << 20, 64 << 20, 1 << 30, (1 << 30) + 12345] {
            let size = segment_payload(capacity) + SEGMENT_HEADER;
            assert!(size * SLOTS <= capacity && size.is_multiple_of(PAGE), "{capacity}");
        }
        assert_eq!(segment_payload(0), SEGMENT_MIN);
    }
}
