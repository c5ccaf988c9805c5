//! Opening a database, from top to bottom: control file, log, torn pages, what redo is pending for
//! pages, which transactions were under way, threads.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_base::lock::Mutex;
use weir_base::{Clock, Home, TreeId, TxnId};
use weir_btree::{Env, Tree as RawTree};
use weir_checkpoint::{CONTROL_FILE, Checkpointer, Control, ControlFile, ProcessorsBusy};
use weir_crypt::CryptVolume;
use weir_device::{Processors, Volume};
use weir_pool::{Pool, PoolConfig};
use weir_recovery::{Analysis, Left, Phase, Progress, recovered, set_pending};
use weir_redo::Log;
use weir_space::{HoleLimits, Space};
use weir_txn::{AutoCommit, Context, PlantedBug, RecoveredState, Registry};

use crate::catalog::{named_by, tree_by_id};
use crate::catch_up::CatchUp;
use crate::codec_asked::CodecSite;
use crate::compact_asked::CompactSite;
use crate::config::{Background, Config, StoreKind};
use crate::contents::{Contents, FoundStretches};
use crate::create::prepare;
use crate::details::{DamagedPlace, Details};
use crate::encryption;
use crate::engine::{
    Engine, Freed, Helper, STEPS_AT_OPEN_MICROS, admit, try_admit, wait_for_pages,
};
use crate::error::Error;
use crate::force::Force;
use crate::forced::{Remarks, read_damaged_log};
use crate::page_store::open_store;
use crate::places::{CATALOG_ROOT, CATALOG_TREE};
use crate::read_log::{Scanned, read_log};
use crate::recovery_age::held_log_bytes;
use crate::report::RecoveryReport;
use crate::scrub::Scrub;
use crate::setup::{log_config, pool_bytes_max, pool_config};
use crate::undecided::Undecided;
use crate::unused::Unused;
use crate::warm::Warm;
use crate::workers::{Site, Workers};

/// A thread that brings pages forward for each so many frames, at most.
const REDO_THREAD_FRAMES: u64 = 512;

/// What is written down of the log takes this part of the memory for log at most.
const CONTENTS_IN_MEMORY: u64 = 4;
/// The largest pages.
const MAX_PAGE_BYTES: u64 = 16 << 10;

