//! The background threads: loops around steps that others decide on and that a simulation calls
//! itself.
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_base::lock::Mutex;
use weir_base::rank;

use weir_checkpoint::{Checkpointer, WorkerError};
use weir_crypt::CryptVolume;
use weir_device::Volume;
use weir_pool::Pool;
use weir_redo::{Durability, Log};

use crate::acks::Acks;
use crate::advise::Observed;
use crate::asked::{CODEC, COMPACT, forget};
use crate::backup_run::Source;
use crate::codec_asked::CodecSite;
use crate::compact_asked::CompactSite;
use crate::contents::Contents;
use crate::error::Error;
use crate::halt::halt;
use crate::holes::pause_micros;
use crate::scrub::Scrub;
use crate::steps::{REDO_PAGES, STEP_ROWS};
use crate::unused::Unused;
use crate::warm::{Step, Warm};

/// The controller looks this often,
const TICK_MICROS: u64 = 50_000;
/// or, where that would be late for a log that is used up quickly, up to this often.
const TICK_MICROS_MIN: u64 = 5_000;
/// Writers are let on this often.
const ADMIT_MICROS: u64 = 2_000;
/// How the work changes pages is observed after so long, then after twice as long, and so on.
const OBSERVE_FIRST_MICROS: u64 = 1_000_000;
const OBSERVE_MICROS_MAX: u64 = 30_000_000;
/// Not at once: after opening a database there is much else to do, and some of its pages are wanted
/// first.
const REDO_AFTER_MICROS: u64 = 1_000_000;
/// Lazy commits are made durable this often.
const LAZY_MICROS: u64 = 1_000_000;

/// The thread that makes backups looks this often whether it is to end: closing waits for it.
const BACKUP_LOOK_MICROS: u64 = 50_000;
/// It is looked so often for a new version of the master key.
const KEY_MICROS: u64 = 30_000_000;
/// The scrub looks this often whether it is its turn: closing waits for it.
const SCRUB_LOOK_MICROS: u64 = 10_000;
/// And this often whether another process asks for one.
const ASKED_MICROS: u64 = 1_000_000;
/// On a full disk it waits so long.
const SCRUB_FULL_MICROS: u64 = 10_000_000;

/// Threads that read for scans, however many processors there are: most of the time they wait for
/// the disk. A scan has up to three at work; more scans read for themselves.
const AHEAD_THREADS: usize = 4;
/// They look so often whether they are to end, if they are not woken.
const AHEAD_LOOK: Duration = Duration::from_millis(50);

/// The thread that acknowledges commits.
const ACKS: &str = "weir-acks";
/// A background thread's stack where the address space is limited; elsewhere it is the system's
/// usual one, of which nothing is taken before it is used.
const STACK_BYTES_SPARED: usize = 512 << 10;

pub(crate) struct Workers {
    stop: Arc<AtomicBool>,
    pool: Arc<Pool>,
    acks: Arc<Acks>,
    threads: Vec<JoinHandle<()>>,
}

/// What a thread does until it is told to stop.
type Loop = fn(&Site, &AtomicBool);

/// What the threads work on.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) pool: Arc<Pool>,
    pub(crate) log: Arc<Log>,
    pub(crate) checkpointer: Arc<Checkpointer>,
    pub(crate) clock: Arc<dyn weir_base::Clock>,
    pub(crate) background: Arc<weir_txn::Background>,
    /// What was observed last while enough was going on.
    pub(crate) seen: Arc<Mutex<rank::Observed, Option<Observed>>>,
    pub(crate) warm: Arc<Warm>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) unused: Arc<Unused>,
    pub(crate) scrub: Arc<Scrub>,
    pub(crate) backup: Source,
    pub(crate) compact: CompactSite,
    pub(crate) codecs: CodecSite,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) crypt: Option<Arc<CryptVolume>>,
    /// Whether pages on disk are verified, blocks of free pages given back, and other processes may
    /// ask for a check, a backup, a compaction or codecs: not where nothing may be written, nor in
    /// experiments.
    pub(crate) scrubs: bool,
    pub(crate) acks: Arc<Acks>,
    /// Threads that bring pages forward after a crash.
    pub(crate) redo_threads: usize,
}

