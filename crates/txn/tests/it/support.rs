//! A store over a simulated disk, with admission that does the checkpointer's work.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use parking_lot::Mutex;
use weir_base::{DbId, Lsn, TreeId, TxnId};
use weir_btree::{Cursor, Env, Tree, TreeError};
use weir_change::{Group, Header};
use weir_device::{FaultyVolume, SimVolume, Volume};
use weir_pool::{Cause, DoubleWriteConfig, InPlaceStore, PageUse, Pool, PoolConfig};
use weir_redo::{Durability, Log, LogConfig};
use weir_space::Space;
use weir_txn::{AutoCommit, Background, Context, Registry, Txn, TxnError};

/// What a tree should hold.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) const PAGE: usize = 4096;

pub(crate) struct Site {
    pub(crate) faulty: FaultyVolume,
    pub(crate) log: Arc<Log>,
    pub(crate) env: Arc<Env>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) context: Arc<Context>,
    pub(crate) background: Arc<Background>,
    pub(crate) auto: AutoCommit,
}

/// The checkpointer's work, in the thread that waits for it.
pub(crate) struct Pump {
    pool: Arc<Pool>,
    registry: Arc<Registry>,
    one: Mutex<()>,
}

impl Pump {
    /// Waits until `bytes` may be written: like the engine's admission, it lets no thread on while
    /// the log is full, and gives up when nothing that holds the log can be written.
    fn admit(&self, bytes: u64) -> Result<(), TreeError> {
        for _ in 0..20_000 {
            if self.try_admit(bytes)? {
                return Ok(());
            }
        }
        Err(TreeError::Stopped("the log is full and stays so".into()))
    }

    fn try_admit(&self, bytes: u64) -> Result<bool, TreeError> {
        self.pool.check_halted()?;
        let log = self.pool.log();
        let age = log.end().bytes_since(log.checkpoint()) + bytes.min(1 << 14);
        if age <= log.limit_bytes() / 8 * 7 {
            return Ok(true);
        }
        let _one = self.one.lock();
        let pages = self.pool.take_oldest(64, log.published());
        self.pool.write_back(0, &pages, Cause::Deadline, 16, &mut |_| {})?;
        // Pages first: a transaction that opens after the look at them lies behind it.
        let dirty = self.pool.oldest();
        let oldest = self.registry.oldest().map_or(dirty, |lsn| lsn.min(dirty));
        log.flush(Durability::Synced)?;
        log.set_checkpoint(oldest);
        while log.maintain()? {}
        if pages.is_empty() {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        Ok(false)
    }
}

/// Does what a thread of the engine does beside the others that may wait for each other and for the
/// log: logs again the transactions that hold it.
pub(crate) fn relogging<T>(site: &Site, run: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                site.context.relog_all().expect("relogged");
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        stop.store(true, SeqCst);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

pub(crate) fn site(frames: u64, log_bytes: u64) -> Site {
    let faulty = FaultyVolume::new(Arc::new(SimVolume::new(5)));
    let volume: Arc<dyn Volume> = Arc::new(faulty.clone());
    let db = DbId(9);
    let config = LogConfig { db, capacity_bytes: log_bytes, buffer_bytes: 64 << 10 };
    let log = Arc::new(Log::create(volume.clone(), config, Lsn(4096)).expect("a log"));
    let doublewrite = DoubleWriteConfig::default();
    let store = InPlaceStore::create(&volume, db, PAGE, 64, doublewrite).expect("a store");
    let config = PoolConfig {
        bytes: frames * PAGE as u64,
        pages_max: 1 << 18,
        log_usual_bytes: log_bytes,
        log_span_bytes: 4 * log_bytes,
        manual: true,
        skip_log_gate: false,
        page_use: PageUse::Changed,
    };
    let pool = Arc::new(Pool::new(&config, Arc::new(store), log.clone()).expect("a pool"));
    pool.begin_at(log.end());
    let space = Arc::new(Space::create(pool.clone(), 1 << 18).expect("a space"));
    let env = Arc::new(Env::new(pool.clone(), space));
    let registry = Arc::new(Registry::new(TxnId(1)));
    let pump = Arc::new(Pump { pool, registry: registry.clone(), one: Mutex::new(()) });
    let patient = pump.clone();
    let context = Context::new(env.clone(), registry.clone(), Box::new(move |b| pump.admit(b)));
    let context = context.with_try_admission(Box::new(move |b| patient.try_admit(b)));
    let context = Arc::new(context);
    let background = Arc::new(Background::new(context.clone()));
    let auto = AutoCommit::new(context.clone(), background.clone());
    Site { faulty, log, env, registry, context, background, auto }
}

impl Site {
    /// Commits, and does what that makes due, as the engine does.
    pub(crate) fn commit(&self, txn: &mut Txn) -> Result<(), TxnError> {
        let ended = txn.commit(&self.context)?;
        self.background.after(ended.due);
        Ok(())
    }

    /// With a background that leaves so many bytes of memory to ended transactions.
    pub(crate) fn with_versions_max(self, bytes: u64) -> Self {
        let background = Background::new(self.context.clone()).with_versions_max(Some(bytes));
        let background = Arc::new(background);
        let auto = AutoCommit::new(self.context.clone(), background.clone());
        Site { background, auto, ..self }
    }

    pub(crate) fn tree(&self, id: u64) -> Tree {
        let claimed = self.env.space.claim(1).expect("a page");
        let mut group = Group::begin(Header::default());
        Tree::create(&self.env, &mut group, TreeId(id), claimed[0]).expect("a tree");
        group.commit(&self.log).expect("logged");
        Tree::at(self.env.clone(), TreeId(id), claimed[0])
    }

    /// Checks that the trees are sound, that no page is in use but theirs, that no marked row and
    /// no transaction is left, and that they hold these rows.
    pub(crate) fn check(&self, trees: &[(&Tree, &Rows)]) {
        let mut used = 1;
        for (tree, model) in trees {
            let report = tree.check(&mut |_| {}).expect("a sound tree");
            used += report.pages.len() as u64;
            assert_eq!((report.rows, report.marked_rows), (model.len() as u64, 0));
            assert!(rows(tree) == **model, "the tree's rows are the model's");
        }
        assert_eq!(self.env.space.used(), used, "pages in use are the trees'");
        assert_eq!((self.registry.len(), self.registry.oldest()), (0, None));
    }
}

pub(crate) fn rows(tree: &Tree) -> Rows {
    let mut cursor = Cursor::new(tree.clone());
    let mut rows = BTreeMap::new();
    let mut on = cursor.seek_first().expect("a scan");
    while on {
        let value = cursor.value().expect("a value").expect("it is there").to_vec();
        rows.insert(cursor.key().to_vec(), value);
        on = cursor.next().expect("a scan");
    }
    rows
}