/// Opens the database of `site`.
pub(crate) fn open(
    site: encryption::Site,
    config: Config,
    clock: Arc<dyn Clock>,
) -> Result<Arc<Engine>, Error> {
    let began = clock.now_micros();
    let encryption::Site { volume, crypt, .. } = site;
    config.check()?;
    prepare(&volume, &config)?;
    let control = ControlFile::open(&volume).map_err(control_error)?;
    let was = control.get();
    if config.page_size != 0 && config.page_size != was.page_size as usize {
        return Err(Error::Config(format!(
            "the database has pages of {} bytes, not {}; the page size is chosen at creation",
            was.page_size, config.page_size
        )));
    }
    let progress = config.recovery_progress.clone();
    let tell = move |p: Progress| {
        if let Some(progress) = &progress {
            progress(&p);
        }
    };
    // Windows of a larger log would be written.
    let all = Force::at(config.force_recovery).is_on().then_some(u64::MAX);
    let held_bytes = all.or(config.held_log_bytes).unwrap_or_else(|| {
        let memory = weir_device::memory_bytes();
        // The age may pass the bound that it is held at by a little.
        memory.map_or(u64::MAX, |memory| held_log_bytes(memory, config.pool_bytes) / 4 * 5)
    });
    let mut found = match was.clean || Force::at(config.force_recovery) >= Force::DAMAGED_LOG {
        true => FoundStretches::default(),
        false => FoundStretches::read(&*volume, was.db, held_bytes / CONTENTS_IN_MEMORY),
    };
    let force = Force::at(config.force_recovery);
    let mut remarks = Remarks::default();
    let (scanned, log) = if force >= Force::DAMAGED_LOG {
        read_damaged_log(&volume, &was, &config, &mut remarks, &tell)?
    } else {
        let stretches = std::mem::take(&mut found.stretches);
        let scanned = read_log(&volume, &was, stretches, held_bytes, &tell)?;
        let sizes = log_config(was.db, was.log_bytes, config.pool_bytes);
        let log = Log::resume(volume.clone(), sizes, scanned.end().clone())?;
        (scanned, log)
    };
    let scan_micros = clock.now_micros() - began;
    // The log names its end behind a boundary, the checkpoint may name it before.
    let to = scanned.end().end;
    let log = Arc::new(log);
    let (store, store_kind) = open_store(&volume, &was, &config)?;
    remarks.check_data_file(force, &*store, (&was, to))?;
    let repair = remarks.repair(force, &*store)?;
    let age_bytes = to.0.saturating_sub(was.checkpoint.0);
    let sizes = pool_config(&config, was.log_bytes, age_bytes);
    control
        .update(|c| {
            c.clean = false;
            c.openings += 1;
            c.pages = store.pages();
            c.synced = c.synced.max(to);
        })
        .map_err(|e| Error::io("writing the control file", e))?;
    let control = Arc::new(control);
    let collected = match scanned {
        Scanned::InMemory(collected) => *collected,
        Scanned::TooLarge(windows) => {
            let (log, store, control, clock) = (&log, &store, &control, &clock);
            let (sizes, planted, threads) = (&sizes, config.planted, redo_threads(&config, &sizes));
            let catch_up = CatchUp { log, store, control, clock, sizes, threads, planted };
            catch_up.run(*windows, &tell)?
        }
    };
    let pool = Arc::new(Pool::with_room(&sizes, pool_bytes_max(&config), store, log.clone())?);
    pool.begin_at(log.checkpoint());
    let forgotten = config.planted == weir_txn::PlantedBug::PendingForgotten;
    let read_bytes = collected.read_bytes;
    let Left { analysis, indexer, pending_pages } = set_pending(collected, &pool, forgotten)?;
    let contents =
        Contents::new(volume.clone(), was.db, pool.log().clone(), found, indexer, &config);
    let mut report = RecoveryReport {
        from: was.checkpoint,
        to,
        pages_repaired: repair.repaired,
        read_bytes,
        pending_pages,
        scan_micros,
        ..RecoveryReport::default()
    };
    let next_txn = force.next_txn(was.next_txn.max(analysis.next_txn));
    let next = (next_txn, was.next_tree.max(analysis.next_tree));
    let opened = Opened { volume, crypt, control, pool, contents, next, store_kind };
    let mut engine = assemble(opened, config, clock.clone())?;
    engine.bound_recovery(None);
    let site = engine.site();
    settle_open(&engine, analysis, &tell, (&mut report, &mut remarks))?;
    if store_kind == StoreKind::Log && !force.is_on() {
        engine.tell_codecs();
        if engine.config.background == Background::Threads {
            engine.pool.store().adapt(clock.clone());
        }
    }
    report.total_micros = clock.now_micros() - began;
    engine.report = (to > was.checkpoint || repair.repaired > 0).then_some(report);
    if force.is_on() {
        remarks.0.extend(engine.pool.findings().into_iter().rev().map(|found| found.text));
        engine.remarks = remarks.0;
    } else if engine.config.background == Background::Threads {
        engine.pool.set_manual(false);
        *engine.workers.lock() = Some(Workers::start(&site)?);
        // Most losers are small: a session that comes now does not even meet their rows.
        engine.step_for(STEPS_AT_OPEN_MICROS, weir_txn::Background::roll_back_first);
    }
    Ok(Arc::new(engine))
}

fn control_error(e: std::io::Error) -> Error {
    if e.kind() == std::io::ErrorKind::InvalidData {
        let place = DamagedPlace { file: Some(CONTROL_FILE.into()), ..DamagedPlace::default() };
        return Error::Damaged(Details::of(e).at(place));
    }
    Error::io("opening the control file", e)
}

/// The files of a database, open, and the log read.
struct Opened {
    volume: Arc<dyn Volume>,
    crypt: Option<Arc<CryptVolume>>,
    control: Arc<ControlFile>,
    pool: Arc<Pool>,
    contents: Contents,
    /// The next numbers of transactions and trees.
    next: (TxnId, TreeId),
    store_kind: StoreKind,
}

/// Blocks of free pages go back so long after they were found free, at least.
const HOLES_GRACE_MICROS: u64 = 5_000_000;

/// How free pages give their blocks back: page by page where a simulation makes each step, whose
/// databases are small.
fn hole_limits(config: &Config, page_size: usize) -> HoleLimits {
    let page = page_size as u64;
    let reserves = config.planted != PlantedBug::HolesHandedOut;
    let limits = HoleLimits { reserves, ..HoleLimits::default() };
    match config.background {
        Background::Threads => limits,
        Background::Manual => HoleLimits {
            granule_bytes: page,
            kept_bytes: 2 * page..8 * page,
            step_bytes: 4 * page,
            ..limits
        },
    }
}

