//! Appending, waiting, reading back; laps around the files; many threads.
use crate::support::{DB, body, config, number_of, read_all, reopen};
use std::ops::ControlFlow;
use std::sync::Arc;
use weir_base::Lsn;
use weir_device::{Fault, FaultyVolume, OpKind, SimVolume, Volume};
use weir_redo::{Durability, Log, RedoError, ScanOptions, Span, scan, scan_chunks};

#[test]
fn what_is_appended_is_read_back() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
    let log = Log::create(Arc::clone(&volume), config(1 << 20), Lsn(5000)).expect("create");
    let from = log.end();
    assert_eq!(from, Lsn(8192 + 12));
    let mut spans = Vec::new();
    for (i, len) in [8, 100, 499, 500, 501, 4000, 70_000, 9, 200_000].into_iter().enumerate() {
        let mut told = None;
        let reserved = |span: Span| {
            assert!(log.published() <= span.start && log.end() == span.end, "REDO-9");
            told = Some(span);
        };
        let span = log.append(&body(i as u64, len), reserved).expect("append");
        assert_eq!(told, Some(span));
        spans.push((span, body(i as u64, len)));
    }
    log.wait(log.end(), Durability::Synced).expect("wait");
    assert_eq!((log.durable(), log.published()), (log.end(), log.end()));
    let (groups, end) = read_all(&*volume, from).expect("scan");
    assert!(groups == spans);
    assert_eq!((end.end, end.groups), (log.end(), 9));
    let (later, _) = read_all(&*volume, spans[5].0.start).expect("scan");
    assert!(later == spans[5..]);
    let (none, end) = read_all(&*volume, log.end()).expect("scan");
    assert!(none.is_empty() && end.end == log.end());
}

#[test]
fn laps_around_the_files_and_reopening() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(2));
    let mut log = Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0)).expect("create");
    let mut checkpoint = log.end();
    let mut first = 0;
    let mut number = 0;
    for lap in 0..30 {
        for _ in 0..200 {
            let len = 8 + (number as usize * 37) % 700;
            log.append(&body(number, len), |_| ()).expect("append");
            number += 1;
        }
        log.wait(log.end(), Durability::Synced).expect("wait");
        assert!(log.end().bytes_since(checkpoint) < log.limit_bytes());
        let (groups, end) = read_all(&*volume, checkpoint).expect("scan");
        assert_eq!(end.end, log.end());
        assert!(groups.iter().map(|(_, body)| number_of(body)).eq(first..number), "lap {lap}");
        assert!(groups.iter().all(|(_, found)| *found == body(number_of(found), found.len())));
        if lap % 3 == 2 {
            drop(log);
            log = reopen(Arc::clone(&volume), 1 << 20, checkpoint).expect("reopen");
            assert_eq!(log.end(), end.end);
        }
        let middle = groups.len() / 2;
        checkpoint = groups[middle].0.start;
        first += middle as u64;
        log.set_checkpoint(checkpoint);
        while log.maintain().expect("maintain") {}
    }
    let bytes: u64 = volume
        .list()
        .expect("list")
        .iter()
        .map(|name| volume.open(name).expect("open").len())
        .sum();
    assert!(bytes <= 1 << 20, "{bytes}");
}

