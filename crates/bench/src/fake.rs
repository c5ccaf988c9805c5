//! A store in memory, for the tests of everything else. It can be told to lie.
use crate::durability::Durability;
use crate::target::{Counters, PageWrites, Table, Target, Visit, Watched};
use anyhow::{Result, bail};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What goes wrong, and at which put (counted from 1).
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Acknowledges, keeps nothing.
    pub(crate) lose: Option<u64>,
    /// Flips a bit of the value.
    pub(crate) flip: Option<u64>,
    /// Fails.
    pub(crate) fail: Option<u64>,
    /// No transaction becomes durable, and a thread that waits for one gets the error.
    pub(crate) never_sync: bool,
}

#[derive(Default)]
struct Inner {
    tables: Mutex<BTreeMap<String, FakeTable>>,
    puts: AtomicU64,
    alone: Mutex<()>,
    faults: Faults,
}

#[derive(Clone, Default)]
pub(crate) struct Fake(Arc<Inner>);

#[derive(Clone, Default)]
pub(crate) struct FakeTable {
    rows: Arc<Rows>,
    store: Arc<Inner>,
}

/// The rows of a table, behind a lock.
pub(crate) type Rows = RwLock<BTreeMap<Vec<u8>, Vec<u8>>>;

impl FakeTable {
    /// For transactions, which are not counted and never lied about.
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }
}

impl Fake {
    /// One transaction runs at a time.
    pub(crate) fn begin_alone(&self) -> MutexGuard<'_, ()> {
        self.0.alone.lock()
    }

    pub(crate) fn never_syncs(&self) -> bool {
        self.0.faults.never_sync
    }

    pub(crate) fn lying(faults: Faults) -> Self {
        Fake(Arc::new(Inner { faults, ..Inner::default() }))
    }
}

impl Watched for Fake {
    fn counters(&self) -> Counters {
        let puts = self.0.puts.load(Relaxed);
        Counters {
            redo_bytes: puts * 150,
            checkpoint_age_bytes: 95_000,
            checkpoint_age_limit_bytes: 100_000,
            checkpoint_age_max_bytes: 99_000,
            log_capacity_bytes: 1,
            pages_allocated: 10,
            page_size: 4096,
            page_writes: PageWrites { deadline: puts / 10, ..PageWrites::default() },
            ..Counters::default()
        }
    }

    fn reset_peaks(&self) {}
}

impl Target for Fake {
    type Table = FakeTable;

    fn table(&self, name: &str) -> Result<Option<FakeTable>> {
        Ok(self.0.tables.lock().get(name).cloned())
    }

    fn create_table(&self, name: &str) -> Result<FakeTable> {
        let table = FakeTable { store: self.0.clone(), ..FakeTable::default() };
        self.0.tables.lock().insert(name.to_owned(), table.clone());
        Ok(table)
    }

    fn drop_table(&self, name: &str) -> Result<()> {
        self.0.tables.lock().remove(name);
        Ok(())
    }

    fn checkpoint(&self) -> Result<()> {
        Ok(())
    }
}

impl Table for FakeTable {
    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let rows = self.rows.read();
        let found = rows.get(key);
        out.extend_from_slice(found.map_or(&[][..], |value| value));
        Ok(found.is_some())
    }

    fn put(&self, key: &[u8], value: &[u8], _: Durability) -> Result<()> {
        // Slow enough that a test's rows are not rewritten before a lie can be found.
        std::thread::sleep(std::time::Duration::from_micros(500));
        let n = Some(self.store.puts.fetch_add(1, Relaxed) + 1);
        let faults = self.store.faults;
        let mut value = value.to_vec();
        if faults.fail.is_some_and(|fail| n >= Some(fail)) {
            bail!("the disk is on fire");
        }
        if faults.flip.is_some_and(|flip| n >= Some(flip)) {
            value[77] ^= 4;
        }
        if faults.lose.is_none_or(|lose| n < Some(lose)) {
            self.rows.write().insert(key.to_vec(), value);
        }
        Ok(())
    }

    fn bulk_load(&self, sorted: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<u64> {
        let mut rows = self.rows.write();
        let mut last = None;
        for (key, value) in sorted {
            assert!(last.replace(key.clone()) < Some(key.clone()), "not in key order");
            rows.insert(key, value);
        }
        Ok(rows.len() as u64)
    }

    fn scan_up(&self, from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        let rows = self.rows.read();
        for (key, value) in rows.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)) {
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn scan_down(&self, before: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<()> {
        let rows = self.rows.read();
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        for (key, value) in rows.range::<[u8], _>((Bound::Unbounded, end)).rev() {
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}
