//! The damaged database: its files, read through a layer that takes all writes, and what of the
//! control file can be believed.
use std::path::Path;
use std::sync::Arc;

use weir::StoreKind;
use weir_base::{AlignedBuf, DbId, PageNo};
use weir_checkpoint::{CONTROL_FILE, Control, choose, read_copies};
use weir_device::{BlockFile, FileVolume, OverlayVolume, Volume};
use weir_page::{Bytes, Damage, PAGE_SIZES, verify};
use weir_pool::{
    DoubleWriteConfig, IN_PLACE_FILE, InPlaceStore, LogStructuredStore, PageCopy, PageStore,
    SEGMENTS_FILE,
};

use crate::error::SalvageError;

/// Pages looked at to find out how large pages are and of which database, from the file's start and
/// spread over all of it.
const SAMPLES: u64 = 64;
/// Where a page bears its database's mark.
const MARK_AT: usize = 28;

/// The database as it was found.
pub(crate) struct Source {
    /// What is written to it is seen by this process alone.
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) store: Arc<dyn PageStore>,
    pub(crate) store_kind: StoreKind,
    /// Where pages lie was found in segments themselves: a newer state of one may be lost.
    pub(crate) is_map_lost: bool,
    /// What the doublewrite area has.
    pub(crate) copies: Vec<PageCopy>,
    pub(crate) db: DbId,
    pub(crate) page_size: usize,
    /// What the control file says, where it can be read and is this data file's.
    pub(crate) control: Option<Control>,
    pub(crate) remarks: Vec<String>,
}

impl Source {
    /// Opens the directory to read.
    pub(crate) fn open(
        dir: &Path,
        page_size: Option<usize>,
        encryption: Option<&weir::Encryption>,
    ) -> Result<Source, SalvageError> {
        let failed = |e| SalvageError::io(format!("opening {}", dir.display()), e);
        let below = FileVolume::open_read_only(dir).map_err(failed)?;
        let below = weir::open_volume(Arc::new(below), encryption)
            .map_err(|e| SalvageError::Source(e.to_string()))?;
        Self::open_on(below, page_size)
    }

    fn open_on(below: Arc<dyn Volume>, size: Option<usize>) -> Result<Source, SalvageError> {
        let failed = |e| SalvageError::io("making a file for what is brought up to date", e);
        let volume: Arc<dyn Volume> = Arc::new(OverlayVolume::new(below).map_err(failed)?);
        let mut remarks = Vec::new();
        let control = read_control(&*volume, &mut remarks);
        let file = match volume.open(IN_PLACE_FILE) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Self::in_segments(volume, control, remarks, size);
            }
            opened => {
                opened.map_err(|e| SalvageError::io(format!("opening '{IN_PLACE_FILE}'"), e))?
            }
        };
        let said = control.map(|control| control.page_size as usize);
        let found = size.map(|size| (size, mark_of(&*file, size).map_or(0, |(mark, _)| mark)));
        let Some((page_size, mark)) = found.or_else(|| look(&*file, said)) else {
            return Err(SalvageError::Source(format!(
                "no page of '{IN_PLACE_FILE}' is sound, whatever size pages have: nothing can be \
                 salvaged from it"
            )));
        };
        let known = control.map(|control| control.db).into_iter().chain(of_logs(&*volume));
        // Where nothing else names it, the database is the one whose mark the pages bear.
        let mut known = known.filter(|db| db.mark() == mark);
        let db = known.next().unwrap_or(DbId(u64::from(mark)));
        if file.len() % page_size as u64 != 0 {
            let end = file.len();
            remarks.push(format!("'{IN_PLACE_FILE}' ends in the middle of a page, at byte {end}"));
        }
        let store = InPlaceStore::open(&volume, db, page_size, DoubleWriteConfig::default())
            .map_err(|e| SalvageError::Source(e.to_string()))?;
        let copies = store.doublewrite_copies();
        let (store, store_kind) = (Arc::new(store), StoreKind::InPlace);
        let source = Source {
            volume,
            store,
            store_kind,
            is_map_lost: false,
            copies,
            db,
            page_size,
            control,
            remarks,
        };
        Ok(source.with_control_judged())
    }

    /// Where pages lie the store's own map says; where that is lost, segments themselves.
    fn in_segments(
        volume: Arc<dyn Volume>,
        control: Option<Control>,
        mut remarks: Vec<String>,
        size: Option<usize>,
    ) -> Result<Source, SalvageError> {
        if !volume.exists(SEGMENTS_FILE).unwrap_or(false) {
            return Err(SalvageError::Source(format!(
                "there is no file '{IN_PLACE_FILE}', nor '{SEGMENTS_FILE}': nothing can be \
                 salvaged without"
            )));
        }
        let known = control.map(|control| control.db).into_iter().chain(of_logs(&*volume)).next();
        // Segments bear their database's number: they have the last word.
        let Some(db) = LogStructuredStore::find_db(&*volume).or(known) else {
            return Err(SalvageError::Source(
                "nothing says which database it is: pages in segments cannot be found".into(),
            ));
        };
        let failed = |e| SalvageError::Source(format!("'{SEGMENTS_FILE}' cannot be read: {e}"));
        let (store, is_map_lost) = match LogStructuredStore::open(&volume, db) {
            Ok(store) => (store, false),
            Err(why) => {
                let control = control.filter(|control| control.db == db);
                let size = size.or(control.map(|control| control.page_size as usize));
                let pages = control.map_or(0, |control| control.pages);
                let rebuilt = LogStructuredStore::rebuild(&volume, db, size, pages);
                let rebuilt = rebuilt.map_err(failed)?;
                remarks.push(format!(
                    "where pages lie in '{SEGMENTS_FILE}' was found in the segments themselves \
                     ({why}): {} pages, {} more whose newest state is damaged. A newer state of a \
                     page may be lost without a trace, so rows may be older than they were",
                    rebuilt.pages, rebuilt.pages_damaged
                ));
                (rebuilt.store, true)
            }
        };
        let page_size = store.page_size();
        let (store, store_kind, copies) = (Arc::new(store), StoreKind::Log, Vec::new());
        let source = Source {
            volume,
            store,
            store_kind,
            is_map_lost,
            copies,
            db,
            page_size,
            control,
            remarks,
        };
        Ok(source.with_control_judged())
    }

    /// Leaves the control file aside where it is another's, and says what it knows better.
    fn with_control_judged(mut self) -> Source {
        let Some(control) = self.control else { return self };
        let file = self.store.size_file();
        if control.db != self.db || control.page_size as usize != self.page_size {
            self.remarks.push(format!(
                "'{CONTROL_FILE}' is of database {} with pages of {} bytes, '{file}' is not: it \
                 was left aside",
                control.db, control.page_size
            ));
            self.control = None;
        } else if self.store.pages() < control.pages {
            self.remarks.push(format!(
                "'{file}' was cut short: it has {} pages, '{CONTROL_FILE}' knows of {}",
                self.store.pages(),
                control.pages
            ));
        }
        self
    }
}

