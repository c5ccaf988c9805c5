//! Where the pages are read from: the file that has them in place, or segments.
use std::io;
use std::sync::Arc;

use weir_base::{AlignedBuf, DbId, PageNo};
use weir_device::{BlockFile, Volume};
use weir_logstore::{LogStore, SEGMENTS_FILE, StoreError};
use weir_pool::IN_PLACE_FILE;

/// A data file, open.
pub(crate) enum DataFile {
    /// Page n lies at n times the page size.
    InPlace(Arc<dyn BlockFile>),
    /// Where a page lies its map says.
    Segments(Box<LogStore>),
}

/// A page that was asked for.
pub(crate) enum StoredPage {
    /// As it lies there.
    Page(AlignedBuf),
    /// What lies there is none, for this reason.
    Damaged(String),
    /// Beyond the end of the database.
    Beyond,
}

impl DataFile {
    /// The one that there is, if there is one. Segments open only for the database `db`.
    pub(crate) fn open(volume: &Arc<dyn Volume>, db: Option<DbId>) -> io::Result<Option<DataFile>> {
        match volume.open(IN_PLACE_FILE) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok(Some(DataFile::InPlace(opened?))),
        }
        if !volume.exists(SEGMENTS_FILE)? {
            return Ok(None);
        }
        let Some(db) = db else {
            let words = "nothing says which database it is: pages in segments cannot be found";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        };
        let opened = LogStore::open(volume, db);
        let opened = opened.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        Ok(Some(DataFile::Segments(Box::new(opened))))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            DataFile::InPlace(_) => IN_PLACE_FILE,
            DataFile::Segments(_) => SEGMENTS_FILE,
        }
    }

    /// Pages that there is room for.
    pub(crate) fn pages(&self, page_size: usize) -> u64 {
        match self {
            DataFile::InPlace(file) => file.len() / page_size as u64,
            DataFile::Segments(store) => store.pages().into(),
        }
    }

    /// Where the file ends, if that is in the middle of a page.
    pub(crate) fn cut_at(&self, page_size: usize) -> Option<u64> {
        let DataFile::InPlace(file) = self else { return None };
        (!file.len().is_multiple_of(page_size as u64)).then_some(file.len())
    }

    /// Where a page lies, in words.
    pub(crate) fn place(&self, page: PageNo, page_size: usize) -> String {
        match self {
            DataFile::InPlace(_) => {
                let from = u64::from(page.0) * page_size as u64;
                format!("bytes {from} to {} of '{IN_PLACE_FILE}'", from + page_size as u64)
            }
            DataFile::Segments(store) => match store.place(page) {
                Some((file, from)) => format!("packed, from byte {from} of '{file}' on"),
                None => "nowhere".to_owned(),
            },
        }
    }

    /// Reads a page. One that was never written is all zeros.
    pub(crate) fn read(&self, page: PageNo, page_size: usize) -> io::Result<StoredPage> {
        let mut buf = AlignedBuf::zeroed(page_size);
        match self {
            DataFile::InPlace(file) => {
                let at = u64::from(page.0) * page_size as u64;
                if at + page_size as u64 > file.len() {
                    return Ok(StoredPage::Beyond);
                }
                file.read_at(at, &mut buf)?;
            }
            DataFile::Segments(store) if store.page_bytes() != page_size => {
                let words = format!("it has pages of {} bytes", store.page_bytes());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
            }
            DataFile::Segments(store) => match store.read(page, &mut buf) {
                Ok(_) | Err(StoreError::Absent(_)) => {}
                Err(StoreError::NoSuchPage(_)) => return Ok(StoredPage::Beyond),
                Err(e) => return Ok(StoredPage::Damaged(e.to_string())),
            },
        }
        Ok(StoredPage::Page(buf))
    }
}