impl Workers {
    pub(crate) fn start(site: &Site) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let (pool, acks) = (site.pool.clone(), site.acks.clone());
        acks.begin();
        let mut workers = Workers { stop, pool, acks, threads: Vec::new() };
        let loops: [(&str, Loop); 9] = [
            (ACKS, acks_loop),
            ("weir-decide", decide_loop),
            ("weir-sweep", |site, stop| sweep_loop(site, stop, 0)),
            ("weir-sweep-2", |site, stop| sweep_loop(site, stop, 1)),
            ("weir-clean", clean_loop),
            ("weir-log", log_loop),
            ("weir-purge", step_loop),
            ("weir-warm", warm_loop),
            ("weir-contents", contents_loop),
        ];
        // A store that writes in place needs no room; what it does not need goes back.
        let keeps = site.pool.store().room_pages().is_some();
        let keeper: (&str, Loop) =
            if keeps { ("weir-segments", segments_loop) } else { ("weir-holes", holes_loop) };
        let keepers = (keeps || site.scrubs).then_some(keeper);
        let others: [(&str, Loop); 3] = [
            ("weir-scrub", scrub_loop),
            ("weir-backup", backup_loop),
            ("weir-compact", compact_loop),
        ];
        let others = others.into_iter().filter(|_| site.scrubs);
        // They end when nothing is pending any more.
        let redo: Loop = redo_loop;
        let redoers = if site.pool.pending_pages() > 0 { site.redo_threads } else { 0 };
        let redoers = std::iter::repeat_n(("weir-redo", redo), redoers);
        let ahead: Loop = ahead_loop;
        let ahead = std::iter::repeat_n(("weir-ahead", ahead), AHEAD_THREADS);
        let all = loops.into_iter().chain(keepers).chain(others).chain(redoers).chain(ahead);
        let is_spared = weir_base::spare_address_space();
        for (name, run) in all {
            let (site, stop) = (site.clone(), workers.stop.clone());
            let mut thread = std::thread::Builder::new().name(name.into());
            // The embedder's callbacks run on one of them: it has as much as any thread.
            if is_spared && name != ACKS {
                thread = thread.stack_size(STACK_BYTES_SPARED);
            }
            let thread = thread
                .spawn(move || site.guard(name, || run(&site, &stop)))
                .map_err(|e| Error::io("starting a background thread", e))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Ends the threads and waits for them.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.pool.wake_cleaner();
        self.pool.wake_ahead();
        self.acks.end();
        for thread in self.threads {
            // What panicked in there has halted the engine.
            let _ = thread.join();
        }
    }
}

fn running(stop: &AtomicBool) -> bool {
    !stop.load(Ordering::Relaxed)
}

impl Site {
    /// Runs a thread's loop. If it panics nothing is written any more, and what is said of the halt
    /// names the thread: what it was about to do is not done.
    fn guard(&self, name: &str, run: impl FnOnce()) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(run)) else { return };
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        let why = format!("the thread {name} panicked: {}", words.unwrap_or("it did not say why"));
        halt(&self.pool, &self.checkpointer, &why);
        if name == ACKS {
            self.acks.give_up();
        }
    }

    /// That the log can have no other file is no reason to halt: it goes on with those that it has.
    fn bear(&self, result: Result<bool, WorkerError>) -> bool {
        match result {
            Ok(more) => more,
            Err(WorkerError::Redo(e)) if e.is_lack_of_space() => false,
            Err(e) => {
                halt(&self.pool, &self.checkpointer, &e.to_string());
                false
            }
        }
    }
}

fn decide_loop(site: &Site, stop: &AtomicBool) {
    let mut next_tick = site.clock.now_micros();
    let mut next_early = next_tick;
    while running(stop) {
        let now = site.clock.now_micros();
        let is_regular = now >= next_tick;
        if is_regular || (now >= next_early && site.checkpointer.is_due()) {
            site.checkpointer.tick();
            let from = if is_regular { next_tick } else { now };
            next_tick = (from + TICK_MICROS).max(now);
            next_early = now + TICK_MICROS_MIN;
        }
        site.checkpointer.admit();
        site.clock.sleep_micros(ADMIT_MICROS);
    }
}

