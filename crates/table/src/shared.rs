//! What all handles of a database's tables share.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_base::lock::Mutex;
use weir_base::rank;

use weir::{Db, Tree, Txn};

pub(crate) use crate::catalog_row::{begin, key_of};
use crate::descriptor::TableInfo;
use crate::error::Error;
use crate::raw::{NO_TREE, TableState};
use crate::sequence::Sequence;
use crate::stats::Samples;

/// Numbers written down as given out at once, of a column that has many left: a crash skips at most
/// so many. What is written down for them costs a sixteenth of a small change.
const NUMBERS_STRETCH: u64 = 16;
/// Of row ids no transaction sees gaps.
const ROW_IDS_STRETCH: u64 = 100_000;

/// What all handles share.
pub(crate) struct Shared {
    pub(crate) db: Db,
    pub(crate) catalog: Tree,
    pub(crate) states: Mutex<rank::TableStates, HashMap<u64, Arc<TableState>>>,
}

impl Shared {
    /// A transaction for a change of definitions, which looks at what is committed now.
    pub(crate) fn begin(&self) -> Txn {
        begin(&self.db)
    }

    pub(crate) fn settle_numbers(&self) -> Result<(), Error> {
        let states: Vec<_> = self.states.lock().values().cloned().collect();
        states.iter().try_for_each(|state| state.numbers.settle(&self.db, &self.catalog))
    }

    pub(crate) fn load(&self, id: u64) -> Result<Option<TableInfo>, Error> {
        let bytes = self.catalog.get(&key_of(b'd', id))?;
        bytes.map(|bytes| TableInfo::decode(&bytes)).transpose()
    }

    pub(crate) fn store(&self, txn: &mut Txn, info: &TableInfo) -> Result<(), Error> {
        txn.put(&self.catalog, &key_of(b'v', info.id), &info.version.to_le_bytes())?;
        Ok(txn.put(&self.catalog, &key_of(b'd', info.id), &info.encode())?)
    }

    pub(crate) fn state(&self, id: u64) -> Arc<TableState> {
        let mut states = self.states.lock();
        let make = || {
            Arc::new(TableState {
                altered: AtomicU64::new(0),
                build_failed: AtomicU64::new(NO_TREE),
                build: Mutex::default(),
                samples: Samples::default(),
                numbers: Sequence::new(key_of(b'a', id).to_vec(), NUMBERS_STRETCH),
                row_ids: Sequence::new(key_of(b'r', id).to_vec(), ROW_IDS_STRETCH),
            })
        };
        states.entry(id).or_insert_with(make).clone()
    }

    /// Before a change of a definition is committed: from then on a snapshot may be older than the
    /// definition. The caller that calls it holds the lock of the table's version row.
    pub(crate) fn altering(&self, id: u64) {
        self.state(id).altered.fetch_or(1, Ordering::AcqRel);
    }

    /// After it was committed. Without this, snapshots are looked at each time.
    pub(crate) fn altered(&self, id: u64) {
        let state = self.state(id);
        if state.altered.load(Ordering::Acquire) % 2 == 1 {
            state.altered.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Shared {
    /// No transaction has a handle of any table any more. Best effort: in a database that has been
    /// closed or has failed nothing is written, and the gap stays.
    fn drop(&mut self) {
        let _ = self.settle_numbers();
    }
}
