//! A smaller file: what lies in the last segments is moved into free ones before them, and the file
//! is cut where nothing is needed any more. The root that names fewer segments is durable before
//! that: opening refuses a file that ends before its root says.
use crate::clean::{Cleaned, Dirty};
use crate::core::{Core, SEGMENTS_FILE};
use crate::error::StoreError;
use crate::ids::SegmentNo;
use crate::segments::{Status, StreamKind};
use crate::store::LogStore;

/// The file is cut on the way when so many segments at its end are free, or this share of all.
const CUT_EARLY: (usize, usize) = (64, 8);

/// Free segments that a cut leaves, beside the reserve.
const FREE_LEFT: usize = 8;

/// What has to go first.
enum Last {
    /// Nothing: behind the first so many segments all are free.
    Free(usize),
    /// Too few of the segments before are free: some are to be cleaned.
    Crowded,
    /// Pages, in this segment.
    Pages(SegmentNo),
    /// Leaves of the map, or free records.
    Meta,
    /// This one, to which a stream appends.
    Open(SegmentNo),
    /// Something that another thread is about to end, or a page that cannot be read.
    Busy,
}

impl Core {
    /// Free segments that there must be before a cut.
    fn least_free(&self) -> usize {
        let reserve = self.reserve();
        reserve.clean + reserve.meta + FREE_LEFT
    }

    fn last_behind(&self, enough: usize) -> Last {
        let least_free = self.least_free();
        let segments = self.segments.lock();
        let count = segments.list.len();
        let Some((number, last)) = segments.last_used() else { return Last::Free(enough) };
        let used = number.0 as usize + 1;
        let leaves_room = |first| segments.free_in(first) >= least_free;
        if !leaves_room(enough) {
            return Last::Crowded;
        }
        let is_much = count - used >= CUT_EARLY.0.min(count / CUT_EARLY.1).max(1);
        if used <= enough || is_much {
            return Last::Free(used.max(enough));
        }
        match last.status {
            Status::Open => Last::Open(number),
            _ if last.is_meta || last.forgets > segments.ckpt_seq => Last::Meta,
            _ if last.live > 0 && !last.is_damaged => Last::Pages(number),
            _ => Last::Busy,
        }
    }
}

impl LogStore {
    /// One step towards a file of `enough` segments: copies at most `budget_bytes` (one page at
    /// least) out of the last segment, or cuts the file. Returns what was copied, and whether
    /// anything was done.
    ///
    /// # Errors
    /// [`StoreError::Device`]: the store has halted. A map checkpoint that finds no room is none.
    pub fn step_shrink(
        &self,
        enough: usize,
        budget_bytes: usize,
        dirty: &dyn Dirty,
    ) -> Result<(Cleaned, bool), StoreError> {
        self.core.check_halted()?;
        let one_at_a_time = self.cleaner.lock();
        let done = |cleaned: Cleaned| {
            let did = cleaned.copied > 0;
            (cleaned, did)
        };
        match self.core.last_behind(enough) {
            Last::Free(segments) => {
                drop(one_at_a_time);
                Ok((Cleaned::default(), self.cut_file(segments)?))
            }
            Last::Crowded => self.core.clean(budget_bytes, dirty).map(done),
            Last::Pages(number) => self.core.clean_out(number, budget_bytes, dirty).map(done),
            Last::Open(number) => {
                for kind in [StreamKind::User, StreamKind::Clean, StreamKind::Meta] {
                    self.core.close_open(kind, number)?;
                }
                Ok((Cleaned::default(), true))
            }
            Last::Meta => {
                drop(one_at_a_time);
                match self.core.checkpoint_map_out_of(&self.places, enough) {
                    Ok(()) => Ok((Cleaned::default(), true)),
                    Err(StoreError::Full { .. }) => Ok((Cleaned::default(), false)),
                    Err(e) => Err(e),
                }
            }
            Last::Busy => Ok((Cleaned::default(), false)),
        }
    }

    /// Cuts the file behind its first `segments`, if all behind them are
    /// free; `false`: they are not, or there are no more.
    fn cut_file(&self, segments: usize) -> Result<bool, StoreError> {
        let _one_at_a_time = self.growth.lock();
        // No segment that is being cleaned is cut off.
        let _no_cleaning = self.cleaner.lock();
        let least_free = self.core.least_free();
        let mut root = self.core.root.lock();
        {
            let mut all = self.core.segments.lock();
            if all.list.len() <= segments || !all.cut(segments, least_free) {
                return Ok(false);
            }
            self.core.note_room(&all);
        }
        let same = root.durable.clone();
        self.core.write_root(&mut root, same)?;
        drop(root);
        let cut = self.core.file.shrink((segments * self.core.segment_bytes) as u64);
        let what = || format!("making '{SEGMENTS_FILE}' smaller");
        cut.map_err(|e| self.core.halt(StoreError::device(what(), e)))?;
        self.core.stats.cuts.add(1);
        Ok(true)
    }
}
