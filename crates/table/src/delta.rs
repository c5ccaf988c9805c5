//! What writers change of an index while it is built, beside what the rows had when that began.
//!
//! The builder loads a tree of its own, the **base**, with the entries of one snapshot. The caller
//! that writes meanwhile puts, under the key of an entry, what has become of it into another tree,
//! the **delta**, which is the index's tree until it is complete. Then the delta is brought into
//! the base, part by part, and the last of it while no transaction writes.
//!
//! | value in the delta | the base's entry of this key | now |
//! |---|---|---|
//! | 0 | is gone | there is none |
//! | 1, entry | is gone | this entry |
//! | 2, entry | there must be none | this entry |
use weir::{Tree, Txn};

use crate::entry::{Entry, primary_of, stored_key, stored_value};
use crate::error::Error;
use crate::raw::RawTable;

const GONE: u8 = 0;
const REPLACED: u8 = 1;
const NEW: u8 = 2;

impl RawTable {
    /// Adds a writer's entry. `false`: the key is another row's.
    pub(crate) fn add_to_delta(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<bool, Error> {
        let value = stored_value(self.info.indexes[at].unique, primary, entry);
        let (key, there) = self.noted(txn, at, primary, entry)?;
        let mark = match there.as_deref() {
            None => NEW,
            Some([GONE, ..]) => REPLACED,
            Some(there) => return Ok(there[1..] == value),
        };
        txn.put(&self.indexes[at], &key, &[&[mark], &value[..]].concat())?;
        Ok(true)
    }

    /// Removes a writer's entry. `false`: the key is another row's, so that two rows have had it at
    /// once.
    pub(crate) fn remove_from_delta(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<bool, Error> {
        let delta = &self.indexes[at];
        let (key, there) = self.noted(txn, at, primary, entry)?;
        match there.as_deref() {
            None => txn.put(delta, &key, &[GONE])?,
            // It was not added, as another row had it then.
            Some([GONE, ..]) => return Ok(false),
            Some(there) if primary_of(&key, &there[1..])? != primary => return Ok(false),
            Some([NEW, ..]) => drop(txn.delete(delta, &key)?),
            Some(_) => txn.put(delta, &key, &[GONE])?,
        }
        Ok(true)
    }

    /// The key of an entry, locked, and what the delta says of it.
    fn noted(
        &self,
        txn: &mut Txn,
        at: usize,
        primary: &[u8],
        entry: Entry<'_>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        let key = stored_key(self.info.indexes[at].unique, primary, entry);
        let mut there = Vec::new();
        let known = txn.get_for_update(&self.indexes[at], &key, &mut there)?;
        if known && there.is_empty() {
            return Err(Error::Damaged("a change of an index that is built is empty".into()));
        }
        Ok((key.into_owned(), known.then_some(there)))
    }
}

/// Brings one row of the delta into the base. `false`: the key is another row's.
pub(crate) fn bring(txn: &mut Txn, base: &Tree, key: &[u8], value: &[u8]) -> Result<bool, Error> {
    let damaged = || Error::Damaged("a change of an index that is built is malformed".into());
    let (&mark, entry) = value.split_first().ok_or_else(damaged)?;
    match mark {
        GONE if txn.delete(base, key)? => Ok(true),
        GONE => Err(Error::Damaged("a row that was there had no entry in a new index".into())),
        REPLACED => {
            txn.put(base, key, entry)?;
            Ok(true)
        }
        NEW => match txn.insert(base, key, entry) {
            Err(weir::Error::Duplicate) => Ok(false),
            done => {
                done?;
                Ok(true)
            }
        },
        _ => Err(damaged()),
    }
}
