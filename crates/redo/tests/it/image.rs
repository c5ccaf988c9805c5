//! A log made anew from the groups of another, and the part of a log that is held for a reader.
use std::sync::Arc;

use crate::support::{DB, body, config, read_all, reopen};
use proptest::prelude::*;
use weir_base::Lsn;
use weir_device::{SimVolume, Volume};
use weir_redo::{Chunk, Durability, Log, LogImage, RedoError, whole_groups};

/// What was read of a log, from `from` to its durable end.
fn chunks(log: &Log, from: Lsn) -> Result<(Vec<(Lsn, Chunk)>, Lsn), RedoError> {
    let mut all = Vec::new();
    let end = log.reader(None).chunks(from, log.durable(), |chunk| {
        all.push((chunk.lsn_at(0), std::mem::take(chunk)));
        Ok(())
    })?;
    Ok((all, end))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// It is found as the other one, at the same positions, goes on, and is found again.
    #[test]
    fn an_image_is_the_log_again(
        start in 0u64..3_000_000,
        lens in proptest::collection::vec(prop_oneof![8usize..700, Just(100_000usize)], 1..60),
        from in any::<prop::sample::Index>(),
        upto in any::<prop::sample::Index>(),
    ) {
        let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
        let log = Log::create(volume, config(16 << 20), Lsn(start)).expect("created");
        for (number, len) in lens.iter().enumerate() {
            log.append(&body(number as u64, *len), |_| ()).expect("appended");
            log.flush(Durability::Synced).expect("flushed");
        }
        let (all, _) = chunks(&log, log.checkpoint()).expect("read");
        let groups: Vec<_> = all
            .iter()
            .flat_map(|(at, chunk)| {
                let groups = whole_groups(*at, chunk.payload()).expect("whole");
                let frames = groups.into_iter().map(|group| {
                    let bytes = chunk.payload();
                    (group.span, bytes[group.frame].to_vec(), bytes[group.body].to_vec())
                });
                frames.collect::<Vec<_>>()
            })
            .collect();
        let from = from.index(groups.len());
        let upto = from + upto.index(groups.len() - from + 1);
        let expected: Vec<_> =
            groups[from..upto].iter().map(|(span, _, body)| (*span, body.clone())).collect();
        let start = groups[from].0.start;

        let restored: Arc<dyn Volume> = Arc::new(SimVolume::new(2));
        let mut image = LogImage::begin(&*restored, DB, start).expect("begun");
        for (span, frame, _) in &groups[from..upto] {
            prop_assert_eq!(image.end(), span.start);
            image.append(frame).expect("appended");
        }
        let end = image.finish().expect("finished");
        prop_assert_eq!(end, expected.last().map_or(start, |(span, _)| span.end));
        let (found, scanned) = read_all(&*restored, start).expect("read");
        prop_assert_eq!((&found, scanned.end), (&expected, end));

        let log = reopen(restored.clone(), 2 << 20, start).expect("resumed");
        let more = log.append(&body(77, 5000), |_| ()).expect("appended");
        log.flush(Durability::Synced).expect("flushed");
        drop(log);
        let (found, scanned) = read_all(&*restored, start).expect("read");
        prop_assert_eq!(found.len(), expected.len() + 1);
        prop_assert_eq!(scanned.end, more.end);
    }

    /// Bytes that are no run of groups are reported, and cause no panic.
    #[test]
    fn what_is_no_run_of_groups_is_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0u64..10_000,
    ) {
        if let Some(groups) = whole_groups(Lsn(at), &bytes) {
            prop_assert_eq!(groups.last().map_or(0, |group| group.frame.end), bytes.len());
        }
    }
}

#[test]
fn a_log_is_there_for_as_long_as_it_is_held() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
    let log = Arc::new(Log::create(volume, config(1 << 20), Lsn(0)).expect("created"));
    let mut hold = log.hold().expect("held");
    let from = hold.from();
    let mut number = 0;
    let mut go_round = |kib: u64| {
        let until = log.end().advanced(kib << 10);
        while log.end() < until {
            number += 1;
            log.append(&body(number, 600), |_| ()).expect("appended");
            log.flush(Durability::Synced).expect("flushed");
            log.set_checkpoint(log.durable());
            while log.maintain().expect("maintained") {}
        }
    };
    go_round(1_800);
    let (all, end) = chunks(&log, from).expect("all of it is there");
    assert_eq!(end, log.durable());
    let groups: usize = all.iter().map(|(_, chunk)| chunk.groups().count()).sum();
    assert!(groups > 2_500, "{groups}");
    // It is used again from where the reader is.
    hold.advance(end);
    go_round(1_800);
    assert!(matches!(chunks(&log, from), Err(RedoError::Missing { .. })));
    chunks(&log, end).expect("from there on it is there");
    // A reader that is too slow loses it, and the log stays within bounds.
    assert!(!hold.is_lost());
    go_round(3_000);
    assert!(hold.is_lost());
    assert!(matches!(chunks(&log, end), Err(RedoError::Missing { .. })));
    let bytes = || log.segment_infos().iter().map(|info| info.bytes + 4096).sum::<u64>();
    assert!(bytes() <= 1 << 20, "the files beyond the capacity are gone: {}", bytes());
    drop(hold);
    let holds: Vec<_> = std::iter::from_fn(|| log.hold()).collect();
    assert_eq!(holds.len(), 4);
}

#[test]
fn on_a_full_disk_the_log_goes_on_and_the_reader_loses_it() {
    let volume = SimVolume::new(3);
    let log = Log::create(Arc::new(volume.clone()), config(1 << 20), Lsn(0)).expect("created");
    let log = Arc::new(log);
    let hold = log.hold().expect("held");
    volume.set_capacity(Some((1 << 20) + (200 << 10)));
    for number in 0..5_000 {
        log.append(&body(number, 600), |_| ()).expect("appended");
        log.flush(Durability::Synced).expect("the log goes on");
        log.set_checkpoint(log.durable());
        // Another file cannot be had: that is said, and no reason to stop.
        for _ in 0..4 {
            match log.maintain() {
                Ok(false) => break,
                Ok(true) => {}
                Err(e) => assert!(e.is_lack_of_space(), "{e}"),
            }
        }
    }
    assert!(hold.is_lost());
    log.check().expect("it has not halted");
}

#[test]
fn an_image_is_not_made_beside_a_log() {
    let volume: Arc<dyn Volume> = Arc::new(SimVolume::new(1));
    Log::create(volume.clone(), config(1 << 20), Lsn(0)).expect("created");
    let begun = LogImage::begin(&*volume, DB, Lsn(12));
    assert!(matches!(begun.err(), Some(RedoError::Exists { .. })));
    let begun = LogImage::begin(&SimVolume::new(2), DB, Lsn(3));
    assert!(matches!(begun.err(), Some(RedoError::Missing { .. })), "inside a block's header");
}
