//! Whether all goes on. Time is counted in looks, each of which takes the disk and the processor
//! itself: where the machine is slow, so is this clock.
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use weir::Db;

use super::plan::Plan;

/// A look comes after so long, and what it itself takes.
const LOOK: Duration = Duration::from_millis(100);
/// So many looks without a commit are too many,
const LOOKS_QUIET: u64 = 100;
/// so many where a disk is imitated that is slow, or does nothing for a while,
const LOOKS_QUIET_SLOW: u64 = 250;
/// and so many in which one thread has not done what it was about to do.
const LOOKS_ACTOR: u64 = 900;
/// An age above its limit is seen by so many looks in a row: the limit and the age are not asked
/// for at the same moment.
const LOOKS_AGE: u64 = 5;

/// A thread that is watched.
#[derive(Default)]
pub(super) struct Actor {
    steps: AtomicU64,
    doing: Mutex<String>,
    has_ended: AtomicBool,
}

impl Actor {
    pub(super) fn begins(&self, what: impl Into<String>) {
        *self.doing.lock().expect("held") = what.into();
        self.steps.fetch_add(1, SeqCst);
    }

    pub(super) fn ends(&self) {
        self.has_ended.store(true, SeqCst);
    }

    fn doing(&self) -> String {
        self.doing.lock().expect("held").clone()
    }
}

/// What all threads of a round know.
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    pub(super) commits: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) disk_is_full: AtomicBool,
    pub(super) actors: Vec<Actor>,
}

impl Shared {
    pub(super) fn new(actors: usize) -> Shared {
        Shared {
            stop: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            disk_is_full: AtomicBool::new(false),
            actors: (0..actors).map(|_| Actor::default()).collect(),
        }
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(SeqCst)
    }

    /// Sleeps, but not beyond the round's end.
    pub(super) fn pause(&self, millis: u64) {
        let until = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < until && !self.stops() {
            std::thread::sleep(Duration::from_millis(millis.clamp(1, 20)));
        }
    }
}

/// A round has failed: says why, and ends the process, whatever its threads do.
pub(super) fn fail(plan: &Plan, why: &str) -> ! {
    eprintln!("seed {}, round {}: {why}", plan.seed, plan.number);
    while std::env::var_os("WEIR_SOAK_STAY").is_some() {
        std::thread::sleep(Duration::from_secs(1));
    }
    std::process::exit(3);
}

pub(super) struct Watch<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) db: &'a Db,
    pub(super) dir: &'a Path,
}

/// What changed last, and how many looks ago.
#[derive(Clone, Copy, Default)]
struct Quiet {
    last: u64,
    looks: u64,
}

impl Quiet {
    fn look(&mut self, now: u64) {
        self.looks = if now == self.last { self.looks + 1 } else { 0 };
        self.last = now;
    }
}

impl Watch<'_> {
    /// Until all threads have ended, which they are to do after the round's time.
    pub(super) fn run(&self) {
        let began = Instant::now();
        let mut probe = File::create(self.dir.join("probe")).expect("made");
        let (mut commits, mut ages) = (Quiet::default(), 0);
        let mut actors = vec![Quiet::default(); self.shared.actors.len()];
        let most = if self.plan.disk.is_some() { LOOKS_QUIET_SLOW } else { LOOKS_QUIET };
        while !self.shared.actors.iter().all(|actor| actor.has_ended.load(SeqCst)) {
            std::thread::sleep(LOOK);
            probe.rewind().and_then(|()| probe.write_all(&[1; 4096])).expect("written");
            probe.sync_data().expect("synced");
            if began.elapsed() > Duration::from_secs(self.plan.seconds) {
                self.shared.stop.store(true, SeqCst);
            }
            commits.look(self.shared.commits.load(SeqCst));
            // Writers may be refused then, and the last commits may be done.
            if self.shared.disk_is_full.load(SeqCst) || self.shared.stops() {
                commits.looks = 0;
            }
            if commits.looks > most {
                self.fail(&format!("no commit for {most} looks"));
            }
            for (quiet, actor) in actors.iter_mut().zip(&self.shared.actors) {
                quiet.look(actor.steps.load(SeqCst));
                if quiet.looks > LOOKS_ACTOR && !actor.has_ended.load(SeqCst) {
                    self.fail(&format!("a thread does not go on: {}", actor.doing()));
                }
            }
            ages = if self.is_too_old() { ages + 1 } else { 0 };
            if ages >= LOOKS_AGE {
                self.fail("the checkpoint is older than it may be");
            }
        }
    }

    fn is_too_old(&self) -> bool {
        let stats = self.db.stats();
        if let Some(why) = stats.halted.filter(|_| !self.shared.stops()) {
            self.fail(&format!("halted: {why}"));
        }
        stats.checkpoint_age_bytes > stats.checkpoint_age_limit_bytes
    }

    fn fail(&self, why: &str) -> ! {
        for (number, actor) in self.shared.actors.iter().enumerate() {
            eprintln!("thread {number}: {}", actor.doing());
        }
        eprintln!("{:#?}", self.db.stats());
        fail(self.plan, why)
    }
}