#[test]
fn chunks_hold_the_same_groups() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(3));
    let log = Log::create(Arc::clone(&volume), config(16 << 20), Lsn(0)).expect("create");
    let from = log.end();
    for i in 0..5000 {
        log.append(&body(i, 2100), |_| ()).expect("append");
    }
    log.flush(Durability::Synced).expect("flush");
    let (groups, end) = read_all(&*volume, from).expect("scan");
    for read_ahead in [false, true] {
        let mut bytes = 0;
        let mut count = |done| bytes = done;
        let options = ScanOptions { read_ahead, progress: Some(&mut count) };
        let mut found = Vec::new();
        let mut chunks = 0;
        let chunk_end = scan_chunks(&*volume, DB, from, options, |chunk| {
            chunks += 1;
            let from = found.len();
            found.extend(chunk.bodies().map(|(span, body)| (span, body.to_vec())));
            // A stretch of it has what the whole has there.
            let all: Vec<_> = chunk.groups().collect();
            assert_eq!(all.len(), found.len() - from);
            let stretch = all[1].frame.start..all[3].frame.end;
            assert!(chunk.groups_in(stretch).eq(all[1..=3].iter().cloned()));
            ControlFlow::Continue(())
        })
        .expect("scan");
        assert!(found == groups && chunk_end.end == end.end && chunks > 3);
        assert!(bytes >= end.end.0);
    }
    let mut seen = 0;
    let broken_off = scan(&*volume, DB, from, ScanOptions::default(), |_, _| {
        seen += 1;
        if seen == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .expect("scan");
    assert_eq!((broken_off.complete, broken_off.end), (false, groups[9].0.end));
}

#[test]
fn many_threads() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(4));
    let log = Log::create(Arc::clone(&volume), config(16 << 20), Lsn(0)).expect("create");
    let from = log.end();
    let durabilities = [Durability::Synced, Durability::Written, Durability::Lazy];
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for i in 0..500 {
                    let body = body(thread * 1000 + i, 8 + (i as usize * 91) % 2000);
                    let span = log.append(&body, |_| ()).expect("append");
                    let durability = durabilities[(thread + i) as usize % 3];
                    log.wait(span.end, durability).expect("wait");
                    let reached = match durability {
                        Durability::Synced => log.durable(),
                        Durability::Written => log.written(),
                        Durability::Lazy => continue,
                    };
                    assert!(reached >= span.end);
                }
            });
        }
    });
    log.flush(Durability::Synced).expect("flush");
    let (groups, _) = read_all(&*volume, from).expect("scan");
    let mut next = [0; 8];
    for (_, found) in &groups {
        let (thread, i) = (number_of(found) / 1000, number_of(found) % 1000);
        assert_eq!(i, next[thread as usize], "groups of one thread keep their order");
        next[thread as usize] += 1;
        assert_eq!(*found, body(number_of(found), found.len()));
    }
    assert_eq!(next, [500; 8]);
}

#[test]
fn a_log_is_created_only_where_there_is_none() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(5));
    Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0)).expect("create");
    let again = Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0));
    assert!(matches!(again, Err(RedoError::Exists { .. })));
    Log::remove_all(&*volume).expect("remove");
    Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0)).expect("create");
}

#[test]
fn what_is_written_is_synced_before_it_is_too_much() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(6));
    let log = Log::create(Arc::clone(&volume), config(4 << 20), Lsn(0)).expect("create");
    for number in 0..1000 {
        let span = log.append(&body(number, 600), |_| ()).expect("append");
        log.wait(span.end, Durability::Written).expect("wait");
        let unsynced = log.written().bytes_since(log.durable());
        assert!(unsynced <= 64 << 10, "REDO-8: {unsynced}");
    }
    assert!(log.durable() < log.end(), "no commit asked for the last ones to be synced");
}

#[test]
fn what_another_has_synced_is_durable() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(8));
    let log = Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0)).expect("create");
    let first = log.append(&body(1, 600), |_| ()).expect("append");
    log.wait_for_device(first.end).expect("wait");
    let second = log.append(&body(2, 600), |_| ()).expect("append");
    assert!(log.durable() < first.end);
    log.synced_by_another(first.end);
    assert_eq!(log.durable(), first.end);
    log.wait(first.end, Durability::Synced).expect("wait");
    let syncs = log.stats().syncs.get();
    log.wait(second.end, Durability::Synced).expect("wait");
    assert_eq!(log.stats().syncs.get(), syncs + 1, "its own sync takes both");
    log.synced_by_another(first.end);
    assert_eq!(log.durable(), second.end, "never back");
}

/// REDO-12: commits that need only survive the process are left to the system's cache, where a
/// flush of the device's does not reach them.
#[test]
fn what_the_cache_keeps_is_not_on_the_device() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(9));
    let log = Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0)).expect("create");
    let append = |number| log.append(&body(number, 600), |_| ()).expect("append").end;
    let syncs = || log.stats().syncs.get();
    let (direct, before) = (append(1), syncs());
    log.flush(Durability::Written).expect("flush");
    assert_eq!((log.on_device(), syncs()), (direct, before), "nothing was in the cache");
    let cached = append(2);
    log.wait(cached, Durability::Written).expect("wait");
    assert_eq!((log.written(), log.on_device(), syncs()), (cached, direct, before));
    // What lies behind goes the direct way, and does not change that.
    let behind = append(3);
    log.flush(Durability::Written).expect("flush");
    assert_eq!((log.written(), log.on_device(), syncs()), (behind, direct, before));
    log.wait_for_device(cached).expect("wait");
    assert_eq!((log.on_device(), log.durable(), syncs()), (behind, behind, before + 1));
    let later = append(4);
    log.wait_for_device(later).expect("wait");
    assert_eq!((log.on_device(), syncs()), (later, before + 1), "a sync has emptied the cache");
    assert!(log.durable() < later);
    let past = append(5);
    log.wait(past, Durability::Written).expect("wait");
    assert_eq!((log.on_device(), syncs()), (past, before + 1), "the cache is gone around now");
    log.wait(append(6), Durability::Synced).expect("wait");
    assert_eq!((log.on_device(), log.durable()), (log.end(), log.end()));
}

