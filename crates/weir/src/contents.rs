//! What the older part of the log holds, written down beside it (`weir_recovery::Stretch`): after a
//! crash only the end of the log is read before the database is open, however much lies behind the
//! checkpoint (`docs/decisions/contents.md`).
//!
//! It is a hint and no more. What is torn, foreign or of another version is not looked at; what was
//! not written down is read as if there were no such file; and no failure here matters.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{ALIGN, AlignedBuf, DbId, Lsn};
use weir_device::{BlockFile, Volume};
use weir_recovery::{Indexer, Stretch};
use weir_redo::{Log, Reader};
use weir_txn::PlantedBug;

use crate::config::Config;
use crate::sealed::{Sealed, hint_file};
use crate::setup::beside_pool;

/// The file.
pub(crate) const FILE: &str = "contents";
const SEALED: Sealed =
    Sealed { magic: u64::from_le_bytes(*b"WEIRCNT1"), bytes_max: FILE_BYTES_MAX as usize };
/// The file grows by so much,
const FILE_BYTES_STEP: u64 = 1 << 20;
/// and to so much: with more to say, nothing is.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A stretch has so many bytes of log at most: with the pages that it begins and ends in, one read.
const STRETCH_BYTES: u64 = (2 << 20) - (8 << 10);
/// The file is synced after so many.
const SYNC_STRETCHES: u32 = 16;
/// So many of them are kept in memory as the log is written: on a disk of 8 MiB a second each that
/// is read back would hold up all commits for a quarter of a second.
const STRETCHES_KEPT: u64 = 4;
/// Logs that cannot become older than that are not followed: they are read in a tenth of a second.
const AGE_BYTES_MIN: u64 = 128 << 20;

/// What the file had to say.
#[derive(Default)]
pub(crate) struct FoundStretches {
    pub(crate) stretches: Vec<Stretch>,
    /// Where each lies.
    live: Vec<Live>,
}

impl FoundStretches {
    /// Reads the file, unless it is longer than `bytes_max`: then the log itself is read.
    pub(crate) fn read(volume: &dyn Volume, db: DbId, bytes_max: u64) -> FoundStretches {
        let mut found = FoundStretches::default();
        let Ok(file) = volume.open(FILE) else { return found };
        let len = file.len().min(FILE_BYTES_MAX);
        if len > bytes_max {
            return found;
        }
        let mut bytes = AlignedBuf::zeroed(len as usize);
        if file.read_at(0, &mut bytes).is_err() {
            return found;
        }
        let mut at = 0;
        while at < bytes.len() {
            let hint = SEALED.unseal(&bytes[at..], db);
            let taken = hint.map_or(ALIGN, |hint| Sealed::file_bytes(hint.len()));
            if let Some(stretch) = hint.and_then(Stretch::decode) {
                found.live.push(Live { end: stretch.end, place: at as u64..(at + taken) as u64 });
                found.stretches.push(stretch);
            }
            at += taken;
        }
        found
    }

    /// The places of what is still wanted with this checkpoint, in the order of the log.
    fn live(mut self, checkpoint: Lsn) -> VecDeque<Live> {
        self.live.retain(|live| live.end > checkpoint);
        self.live.sort_by_key(|live| live.end);
        self.live.into()
    }
}

/// A part of the file that must be kept.
struct Live {
    /// Until the checkpoint is there.
    end: Lsn,
    place: Range<u64>,
}

/// Where the next one is written: behind the last one or at the front, where nothing lies that must
/// be kept, or behind the end of the file. It need not be that long.
fn place(live: &VecDeque<Live>, at: u64, file_bytes: u64, len: u64) -> Range<u64> {
    let is_free = |to: &Range<u64>| {
        !live.iter().any(|kept| kept.place.start < to.end && to.start < kept.place.end)
    };
    let fits = |to: &Range<u64>| to.end <= file_bytes && is_free(to);
    let candidates = [at..at + len, 0..len];
    let behind = live.iter().map(|kept| kept.place.end).max().unwrap_or(0);
    candidates.into_iter().find(fits).unwrap_or(behind..behind + len)
}

struct State {
    indexer: Indexer,
    live: VecDeque<Live>,
    /// Where the last one that was written ends in the file.
    at: u64,
    file: Option<Arc<dyn BlockFile>>,
    /// Written since the file was synced.
    unsynced: u32,
    /// Of the step before, for its memory.
    reader: Option<Reader>,
}

/// Follows the log.
pub(crate) struct Contents {
    volume: Arc<dyn Volume>,
    db: DbId,
    log: Arc<Log>,
    stretch_bytes: u64,
    /// Bytes of the log that are kept in memory, so that the next stretches are not read back.
    recent_bytes: u64,
    /// The log is followed however old it can become.
    always: bool,
    planted: PlantedBug,
    /// `None`: something failed. The next opening begins anew.
    state: Mutex<rank::LogContents, Option<State>>,
}