/// Ends when [`Acks::end`] says so.
fn acks_loop(site: &Site, _stop: &AtomicBool) {
    site.acks.serve(&site.log, &|e| halt(&site.pool, &site.checkpointer, &e.to_string()));
}

/// Applies the pending redo that no thread asks for, so that memory and log are free again soon.
fn redo_loop(site: &Site, stop: &AtomicBool) {
    let begin = site.clock.now_micros() + REDO_AFTER_MICROS;
    while running(stop) && site.clock.now_micros() < begin && !site.pool.is_much_pending() {
        site.clock.sleep_micros(5_000);
    }
    while running(stop) && site.bear(site.pool.apply_pending(REDO_PAGES).map_err(Into::into)) {}
}

/// Reads what scans come to next.
fn ahead_loop(site: &Site, stop: &AtomicBool) {
    while running(stop) {
        site.pool.step_ahead(AHEAD_LOOK);
    }
}

/// Reads in what was in memory before; ends when that is done.
fn warm_loop(site: &Site, stop: &AtomicBool) {
    while running(stop)
        && let Step::Again { pause_micros } = site.warm.step()
    {
        site.clock.sleep_micros(pause_micros);
    }
}

/// Writes down what the log holds. No thread waits for it: between two stretches others get their
/// turn.
fn contents_loop(site: &Site, stop: &AtomicBool) {
    while running(stop) {
        // What is pending comes first.
        let did = site.pool.pending_pages() == 0 && site.contents.step();
        site.clock.sleep_micros(if did { 1_000 } else { 20_000 });
    }
}

/// Verifies pages on disk, little by little.
fn scrub_loop(site: &Site, stop: &AtomicBool) {
    let mut due = site.clock.now_micros();
    let mut next_look = due;
    while running(stop) {
        let now = site.clock.now_micros();
        if now >= next_look {
            crate::check_asked::answer(&site.scrub, &*site.volume, &|| running(stop));
            next_look = now + ASKED_MICROS;
        }
        if now >= due && site.pool.halted().is_none() {
            match site.scrub.step() {
                Ok(pause) => due = now + pause,
                // A page is repaired when there is room for it.
                Err(e) if e.is_disk_full() => due = now + SCRUB_FULL_MICROS,
                Err(e) => halt(&site.pool, &site.checkpointer, &e.to_string()),
            }
        }
        site.clock.sleep_micros(SCRUB_LOOK_MICROS);
    }
}

/// Makes the backups that other processes ask for, and takes a new version of the master key.
fn backup_loop(site: &Site, stop: &AtomicBool) {
    let mut next_look = site.clock.now_micros();
    let mut next_key = next_look + KEY_MICROS;
    while running(stop) {
        let now = site.clock.now_micros();
        if now >= next_look {
            crate::backup_asked::answer(&site.backup, &*site.volume, &|| running(stop));
            next_look = site.clock.now_micros() + ASKED_MICROS;
        }
        if let Some(crypt) = site.crypt.as_ref().filter(|_| now >= next_key) {
            // Where no key can be had now, the database goes on with the one that it has.
            let _ = crypt.rotate();
            next_key = now + KEY_MICROS;
        }
        site.clock.sleep_micros(BACKUP_LOOK_MICROS);
    }
}

/// Compacts the trees that other processes want compacted, and shows and changes codecs for them,
/// also in the middle of a compaction. On its own: it waits for admission.
fn compact_loop(site: &Site, stop: &AtomicBool) {
    for question in [COMPACT, CODEC] {
        forget(&*site.volume, question);
    }
    let mut next_look = site.clock.now_micros();
    let next_codec = Cell::new(next_look);
    let look_for_codecs = || {
        let now = site.clock.now_micros();
        if now >= next_codec.get() && site.pool.halted().is_none() {
            crate::codec_asked::answer(&site.codecs, &*site.volume);
            if let Err(e) = site.log.check() {
                halt(&site.pool, &site.checkpointer, &e.to_string());
            }
            next_codec.set(now + ASKED_MICROS);
        }
    };
    while running(stop) {
        look_for_codecs();
        if site.clock.now_micros() >= next_look && site.pool.halted().is_none() {
            let go_on = || {
                look_for_codecs();
                running(stop) && site.log.check().is_ok()
            };
            let done = crate::compact_asked::answer(&site.compact, &*site.volume, &go_on);
            if let (Err(e), Err(_)) = (done, site.log.check()) {
                halt(&site.pool, &site.checkpointer, &e.to_string());
            }
            next_look = site.clock.now_micros() + ASKED_MICROS;
        }
        site.clock.sleep_micros(BACKUP_LOOK_MICROS);
    }
}

