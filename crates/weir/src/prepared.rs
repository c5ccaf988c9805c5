//! Prepared transactions, whose fate somebody outside decides.
use std::collections::hash_map::Entry;

use weir_redo::Durability;
use weir_txn::Wait;

use crate::db::Db;
use crate::engine::Engine;
use crate::error::Error;
use crate::txn::Txn;

/// The longest name of a prepared transaction.
const XID_BYTES_MAX: usize = 255;

impl Db {
    /// The names of all prepared transactions, ascending.
    #[must_use]
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        let all = self.engine.prepared.lock();
        let settled = all.iter().filter(|(_, txn)| txn.is_some());
        let mut names: Vec<_> = settled.map(|(xid, _)| xid.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Commits a prepared transaction. `false`: there is none of that name.
    ///
    /// # Errors
    /// [`Error::Halted`] and others: it is still prepared, now or at the next opening.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<bool, Error> {
        self.engine.check_open()?;
        let Some(mut txn) = self.engine.take_prepared(xid) else { return Ok(false) };
        let ended = txn.commit(&self.engine.writer);
        self.engine.settle_prepared(xid, ended.is_err().then_some(txn));
        let end = ended.map_err(|e| self.engine.failed(e.into()))?;
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
        let Some(mut txn) = self.engine.take_prepared(xid) else { return Ok(false) };
        let ended = txn.rollback(&self.engine.writer);
        self.engine.settle_prepared(xid, None);
        ended.map_err(|e| self.engine.failed(e.into()))?;
        Ok(true)
    }
}

impl Engine {
    /// Takes a prepared transaction away, to end it; its name stays in use.
    fn take_prepared(&self, xid: &[u8]) -> Option<weir_txn::Txn> {
        self.prepared.lock().get_mut(xid)?.take()
    }

    /// What has become of a name in use: a prepared transaction, or free.
    fn settle_prepared(&self, xid: &[u8], txn: Option<weir_txn::Txn>) {
        let mut all = self.prepared.lock();
        match txn {
            None => drop(all.remove(xid)),
            Some(txn) => {
                if let Some(place) = all.get_mut(xid) {
                    *place = Some(txn);
                }
            }
        }
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
        match engine.prepared.lock().entry(xid.to_vec()) {
            Entry::Vacant(free) => free.insert(None),
            Entry::Occupied(_) => {
                return Err(Error::Name("a transaction of this name is prepared already".into()));
            }
        };
        let done = self.raw.prepare(&engine.writer, xid);
        let over = weir_txn::Txn::new(self.raw.isolation(), Wait::No);
        let raw = done.is_ok().then(|| std::mem::replace(&mut self.raw, over));
        engine.settle_prepared(xid, raw);
        let end = done.map_err(|e| engine.failed(e.into()))?;
        engine.wait(end, Durability::Synced)
    }
}