#[test]
#[should_panic(expected = "on the device")]
fn another_cannot_have_synced_what_the_cache_keeps() {
    let log = Log::create(Arc::new(SimVolume::new(10)), config(1 << 20), Lsn(0)).expect("create");
    let end = log.append(&body(1, 600), |_| ()).expect("append").end;
    log.wait(end, Durability::Written).expect("wait");
    log.synced_by_another(end);
}

#[test]
fn a_checkpoint_at_the_very_start_of_a_file() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(7));
    let log = Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0)).expect("create");
    // 28 groups of 1000 bytes fill the 56 blocks of a file exactly.
    for number in 0..28 {
        log.append(&body(number, 998), |_| ()).expect("append");
    }
    log.flush(Durability::Synced).expect("flush");
    let checkpoint = log.end();
    assert_eq!(checkpoint, Lsn((28 << 10) + 12));
    log.set_checkpoint(checkpoint);
    for number in 28..500 {
        while log.maintain().expect("maintain") {}
        let (groups, end) = read_all(&*volume, checkpoint).expect("scan");
        assert_eq!((groups.len() as u64, end.end), (number - 28, log.end()));
        log.append(&body(number, 998), |_| ()).expect("append");
        log.flush(Durability::Synced).expect("flush");
    }
}

#[test]
fn stretches_of_what_is_durable_are_read_while_the_log_goes_on() {
    // From the disk, and where nothing, the end, or all of it is kept in memory.
    [0, 8192, 100_000, 1 << 20].into_iter().for_each(stretches_are_read);
}

fn stretches_are_read(kept: u64) {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(3));
    let log = Log::create(Arc::clone(&volume), config(1 << 20), Lsn(0)).expect("create");
    log.keep_recent(kept);
    let from = log.end();
    let mut spans: Vec<(Span, Vec<u8>)> = Vec::new();
    for i in 0..2_000 {
        let body = body(i, 8 + (i as usize * 37) % 400);
        spans.push((log.append(&body, |_| ()).expect("append"), body));
    }
    log.wait(spans[1_500].0.end, Durability::Synced).expect("wait");
    let settled = log.settled();
    assert!(settled <= log.durable() && log.durable().0 - settled.0 < 4096);
    let read = |reader: &weir_redo::Reader, from, to| {
        let mut found = Vec::new();
        let take = |chunk: &mut weir_redo::Chunk| {
            found.extend(chunk.bodies().map(|(span, body)| (span, body.to_vec())));
            Ok(())
        };
        reader.chunks(from, to, take).map(|end| (found, end))
    };
    // As large as they come, from group to group, and to places inside groups and blocks.
    for (bytes, many) in [(1 << 20, 1), (40_000, 5), (700, 300)] {
        let (mut at, mut all, mut stretches) = (from, Vec::new(), 0);
        loop {
            let to = settled.min(at.advanced(bytes));
            let (found, end) = read(&log.reader(None), at, to).expect("read");
            if end == at {
                break;
            }
            assert_eq!(found.last().map(|(span, _)| span.end), Some(end));
            assert!(end <= to);
            // To exactly there, by the files alone.
            let reader = weir_redo::Reader::open(&*volume, DB, from).expect("reader");
            assert!(read(&reader, at, end).expect("read again") == (found.clone(), end));
            (at, stretches) = (end, stretches + 1);
            all.extend(found);
        }
        assert!(all == spans[..all.len()] && all.len() >= 1_400, "{}", all.len());
        assert!(stretches >= many, "{stretches} of {bytes}");
    }
    // A visitor that has seen enough stops the reading with its own error.
    let stops = |_: &mut weir_redo::Chunk| Err(RedoError::Missing { lsn: from, what: "no more" });
    let told = log.reader(None).chunks(from, settled, stops).expect_err("told");
    assert!(matches!(told, RedoError::Missing { what: "no more", .. }), "{told}");
    // Behind what is durable, and where files have been used again.
    let end = log.end();
    assert!(matches!(
        read(&log.reader(None), from, end.advanced(4096)),
        Err(RedoError::Damaged { .. })
    ));
    let old = log.reader(None);
    log.wait(end, Durability::Synced).expect("wait");
    log.set_checkpoint(end);
    for i in 0..9_000u64 {
        log.append(&body(i, 200), |_| ()).expect("append");
        log.set_checkpoint(log.durable());
        if i % 100 == 0 {
            log.wait(log.end(), Durability::Synced).expect("wait");
        }
    }
    assert!(read(&old, from, settled).is_err(), "used again");
    assert!(matches!(read(&log.reader(None), from, settled), Err(RedoError::Missing { .. })));
}

