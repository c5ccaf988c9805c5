//! Capacity up and down, full disks, failing disks.
use crate::support::{body, config, read_all, reopen};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;
use weir_base::Lsn;
use weir_device::{Fault, FaultyVolume, OpKind, SimVolume, Volume};
use weir_redo::{Durability, Log, RedoError, SegmentInfo};

const SMALL: u64 = 1 << 20;
const LARGE: u64 = 8 << 20;

fn file_bytes(log: &Log) -> u64 {
    log.segment_infos().iter().map(|info| info.bytes + 4096).sum()
}

/// Appends `bytes` of log, with a checkpoint that trails at `age`.
fn fill(log: &Log, starts: &mut Vec<Lsn>, bytes: u64, age: u64) {
    let until = log.end().advanced(bytes);
    let mut number = 0;
    while log.end() < until {
        number += 1;
        starts.push(log.append(&body(number, 600), |_| ()).expect("append").start);
        if number % 16 == 0 {
            log.flush(Durability::Synced).expect("flush");
            let at = starts.partition_point(|&start| log.end().bytes_since(start) > age);
            starts.drain(..at.min(starts.len() - 1));
            log.set_checkpoint(starts[0]);
            while log.maintain().expect("maintain") {}
        }
        assert!(log.end().bytes_since(log.checkpoint()) <= log.limit_bytes() + 16 * 1000);
    }
}

#[test]
fn the_age_may_reach_the_limit_within_the_capacity() {
    for (capacity, share) in [(SMALL, 80), (LARGE, 90)] {
        let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
        let log = Log::create(Arc::clone(&volume), config(capacity), Lsn(0)).expect("create");
        assert!(log.limit_bytes() > capacity / 100 * share, "{}", log.limit_bytes());
        let mut starts = vec![log.end()];
        let limit = log.limit_bytes();
        fill(&log, &mut starts, capacity * 4, limit);
        assert!(file_bytes(&log) <= capacity, "{} {capacity}", file_bytes(&log));
    }
}

#[test]
fn up_at_once_and_down_gradually() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
    let log = Log::create(Arc::clone(&volume), config(SMALL), Lsn(0)).expect("create");
    let small = log.limit_bytes();
    let mut starts = vec![log.end()];
    fill(&log, &mut starts, SMALL * 2, small);
    log.set_capacity(LARGE);
    assert!(log.limit_bytes() <= small, "no file is there for more");
    while log.maintain().expect("maintain") {}
    let large = log.limit_bytes();
    assert!(large > small * 7);
    fill(&log, &mut starts, LARGE * 2, large);
    assert!(file_bytes(&log) > LARGE / 100 * 85 && file_bytes(&log) <= LARGE);
    log.set_capacity(SMALL);
    assert!(log.limit_bytes() > large - 1000, "no writer has to stop");
    let mut before = log.limit_bytes();
    let mut laps = 0;
    while log.limit_bytes() > small {
        fill(&log, &mut starts, 64 << 10, log.limit_bytes().saturating_sub(64 << 10));
        assert!(log.limit_bytes() <= before);
        before = log.limit_bytes();
        laps += 1;
    }
    assert!(laps > 50, "{laps}");
    fill(&log, &mut starts, LARGE, small);
    assert!(file_bytes(&log) <= SMALL, "{}", file_bytes(&log));
    log.flush(Durability::Synced).expect("flush");
    let (groups, _) = read_all(&*volume, log.checkpoint()).expect("scan");
    assert!(groups.iter().map(|(span, _)| span.start).eq(starts.iter().copied()));
}

