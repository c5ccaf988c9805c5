//! Rows in key order, each locked as it is read.
use std::fmt;

use crate::error::Error;
use crate::slice::Slice;
use crate::write::WriteTxn;

/// Rows of a tree in key order, each locked for its transaction as it is read: see
/// [`WriteTxn::range_for_update`]. What is not read is not locked. After an error it ends.
pub struct LockedRows<'t> {
    txn: &'t mut WriteTxn,
    cursor: Option<weir::TxnCursor>,
    is_begun: bool,
    /// What keeps anything from being read, to be reported first.
    failed: Option<Error>,
}

impl<'t> LockedRows<'t> {
    /// `None`: there are none.
    pub(crate) fn new(
        txn: &'t mut WriteTxn,
        cursor: Result<Option<weir::TxnCursor>, Error>,
    ) -> Self {
        let (cursor, failed) = match cursor {
            Ok(cursor) => (cursor, None),
            Err(e) => (None, Some(e)),
        };
        LockedRows { txn, cursor, is_begun: false, failed }
    }

    /// Passes over rows that other transactions have locked, instead of waiting for them: each of
    /// several that take jobs from a queue gets another one.
    #[must_use]
    pub fn skip_locked(mut self) -> Self {
        if let Some(cursor) = &mut self.cursor {
            cursor.skip_locked();
        }
        self
    }

    /// As [`Rows::expect_rows`](crate::Rows::expect_rows).
    #[must_use]
    pub fn expect_rows(mut self, rows: usize) -> Self {
        if let Some(cursor) = &mut self.cursor {
            cursor.expect_rows(rows as u64);
        }
        self
    }
}

impl Iterator for LockedRows<'_> {
    type Item = Result<(Slice, Slice), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(e) = self.failed.take() {
            return Some(Err(e));
        }
        let cursor = self.cursor.as_mut()?;
        let begins = !std::mem::replace(&mut self.is_begun, true);
        let moved =
            self.txn.with(|txn| if begins { cursor.seek_first(txn) } else { cursor.next(txn) });
        match moved {
            Ok(true) => Some(Ok((cursor.key().to_vec().into(), cursor.value().to_vec().into()))),
            Ok(false) => {
                self.cursor = None;
                None
            }
            Err(e) => {
                self.cursor = None;
                Some(Err(e))
            }
        }
    }
}

impl std::iter::FusedIterator for LockedRows<'_> {}

impl fmt::Debug for LockedRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedRows").finish_non_exhaustive()
    }
}