fn sweep_loop(site: &Site, stop: &AtomicBool, lane: usize) {
    while running(stop) {
        let swept = site.checkpointer.sweep(lane).map(|pages| pages > 0);
        if !site.bear(swept) {
            site.clock.sleep_micros(5_000);
        }
    }
}

/// Keeps segments free, and has those written or given up that hold some.
fn segments_loop(site: &Site, stop: &AtomicBool) {
    while running(stop) {
        let now = site.clock.now_micros();
        let kept = site.bear(site.pool.step_upkeep(now).map_err(Into::into));
        let gave = site.bear(site.unused.step(now).map_err(Into::into));
        if !(kept || gave) {
            site.clock.sleep_micros(10_000);
        }
    }
}

/// Gives the blocks of free pages back to the file system.
fn holes_loop(site: &Site, stop: &AtomicBool) {
    while running(stop) {
        let now = site.clock.now_micros();
        let has_more = site.bear(site.unused.step(now).map_err(Into::into));
        site.clock.sleep_micros(pause_micros(has_more, site.clock.now_micros() - now));
    }
}

fn clean_loop(site: &Site, stop: &AtomicBool) {
    while running(stop) {
        let is_wanted = site.pool.wait_until_wanted(Duration::from_millis(50));
        site.pool.make_ready();
        if !is_wanted {
            continue;
        }
        while running(stop) && site.pool.halted().is_none() {
            let before = site.pool.residence().free;
            if site.bear(site.checkpointer.clean()) {
                break;
            }
            if site.pool.residence().free <= before {
                // Nothing could be freed just now: pages in use or on their way.
                site.clock.sleep_micros(200);
            }
        }
    }
}

/// On its own: it waits for admission, which waits for the others.
fn step_loop(site: &Site, stop: &AtomicBool) {
    let mut pause = OBSERVE_FIRST_MICROS;
    let mut next_look = site.clock.now_micros() + pause;
    while running(stop) {
        let now = site.clock.now_micros();
        // Also before the end: a database that is idle when it is closed has nothing to tell.
        if now >= next_look {
            pause = (2 * pause).min(OBSERVE_MICROS_MAX);
            next_look = now + pause;
            let seen = site.observe();
            let mut kept = site.seen.lock();
            *kept = seen.or_else(|| kept.take());
        }
        site.warm.keep_if_due();
        // What fails here has halted the log, or is tried again.
        if !site.background.long_step(STEP_ROWS).unwrap_or(false) {
            site.clock.sleep_micros(20_000);
        }
    }
}

fn log_loop(site: &Site, stop: &AtomicBool) {
    let mut lazy_due = site.clock.now_micros() + LAZY_MICROS;
    while running(stop) {
        let now = site.clock.now_micros();
        if now >= lazy_due {
            lazy_due = now + LAZY_MICROS;
            site.bear(site.log.flush(Durability::Synced).map(|()| false).map_err(Into::into));
        } else if site.log.backlog_bytes() > (1 << 20) {
            site.bear(site.log.flush(Durability::Written).map(|()| false).map_err(Into::into));
        }
        // What fails here halts the log, which the next line reports.
        let _ = site.background.short_step();
        site.bear(site.log.check().map(|()| false).map_err(Into::into));
        site.bear(site.checkpointer.record(false));
        if !site.bear(site.log.maintain().map_err(Into::into)) {
            site.clock.sleep_micros(5_000);
        }
    }
}
