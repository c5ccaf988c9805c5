//! Power losses at every write of a workload, at every write of the resume after it, and in
//! generations: what is found is always a prefix that holds all that was acknowledged.
use crate::support::{DB, body, config, read_all};
use fastrand::Rng;
use std::sync::Arc;
use weir_base::Lsn;
use weir_device::{CrashMode, SimVolume, Volume};
use weir_redo::{Durability, Log, RedoError, Span};

const MODES: [CrashMode; 3] = [CrashMode::LoseAll, CrashMode::KeepAll, CrashMode::Random];
const CAPACITY: u64 = 1 << 20;

/// What must be found again.
#[derive(Clone)]
struct Model {
    groups: Vec<(Span, Vec<u8>)>,
    acknowledged: Lsn,
    checkpoint: Lsn,
    next: u64,
}

impl Model {
    fn new(log: &Log) -> Model {
        let (acknowledged, checkpoint) = (log.end(), log.end());
        Model { groups: Vec::new(), acknowledged, checkpoint, next: 0 }
    }

    /// Some operations with random sizes and durabilities, until done or the disk is gone.
    fn work(&mut self, log: &Log, rng: &mut Rng, operations: usize) -> Result<(), RedoError> {
        for _ in 0..operations {
            let len = match rng.u8(..) {
                0..220 => rng.usize(8..300),
                220..250 => rng.usize(300..5000),
                _ => rng.usize(5000..90_000),
            };
            let bytes = body(self.next, len);
            self.next += 1;
            // The group counts from its reservation on: it may be written before `append` returns.
            let groups = &mut self.groups;
            let span = log.append(&bytes, |span| groups.push((span, bytes.clone())))?;
            match rng.u8(..10) {
                0..4 => {
                    log.wait(span.end, Durability::Synced)?;
                    self.acknowledged = span.end;
                }
                4..6 => log.wait(span.end, Durability::Written)?,
                _ => {}
            }
            if rng.u8(..10) == 0 || log.end().bytes_since(self.checkpoint) > log.limit_bytes() / 2 {
                log.flush(Durability::Synced)?;
                self.acknowledged = log.durable();
                let needed = self.groups.iter().filter(|(span, _)| span.start >= self.checkpoint);
                let starts: Vec<Lsn> = needed.map(|(span, _)| span.start).collect();
                let to = starts[rng.usize(starts.len() / 2..starts.len())];
                self.checkpoint = if rng.u8(..4) == 0 { log.end() } else { to };
                log.set_checkpoint(self.checkpoint);
            }
            if rng.u8(..5) == 0 {
                log.maintain()?;
            }
            if rng.u8(..40) == 0 {
                log.set_capacity([CAPACITY, CAPACITY * 2, 700 << 10][rng.usize(..3)]);
            }
        }
        Ok(())
    }

    /// Compares what a scan finds with what must be there, and takes it over.
    fn check(&mut self, volume: &dyn Volume) -> weir_redo::ScanEnd {
        let (found, end) = match read_all(volume, self.checkpoint) {
            Ok(found) => found,
            Err(error) => panic!("scan after a crash: {error}"),
        };
        assert!(end.end >= self.acknowledged, "lost: {} < {}", end.end, self.acknowledged);
        self.groups.retain(|(span, _)| span.start >= self.checkpoint);
        assert!(found.len() <= self.groups.len(), "more found than was appended");
        assert!(found[..] == self.groups[..found.len()], "other groups found than were appended");
        self.groups.truncate(found.len());
        end
    }
}

fn fresh(seed: u64) -> (SimVolume, Model) {
    let volume = SimVolume::new(seed);
    let log = Log::create(Arc::new(volume.clone()), config(CAPACITY), Lsn(0)).expect("create");
    let model = Model::new(&log);
    (volume, model)
}

fn resume(volume: &SimVolume, end: weir_redo::ScanEnd) -> Result<Log, RedoError> {
    Log::resume(Arc::new(volume.clone()), config(CAPACITY), end)
}

/// Runs the workload from an empty log until the crash; gives the disk and what must be on it.
fn run_until(seed: u64, steps: Option<u64>) -> (SimVolume, Model) {
    let (volume, mut model) = fresh(seed);
    let end = model.check(&volume);
    let log = resume(&volume, end).expect("resume");
    volume.set_crash_after(steps);
    let done = model.work(&log, &mut Rng::with_seed(seed), 60);
    // An append whose write of a full buffer failed says so at the next call.
    assert_eq!(done.and_then(|()| log.check()).is_err(), volume.has_crashed());
    (volume, model)
}

fn steps_of(seed: u64) -> u64 {
    let (empty, _) = fresh(seed);
    let (volume, _) = run_until(seed, None);
    volume.writes_so_far() - empty.writes_so_far()
}

#[test]
fn a_crash_at_every_write_leaves_a_prefix_with_all_that_was_acknowledged() {
    for seed in 0..4 {
        for step in 0..steps_of(seed) {
            let (volume, model) = run_until(seed, Some(step));
            for mode in MODES {
                let after = volume.crash_with(mode, step);
                let mut model = model.clone();
                let end = model.check(&after);
                let log = resume(&after, end).expect("resume");
                let mut rng = Rng::with_seed(step);
                model.work(&log, &mut rng, 5).expect("work after the resume");
                model.check(&after);
            }
        }
    }
}

