//! Runs threads on an open store for some seconds and looks at what they have done.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam_utils::CachePadded;

use crate::engine::{Engine, Worker};
use crate::ledger::Notes;
use crate::operate::{Operator, Task};
use crate::plan::Shape;

/// Set by Ctrl-C: whatever runs comes to its end.
pub static STOP: AtomicBool = AtomicBool::new(false);

pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// What the threads of a cell share.
pub struct Shared {
    stop: AtomicBool,
    failed: AtomicBool,
    start: Barrier,
    /// What each thread has done; written by it alone.
    pub done: Vec<CachePadded<AtomicU64>>,
}

impl Shared {
    pub fn new(threads: usize) -> Shared {
        Shared {
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            start: Barrier::new(threads + 1),
            done: (0..threads).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
        }
    }

    pub fn total(&self) -> u64 {
        self.done.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed) || stopped()
    }
}

/// What was seen.
pub struct Driven {
    pub per_second: Vec<f64>,
    pub mean: f64,
    /// All that was done, the warm-up included.
    pub operations: u64,
    /// What each thread has written.
    pub notes: Vec<Notes>,
}

/// Runs the task with so many threads.
pub fn drive(store: &dyn Engine, task: &Task, threads: usize, shape: &Shape) -> Result<Driven> {
    let shared = Shared::new(threads);
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 0..threads {
            let shared = &shared;
            workers.push(scope.spawn(move || one_thread(store, task, number, threads, shared)));
        }
        let syncer = syncs(store, task).then(|| {
            let shared = &shared;
            scope.spawn(move || sync_every_second(store, shared))
        });
        shared.start.wait();
        let (per_second, mean) = sample(&shared, shape);
        shared.stop.store(true, Ordering::Relaxed);
        let mut notes = Vec::new();
        for worker in workers {
            notes.push(worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??);
        }
        if let Some(syncer) = syncer {
            syncer.join().map_err(|_| anyhow::anyhow!("the syncer panicked"))??;
        }
        Ok(Driven { per_second, mean, operations: shared.total(), notes })
    })
}

fn one_thread(
    store: &dyn Engine,
    task: &Task,
    number: usize,
    threads: usize,
    shared: &Shared,
) -> Result<Notes> {
    let mut operator = Operator::new(task, number, threads);
    let mut ready = false;
    let result = store.with_worker(&mut |worker: &mut dyn Worker| {
        ready = true;
        shared.start.wait();
        operator.run(worker, shared)
    });
    if !ready {
        shared.start.wait();
    }
    if result.is_err() {
        shared.failed.store(true, Ordering::Relaxed);
    }
    result.map(|()| operator.notes)
}

fn syncs(store: &dyn Engine, task: &Task) -> bool {
    store.sync_every_second() && task.workload.writes()
}

/// For stores whose lazy commits no thread of theirs makes durable.
fn sync_every_second(store: &dyn Engine, shared: &Shared) -> Result<()> {
    let mut next = Instant::now() + Duration::from_secs(1);
    while !shared.is_over() {
        if Instant::now() >= next {
            store.sync()?;
            next = Instant::now() + Duration::from_secs(1);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Reads the counters at each full second; the warm-up is thrown away. Returns the rate of each
/// second, and of all together over the time that really passed.
fn sample(shared: &Shared, shape: &Shape) -> (Vec<f64>, f64) {
    let pause = |from: Instant, seconds: f64| {
        let due = from + Duration::from_secs_f64(seconds);
        while Instant::now() < due && !shared.is_over() {
            std::thread::sleep((due - Instant::now()).min(Duration::from_millis(50)));
        }
        !shared.is_over()
    };
    let mut per_second = Vec::new();
    if !pause(Instant::now(), shape.warmup_seconds) {
        return (per_second, 0.0);
    }
    let start = Instant::now();
    let first = shared.total();
    let (mut before, mut at) = (first, start);
    let looks = (shape.seconds / shape.look_seconds()).round().max(1.0) as u32;
    for look in 1..=looks {
        if !pause(start, f64::from(look) * shape.look_seconds()) {
            break;
        }
        let (count, now) = (shared.total(), Instant::now());
        // By the time that really passed: on a busy machine the sampler itself may wake late.
        per_second.push((count - before) as f64 / now.duration_since(at).as_secs_f64());
        (before, at) = (count, now);
    }
    let passed = at.duration_since(start).as_secs_f64();
    let mean = if passed > 0.0 { (before - first) as f64 / passed } else { 0.0 };
    (per_second, mean)
}

/// Looks once a second at a counter until `work` has returned; its result, the rates of all whole
/// seconds, and how long it took. `look` is called at each look.
pub fn watch<T: Send>(
    counter: &AtomicU64,
    look: &mut dyn FnMut(),
    work: impl FnOnce() -> T + Send,
) -> (T, Vec<f64>, f64) {
    let over = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work();
            let took = start.elapsed().as_secs_f64();
            over.store(true, Ordering::Relaxed);
            (result, took)
        });
        let (mut per_second, mut before, mut at) = (Vec::new(), 0, start);
        while !over.load(Ordering::Relaxed) {
            let due = start + Duration::from_secs(per_second.len() as u64 + 1);
            let now = Instant::now();
            if now < due {
                std::thread::sleep((due - now).min(Duration::from_millis(5)));
                continue;
            }
            look();
            let count = counter.load(Ordering::Relaxed);
            per_second.push((count - before) as f64 / now.duration_since(at).as_secs_f64());
            (before, at) = (count, now);
        }
        match worker.join() {
            Ok((result, took)) => (result, per_second, took),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