#[test]
fn a_full_disk_leaves_the_log_going_with_what_it_has() {
    let volume = SimVolume::with_capacity(1, SMALL);
    let log = Log::create(Arc::new(volume.clone()), config(SMALL), Lsn(0)).expect("create");
    let mut starts = vec![log.end()];
    let small = log.limit_bytes();
    fill(&log, &mut starts, SMALL * 2, small);
    volume.set_capacity(Some(SMALL + (500 << 10)));
    log.set_capacity(LARGE);
    let mut full = None;
    for number in 0.. {
        log.append(&body(number, 600), |_| ()).expect("append");
        log.flush(Durability::Synced).expect("flush");
        match log.maintain() {
            Ok(_) => {}
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    let Some(RedoError::Io { source, file, .. }) = full else { panic!("{full:?}") };
    assert_eq!(source.kind(), ErrorKind::StorageFull);
    assert!(file.starts_with("redo-"));
    assert!(log.limit_bytes() < SMALL + (500 << 10), "{}", log.limit_bytes());
    // The checkpoint keeps the age below the limit that there is now; writing goes on.
    for number in 0..4000 {
        let span = log.append(&body(number, 600), |_| ()).expect("append");
        log.wait(span.end, Durability::Synced).expect("wait");
        if log.end().bytes_since(log.checkpoint()) > log.limit_bytes() / 2 {
            log.set_checkpoint(log.end());
        }
        let _ = log.maintain();
    }
    // Space is back.
    volume.set_capacity(None);
    starts = vec![log.end()];
    log.set_checkpoint(starts[0]);
    while log.maintain().expect("maintain") {}
    let mut rest = LARGE * 2;
    while rest > 0 {
        let age = log.limit_bytes();
        fill(&log, &mut starts, 64 << 10, age.saturating_sub(64 << 10));
        rest -= 64 << 10;
    }
    assert!(log.limit_bytes() > LARGE / 100 * 85);
}

/// As a database with a full disk: no age beyond the share of the limit (in percent) that holds at
/// the moment, and failed upkeep is borne. Gives the least limit seen.
fn turn_over(log: &Log, starts: &mut Vec<Lsn>, bytes: u64, share: u64) -> u64 {
    let until = log.end().advanced(bytes);
    let mut least = u64::MAX;
    while log.end() < until {
        starts.push(log.append(&body(starts.len() as u64, 600), |_| ()).expect("append").start);
        log.flush(Durability::Written).expect("the log goes on");
        let age = log.limit_bytes() / 100 * share;
        if log.end().bytes_since(starts[0]) > age {
            log.flush(Durability::Synced).expect("flush");
            let at = starts.partition_point(|&start| log.end().bytes_since(start) > age);
            starts.drain(..at.min(starts.len() - 1));
            log.set_checkpoint(starts[0]);
        }
        while let Ok(true) = log.maintain() {}
        log.check().expect("not halted");
        least = least.min(log.limit_bytes());
    }
    least
}

#[test]
fn shrunk_while_no_file_can_be_created() {
    const MIN: u64 = 640 << 10;
    let fresh = Log::create(Arc::new(SimVolume::new(1)), config(MIN), Lsn(0)).expect("create");
    let small = fresh.limit_bytes();
    for (share, fault) in [(90, Fault::Full), (1, Fault::Full), (40, Fault::Broken)] {
        let volume = FaultyVolume::new(Arc::new(SimVolume::new(1)));
        let log = Log::create(Arc::new(volume.clone()), config(16 << 20), Lsn(0)).expect("create");
        let mut starts = vec![log.end()];
        turn_over(&log, &mut starts, 20 << 20, share);
        // What a removed file leaves is of no use to the log: the file system gives it to others at
        // once.
        volume.fail_all("redo-", OpKind::Create, fault);
        log.set_capacity(MIN);
        let least = turn_over(&log, &mut starts, 40 << 20, share.max(20));
        assert_eq!(least, small, "{share} %: the large files have room for all that was asked for");
        volume.clear();
        turn_over(&log, &mut starts, 4 << 20, 90);
        assert_eq!(log.limit_bytes(), small);
        assert!(file_bytes(&log) <= MIN, "{share} %: {}", file_bytes(&log));
        log.flush(Durability::Synced).expect("flush");
        let (groups, _) = read_all(&volume, log.checkpoint()).expect("scan");
        assert!(groups.iter().map(|(span, _)| span.start).eq(starts.iter().copied()));
    }
}

#[test]
fn room_is_found_again_without_writers() {
    let volume = FaultyVolume::new(Arc::new(SimVolume::new(1)));
    let log = Log::create(Arc::new(volume.clone()), config(SMALL), Lsn(0)).expect("create");
    let mut starts = vec![log.end()];
    let small = log.limit_bytes();
    volume.full_disk(true);
    log.set_capacity(LARGE);
    turn_over(&log, &mut starts, SMALL, 50);
    assert!(log.limit_bytes() <= small, "{}", log.limit_bytes());
    let files = volume.list().expect("list").len();
    volume.full_disk(false);
    for _ in 0..1000 {
        while log.maintain().expect("maintain") {}
    }
    let now = volume.list().expect("list").len();
    assert_eq!(now, files + 1, "one proves that there is room");
    assert!(log.limit_bytes() > small * 7, "{}", log.limit_bytes());
}

/// Appends `bytes` in groups of about 600, with maintenance until there is nothing to do after
/// each, and returns the most that one step of it wrote.
fn most_by_step(volume: &dyn Volume, log: &Log, starts: &mut Vec<Lsn>, bytes: u64) -> u64 {
    let (until, mut most) = (log.end().advanced(bytes), 0);
    while log.end() < until {
        let number = starts.len() as u64 + 1;
        starts.push(log.append(&body(number, 600), |_| ()).expect("append").start);
        log.flush(Durability::Synced).expect("flush");
        let mut before = volume.io_stats().bytes_written;
        while log.maintain().expect("maintain") {
            let now = volume.io_stats().bytes_written;
            most = most.max(now - before);
            before = now;
        }
    }
    most
}

/// A small log, half filled, that may now have so much.
fn growing(capacity: u64) -> (Arc<dyn Volume>, Log, Vec<Lsn>) {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
    let log = Log::create(Arc::clone(&volume), config(SMALL), Lsn(0)).expect("create");
    let mut starts = Vec::new();
    most_by_step(&*volume, &log, &mut starts, SMALL / 2);
    log.set_capacity(capacity);
    (volume, log, starts)
}

fn listed(volume: &dyn Volume) -> usize {
    volume.list().expect("list").len()
}

/// Fills the log until so many files have been made, ever larger ones, and another is half done.
fn until_one_is_on_its_way(volume: &dyn Volume, log: &Log, starts: &mut Vec<Lsn>, created: u64) {
    while log.stats().segments_created.get() < created
        || listed(volume) == log.segment_infos().len()
    {
        most_by_step(volume, log, starts, 10_000);
    }
}

#[test]
fn files_of_a_log_that_grows_are_made_a_little_at_a_time() {
    let (volume, log, mut starts) = growing(16 * LARGE);
    let most = most_by_step(&*volume, &log, &mut starts, 2 * LARGE);
    assert_eq!(most, 64 << 10, "one piece, however large the file");
    assert_eq!(log.stats().segments_late.get(), 0, "ready in time");
    let largest = log.segment_infos().iter().map(|info| info.bytes).max();
    assert!(largest > Some(3 << 20), "{largest:?}: twice as large each time");
    let (groups, _) = read_all(&*volume, log.checkpoint()).expect("scan");
    assert!(groups.iter().map(|(span, _)| span.start).eq(starts.iter().copied()));
}

#[test]
fn a_log_is_made_smaller_while_a_file_is_on_its_way() {
    let (volume, log, mut starts) = growing(64 * LARGE);
    until_one_is_on_its_way(&*volume, &log, &mut starts, 34);
    log.set_capacity(SMALL);
    log.set_checkpoint(log.end());
    // What is still allowed sinks with each byte of redo.
    for _ in 0..200 {
        most_by_step(&*volume, &log, &mut starts, SMALL / 4);
        log.set_checkpoint(log.end());
    }
    assert_eq!(listed(&*volume), log.segment_infos().len(), "none is on its way");
    assert!(file_bytes(&log) <= SMALL, "{}", file_bytes(&log));
}

#[test]
fn a_file_that_was_cut_off_on_its_way_is_used_like_others() {
    let (volume, log, mut starts) = growing(16 * LARGE);
    until_one_is_on_its_way(&*volume, &log, &mut starts, 36);
    let (checkpoint, files) = (log.checkpoint(), listed(&*volume));
    drop(log);
    let log = reopen(Arc::clone(&volume), 16 * LARGE, checkpoint).expect("reopen");
    assert_eq!(log.segment_infos().len(), files, "it is one of them");
    most_by_step(&*volume, &log, &mut starts, LARGE);
    let (groups, _) = read_all(&*volume, log.checkpoint()).expect("scan");
    assert!(groups.iter().map(|(span, _)| span.start).eq(starts.iter().copied()));
}

#[test]
fn a_file_that_cannot_be_filled_is_given_up_and_tried_again() {
    let volume = FaultyVolume::new(Arc::new(SimVolume::new(1)));
    let log = Log::create(Arc::new(volume.clone()), config(SMALL), Lsn(0)).expect("create");
    let mut starts = Vec::new();
    let small = log.limit_bytes();
    most_by_step(&volume, &log, &mut starts, SMALL / 4);
    let files = volume.list().expect("list");
    log.set_capacity(LARGE);
    volume.fail_all("redo-32", OpKind::Write, Fault::Broken);
    for number in 0..2_000 {
        starts.push(log.append(&body(number, 600), |_| ()).expect("append").start);
        log.flush(Durability::Synced).expect("flush");
        let told = log.maintain();
        assert!(told.as_ref().map_or_else(RedoError::is_lack_of_space, |_| true), "{told:?}");
        if log.end().bytes_since(log.checkpoint()) > small / 2 {
            log.set_checkpoint(starts[starts.len() - 50]);
            starts.drain(..starts.len() - 50);
        }
    }
    assert!(log.limit_bytes() <= small, "what cannot be had does not count");
    assert_eq!(volume.list().expect("list"), files, "nothing of it is left");
    volume.clear();
    for _ in 0..100 {
        while log.maintain().expect("maintain") {}
    }
    assert!(log.limit_bytes() > small * 7, "{}", log.limit_bytes());
    let (groups, _) = read_all(&volume, log.checkpoint()).expect("scan");
    assert!(groups.iter().map(|(span, _)| span.start).eq(starts.iter().copied()));
}

#[test]
fn a_failed_write_or_sync_halts() {
    for (durability, op) in [
        (Durability::Synced, OpKind::DurableWrite),
        (Durability::Written, OpKind::Write),
        (Durability::Synced, OpKind::Sync),
    ] {
        let inner = SimVolume::new(1);
        let faulty = FaultyVolume::new(Arc::new(inner.clone()));
        let log = Log::create(Arc::new(faulty.clone()), config(SMALL), Lsn(0)).expect("create");
        let from = log.end();
        let first = log.append(&body(1, 100), |_| ()).expect("append");
        log.wait(first.end, Durability::Synced).expect("wait");
        if op == OpKind::Sync {
            let second = log.append(&body(2, 100), |_| ()).expect("append");
            log.wait(second.end, Durability::Written).expect("wait");
        }
        faulty.fail_all("redo-", op, Fault::Broken);
        let durable = log.durable();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    let span = log.append(&body(thread, 100), |_| ());
                    let halted = span.and_then(|span| log.wait(span.end, durability));
                    assert!(matches!(halted, Err(RedoError::Halted { .. })), "{op:?} {halted:?}");
                });
            }
        });
        faulty.clear();
        let after = log.append(&body(9, 100), |_| ());
        let Err(RedoError::Halted { cause }) = after else { panic!("{after:?}") };
        assert!(cause.contains("redo-00"), "{cause}");
        assert!(log.flush(Durability::Synced).is_err() && log.maintain().is_err());
        // Also what had been written: the sync that failed may have lost it.
        assert!(log.wait(first.end, Durability::Written).is_err());
        log.synced_by_another(log.on_device());
        assert_eq!(log.durable(), durable);
        let (groups, _) = read_all(&inner, from).expect("scan");
        assert_eq!(groups[0].0, first);
        reopen(Arc::new(inner.clone()), SMALL, from).expect("reopen");
    }
}