#[test]
fn what_is_kept_in_memory_is_not_read_from_the_disk() {
    let volume = FaultyVolume::new(Arc::new(SimVolume::new(3)));
    let log = Log::create(Arc::new(volume.clone()), config(1 << 20), Lsn(0)).expect("create");
    log.keep_recent(100_000);
    let start = log.end();
    let spans: Vec<Span> =
        (0..400).map(|i| log.append(&body(i, 500), |_| ()).expect("append")).collect();
    log.flush(Durability::Synced).expect("flush");
    volume.fail_all("redo-", OpKind::Read, Fault::Broken);
    let read = |from| {
        let mut groups = 0;
        let take = |chunk: &mut weir_redo::Chunk| {
            groups += chunk.bodies().count();
            Ok(())
        };
        log.reader(None).chunks(from, log.settled(), take).map(|_| groups)
    };
    let groups = read(spans[250].start).expect("from memory");
    assert!((140..150).contains(&groups), "{groups}");
    assert!(matches!(read(start), Err(RedoError::Io { .. })), "that is on the disk alone");
    log.keep_recent(0);
    assert!(matches!(read(spans[250].start), Err(RedoError::Io { .. })));
    volume.clear();
    assert_eq!(read(start).expect("from the disk"), 250 + groups);
}

#[test]
fn stretches_are_read_into_the_memory_of_the_one_before() {
    let volume = FaultyVolume::new(Arc::new(SimVolume::new(3)));
    let log = Log::create(Arc::new(volume.clone()), config(1 << 20), Lsn(0)).expect("create");
    let spans: Vec<Span> =
        (0..900).map(|i| log.append(&body(i, 500), |_| ()).expect("append")).collect();
    log.flush(Durability::Synced).expect("flush");
    let (mut reader, mut places) = (None, Vec::new());
    // A pass finds how much memory the longest piece wants, the next one has it.
    for pass in 0..2 {
        places.clear();
        for stretch in spans.chunks_exact(300) {
            let next = log.reader(reader.take());
            let (from, to) = (stretch[0].start, stretch[200].end);
            let mut groups = 0;
            let end = next.chunks(from, to, |chunk| {
                groups += chunk.groups().count();
                places.push(chunk.payload().as_ptr() as usize);
                Ok(())
            });
            assert_eq!((end.expect("read"), groups), (to, 201));
            reader = Some(next);
        }
        assert!(places.len() >= 3, "pass {pass}");
    }
    places.dedup();
    assert_eq!(places.len(), 1, "a stretch lies elsewhere than the one before");
    // A visitor that keeps what it sees takes the memory along, and the next stretch is right.
    let next = log.reader(reader);
    let mut kept = Vec::new();
    for _ in 0..2 {
        let (from, to) = (spans[0].start, spans[899].end);
        let end = next.chunks(from, to, |chunk| {
            kept.push(std::mem::take(chunk));
            Ok(())
        });
        assert_eq!(end.expect("read"), to);
    }
    let groups = |chunks: &[weir_redo::Chunk]| {
        chunks.iter().map(|chunk| chunk.groups().count()).sum::<usize>()
    };
    assert_eq!(groups(&kept), 2 * 900);
}
