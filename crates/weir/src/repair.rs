//! A damaged page made again from backups: its image in them, and what their log has of it since.
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use weir_backup::{BackupError, Frame, Reader};
use weir_base::{AlignedBuf, Lsn, PageNo};
use weir_change::{apply_to_page, decode};
use weir_checkpoint::{Control, ControlFile};
use weir_crypt::Encryption;
use weir_device::{FileVolume, OverlayVolume, Volume};
use weir_pool::{PageWrite, PoolError};
use weir_redo::GroupAt;

use crate::backup_chain::check_chain;
use crate::config::{Config, Create};
use crate::create::check_directory;
use crate::encryption::{open_volume, unseal};
use crate::error::Error;
use crate::page_store::open_store;

/// A page that was made again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairedPage {
    /// Its last change, so far: what the database's own log has since comes when it is opened.
    pub lsn: Lsn,
    /// Changes that came from the backup's log.
    pub changes: u64,
}

/// Makes page `page` of the database in `dir`, which no process has open, again, and writes it:
/// from a full backup and those since it, of which the last must reach up to the database's
/// checkpoint (one that [follows](crate::BackupOptions::follow) does). It may be cut short.
///
/// # Errors
/// [`Error::Config`] when the page is sound, or when the backups are of another database, do not
/// belong together, or do not reach far enough: then nothing says what the page held last;
/// [`Error::Damaged`]; those of the disk. Nothing is written then.
pub fn repair_page(
    dir: &Path,
    page: u32,
    backups: Vec<Box<dyn Read>>,
    encryption: Option<&Encryption>,
) -> Result<RepairedPage, Error> {
    check_directory(dir, Create::Never)?;
    let failed = |e| Error::io("opening the database's directory", e);
    let volume = FileVolume::open(dir).map_err(failed)?;
    repair_page_on(Arc::new(volume), page, backups, encryption)
}

/// As [`repair_page`], in a volume. Not part of the interface.
///
/// # Errors
/// As [`repair_page`].
#[doc(hidden)]
pub fn repair_page_on(
    volume: Arc<dyn Volume>,
    page: u32,
    backups: Vec<Box<dyn Read>>,
    encryption: Option<&Encryption>,
) -> Result<RepairedPage, Error> {
    // Opening a store may make files: not before it is known what to write.
    let above =
        OverlayVolume::new(volume.clone()).map_err(|e| Error::io("reading the database", e))?;
    let looked_at = open_volume(Arc::new(above), encryption)?;
    let page = PageNo(page);
    let opened = ControlFile::open(&looked_at);
    let control = opened.map_err(|e| Error::io("opening 'control'", e))?.get();
    let (store, _) = open_store(&looked_at, &control, &Config::default())?;
    let mut buf = AlignedBuf::zeroed(store.page_size());
    match store.read(page, &mut buf) {
        Ok(()) => {
            return Err(Error::Config(format!("page {page} is sound: nothing is to be done")));
        }
        Err(PoolError::NoSuchPage(_)) => {
            let pages = store.pages();
            return Err(Error::Config(format!("there is no page {page}: there are {pages}")));
        }
        Err(_) => {}
    }
    let mut readers = Vec::new();
    for backup in backups {
        readers.push(Reader::open(unseal(backup, encryption)?)?);
    }
    check_chain(readers.iter().map(Reader::begin))?;
    let mut made = Made { page, bytes: None, changes: 0 };
    let mut reaches = Lsn::ZERO;
    let count = readers.len();
    for (number, mut reader) in (1..).zip(readers) {
        if reader.begin().control.db != control.db {
            let (found, expected) = (reader.begin().control.db, control.db);
            let words = format!("backup {number} is of the database {found}, this is {expected}");
            return Err(Error::Config(words));
        }
        reaches = made.take(&mut reader, number == count)?;
    }
    made.check(&control, reaches)?;
    let mut bytes = made.bytes.unwrap_or_default();
    weir_page::seal(&mut bytes, control.db);
    let lsn = weir_page::lsn(&bytes);
    if let Err(found) = weir_page::check(&bytes) {
        let words = format!("page {page} as the backups make it is not sound: {found}");
        return Err(Error::Damaged(words.into()));
    }
    let (store, _) = open_store(&open_volume(volume, encryption)?, &control, &Config::default())?;
    store.make_room(1)?;
    store.write_batch(0, &[PageWrite { page, lsn, bytes: &bytes }], &mut |left| left)?;
    store.read(page, &mut buf)?;
    Ok(RepairedPage { lsn, changes: made.changes })
}

