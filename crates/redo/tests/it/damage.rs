//! Logs that are not as they were written: an error that names the place, or no effect; never a
//! shorter log, never a panic.
use crate::support::{body, config, read_all};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use weir_base::{DbId, Lsn};
use weir_device::{SimVolume, Volume};
use weir_redo::{Durability, Log, RedoError, ScanOptions, Span, scan, survey};

/// Bytes of log in a file of these logs.
const SEGMENT: u64 = 28 << 10;

/// A synced log with its checkpoint and its groups.
fn synced_log(groups: u64) -> (SimVolume, Lsn, Vec<(Span, Vec<u8>)>) {
    let volume = SimVolume::new(7);
    let log = Log::create(Arc::new(volume.clone()), config(1 << 20), Lsn(0)).expect("create");
    let from = log.end();
    let mut all = Vec::new();
    for i in 0..groups {
        let bytes = body(i, 50 + i as usize * 13 % 900);
        all.push((log.append(&bytes, |_| ()).expect("append"), bytes));
        if i % 3 == 0 {
            log.flush(Durability::Synced).expect("flush");
        }
    }
    log.flush(Durability::Synced).expect("flush");
    // Blocks of the last write are proved by nothing: this one leaves only the last block so.
    all.push((log.append(&body(groups, 8), |_| ()).expect("append"), body(groups, 8)));
    assert_eq!((log.end().0 - 12) / 512, log.durable().0 / 512, "stays in the last block");
    log.flush(Durability::Synced).expect("flush");
    (volume, from, all)
}

/// Either an error that names a redo file, or exactly the log.
fn error_or_no_effect(volume: &SimVolume, from: Lsn, all: &[(Span, Vec<u8>)], what: &str) -> bool {
    match read_all(volume, from) {
        Ok((groups, _)) => {
            assert!(groups == all, "{what}: {} of {} groups", groups.len(), all.len());
            false
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("redo-") || matches!(error, RedoError::Missing { .. }), "{text}");
            true
        }
    }
}

#[test]
fn every_flipped_bit_of_a_synced_log_is_an_error_or_no_effect() {
    let (volume, from, all) = synced_log(60);
    let end = all[all.len() - 1].0.end;
    let mut errors = 0;
    for name in ["redo-00", "redo-01"] {
        let start = if name == "redo-00" { 0 } else { SEGMENT };
        let used = 4096 + end.0.saturating_sub(start).min(SEGMENT);
        for byte in 0..used.div_ceil(512) * 512 {
            let bit = 1 << (byte % 8);
            volume.corrupt(name, byte, bit).expect("corrupt");
            if error_or_no_effect(&volume, from, &all, &format!("{name} byte {byte}")) {
                errors += 1;
            }
            volume.corrupt(name, byte, bit).expect("corrupt");
        }
    }
    assert!(errors as u64 > end.0, "{errors}");
}

#[test]
fn lost_sectors_and_lost_writes_are_found() {
    let (volume, from, all) = synced_log(60);
    let blocks = (all[all.len() - 1].0.end.0 / 512) as usize;
    let before = |raw: &[u8], block: usize| raw[4096 + block * 512..][..512].to_vec();
    // The last block is the only one that nothing after it speaks for.
    for block in 0..blocks {
        let in_file = SEGMENT as usize / 512;
        let name = ["redo-00", "redo-01"][block / in_file];
        let block = block % in_file;
        let raw = volume.read_raw(name).expect("read");
        let kept = before(&raw, block);
        let mut lost = raw.clone();
        lost[4096 + block * 512..][..512].fill(0);
        volume.write_raw(name, &lost).expect("write");
        let found = error_or_no_effect(&volume, from, &all, &format!("{name} block {block}"));
        assert!(found, "a missing block {block} of {name} had no effect");
        lost[4096 + block * 512..][..512].copy_from_slice(&kept);
        volume.write_raw(name, &lost).expect("write");
    }
    // An older version of a block: what the file held when the log was shorter.
    let (shorter, ..) = synced_log(20);
    let (old, new) = (shorter.read_raw("redo-00"), volume.read_raw("redo-00"));
    let (old, new) = (old.expect("read"), new.expect("read"));
    let differing = (0..56).filter(|&block| before(&old, block) != before(&new, block));
    let tail = differing.take(1).next().expect("the shorter log's tail");
    let mut mixed = new.clone();
    mixed[4096 + tail * 512..][..512].copy_from_slice(&before(&old, tail));
    volume.write_raw("redo-00", &mixed).expect("write");
    assert!(error_or_no_effect(&volume, from, &all, "older version"));
}