#[test]
fn all_files_go_round_though_the_age_is_low() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
    let log = Log::create(volume, config(SMALL), Lsn(0)).expect("create");
    let mut starts = vec![log.end()];
    let age = log.limit_bytes() / 5 * 2;
    fill(&log, &mut starts, SMALL, age);
    let mut used = BTreeSet::new();
    for _ in 0..SMALL / (16 << 10) {
        fill(&log, &mut starts, 16 << 10, age);
        let placed = log.segment_infos().into_iter().filter(|info| info.sequence.is_some());
        used.extend(placed.map(|info| info.file));
    }
    assert_eq!(used.len(), log.segment_infos().len(), "a pass over the log uses each");
}

#[test]
fn what_stat_shows() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
    let log = Log::create(volume, config(SMALL), Lsn(0)).expect("create");
    let infos = log.segment_infos();
    assert_eq!(infos.len(), 32, "all files are there from the beginning");
    let placed = infos.iter().filter(|info| info.sequence.is_some()).count();
    assert_eq!(placed, 3, "one in use and two ahead");
    let first =
        SegmentInfo { file: "redo-00".into(), sequence: Some(1), start: Lsn(0), bytes: 28672 };
    assert_eq!(infos[0], first);
    assert_eq!(log.capacity_bytes(), SMALL);
}
