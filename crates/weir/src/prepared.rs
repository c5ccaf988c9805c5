//! Prepared transactions, which a coordinator outside decides.
use std::collections::hash_map::Entry;

use weir_base::Lsn;
use weir_redo::Durability;
use weir_txn::{Keeps, Wait, Xid};

use crate::commit::Commit;
use crate::db::Db;
use crate::engine::Engine;
use crate::error::Error;
use crate::txn::Txn;
use crate::undecided::Undecided;

/// The longest name of a prepared transaction.
const XID_BYTES_MAX: usize = 255;

impl Db {
    /// The names of all prepared transactions, ascending: those that wait to be decided by name,
    /// those that a handle ([`PreparedTxn`]) is open to, and those being prepared or decided at
    /// this moment.
    #[must_use]
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        let mut names: Vec<_> =
            self.engine.prepared.lock().keys().map(|xid| xid.to_vec()).collect();
        names.sort_unstable();
        names
    }

    /// Commits a prepared transaction. `false`: there is none of that name, or a handle is open to
    /// it.
    ///
    /// # Errors
    /// [`Error::Halted`] and others: it is still prepared, now or at the next opening.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<bool, Error> {
        self.engine.check_writable()?;
        let Some(mut held) = self.take_in_hand(xid) else { return Ok(false) };
        let end = held.commit_visibly()?;
        drop(held);
        end.map_or(Ok(()), |end| self.engine.wait(end, durability))?;
        Ok(true)
    }

    /// Rolls a prepared transaction back. `false`: there is none of that name, or a handle is open
    /// to it.
    ///
    /// # Errors
    /// [`Error::Halted`] and others: it is rolled back at the next opening or still prepared.
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<bool, Error> {
        self.engine.check_writable()?;
        let Some(mut held) = self.take_in_hand(xid) else { return Ok(false) };
        held.rollback()?;
        Ok(true)
    }

    /// One that is to be decided by its name; the name stays in use.
    fn take_in_hand(&self, xid: &[u8]) -> Option<PreparedTxn> {
        let undecided = self.engine.prepared.lock().get_mut(xid)?.take()?;
        let mut txn = Txn::wrap(self.engine.clone(), undecided.raw);
        txn.codecs = undecided.codecs;
        Some(PreparedTxn { txn, xid: Xid::from_slice(xid) })
    }
}

impl Engine {
    /// Takes a name that no other prepared transaction has.
    fn reserve_name(&self, xid: &[u8]) -> Result<(), Error> {
        if xid.is_empty() || xid.len() > XID_BYTES_MAX {
            let len = xid.len();
            return Err(Error::Name(format!(
                "the name of a prepared transaction has 1 to {XID_BYTES_MAX} bytes, not {len}"
            )));
        }
        match self.prepared.lock().entry(Xid::from_slice(xid)) {
            Entry::Vacant(free) => free.insert(None),
            Entry::Occupied(_) => {
                return Err(Error::Name("a transaction of this name is prepared already".into()));
            }
        };
        Ok(())
    }

    /// What has become of a name in use: a prepared transaction, or free.
    fn settle_prepared(&self, xid: &[u8], txn: Option<Undecided>) {
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
    pub fn prepare(self, xid: &[u8]) -> Result<(), Error> {
        self.prepare_durably(xid, Keeps::Locks).map(drop)
    }

    /// As [`Txn::prepare`], and stays in the hand of a caller that decides it within this process.
    /// What it has locked besides the rows that it has changed is free after a restart: the
    /// coordinator decides then, by [`Db::prepared`], does so before others read or write.
    ///
    /// # Errors
    /// As [`Txn::prepare`].
    pub fn prepare_owned(self, xid: &[u8]) -> Result<PreparedTxn, Error> {
        self.prepare_durably(xid, Keeps::Changes)
    }

    /// As [`Txn::prepare_owned`], and does not wait: it is durably prepared once [`Db::wait`] has
    /// returned for what is given beside it. Until then nothing may rely on that, another log that
    /// says it is committed least of all; it may be committed or rolled back all the same.
    ///
    /// # Errors
    /// As [`Txn::prepare`].
    pub fn begin_prepare_owned(self, xid: &[u8]) -> Result<(PreparedTxn, Commit), Error> {
        let (held, end) = self.prepare_keeping(xid, Keeps::Changes)?;
        Ok((held, Commit::at(Some(end))))
    }

    fn prepare_durably(self, xid: &[u8], keeps: Keeps) -> Result<PreparedTxn, Error> {
        let (held, end) = self.prepare_keeping(xid, keeps)?;
        held.txn.engine.wait(end, Durability::Synced)?;
        Ok(held)
    }

    /// Gives where the log has to be durable for it.
    fn prepare_keeping(mut self, xid: &[u8], keeps: Keeps) -> Result<(PreparedTxn, Lsn), Error> {
        self.engine.check_writable()?;
        self.engine.reserve_name(xid)?;
        match self.raw.prepare(&self.engine.context, xid, keeps) {
            Ok(end) => Ok((PreparedTxn { txn: self, xid: Xid::from_slice(xid) }, end)),
            Err(e) => {
                self.engine.settle_prepared(xid, None);
                Err(self.engine.failed(e.into()))
            }
        }
    }
}

/// A prepared transaction in the hand of the caller that decides it ([`Txn::prepare_owned`]). No
/// other thread can meanwhile. Dropped undecided it stays prepared, and is decided by its name.
pub struct PreparedTxn {
    txn: Txn,
    xid: Xid,
}

impl PreparedTxn {
    /// Commits it: others see its changes when this returns, which are as durable then as asked.
    /// The name stays in use until this is dropped.
    ///
    /// # Errors
    /// As [`Db::commit_prepared`]; [`Error::Transaction`] when it has ended.
    pub fn commit(&mut self, durability: Durability) -> Result<(), Error> {
        self.txn.engine.check_writable()?;
        let end = self.commit_visibly()?;
        end.map_or(Ok(()), |end| self.txn.engine.wait(end, durability))
    }

    /// Gives where the log has to be durable for it.
    fn commit_visibly(&mut self) -> Result<Option<Lsn>, Error> {
        let end = self.txn.commit_raw()?;
        self.txn.engine.count_commit();
        Ok(end)
    }

    /// Rolls it back.
    ///
    /// # Errors
    /// As [`Db::rollback_prepared`].
    pub fn rollback(&mut self) -> Result<(), Error> {
        let engine = &self.txn.engine;
        engine.check_writable()?;
        engine.rolled_back(self.txn.raw.rollback(&engine.context))
    }
}

impl Drop for PreparedTxn {
    fn drop(&mut self) {
        if self.txn.engine.check_home().is_err() {
            return;
        }
        let raw = &mut self.txn.raw;
        let undecided = (!raw.has_ended()).then(|| {
            let nothing = weir_txn::Txn::new(raw.isolation(), Wait::No);
            let codecs = std::mem::take(&mut self.txn.codecs);
            Undecided { raw: std::mem::replace(raw, nothing), codecs }
        });
        self.txn.engine.settle_prepared(&self.xid, undecided);
    }
}