#[test]
fn a_lost_block_that_was_synced_in_part_is_found() {
    let volume = SimVolume::new(8);
    let log = Log::create(Arc::new(volume.clone()), config(1 << 20), Lsn(0)).expect("create");
    let from = log.end();
    let first = log.append(&body(1, 700), |_| ()).expect("append");
    log.wait(first.end, Durability::Synced).expect("wait");
    let second = log.append(&body(2, 1000), |_| ()).expect("append");
    log.wait(second.end, Durability::Written).expect("wait");
    let mut raw = volume.read_raw("redo-00").expect("read");
    raw[4608..4608 + 512].fill(0);
    volume.write_raw("redo-00", &raw).expect("write");
    let found = read_all(&volume, from).expect_err("the first group was synced");
    assert!(matches!(found, RedoError::Damaged { offset: 4608, .. }), "{found}");
    let found = read_all(&volume, first.end).expect_err("the checkpoint's block is gone");
    assert!(matches!(found, RedoError::Damaged { offset: 4608, .. }), "{found}");
}

/// A block's number is kept in 32 bits: what lay unused for 1 to 2 TiB of log looks as if it
/// belonged further on.
#[test]
fn blocks_of_very_long_ago_are_the_end_and_hide_no_damage() {
    let ((old, ..), new) = (synced_log(600), SimVolume::new(7));
    let config = config(1 << 20);
    let log = Log::create(Arc::new(new.clone()), config.clone(), Lsn(3 << 39)).expect("create");
    for name in ["redo-00", "redo-01"] {
        let mut raw = new.read_raw(name).expect("read");
        let kept = if name == "redo-00" { 4608 } else { 4096 };
        raw[kept..].copy_from_slice(&old.read_raw(name).expect("read")[kept..]);
        new.write_raw(name, &raw).expect("write");
    }
    let from = log.end();
    let mut ends = Vec::new();
    for i in 0..100 {
        // Every fourth one ends where a page does.
        let left = 4096 - (log.end().0 % 4096) as usize;
        let rest = left - (left / 512 * 12) - 2;
        let len = if i % 4 == 3 && left > 600 { rest } else { 100 + i as usize };
        log.append(&body(i, len), |_| ()).expect("append");
        log.flush(Durability::Synced).expect("flush");
        ends.push(log.end());
        let (groups, found) = read_all(&new, from).expect("no damage");
        assert_eq!((groups.len() as u64, found.end), (i + 1, log.end()));
    }
    let at_page = ends.iter().filter(|end| end.0 % 4096 == 12).count();
    assert!(at_page > 10, "{at_page}");
    // What was synced and is not there any more is found as ever.
    let mut raw = new.read_raw("redo-00").expect("read");
    let lost = 4096 + 4 * 512..4096 + 5 * 512;
    raw[lost.clone()].copy_from_slice(&old.read_raw("redo-00").expect("read")[lost]);
    new.write_raw("redo-00", &raw).expect("write");
    assert!(read_all(&new, from).is_err());
    raw = new.read_raw("redo-00").expect("read");
    raw[4096..4608].copy_from_slice(&old.read_raw("redo-00").expect("read")[4096..4608]);
    new.write_raw("redo-00", &raw).expect("write");
    assert!(read_all(&new, from).is_err(), "the checkpoint's own block");
}