/// Crash, crash at every write of the resume, work on, crash, and so on.
#[test]
fn generations_of_crashes_with_crashes_while_resuming() {
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let (mut volume, mut model) = run_until(seed, Some(rng.u64(5..120)));
        for _ in 0..6 {
            volume = volume.crash_with(MODES[rng.usize(..3)], rng.u64(..));
            // The resume itself is cut off, at most some times.
            for _ in 0..rng.usize(..4) {
                let end = model.check(&volume);
                volume.set_crash_after(Some(rng.u64(..8)));
                let _ = resume(&volume, end);
                volume = volume.crash_with(MODES[rng.usize(..3)], rng.u64(..));
            }
            let end = model.check(&volume);
            let log = resume(&volume, end).expect("resume");
            model.acknowledged = log.durable();
            if rng.u8(..3) == 0 {
                // Only the process dies: what was written and not synced is seen by the next one.
                model.work(&log, &mut rng, 15).expect("work");
                volume = volume.fork();
                let end = model.check(&volume);
                model.acknowledged = resume(&volume, end).expect("resume").durable();
                continue;
            }
            volume.set_crash_after(Some(rng.u64(..60)));
            let done = model.work(&log, &mut rng, 40);
            assert_eq!(done.and_then(|()| log.check()).is_err(), volume.has_crashed());
        }
    }
}

/// Of a group larger than the buffer, the first parts are durable when the rest is not written yet.
/// The resume rolls them back, and may itself be cut off at any point.
#[test]
fn a_large_group_cut_off_is_not_applied() {
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let (volume, mut model) = fresh(seed);
        let end = model.check(&volume);
        let log = resume(&volume, end).expect("resume");
        let bytes = body(1, rng.usize(8..3000));
        let span = log.append(&bytes, |_| ()).expect("append");
        log.wait(span.end, Durability::Synced).expect("wait");
        model.groups.push((span, bytes));
        model.acknowledged = span.end;
        volume.set_crash_after(Some(rng.u64(2..12)));
        let cut_off = log.append(&body(2, 300_000), |_| ());
        assert!(cut_off.and_then(|span| log.wait(span.end, Durability::Synced)).is_err());
        let mut volume = volume.crash(seed);
        for _ in 0..4 {
            let end = model.check(&volume);
            assert_eq!(end.end, span.end);
            volume.set_crash_after(Some(rng.u64(..6)));
            let _ = resume(&volume, end);
            volume = volume.crash(rng.u64(..));
        }
        let end = model.check(&volume);
        resume(&volume, end).expect("resume");
        let (empty, end) = read_all(&volume, span.end).expect("scan");
        assert!(empty.is_empty() && end.end == span.end);
    }
}

/// Several threads commit while the power fails: every acknowledged group is found, and of each
/// thread's groups the first ones.
#[test]
fn threads_lose_nothing_that_was_acknowledged() {
    for seed in 0..30 {
        let (volume, model) = fresh(seed);
        let end = read_all(&volume, model.checkpoint).expect("scan").1;
        let log = resume(&volume, end).expect("resume");
        volume.set_crash_after(Some(20 + seed));
        let acknowledged: Vec<u64> = std::thread::scope(|scope| {
            let commit = |thread: u64| {
                for i in 0.. {
                    let bytes = body(thread * 1_000_000 + i, 20 + (i as usize * 77) % 600);
                    let done = log.append(&bytes, |_| ());
                    if done.and_then(|span| log.wait(span.end, Durability::Synced)).is_err() {
                        return i;
                    }
                }
                0
            };
            let threads: Vec<_> =
                (0..4).map(|thread| scope.spawn(move || commit(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let after = volume.crash(seed);
        let (groups, _) = read_all(&after, model.checkpoint).expect("scan");
        for (thread, &count) in acknowledged.iter().enumerate() {
            let numbers = groups.iter().map(|(_, body)| crate::support::number_of(body));
            let own = numbers.filter(|number| number / 1_000_000 == thread as u64);
            let own: Vec<u64> = own.map(|number| number % 1_000_000).collect();
            assert!(own.iter().copied().eq(0..own.len() as u64) && own.len() as u64 >= count);
        }
    }
}

/// A crash while the log is created leaves files that can be removed, and a log that works after.
#[test]
fn a_crash_while_creating() {
    let (empty, _) = fresh(9);
    for step in 0..empty.writes_so_far() {
        let volume = SimVolume::new(9);
        volume.set_crash_after(Some(step));
        let cut_off = Log::create(Arc::new(volume.clone()), config(CAPACITY), Lsn(0));
        assert!(cut_off.is_err());
        let after = volume.crash(step);
        Log::remove_all(&after).expect("remove");
        Log::create(Arc::new(after.clone()), config(CAPACITY), Lsn(0)).expect("create");
        assert!(
            weir_redo::scan(&after, DB, Lsn(12), Default::default(), |_, _| {
                std::ops::ControlFlow::Continue(())
            })
            .is_ok()
        );
    }
}
