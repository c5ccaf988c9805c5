//! The files of a database, opened to be looked at, and what of them can still be believed.
use std::io;
use std::path::Path;
use std::sync::Arc;

use weir_base::{DbId, PageNo};
use weir_checkpoint::{CONTROL_FILE, Control, ControlError, Copy, choose, read_copies};
use weir_device::{FileVolume, Volume};
use weir_page::{Damage, PAGE_SIZES, verify};

use crate::data_file::{DataFile, StoredPage};

/// Whether everything that was looked at was as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sound {
    /// It was.
    Yes,
    /// Something was damaged, and has been named.
    No,
}

impl Sound {
    pub(crate) fn and(&mut self, is_sound: bool) {
        if !is_sound {
            *self = Sound::No;
        }
    }
}

/// A database's directory, open to be read.
pub struct Files {
    pub(crate) volume: Arc<dyn Volume>,
    /// The copies in the control file; empty when there is no such file.
    pub(crate) copies: Vec<(u64, Copy)>,
    /// What the control file says, or why it says nothing.
    pub(crate) control: Result<Control, String>,
    /// The database that the control file names, or else the first file of the log.
    pub(crate) db: Option<DbId>,
    /// Of the control file, or as given, or as the data file looks.
    pub(crate) page_size: Option<usize>,
}

impl Files {
    /// Opens the directory. `page_size`: that of a database whose control file is lost; when that
    /// is not given either, the one with which the data file's first pages are sound.
    ///
    /// # Errors
    /// What the file system reports; `WouldBlock` when a process has the database open.
    pub fn open(dir: &Path, page_size: Option<usize>) -> io::Result<Files> {
        Self::open_encrypted(dir, page_size, None)
    }

    /// As [`Files::open`], of a database that may be encrypted.
    ///
    /// # Errors
    /// As [`Files::open`]; `InvalidInput` when its key is missing or another one.
    pub fn open_encrypted(
        dir: &Path,
        page_size: Option<usize>,
        encryption: Option<&weir::Encryption>,
    ) -> io::Result<Files> {
        let volume: Arc<dyn Volume> = Arc::new(FileVolume::open_read_only(dir)?);
        let volume = weir::open_volume(volume, encryption)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
        let copies = match read_copies(&*volume) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?.into(),
        };
        let control = match &copies[..] {
            [(_, first), (_, second)] => choose(first, second).map_err(|e| describe(&e)),
            _ => Err(format!("there is no file '{CONTROL_FILE}'")),
        };
        let mut files = Files { volume, copies, control, db: None, page_size };
        if let Ok(control) = &files.control {
            files.db = Some(control.db);
            files.page_size = page_size.or(Some(control.page_size as usize));
            return Ok(files);
        }
        files.db = files.db_of_log();
        files.page_size = match page_size {
            None => files.guess_page_size()?,
            given => given,
        };
        Ok(files)
    }

    fn db_of_log(&self) -> Option<DbId> {
        let files = weir_redo::survey(&*self.volume, None).ok()?;
        files.iter().find_map(|file| file.header.map(|header| header.db))
    }

    /// The size with which the most of the first pages have a checksum that is right.
    fn guess_page_size(&self) -> io::Result<Option<usize>> {
        let file = match self.data_file()? {
            Some(DataFile::Segments(store)) => return Ok(Some(store.page_bytes())),
            Some(file) => file,
            None => return Ok(None),
        };
        let mut best = (0, None);
        for size in PAGE_SIZES {
            let mut sound = 0;
            for page_no in 0..16 {
                let StoredPage::Page(page) = file.read(PageNo(page_no), size)? else { break };
                sound += u32::from(!matches!(
                    verify(&page, DbId(0), PageNo(page_no)),
                    Err(Damage::Checksum { .. } | Damage::Zeroed)
                ));
            }
            if sound > best.0 {
                best = (sound, Some(size));
            }
        }
        Ok(best.1)
    }

    /// The data file; `None` when there is none.
    pub(crate) fn data_file(&self) -> io::Result<Option<DataFile>> {
        DataFile::open(&self.volume, self.db)
    }

    /// Says what the figures that follow rest on, where that is not the control file.
    pub(crate) fn remark(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match &self.control {
            Ok(control) if !control.clean => writeln!(
                out,
                "(not closed in order: the log from {} on may hold changes that pages lack)",
                control.checkpoint
            ),
            Ok(_) => Ok(()),
            Err(why) => {
                writeln!(out, "(without the control file: {why})")?;
                if let Some(db) = self.db {
                    writeln!(out, "(the log is of database {db})")?;
                }
                match self.page_size {
                    Some(size) => writeln!(out, "(taking pages to have {size} bytes)"),
                    None => Ok(()),
                }
            }
        }
    }
}

fn describe(error: &ControlError) -> String {
    error.to_string()
}
