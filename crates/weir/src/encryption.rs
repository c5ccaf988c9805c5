//! Whether what lies in a directory is encrypted, and is to be: the layer that does it goes between
//! the volume and the database (`docs/decisions/encryption.md`).
use std::io::{Cursor, Read};
use std::sync::Arc;

use weir_crypt::{
    CryptError, CryptVolume, Encryption, Files, KEYS_FILE, KeyName, SEALED_MAGIC, SealedReader,
};
use weir_device::Volume;
use weir_pool::IN_PLACE_FILE;

use crate::config::{Config, Create, PAGE_SIZE_DEFAULT};
use crate::create::{self, DirectoryState};
use crate::db::Db;
use crate::details::Details;
use crate::error::Error;

/// What processes say to each other: the other one has no key.
fn is_plain(name: &str) -> bool {
    crate::asked::is_ours(name)
        || name == crate::backup_asked::PIPE_FILE
        || name.starts_with(crate::backup_asked::REQUEST_FILE)
}

const FILES: Files = Files { pages: IN_PLACE_FILE, is_plain };

/// A volume as a database is opened on it.
pub(crate) struct Site {
    pub(crate) volume: Arc<dyn Volume>,
    /// The layer, where it is encrypted.
    pub(crate) crypt: Option<Arc<CryptVolume>>,
    /// The key was made for this opening, and nothing else is there yet.
    pub(crate) is_new: bool,
}

impl Site {
    fn plain(volume: Arc<dyn Volume>) -> Site {
        Site { volume, crypt: None, is_new: false }
    }

    fn encrypted(crypt: CryptVolume, is_new: bool) -> Site {
        let crypt = Arc::new(crypt);
        Site { volume: crypt.clone(), crypt: Some(crypt), is_new }
    }
}

/// Lays the layer over `volume` where a database in it is encrypted, or is to be made so.
///
/// # Errors
/// [`Error::Key`] when a key is missing or wrong; [`Error::Config`] when a key is given for a
/// database that is not encrypted; those of the device.
pub(crate) fn over(volume: Arc<dyn Volume>, config: &Config) -> Result<Site, Error> {
    let is_encrypted =
        CryptVolume::is_one(&*volume).map_err(|e| Error::io("looking for 'keys'", e))?;
    if !is_encrypted && config.encryption.is_none() {
        return Ok(Site::plain(volume));
    }
    let makes = config.create != Create::Never && !config.read_only;
    match create::look(&*volume)? {
        DirectoryState::Database if is_encrypted => {
            let crypt = CryptVolume::open(volume, FILES, config.encryption.as_ref())?;
            Ok(Site::encrypted(crypt, false))
        }
        DirectoryState::Database => Err(Error::Config(
            "a key was given for a database that is not encrypted: leave it out, or copy the \
             database into one that is ('weir copy --to-key-file')"
                .into(),
        )),
        state @ (DirectoryState::Nothing | DirectoryState::Unfinished) if makes => {
            if state == DirectoryState::Unfinished {
                create::remove_unfinished(&volume)?;
            }
            match &config.encryption {
                Some(encryption) => make(volume, config.page_size, encryption),
                None => Ok(Site::plain(volume)),
            }
        }
        // What is wrong with it is said in a moment.
        _ => Ok(Site::plain(volume)),
    }
}

/// Makes the key of a database to come.
pub(crate) fn make(
    volume: Arc<dyn Volume>,
    page_size: usize,
    encryption: &Encryption,
) -> Result<Site, Error> {
    let page_bytes = if page_size == 0 { PAGE_SIZE_DEFAULT } else { page_size } as u32;
    let crypt = CryptVolume::create(volume.clone(), FILES, page_bytes, encryption);
    if crypt.is_err() {
        unmake(&*volume);
    }
    Ok(Site::encrypted(crypt?, true))
}

/// Nothing was made behind the key: removes it. If that fails, too, the next opening does.
pub(crate) fn unmake(volume: &dyn Volume) {
    if volume.list().is_ok_and(|names| names == [KEYS_FILE]) {
        let _ = volume.remove(KEYS_FILE);
    }
}