#[test]
fn missing_truncated_foreign_and_newer_files() {
    let (volume, from, all) = synced_log(60);
    let raw = volume.read_raw("redo-01").expect("read");
    for len in [0, 100, 4095, 4096, 4097, raw.len() - 4096, raw.len() - 1] {
        volume.write_raw("redo-01", &raw[..len]).expect("write");
        assert!(error_or_no_effect(&volume, from, &all, &format!("{len} bytes")), "{len} bytes");
    }
    volume.remove("redo-01").expect("remove");
    assert!(matches!(read_all(&volume, from), Err(RedoError::Missing { .. })));
    let mut newer = raw.clone();
    newer[8] = 9;
    let crc = weir_base::checksum(&newer[..508]);
    newer[508..512].copy_from_slice(&crc.to_le_bytes());
    volume.write_raw("redo-01", &newer).expect("write");
    let found = read_all(&volume, from).expect_err("a newer format");
    assert!(matches!(found, RedoError::Format { found: 9, .. }), "{found}");
    volume.write_raw("redo-01", &raw).expect("write");
    let other =
        scan(&volume, DbId(1), from, ScanOptions::default(), |_, _| ControlFlow::Continue(()));
    assert!(matches!(other, Err(RedoError::Foreign { .. })));
    let beyond = read_all(&volume, all[60].0.end.advanced(3)).expect_err("beyond the end");
    assert!(beyond.to_string().contains("before the checkpoint"), "{beyond}");
    assert!(read_all(&volume, Lsn(from.0 - 1)).is_err(), "inside a header");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_bytes_never_panic(
        file in prop::sample::select(vec!["redo-00", "redo-01", "redo-02"]),
        at in 0usize..20_000,
        bytes in prop::collection::vec(any::<u8>(), 1..600),
        len in prop::option::of(0usize..20_480),
        from in prop::option::of(0u64..40_000),
    ) {
        let (volume, start, all) = synced_log(40);
        let mut raw = volume.read_raw(file).expect("read");
        let end = raw.len().min(at + bytes.len());
        if at < end {
            raw[at..end].copy_from_slice(&bytes[..end - at]);
        }
        raw.truncate(len.unwrap_or(raw.len()));
        volume.write_raw(file, &raw).expect("write");
        if let Ok((groups, end)) = read_all(&volume, from.map_or(start, Lsn)) {
            prop_assert!(groups.len() <= all.len());
            let _ = Log::resume(Arc::new(volume), config(1 << 20), end);
        }
    }

    /// Blocks whose checksums are right but whose contents are arbitrary.
    #[test]
    fn arbitrary_payload_never_panics(payload in prop::collection::vec(any::<u8>(), 8..3000)) {
        let (volume, _, all) = synced_log(20);
        let end = all[all.len() - 1].0.end;
        let log = crate::support::reopen(Arc::new(volume.clone()), 1 << 20, end).expect("reopen");
        let span = log.append(&payload, |_| ()).expect("append");
        log.flush(Durability::Synced).expect("flush");
        // Behind the length, in the middle of the group: no start of a group.
        let _ = read_all(&volume, span.start.advanced(2));
    }
}

/// What is wrong with each file's header, and whether it has one.
fn headers(volume: &SimVolume) -> Vec<(bool, Option<String>)> {
    let files = survey(volume, None).expect("surveyed");
    files.into_iter().map(|file| (file.header.is_some(), file.problem)).collect()
}

#[test]
fn a_file_that_was_never_used_is_not_damage_and_one_without_its_header_is() {
    let (volume, ..) = synced_log(60);
    let before = headers(&volume);
    let used = before.iter().filter(|(has_header, _)| *has_header).count();
    assert!(before.iter().all(|(_, problem)| problem.is_none()), "{before:?}");
    for name in ["redo-90", "redo-91", "redo-92"] {
        let bytes = if name == "redo-92" { 0 } else { 32 << 10 };
        volume.create(name, bytes).expect("created");
    }
    // A lost write, of the header alone; and one behind it, as far as can be.
    let raw = volume.read_raw("redo-00").expect("read");
    for (at, byte) in raw[..4096].iter().enumerate().filter(|(_, byte)| **byte != 0) {
        volume.corrupt("redo-00", at as u64, *byte).expect("corrupt");
    }
    volume.corrupt("redo-91", (32 << 10) - 1, 1).expect("corrupt");
    let after = headers(&volume);
    let problem = Some("the header is zeros, and blocks are behind it".to_owned());
    assert_eq!(after[0], (false, problem.clone()));
    assert_eq!(after[after.len() - 3..], [(false, None), (false, problem), (false, None)]);
    assert!(used > 1 && after.iter().filter(|(has, _)| *has).count() == used - 1);
}