fn assemble(opened: Opened, config: Config, clock: Arc<dyn Clock>) -> Result<Engine, Error> {
    let Opened { volume, crypt, control, pool, contents, next, store_kind } = opened;
    let (next_txn, next_tree) = next;
    let db = control.get().db;
    let log = pool.log().clone();
    let noted = control.clone();
    pool.store().note_growth(Box::new(move |pages| noted.update(|c| c.pages = pages)));
    let space = Space::open(pool.clone(), config.pages_max, control.get().maps)?;
    let space = Arc::new(space.with_hole_limits(hole_limits(&config, pool.page_size())));
    let env = Arc::new(Env::new(pool.clone(), space.clone()));
    let registry = Arc::new(Registry::new(next_txn));
    let next_tree = Arc::new(AtomicU64::new(next_tree.0));
    let held = {
        let registry = registry.clone();
        move || registry.oldest()
    };
    let refresh = {
        let (registry, next_tree) = (registry.clone(), next_tree.clone());
        let (space, log) = (space.clone(), log.clone());
        move |control: &mut Control| {
            control.maps = space.maps(log.durable());
            control.next_txn = registry.next();
            control.next_tree = TreeId(next_tree.load(Ordering::SeqCst));
        }
    };
    let (held, refresh) = (Box::new(held), Box::new(refresh));
    let checkpointer =
        Checkpointer::new(pool.clone(), control.clone(), clock.clone(), held, refresh)
            .with_processors(processors(config.background, clock.clone()))
            .with_lab(config.lab.as_ref().map(|make| make()));
    let checkpointer = Arc::new(checkpointer);
    checkpointer.admit();
    let helper = Helper::new(checkpointer.clone());
    let admission = {
        let helper = helper.clone();
        let (checkpointer, log, clock) = (checkpointer.clone(), log.clone(), clock.clone());
        let started = Arc::new(AtomicBool::new(false));
        let pool = pool.clone();
        let background = config.background;
        move |bytes: u64| {
            // While opening, before the threads run, admission is served by the thread that needs
            // it.
            let ready = started.load(Ordering::Relaxed) || !pool.is_manual();
            started.store(ready, Ordering::Relaxed);
            let mode = if ready { background } else { Background::Manual };
            admit(&checkpointer, &log, &*clock, mode, &helper, bytes)
        }
    };
    let try_admission = {
        let (checkpointer, log, clock) = (checkpointer.clone(), log.clone(), clock.clone());
        let (pool, helper) = (pool.clone(), helper.clone());
        move |bytes: u64| {
            let helper = pool.is_manual().then_some(&helper);
            try_admit(&checkpointer, &log, &*clock, helper, bytes)
        }
    };
    let page_wait = {
        let (checkpointer, clock) = (checkpointer.clone(), clock.clone());
        let (pool, helper) = (pool.clone(), helper.clone());
        move || wait_for_pages(&checkpointer, &*clock, pool.is_manual().then_some(&helper))
    };
    let context = Context::new(env.clone(), registry.clone(), Box::new(admission))
        .with_try_admission(Box::new(try_admission))
        .with_page_wait(Box::new(page_wait))
        .with_locks_max(config.locks_max())
        .with_changes_max(config.first.changes_max)
        .with_planted(config.planted);
    let context = Arc::new(context);
    helper.knows(&context);
    let background = weir_txn::Background::new(context.clone())
        .with_versions_max(config.versions_max_bytes)
        .with_tree_numbers(next_tree.clone());
    let background = Arc::new(background);
    let auto = AutoCommit::new(context.clone(), background.clone());
    let catalog = RawTree::at(env.clone(), CATALOG_TREE, CATALOG_ROOT);
    let by_id = {
        let catalog = catalog.clone();
        move |id| tree_by_id(&catalog, id)
    };
    let by_row = {
        let env = env.clone();
        move |tree, row: &[u8]| if tree == CATALOG_TREE { named_by(&env, row) } else { None }
    };
    context.find_trees_by(Box::new(by_id), Box::new(by_row));
    let grace = if config.background == Background::Manual { 0 } else { HOLES_GRACE_MICROS };
    let unused = Unused::new(pool.clone(), space.clone(), config.planted, grace);
    let pages = (pool.clone(), space.clone());
    let openings = control.get().openings;
    let freed = Freed { pool_bytes: config.pool_bytes };
    let scrub = Scrub::new(pages, checkpointer.clone(), clock.clone(), openings, config.planted);
    let warm = Warm::new(volume.clone(), db, pool.clone(), space.clone(), clock.clone());
    Ok(Engine {
        volume,
        crypt,
        config,
        store_kind,
        clock,
        control,
        log,
        pool,
        space,
        env,
        registry,
        checkpointer,
        context,
        background,
        auto,
        catalog,
        next_tree,
        prepared: Mutex::default(),
        report: None,
        remarks: Vec::new(),
        seen: Arc::default(),
        warm: Arc::new(warm),
        contents: Arc::new(contents),
        unused: Arc::new(unused),
        scrub: Arc::new(scrub),
        acks: Arc::default(),
        workers: Mutex::new(None),
        home: Home::here(),
        closed: AtomicBool::new(false),
        is_settled: Mutex::new(false),
        freed,
    })
}

