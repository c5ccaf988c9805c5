//! A pool, a space and a tree over a simulated disk, with no thread but the caller's.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::{DbId, Lsn, TreeId, TxnId};
use weir_btree::{
    Action, ChainHead, Change, CompactStep, Cursor, Env, Moves, Run, Steps, Tree, TreeError,
    TreeReport, Value,
};
use weir_change::{Group, Header};
use weir_device::{SimVolume, Volume};
use weir_page::{Flags, Stamp};
use weir_pool::{Cause, DoubleWriteConfig, InPlaceStore, PageUse, Pool, PoolConfig};
use weir_redo::{Durability, Log, LogConfig};
use weir_space::Space;

/// How large things are.
pub(crate) struct Shape {
    pub(crate) page_size: usize,
    pub(crate) frames: u64,
    pub(crate) log_bytes: u64,
}

impl Shape {
    pub(crate) fn of(page_size: usize, frames: u64) -> Self {
        Shape { page_size, frames, log_bytes: 16 << 20 }
    }
}

pub(crate) struct Site {
    pub(crate) volume: SimVolume,
    pub(crate) log: Arc<Log>,
    pub(crate) env: Arc<Env>,
    next_txn: AtomicU64,
    pumping: std::sync::Mutex<()>,
}

pub(crate) const TREE: TreeId = TreeId(7);

impl Site {
    pub(crate) fn new(shape: &Shape) -> Site {
        let sim = SimVolume::new(1);
        let volume: Arc<dyn Volume> = Arc::new(sim.clone());
        let db = DbId(42);
        let config = LogConfig { db, capacity_bytes: shape.log_bytes, buffer_bytes: 1 << 20 };
        let log = Arc::new(Log::create(volume.clone(), config, Lsn(4096)).expect("a log"));
        let doublewrite = DoubleWriteConfig::default();
        let store =
            InPlaceStore::create(&volume, db, shape.page_size, 64, doublewrite).expect("a store");
        let config = PoolConfig {
            bytes: shape.frames * shape.page_size as u64,
            pages_max: 1 << 18,
            log_usual_bytes: shape.log_bytes,
            log_span_bytes: 4 * shape.log_bytes,
            manual: true,
            skip_log_gate: false,
            page_use: PageUse::Changed,
        };
        let pool = Arc::new(Pool::new(&config, Arc::new(store), log.clone()).expect("a pool"));
        pool.begin_at(log.end());
        let space = Arc::new(Space::create(pool.clone(), 1 << 18).expect("a space"));
        let env = Arc::new(Env::new(pool, space));
        Site {
            volume: sim,
            log,
            env,
            next_txn: AtomicU64::new(1),
            pumping: std::sync::Mutex::new(()),
        }
    }

    pub(crate) fn tree(&self, id: TreeId) -> Tree {
        let claimed = self.env.space.claim(1).expect("a page");
        let mut group = Group::begin(Header::default());
        Tree::create(&self.env, &mut group, id, claimed[0]).expect("a tree");
        group.commit(&self.log).expect("logged");
        Tree::at(self.env.clone(), id, claimed[0])
    }

    pub(crate) fn txn(&self) -> Header {
        let id = TxnId(self.next_txn.fetch_add(1, Ordering::Relaxed));
        Header { txn: Some(id), commits: true, ..Header::default() }
    }

    /// Keeps the log's age below half of what it may be.
    pub(crate) fn pump(&self) {
        if self.log.end().bytes_since(self.log.checkpoint()) < self.log.limit_bytes() / 2 {
            return;
        }
        let Ok(_one) = self.pumping.try_lock() else { return };
        let until = Lsn(self.log.published().0 - self.log.limit_bytes() / 4);
        let pool = &self.env.pool;
        for _ in 0..1000 {
            let pages = pool.take_oldest(64, until);
            if pages.is_empty() {
                break;
            }
            pool.write_back(0, &pages, Cause::Deadline, 64, &mut |_| {}).expect("written");
        }
        let oldest = pool.oldest();
        self.log.wait(oldest, Durability::Synced).expect("synced");
        self.log.set_checkpoint(oldest);
        while self.log.maintain().expect("maintained") {}
    }

    pub(crate) fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<(), TreeError> {
        self.pump();
        let header = self.txn();
        let mut bytes = value.to_vec();
        let mut flags = Flags::NONE;
        if value.len() > tree.max_inline_value(key.len()) {
            let mark = header.txn.map_or(0, |t| t.0);
            let own = Header { commits: false, ..header };
            bytes = self.write_long(tree, (key, value), mark, own, &mut |_| {})?;
            flags = Flags::OVERFLOW;
        }
        let change = Change::single(header);
        let written = tree.put(key, &change, Value { bytes: &bytes, flags })?;
        self.free(tree, written.replaced)
    }

    /// Writes a long value to a chain. Returns the bytes for its row.
    fn write_long(
        &self,
        tree: &Tree,
        (key, value): (&[u8], &[u8]),
        mark: u64,
        header: Header,
        taken: &mut dyn FnMut(Run),
    ) -> Result<Vec<u8>, TreeError> {
        let (mut writer, front) = tree.long_writer(key, value, mark, header)?;
        self.write_steps(&mut writer, taken)?;
        Ok(writer.head().with_front(front))
    }

