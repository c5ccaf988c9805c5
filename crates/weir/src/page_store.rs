//! Which page store a database has: chosen when it is made, and seen from its files later.
use std::sync::Arc;

use weir_base::DbId;
use weir_checkpoint::Control;
use weir_device::Volume;
use weir_pool::{
    IN_PLACE_FILE, InPlaceStore, LogStructuredStore, PageStore, ROOT_FILE, SEGMENTS_FILE,
};

use crate::config::{Config, StoreKind};
use crate::error::Error;
use crate::setup::doublewrite_of;

/// The data file of each kind, by whose presence it is known.
const DATA_FILES: [(StoreKind, &str); 2] =
    [(StoreKind::InPlace, IN_PLACE_FILE), (StoreKind::Log, SEGMENTS_FILE)];

/// Whether a file is a page store's.
pub(crate) fn is_ours(name: &str) -> bool {
    matches!(name, IN_PLACE_FILE | SEGMENTS_FILE | ROOT_FILE) || name.starts_with("doublewrite-")
}

/// Makes the store that `config` asks for.
pub(crate) fn create_store(
    volume: &Arc<dyn Volume>,
    db: DbId,
    page_size: usize,
    pages: u32,
    config: &Config,
) -> Result<Arc<dyn PageStore>, Error> {
    Ok(match config.store.unwrap_or_default() {
        StoreKind::InPlace => {
            let doublewrite = doublewrite_of(config, page_size);
            Arc::new(InPlaceStore::create(volume, db, page_size, pages, doublewrite)?)
        }
        StoreKind::Log => Arc::new(LogStructuredStore::create(volume, db, page_size, pages)?),
    })
}

/// Opens the store that there is. Nothing is written.
///
/// # Errors
/// [`Error::Config`] when `config` asks for another kind; [`Error::Damaged`] when there are two, or
/// none.
pub(crate) fn open_store(
    volume: &Arc<dyn Volume>,
    was: &Control,
    config: &Config,
) -> Result<(Arc<dyn PageStore>, StoreKind), Error> {
    let failed = |e| Error::io("looking for the data file", e);
    let mut found = Vec::new();
    for (kind, name) in DATA_FILES {
        if volume.exists(name).map_err(failed)? {
            found.push((kind, name));
        }
    }
    let kind = match found[..] {
        [(kind, _)] => kind,
        // Opening it says what is missing.
        [] => config.store.unwrap_or_default(),
        _ => {
            let words = "there are two data files, 'pages' and 'segments', and a database has one: \
                         remove the one that does not belong to it";
            return Err(Error::Damaged(words.to_owned().into()));
        }
    };
    if let Some(wanted) = config.store.filter(|wanted| *wanted != kind) {
        return Err(Error::Config(format!(
            "the database has its pages {kind}, not {wanted}; the store is chosen at creation (a \
             copy, or a dump read into a new database, can have the other)"
        )));
    }
    let store: Arc<dyn PageStore> = match kind {
        StoreKind::InPlace => {
            let page_size = was.page_size as usize;
            let doublewrite = doublewrite_of(config, page_size);
            Arc::new(InPlaceStore::open(volume, was.db, page_size, doublewrite)?)
        }
        StoreKind::Log => Arc::new(LogStructuredStore::open(volume, was.db)?),
    };
    if store.page_size() != was.page_size as usize {
        return Err(Error::Damaged(
            format!(
                "'{}' has pages of {} bytes, the control file says {}",
                store.size_file(),
                store.page_size(),
                was.page_size
            )
            .into(),
        ));
    }
    Ok((store, kind))
}