/// Takes over the transactions that the log shows no end of.
fn settle_open(
    engine: &Engine,
    analysis: Analysis,
    tell: &dyn Fn(Progress),
    (report, remarks): (&mut RecoveryReport, &mut Remarks),
) -> Result<(), Error> {
    let force = Force::at(engine.config.force_recovery);
    let recovered = recovered(analysis, &engine.registry);
    let of = recovered.len() as u64;
    for (done, found) in (0..).zip(recovered) {
        tell(Progress { phase: Phase::Undo, done, of });
        let of_its_kind = match &found.state {
            RecoveredState::Committed => &mut report.completed,
            RecoveredState::Prepared { .. } => &mut report.prepared,
            RecoveredState::Loser => &mut report.undone,
        };
        *of_its_kind += 1;
        let xid = match &found.state {
            RecoveredState::Prepared { xid, .. } => xid.clone(),
            RecoveredState::Committed | RecoveredState::Loser => Vec::new(),
        };
        let id = found.id;
        let codecs = if xid.is_empty() { Vec::new() } else { engine.names_changed(&found.undo) };
        let resumed = engine.background.resume(found).map_err(Into::into);
        match remarks.bear((force, Force::DAMAGED_UNDO), resumed)? {
            Some(Some(raw)) => {
                engine.prepared.lock().insert(xid.into(), Some(Undecided { raw, codecs }));
            }
            Some(None) => {}
            None => {
                remarks.0.push(format!(
                    "transaction {id} has no end, and its undo cannot be read: what it changed is \
                     seen as if it had committed"
                ));
                engine.registry.end(id);
            }
        }
    }
    if force.is_on() && of > 0 {
        let RecoveryReport { completed, undone, prepared, .. } = *report;
        remarks.0.push(format!(
            "{undone} transactions without an end are not rolled back and {prepared} prepared ones \
             not decided: what they changed is not seen; {completed} that committed are not \
             completed"
        ));
    }
    tell(Progress { phase: Phase::Undo, done: of, of });
    Ok(())
}

impl Engine {
    pub(crate) fn site(&self) -> Site {
        Site {
            pool: self.pool.clone(),
            log: self.log.clone(),
            checkpointer: self.checkpointer.clone(),
            clock: self.clock.clone(),
            background: self.background.clone(),
            seen: self.seen.clone(),
            warm: self.warm.clone(),
            contents: self.contents.clone(),
            unused: self.unused.clone(),
            scrub: self.scrub.clone(),
            backup: self.backup_source(),
            compact: self.compact_site(),
            codecs: self.codec_site(),
            volume: self.volume.clone(),
            crypt: self.crypt.clone(),
            scrubs: !self.config.read_only && self.config.lab.is_none(),
            acks: self.acks.clone(),
            redo_threads: self.redo_threads(),
        }
    }

    fn compact_site(&self) -> CompactSite {
        CompactSite {
            compactor: self.compactor(),
            catalog: self.catalog.clone(),
            background: self.background.clone(),
            clock: self.clock.clone(),
        }
    }

    fn codec_site(&self) -> CodecSite {
        CodecSite {
            context: self.context.clone(),
            catalog: self.catalog.clone(),
            pool: self.pool.clone(),
            log: self.log.clone(),
            background: self.background.clone(),
            clock: self.clock.clone(),
        }
    }

    fn redo_threads(&self) -> usize {
        threads_for(&self.config, self.pool.residence().frames)
    }
}

/// What tells how busy the processors are; a simulation has none.
fn processors(background: Background, clock: Arc<dyn Clock>) -> Option<Box<ProcessorsBusy>> {
    let looks = Mutex::<weir_base::rank::ProcessorLooks, _>::new(Processors::default());
    let busy: Box<ProcessorsBusy> = Box::new(move || looks.lock().busy(clock.now_micros()));
    (background == Background::Threads).then_some(busy)
}

/// Threads that bring pages forward before there is a pool of that size.
fn redo_threads(config: &Config, sizes: &PoolConfig) -> usize {
    match config.background {
        Background::Threads => threads_for(config, sizes.bytes / MAX_PAGE_BYTES),
        Background::Manual => 1,
    }
}

/// Each holds some frames while it waits for others: on many cores, a small pool would have none
/// left.
fn threads_for(config: &Config, frames: u64) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = match config.recovery_threads {
        0 => cores().div_ceil(2),
        threads => threads,
    };
    wanted.min((frames / REDO_THREAD_FRAMES).max(1) as usize)
}