impl Contents {
    /// Goes on from what was found.
    pub(crate) fn new(
        volume: Arc<dyn Volume>,
        db: DbId,
        log: Arc<Log>,
        found: FoundStretches,
        indexer: Indexer,
        config: &Config,
    ) -> Self {
        let live = found.live(log.checkpoint());
        let stretch_bytes = config.contents_bytes.unwrap_or(STRETCH_BYTES);
        let at = live.back().map_or(0, |last| last.place.end);
        Contents {
            volume,
            db,
            log,
            stretch_bytes,
            recent_bytes: (STRETCHES_KEPT * stretch_bytes).min(beside_pool(config.pool_bytes)),
            always: config.contents_bytes.is_some(),
            planted: config.planted,
            state: Mutex::new(Some(State {
                indexer,
                live,
                at,
                file: None,
                unsynced: 0,
                reader: None,
            })),
        }
    }

    /// Writes down the next stretch if there is one. Returns whether there was.
    pub(crate) fn step(&self) -> bool {
        let mut state = self.state.lock();
        let Some(open) = state.as_mut() else { return false };
        let did = self.step_with(open);
        if did.is_none() {
            *state = None;
        }
        did.unwrap_or(false)
    }

    fn step_with(&self, state: &mut State) -> Option<bool> {
        let (checkpoint, settled) = (self.log.checkpoint(), self.log.settled());
        if checkpoint > state.indexer.at() {
            state.indexer.begin(checkpoint);
        }
        let is_small = !self.always && self.log.limit_bytes() < AGE_BYTES_MIN;
        self.log.keep_recent(if is_small { 0 } else { self.recent_bytes });
        if is_small || settled.bytes_since(state.indexer.at()) < self.stretch_bytes {
            return Some(false);
        }
        let reader = self.log.reader(state.reader.take());
        let next = state.indexer.next(&reader, checkpoint, settled, self.stretch_bytes);
        state.reader = Some(reader);
        match next {
            Ok(Some(stretch)) => self.write(state, stretch).map(|()| true),
            Ok(None) => Some(false),
            // Its files have been used again meanwhile.
            Err(_) if self.log.checkpoint() > state.indexer.at() => {
                state.indexer.begin(self.log.checkpoint());
                Some(false)
            }
            Err(_) => None,
        }
    }

    fn write(&self, state: &mut State, mut stretch: Stretch) -> Option<()> {
        match self.planted {
            PlantedBug::ContentsLackPart => {
                let several = stretch.pages.iter_mut().filter(|page| page.parts.count_ones() > 1);
                several.for_each(|page| page.parts &= page.parts - 1);
            }
            PlantedBug::ContentsLackOpen => stretch.open.clear(),
            PlantedBug::ContentsLackEnded => stretch.ended.clear(),
            _ => {}
        }
        let bytes = SEALED.seal(&stretch.encode(), self.db);
        let checkpoint = self.log.checkpoint();
        state.live.retain(|kept| kept.end > checkpoint);
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(hint_file(&*self.volume, FILE, FILE_BYTES_STEP).ok()?),
        };
        let to = place(&state.live, state.at, file.len(), bytes.len() as u64);
        if to.end > FILE_BYTES_MAX {
            return None;
        }
        if to.end > file.len() {
            file.grow(to.end.next_multiple_of(FILE_BYTES_STEP)).ok()?;
        }
        file.write_at(to.start, &bytes).ok()?;
        state.unsynced += 1;
        // What a power loss takes must be read.
        if state.unsynced == SYNC_STRETCHES {
            file.sync().ok()?;
            state.unsynced = 0;
        }
        state.at = to.end;
        state.live.push_back(Live { end: stretch.end, place: to });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_where_nothing_lies_that_must_be_kept() {
        let live = |places: &[Range<u64>]| -> VecDeque<Live> {
            places.iter().map(|p| Live { end: Lsn(1), place: p.clone() }).collect()
        };
        // (what must be kept, where the last one ended, the file's length, where the next goes)
        type Row<'a> = (&'a [Range<u64>], u64, u64, Range<u64>);
        let rows: [Row<'_>; 8] = [
            (&[], 0, 100, 0..10),
            (&[], 95, 100, 0..10),
            (&[], 0, 0, 0..10),
            (&[0..20, 20..50], 50, 100, 50..60),
            (&[20..50, 50..95], 95, 100, 0..10),
            (&[5..50, 50..95], 95, 100, 95..105),
            (&[60..90, 0..20, 20..55], 55, 100, 90..100),
            (&[60..90, 0..20, 20..50], 50, 100, 50..60),
        ];
        for (kept, at, file, expected) in rows {
            assert_eq!(place(&live(kept), at, file, 10), expected, "{kept:?} {at} {file}");
        }
    }
}
