//! Walking over the rows of a table of values.
use std::sync::Arc;

use weir::Txn;

use crate::entry::EntryBuf;
use crate::error::Error;
use crate::layout::Row;
use crate::scan::{Lock, RawScan};
use crate::table::Opened;

/// The place of a row: what [`crate::Table::update_at`] and [`crate::Table::delete_at`] take.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RowKey(pub(crate) Vec<u8>);

/// A walk over the rows that a transaction sees. After a step that has failed, the next one tries
/// again.
pub struct Scan {
    pub(crate) opened: Arc<Opened>,
    pub(crate) raw: RawScan,
    pub(crate) index: Option<usize>,
    pub(crate) lock: Lock,
}

impl Scan {
    /// The next row; `None`: there is no more.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Damaged`].
    #[allow(clippy::should_implement_trait)] // It needs the transaction: no Iterator.
    pub fn next(&mut self, txn: &mut Txn) -> Result<Option<Row>, Error> {
        let (layout, table) = (&self.opened.layout, &self.opened.raw);
        let mut bytes = Vec::new();
        while self.raw.next(txn)? {
            let Some(at) = self.index else {
                return layout.decode(self.raw.tree_key(), self.raw.row()).map(Some);
            };
            let primary = self.raw.primary_key()?;
            match table.read(txn, primary, self.lock, &mut bytes) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(e) => {
                    self.raw.come_again();
                    return Err(e);
                }
            }
            let row = layout.decode(primary, &bytes)?;
            // Below REPEATABLE READ the row may have changed since the entry was read; and at any
            // level, this transaction may have changed it itself.
            let mut entry = EntryBuf::default();
            layout.put_entry(&layout.indexes[at], &row, &mut entry)?;
            if entry.key == self.raw.index_key()? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The next row as far as the index knows it, without a look at the row itself: its columns and
    /// those of the primary key; the others are NULL.
    ///
    /// # Errors
    /// As [`Scan::next`].
    pub fn next_covered(&mut self, txn: &mut Txn) -> Result<Option<Row>, Error> {
        let Some(at) = self.index else { return self.next(txn) };
        if !self.raw.next(txn)? {
            return Ok(None);
        }
        let (key, primary) = (self.raw.index_key()?, self.raw.primary_key()?);
        self.opened.layout.decode_covered(at, key, primary).map(Some)
    }

    /// The place of the row come to.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn row_key(&self) -> Result<RowKey, Error> {
        Ok(RowKey(self.raw.primary_key()?.to_vec()))
    }
}