/// A volume that is only looked at: the layer where there are keys, whatever else there is. For
/// what reads a database that cannot be opened.
///
/// # Errors
/// As [`Db::open`] for keys.
#[doc(hidden)]
pub fn open_volume(
    volume: Arc<dyn Volume>,
    encryption: Option<&Encryption>,
) -> Result<Arc<dyn Volume>, CryptError> {
    let failed = |cause| CryptError::Io { doing: "looking for", cause };
    if !CryptVolume::is_one(&*volume).map_err(failed)? {
        return Ok(volume);
    }
    Ok(Arc::new(CryptVolume::open(volume, FILES, encryption)?))
}

/// A stream whose first bytes were read to see what it is.
type Begun<R> = std::io::Chain<Cursor<Vec<u8>>, R>;

/// A backup as it reads when it is not sealed.
pub enum Unsealed<R> {
    /// It was not.
    Plain(Begun<R>),
    /// Deciphered on the way.
    Sealed(Box<SealedReader<Begun<R>>>),
}

impl<R: Read> Unsealed<R> {
    /// The key that opens it, if it was sealed.
    #[must_use]
    pub fn key_name(&self) -> Option<KeyName> {
        match self {
            Unsealed::Plain(_) => None,
            Unsealed::Sealed(input) => Some(input.key_name()),
        }
    }

    /// What opens the seal, if there is one.
    pub(crate) fn sealed(&self) -> Option<&SealedReader<Begun<R>>> {
        match self {
            Unsealed::Plain(_) => None,
            Unsealed::Sealed(input) => Some(input),
        }
    }
}

impl<R: Read> Read for Unsealed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Unsealed::Plain(input) => input.read(bytes),
            Unsealed::Sealed(input) => input.read(bytes),
        }
    }
}

/// Opens the seal of a backup of an encrypted database; another one is read as it is.
///
/// # Errors
/// [`Error::Key`] when its key is missing or wrong; those of `backup`.
pub fn unseal<R: Read>(
    mut backup: R,
    encryption: Option<&Encryption>,
) -> Result<Unsealed<R>, Error> {
    let mut begin = Vec::new();
    let read = (&mut backup).take(SEALED_MAGIC.len() as u64).read_to_end(&mut begin);
    read.map_err(|e| Error::io("reading the backup", e))?;
    let is_sealed = begin == SEALED_MAGIC;
    let input = Cursor::new(begin).chain(backup);
    if !is_sealed {
        return Ok(Unsealed::Plain(input));
    }
    Ok(Unsealed::Sealed(Box::new(SealedReader::open(input, encryption)?)))
}

impl Db {
    /// The master key that opens the database; `None` when it is not encrypted.
    #[must_use]
    pub fn key_name(&self) -> Option<KeyName> {
        self.engine.crypt.as_ref().map(|crypt| crypt.key_name())
    }

    /// Wraps the key of the database by the newest version of its master key, while all goes on:
    /// older versions do not open it any more, though backups may need them. Returns the key that
    /// does. Data are not written anew: their key stays, and a copy ([`Db::copy_to`]) has another.
    /// A database that is open does so by itself within a minute of a new version.
    ///
    /// # Errors
    /// [`Error::Config`] when the database is not encrypted; [`Error::Key`] when no key can be had;
    /// [`Error::ReadOnly`]; those of the device.
    pub fn rotate_key(&self) -> Result<KeyName, Error> {
        self.engine.check_writable()?;
        match &self.engine.crypt {
            Some(crypt) => Ok(crypt.rotate()?),
            None => Err(Error::Config("the database is not encrypted: there is no key".into())),
        }
    }
}

impl From<CryptError> for Error {
    fn from(e: CryptError) -> Self {
        match e {
            CryptError::Io { doing, cause } => Error::io(format!("{doing} '{KEYS_FILE}'"), cause),
            CryptError::Damaged | CryptError::Stream(_) => Error::Damaged(Details::of(e)),
            CryptError::OtherFormat { .. } | CryptError::OtherSeal { .. } => {
                Error::Config(e.to_string())
            }
            e => Error::Key(e),
        }
    }
}