    fn write_steps(
        &self,
        steps: &mut dyn Steps,
        taken: &mut dyn FnMut(Run),
    ) -> Result<(), TreeError> {
        while steps.next_log_bytes().is_some() {
            self.pump();
            steps.write_next()?.into_iter().for_each(&mut *taken);
        }
        Ok(())
    }

    /// Fills an empty tree.
    pub(crate) fn load<'a>(
        &self,
        tree: &Tree,
        entries: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
        header: Header,
        last: Header,
        taken: &mut dyn FnMut(Run),
    ) -> Result<u64, TreeError> {
        let mut loader = tree.loader(header)?;
        for (key, value) in entries {
            loader.check(key)?;
            let (mut bytes, mut flags) = (value.clone(), Flags::NONE);
            if value.len() > tree.max_inline_value(key.len()) {
                let mark = ChainHead::mark(header.txn.unwrap_or_default(), loader.count());
                bytes = self.write_long(tree, (key, value), mark, header, taken)?;
                flags = Flags::OVERFLOW;
            }
            loader.push(key, Value { bytes: &bytes, flags })?;
            self.write_steps(&mut loader, taken)?;
        }
        loader.close();
        self.write_steps(&mut loader, taken)?;
        loader.finish(last)
    }

    pub(crate) fn remove(&self, tree: &Tree, key: &[u8]) -> Result<bool, TreeError> {
        self.pump();
        let change = Change::single(self.txn());
        let written = tree.remove(key, &change)?;
        self.free(tree, written.replaced)?;
        Ok(written.span.is_some())
    }

    pub(crate) fn mark(&self, tree: &Tree, key: &[u8]) -> Result<(), TreeError> {
        self.pump();
        let change = Change::single(self.txn());
        let latched = tree.latch_row(key)?;
        let is_live = latched.row().is_some_and(|row| !row.flags.deleted);
        let action = if is_live { Action::Mark } else { Action::Nothing };
        let applied = latched.apply(&change, action)?;
        let written = tree.settle(key, applied)?.unwrap_or_default();
        self.free(tree, written.replaced)
    }

    fn free(&self, tree: &Tree, chain: Option<weir_btree::ChainHead>) -> Result<(), TreeError> {
        let Some(chain) = chain else { return Ok(()) };
        tree.chains().free(chain.first, chain.mark, Header::default(), &mut |_| Ok(()))
    }

    /// Makes the tree dense; returns how often each step was taken that changes something: joined,
    /// filled, moved.
    pub(crate) fn compact(&self, tree: &Tree) -> Result<[u64; 3], TreeError> {
        let [joined, filled, moved, chains] = self.compact_with(tree, &|_| true)?;
        Ok([joined, filled, moved + chains])
    }

    /// As [`Site::compact`], where the chains of some rows may be moved: how many were comes last.
    pub(crate) fn compact_with(
        &self,
        tree: &Tree,
        is_settled: &dyn Fn(Stamp) -> bool,
    ) -> Result<[u64; 4], TreeError> {
        let (mut key, mut did) = (Vec::new(), [0; 4]);
        let moves = Settled { site: self, is_settled };
        loop {
            self.pump();
            match tree.compact_next(&mut key, Some(&moves))? {
                CompactStep::Joined => did[0] += 1,
                CompactStep::Filled => did[1] += 1,
                CompactStep::Moved => did[2] += 1,
                CompactStep::ChainMoved(_) => did[3] += 1,
                CompactStep::Passed | CompactStep::ChainPassed(_) | CompactStep::Again => {}
                CompactStep::Done => return Ok(did),
            }
        }
    }

    /// Checks the trees, and that no page is in use but theirs and the maps.
    pub(crate) fn check(&self, trees: &[&Tree]) -> Vec<TreeReport> {
        let reports: Vec<TreeReport> =
            trees.iter().map(|t| t.check(&mut |_| {}).expect("a sound tree")).collect();
        let mut used = 1;
        for report in &reports {
            used += report.pages.len() as u64;
            for &page in &report.pages {
                assert!(self.env.space.is_used(page), "page {page} of a tree is not in use");
            }
        }
        assert_eq!(self.env.space.used(), used, "pages in use are the trees' and the map");
        reports
    }
}

/// Which rows' chains may be moved.
struct Settled<'a> {
    site: &'a Site,
    is_settled: &'a dyn Fn(Stamp) -> bool,
}

impl Moves for Settled<'_> {
    fn is_settled(&self, stamp: Stamp) -> bool {
        (self.is_settled)(stamp)
    }

    fn header(&self) -> Result<Header, TreeError> {
        Ok(self.site.txn())
    }
}

/// A row of a model: its value and whether it is marked.
pub(crate) type Model = BTreeMap<Vec<u8>, (Vec<u8>, bool)>;

/// Everything live, forward and backward.
pub(crate) fn scan(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = Cursor::new(tree.clone());
    let mut rows = Vec::new();
    let mut on = cursor.seek_first().expect("a scan");
    while on {
        let value = cursor.value().expect("a value").expect("it is there").to_vec();
        rows.push((cursor.key().to_vec(), value));
        on = cursor.next().expect("a scan");
    }
    let mut back = Vec::new();
    let mut on = cursor.seek_last().expect("a scan");
    while on {
        back.push(cursor.key().to_vec());
        on = cursor.prev().expect("a scan");
    }
    back.reverse();
    assert!(back.iter().eq(rows.iter().map(|(key, _)| key)), "backward sees what forward sees");
    rows
}