/// The databases that files of a log name.
fn of_logs(volume: &dyn Volume) -> Vec<DbId> {
    let files = weir_redo::survey(volume, None).unwrap_or_default();
    files.iter().filter_map(|file| file.header.map(|header| header.db)).collect()
}

fn read_control(volume: &dyn Volume, remarks: &mut Vec<String>) -> Option<Control> {
    let read = || -> std::io::Result<Result<Control, String>> {
        let [first, second] = read_copies(volume)?;
        Ok(choose(&first.1, &second.1).map_err(|e| e.to_string()))
    };
    let why = match read() {
        Ok(Ok(control)) => return Some(control),
        Ok(Err(why)) => why,
        Err(e) => format!("'{CONTROL_FILE}' cannot be read: {e}"),
    };
    remarks.push(format!("without the control file: {why}"));
    None
}

/// The size that pages have, and the mark that most of them bear. `said`: the size that is believed
/// where it fits as well as another.
fn look(file: &dyn BlockFile, said: Option<usize>) -> Option<(usize, u32)> {
    let mut best = None;
    for size in said.into_iter().chain(PAGE_SIZES) {
        if !PAGE_SIZES.contains(&size) {
            continue;
        }
        let Some((mark, sound)) = mark_of(file, size) else { continue };
        if best.is_none_or(|(most, _, _)| sound > most) {
            best = Some((sound, size, mark));
        }
    }
    best.map(|(_, size, mark)| (size, mark))
}

/// The mark that most of the pages looked at bear, and how many of them are sound in themselves.
fn mark_of(file: &dyn BlockFile, size: usize) -> Option<(u32, usize)> {
    let pages = file.len() / size as u64;
    let spread = (0..SAMPLES).map(|at| at * (pages / SAMPLES).max(1));
    let mut marks: Vec<u32> = Vec::new();
    let mut page = AlignedBuf::zeroed(size);
    for number in (0..SAMPLES).chain(spread).filter(|&number| number < pages) {
        let Ok(page_no) = u32::try_from(number) else { break };
        if file.read_at(number * size as u64, &mut page).is_err() {
            continue;
        }
        let mark = (&page[..]).u32_at(MARK_AT);
        let found = verify(&page, DbId(u64::from(mark)), PageNo(page_no));
        if !matches!(found, Err(Damage::Checksum { .. } | Damage::Zeroed)) {
            marks.push(mark);
        }
    }
    let most = |mark: &u32| marks.iter().filter(|other| *other == mark).count();
    let mark = marks.iter().copied().max_by_key(most)?;
    Some((mark, most(&mark)))
}
