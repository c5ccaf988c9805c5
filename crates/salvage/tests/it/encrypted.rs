//! The damages of an encrypted database: what is saved of it, and that it is not without the keys.
use std::collections::BTreeSet;

use weir_page::Kind;
use weir_salvage::{Options, salvage};

use crate::after;
use crate::damages::{middle_of_log, only};
use crate::fixture::{Fixture, Key, encrypted_closed, encrypted_crashed};
use crate::layout::{change_file, files, flip, pages_of, remove, rows_on, rows_over, zero};

fn inner_nodes(from: &Fixture) -> Vec<u32> {
    from.names.values().flat_map(|name| pages_of(from, Kind::Inner, name)).collect()
}

#[test]
fn e01_nothing() {
    for from in [encrypted_closed(), encrypted_crashed()] {
        let out = after(from, |_| ());
        out.is_all_of(from);
        assert!(out.report.is_whole(), "{}", out.report);
    }
}

#[test]
fn e02_the_control_file_removed() {
    for from in [encrypted_closed(), encrypted_crashed()] {
        after(from, |dir| remove(dir, "control")).is_all_of(from);
        let zeroed = |bytes: &mut Vec<u8>| bytes.fill(0);
        after(from, |dir| change_file(dir, "control", zeroed)).is_all_of(from);
        let flipped = |bytes: &mut Vec<u8>| bytes.iter_mut().step_by(100).for_each(|b| *b ^= 1);
        after(from, |dir| change_file(dir, "control", flipped)).is_all_of(from);
    }
}

#[test]
fn e03_inner_nodes_and_leaves_damaged() {
    let from = encrypted_closed();
    let inner = inner_nodes(from);
    after(from, |dir| flip(dir, &inner)).is_all_of(from);
    let leaves = only::<7>(&pages_of(from, Kind::Leaf, "herons"));
    let lost = rows_on(from, &leaves);
    for damage in [flip, zero] {
        let out = after(from, |dir| damage(dir, &leaves));
        out.has_all_but(from, &lost);
        assert!(!out.report.is_whole());
    }
    let overflow = only::<5>(&pages_of(from, Kind::Overflow, "weirs"));
    let lost = rows_over(from, &overflow);
    assert!(!lost.is_empty());
    after(from, |dir| flip(dir, &overflow)).has_all_but(from, &lost);
}

#[test]
fn e04_the_log_damaged() {
    let from = encrypted_crashed();
    let all = from.rows.len();
    let out = after(from, |dir| {
        let (file, at) = middle_of_log(from);
        change_file(dir, &file, |bytes| bytes[at + 100] ^= 1);
    });
    let (same, others) = out.are_all_from_its_past(from);
    println!("damaged in the middle: {same} of {all} as they were last, {others} others");
    // Pages that the log says were changed behind the damage are reported apart. The damage is one
    // of 4096 bytes, whichever of them is another.
    let found = |key: &Key| out.rows.get(key).or_else(|| out.strays.get(key));
    let same = from.rows.iter().filter(|(key, value)| found(key) == Some(value)).count();
    println!("with those told apart {same}");
    assert!(!out.report.is_current && same * 100 > all * 90, "{same} of {all}");
    let out = after(from, |dir| remove(dir, "redo-"));
    let (same, others) = out.are_all_from_its_past(from);
    println!("removed: {same} of {all} as they were last, {others} others");
    assert!(!out.report.is_current && same * 100 > all * 40, "{same} of {all}");
    let closed = encrypted_closed();
    after(closed, |dir| remove(dir, "redo-")).is_all_of(closed);
}

#[test]
fn e05_without_its_keys_nothing_is_read() {
    let from = encrypted_closed();
    let dir = tempfile::tempdir().expect("a directory");
    let saved = dir.path().join("saved");
    let without = Options { encryption: None, ..from.options() };
    let e = salvage(&from.dir, &saved, &without, &mut |_, _, _| ()).expect_err("no keys");
    assert!(e.to_string().contains("key 1, version 1"), "{e}");
    assert!(!saved.exists() || files(&saved, "").is_empty());
    // One of the two copies of the wrapped key is enough; without both nothing is.
    for (from_byte, is_saved) in [(4096, true), (0, false)] {
        let damaged = dir.path().join(format!("damaged {from_byte}"));
        crate::fixture::copy(&from.dir, &damaged);
        let flipped = |bytes: &mut Vec<u8>| bytes[from_byte..].iter_mut().for_each(|b| *b ^= 1);
        change_file(&damaged, "keys", flipped);
        let saved = dir.path().join(format!("saved {from_byte}"));
        let done = salvage(&damaged, &saved, &from.options(), &mut |_, _, _| ());
        assert_eq!(done.is_ok(), is_saved, "{:?}", done.err());
        if let Ok(report) = done {
            assert_eq!(report.rows(), from.rows.len() as u64);
        }
    }
    assert_eq!(BTreeSet::from_iter(files(&from.dir, "keys")).len(), 1);
}
