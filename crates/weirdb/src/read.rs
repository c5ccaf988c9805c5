//! Reading what was committed at one moment.
use std::fmt;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;

use crate::bounds::Keys;
use crate::error::Error;
use crate::reader::{Read, Reader, many, reading};
use crate::rows::{Rows, Source};
use crate::shared::Shared;
use crate::slice::Slice;
use crate::stats::Backup;
use crate::tree::Tree;

/// All trees as they were committed when it was made ([`Db::read`](crate::Db::read)), whatever
/// others change meanwhile. It takes no lock, no thread waits for it, and threads may share it. As
/// long as it lives the database keeps what it sees.
#[derive(Clone)]
pub struct ReadTxn {
    db: Arc<Shared>,
    at: weir::Snapshot,
}

impl ReadTxn {
    pub(crate) fn new(db: Arc<Shared>) -> Self {
        let at = db.raw.snapshot();
        ReadTxn { db, at }
    }

    reading!('static);

    fn rows_in(&self, tree: &Tree, keys: Keys) -> Rows<'static> {
        if let Err(e) = tree.check_of(&self.db) {
            return Rows::failed(e);
        }
        let (db, tree, at) = (self.db.clone(), tree.raw.clone(), self.at.clone());
        Rows::new(Source::Snapshot { db, tree, at }, keys, false)
    }

    /// Copies all trees, as this sees them, into a new database in `dir`, while all transactions go
    /// on: whole and closed when this returns. Transactions that are prepared are not in it.
    ///
    /// # Errors
    /// [`Error`] when there is something in `dir`, or one of the databases fails; nothing is left
    /// in `dir` then. What a crash leaves of a copy cannot be opened.
    pub fn backup(&self, dir: impl AsRef<Path>) -> Result<Backup, Error> {
        let fails = |e| self.db.fails(e);
        let mut txn = self.db.raw.begin_at(&self.at).map_err(fails)?;
        let copied = self.db.raw.copy_to(&mut txn, dir.as_ref()).map_err(fails)?;
        Ok(Backup { trees: copied.trees, rows: copied.rows })
    }
}

impl Read for ReadTxn {
    fn value(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        let found = tree.raw.get_at(&self.at, key, &mut value);
        Ok(found.map_err(|e| self.db.fails(e))?.then_some(value))
    }

    fn rows(&self, tree: &Tree, keys: Keys) -> Rows<'_> {
        self.rows_in(tree, keys)
    }
}

impl Reader for ReadTxn {}

impl fmt::Debug for ReadTxn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadTxn").field("commit", &self.at.number()).finish_non_exhaustive()
    }
}
