//! Prepared transactions, whose fate somebody outside decides.
use weir_redo::Durability;
use weir_txn::Wait;

use crate::db::Db;
use crate::error::Error;
use crate::txn::Txn;

/// The longest name of a prepared transaction.
const XID_BYTES_MAX: usize = 255;

impl Db {
    /// The names of all prepared transactions.
    #[must_use]
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        self.engine.prepared.lock().keys().cloned().collect()
    }

    /// Commits a prepared transaction. `false`: there is none of that name.
    ///
    /// # Errors
    /// [`Error::Halted`] and others: it is still prepared, now or at the next opening.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<bool, Error> {
        self.engine.check_open()?;
        let mut prepared = self.engine.prepared.lock();
        let Some(txn) = prepared.get_mut(xid) else { return Ok(false) };
        let end = txn.commit(&self.engine.writer).map_err(|e| self.engine.failed(e.into()))?;
        prepared.remove(xid);
        drop(prepared);
        self.engine.count_commit();
        end.map_or(Ok(()), |end| self.engine.wait(end, durability))?;
        Ok(true)
    }

    /// Takes a prepared transaction back. `false`: there is none of that name.
    ///
    /// # Errors
    /// [`Error::Halted`] and others: it is taken back at the next opening or still prepared.
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<bool, Error> {
        self.engine.check_open()?;
        let Some(mut txn) = self.engine.prepared.lock().remove(xid) else { return Ok(false) };
        txn.rollback(&self.engine.writer).map_err(|e| self.engine.failed(e.into()))?;
        Ok(true)
    }
}

impl Txn {
    /// Prepares it under a name of the outside's (XA): durable when this returns, it survives
    /// a restart with its changes and all its locks, of rows and of ranges, until
    /// [`Db::commit_prepared`] or [`Db::rollback_prepared`].
    ///
    /// # Errors
    /// [`Error::Name`] when the name is in use, empty or longer than 255 bytes; [`Error`]: it is
    /// rolled back, unless the engine has halted.
    pub fn prepare(mut self, xid: &[u8]) -> Result<(), Error> {
        self.engine.check_open()?;
        if xid.is_empty() || xid.len() > XID_BYTES_MAX {
            let len = xid.len();
            return Err(Error::Name(format!(
                "the name of a prepared transaction has 1 to {XID_BYTES_MAX} bytes, not {len}"
            )));
        }
        let engine = self.engine.clone();
        let mut prepared = engine.prepared.lock();
        if prepared.contains_key(xid) {
            return Err(Error::Name("a transaction of this name is prepared already".into()));
        }
        let end = self.raw.prepare(&engine.writer, xid).map_err(|e| engine.failed(e.into()))?;
        let over = weir_txn::Txn::new(self.raw.isolation(), Wait::No);
        prepared.insert(xid.to_vec(), std::mem::replace(&mut self.raw, over));
        drop(prepared);
        engine.wait(end, Durability::Synced)
    }
}
