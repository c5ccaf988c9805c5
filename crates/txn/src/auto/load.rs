//! Filling an empty tree as one transaction, entry by entry or from an iterator.
use std::sync::Arc;

use weir_base::Lsn;
use weir_btree::{Loader, Tree, Value};
use weir_change::Header;
use weir_page::Flags;

use crate::auto::{AutoCommit, LOCK_WAIT};
use crate::error::TxnError;
use crate::locks::{Kind, Place};
use crate::record::txn_record::TxnRecord;
use crate::session::txn::{Isolation, Txn};

/// A tree that is being filled. It must be ended by [`AutoCommit::finish_load`] or
/// [`AutoCommit::abandon_load`]: the tree stays locked otherwise.
pub struct Load {
    txn: Txn,
    record: Arc<TxnRecord>,
    loader: Loader,
    header: Header,
}

impl Load {
    /// How many entries it was given.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.loader.count()
    }
}

impl AutoCommit {
    /// Begins to fill an empty tree with entries in ascending key order, all of them or none.
    ///
    /// # Errors
    /// [`TxnError`].
    pub fn begin_load(&self, tree: &Tree) -> Result<Load, TxnError> {
        let mut txn = Txn::new(Isolation::ReadCommitted, LOCK_WAIT);
        let record = txn.start(self.context())?;
        // It asks for no row one by one.
        if let Err(e) =
            txn.lock_place(self.context(), &record, tree.id(), Place::ALL, Kind::Exclusive, None)
        {
            return Err(self.rolled_back_after(&mut txn, e));
        }
        let header = Header { txn: Some(record.id()), ..Header::default() };
        match tree.loader(header) {
            Ok(loader) => Ok(Load { txn, record, loader, header }),
            Err(e) => Err(self.rolled_back_after(&mut txn, e.into())),
        }
    }

    /// Adds an entry, above all before it.
    ///
    /// # Errors
    /// [`TxnError`]; nothing but [`AutoCommit::abandon_load`] may come next.
    #[inline]
    pub fn load(&self, load: &mut Load, key: &[u8], value: &[u8]) -> Result<(), TxnError> {
        let Load { txn, record, loader, .. } = load;
        let cx = self.context();
        loader.check(key)?;
        if value.len() > loader.tree().max_inline_value(key.len()) {
            let row = txn.write_long(cx, record, loader.tree(), key, value)?;
            loader.push(key, Value { bytes: &row, flags: Flags::OVERFLOW })?;
        } else {
            loader.push(key, Value { bytes: value, flags: Flags::NONE })?;
        }
        txn.write_steps(cx, record, loader)
    }

    /// Makes the tree whole and commits. Returns the number of entries and the end of the log.
    ///
    /// # Errors
    /// [`TxnError`]; the tree is empty as before.
    pub fn finish_load(&self, load: Load) -> Result<(u64, Lsn), TxnError> {
        let Load { mut txn, record, mut loader, header } = load;
        loader.close();
        let finished = txn
            .write_steps(self.context(), &record, &mut loader)
            .and_then(|()| txn.seal(self.context(), &record, loader.root_log_bytes()))
            .and_then(|()| Ok(loader.finish(Header { commits: true, ..header })?));
        match finished {
            Ok(count) => {
                let end = self.context().log_end();
                let left = record.work.lock().left();
                self.background().after(txn.committed(self.context(), &record, left));
                Ok((count, end))
            }
            Err(e) => {
                // It is rolled back, and waits for admission then.
                record.work.lock().sealed = false;
                Err(self.rolled_back_after(&mut txn, e))
            }
        }
    }

    /// Leaves the tree empty, as it was, for this reason, which is returned with what failed
    /// besides.
    pub fn abandon_load(&self, mut load: Load, why: TxnError) -> TxnError {
        self.rolled_back_after(&mut load.txn, why)
    }

    /// Leaves the tree empty, as it was. If that cannot be now, the tree stays locked until it can.
    pub fn forget_load(&self, mut load: Load) {
        let _ = load.txn.rollback(self.context());
    }

    /// Fills an empty tree from entries in ascending key order. Returns their number and the end of
    /// the log: either all of them are lasting then, or none.
    ///
    /// # Errors
    /// [`TxnError`]; the tree is empty as before.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        entries: impl Iterator<Item = (K, V)>,
    ) -> Result<(u64, Lsn), TxnError> {
        let mut load = self.begin_load(tree)?;
        for (key, value) in entries {
            if let Err(e) = self.load(&mut load, key.as_ref(), value.as_ref()) {
                return Err(self.abandon_load(load, e));
            }
        }
        self.finish_load(load)
    }
}