/// What is known of the page.
struct Made {
    page: PageNo,
    bytes: Option<Vec<u8>>,
    changes: u64,
}

impl Made {
    /// Goes through a backup, through its log only if it is the last one: a page that is not in it
    /// has not changed since the one before. Returns how far its log reaches.
    fn take(&mut self, reader: &mut Reader<impl Read>, is_last: bool) -> Result<Lsn, Error> {
        let page_bytes = reader.begin().control.page_size as usize;
        let mut reaches = reader.begin().control.checkpoint;
        // The log may come before the page.
        let mut log: Vec<(Lsn, Vec<u8>)> = Vec::new();
        let mut is_all = false;
        loop {
            let frame = match reader.read() {
                Err(BackupError::CutShort { .. } | BackupError::Failed { .. })
                    if is_last && is_all =>
                {
                    break;
                }
                frame => frame?,
            };
            match frame {
                Frame::Pages(pages) => {
                    let found = pages.iter().find(|(page, _)| *page == self.page);
                    self.bytes = found.map(|(_, bytes)| bytes.to_vec()).or(self.bytes.take());
                }
                Frame::Log { payload, groups, to, .. } => {
                    if is_last {
                        self.note(payload, groups, &mut log)?;
                    }
                    reaches = to;
                }
                Frame::Resumed(resumed) => {
                    log.clear();
                    reaches = resumed.control.checkpoint;
                }
                Frame::Consistent(_) => is_all = true,
                Frame::End(_) => break,
            }
        }
        for (end, body) in log {
            self.apply(end, &body, page_bytes)?;
        }
        Ok(reaches)
    }

    /// Keeps the groups that change the page.
    fn note(
        &self,
        payload: &[u8],
        groups: Vec<GroupAt>,
        log: &mut Vec<(Lsn, Vec<u8>)>,
    ) -> Result<(), Error> {
        for group in groups {
            let body = &payload[group.body];
            let (_, ops) = decode(body).map_err(|e| unreadable(group.span.end, &e))?;
            for op in ops {
                if op.map_err(|e| unreadable(group.span.end, &e))?.page() == Some(self.page) {
                    log.push((group.span.end, body.to_vec()));
                    break;
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, end: Lsn, body: &[u8], page_bytes: usize) -> Result<(), Error> {
        let mut is_made = self.bytes.is_some();
        let mut bytes = self.bytes.take().unwrap_or_else(|| vec![0; page_bytes]);
        self.changes += apply_to_page(body, end, self.page, &mut bytes, &mut is_made)
            .map_err(|e| unreadable(end, &e))?;
        self.bytes = is_made.then_some(bytes);
        Ok(())
    }

    fn check(&self, control: &Control, reaches: Lsn) -> Result<(), Error> {
        let page = self.page;
        if reaches < control.checkpoint {
            return Err(Error::Config(format!(
                "the backups reach to position {reaches} of the log, and the database's own log \
                 begins at {}: nothing says what page {page} held last (a backup made with \
                 --follow would); 'weir salvage' reads all other pages",
                control.checkpoint
            )));
        }
        match self.bytes {
            Some(_) => Ok(()),
            None => Err(Error::Config(format!("page {page} is in none of the backups"))),
        }
    }
}

fn unreadable(at: Lsn, e: &dyn std::fmt::Display) -> Error {
    Error::Damaged(format!("the log in the backup at {at}: {e}").into())
}
