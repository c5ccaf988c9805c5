//! The damages of a database whose pages lie in segments, when their root or their map is lost.
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use weir_base::{ALIGN, PageNo};
use weir_device::Volume;
use weir_logstore::LogStore;
use weir_logstore::format::{BlockHead, ChunkHead, Kind as BlockKind, SegmentHead};
use weir_page::Kind;
use weir_pool::{LogStructuredStore, PageStore};

use crate::damages::only;
use crate::fixture::{Fixture, closed_in_segments, crashed_in_segments};
use crate::layout::{change_file, pages_of, remove, rows_on, rows_over};
use crate::{Outcome, after};

const ROOT: &str = "segments.root";

fn segments(dir: &Path, with: impl FnOnce(&mut Vec<u8>)) {
    change_file(dir, "segments", with);
}

/// The report says that rows may be older, and why.
fn says_why(out: &Outcome) {
    assert!(!out.report.is_current && !out.report.is_whole(), "{}", out.report);
    assert!(out.report.remarks.iter().any(|words| words.contains("segments themselves")));
}

/// Where a page's block lies.
fn offset_of(from: &Fixture, page: u32) -> usize {
    from.with_segments(|store| store.place(PageNo(page)).1 as usize)
}

fn db_of(from: &Fixture) -> weir_base::DbId {
    let volume = weir::FileVolume::open_read_only(&from.dir).expect("opened");
    LogStructuredStore::find_db(&volume).expect("its number")
}

#[test]
fn s01_the_root_removed_or_zeroed() {
    for from in [closed_in_segments(), crashed_in_segments()] {
        let out = after(from, |dir| remove(dir, ROOT));
        out.is_all_of(from);
        says_why(&out);
        let out = after(from, |dir| change_file(dir, ROOT, |bytes| bytes.fill(0)));
        out.is_all_of(from);
        says_why(&out);
    }
}

#[test]
fn s02_nothing_is_left_but_segments() {
    let from = closed_in_segments();
    let out = after(from, |dir| {
        remove(dir, ROOT);
        remove(dir, "control");
        remove(dir, "redo-");
    });
    out.is_all_of(from);
    says_why(&out);
}

#[test]
fn s03_every_block_of_the_map_damaged() {
    let from = closed_in_segments();
    let db = db_of(from);
    let mut blocks = 0;
    let out = after(from, |dir| {
        // A small database has none before.
        let volume: Arc<dyn Volume> = Arc::new(weir::FileVolume::open(dir).expect("opened"));
        let store = LogStore::open(&volume, db).expect("a store");
        store.checkpoint_map().expect("a map");
        drop((store, volume));
        segments(dir, |bytes| {
            for at in (0..bytes.len()).step_by(64) {
                let head = BlockHead::parse(db, &bytes[at..]);
                if head.is_some_and(|(head, _)| head.kind != BlockKind::Page) {
                    bytes[at + 40] ^= 1;
                    blocks += 1;
                }
            }
        });
    });
    assert!(blocks > 1, "a leaf, and the index");
    out.is_all_of(from);
    says_why(&out);
}

/// A page whose newest block is damaged is missing: an older block of it is not what it was last.
#[test]
fn s04_the_root_removed_and_newest_blocks_damaged() {
    let from = closed_in_segments();
    let mut hit = only::<7>(&pages_of(from, Kind::Leaf, "herons")).to_vec();
    hit.extend(only::<3>(&pages_of(from, Kind::Overflow, "weirs")));
    let mut lost = rows_on(from, &hit);
    lost.extend(rows_over(from, &hit));
    let at: Vec<usize> = hit.iter().map(|&page| offset_of(from, page)).collect();
    let out = after(from, |dir| {
        remove(dir, ROOT);
        segments(dir, |bytes| at.iter().for_each(|&at| bytes[at + 40] ^= 1));
    });
    out.has_all_but(from, &lost);
    says_why(&out);
    assert!(out.rows.len() >= from.rows.len() - lost.len(), "rows that could be saved");
    let missing = |name: &str| out.tree(from, name).leaves_missing;
    assert_eq!(missing("herons"), 7);
    for (tree, key) in &lost {
        let tree = out.tree(from, tree);
        let is_in = |range: &weir_salvage::MissingRange| {
            range.low.as_ref().is_none_or(|low| low <= key)
                && range.high.as_ref().is_none_or(|high| key < high)
        };
        assert!(tree.missing.iter().any(is_in) || tree.values_lost_keys.contains(key), "{key:?}");
    }
}

/// Blocks say themselves whose they are.
#[test]
fn s05_every_header_of_chunks_damaged() {
    let from = crashed_in_segments();
    let db = db_of(from);
    let mut chunks = 0;
    let out = after(from, |dir| {
        remove(dir, ROOT);
        segments(dir, |bytes| {
            for at in (0..bytes.len()).step_by(ALIGN) {
                if ChunkHead::parse(db, &bytes[at..]).is_some() {
                    bytes[at..at + 32].fill(0x77);
                    chunks += 1;
                }
            }
        });
    });
    assert!(chunks > 20, "{chunks}");
    let (same, others) = out.are_all_from_its_past(from);
    println!("{same} of {} rows as they were last, {others} others", from.rows.len());
    says_why(&out);
    assert_eq!((same, others), (from.rows.len(), 0));
}

#[test]
fn s06_headers_of_segments_damaged() {
    let from = closed_in_segments();
    let db = db_of(from);
    let mut left = 1;
    let out = after(from, |dir| {
        remove(dir, ROOT);
        segments(dir, |bytes| {
            for at in (0..bytes.len()).step_by(ALIGN) {
                let head = SegmentHead::parse(db, &bytes[at..]);
                // One says how long they are.
                if head.is_some_and(|head| head.segment.0 == 0 || std::mem::take(&mut left) == 0) {
                    bytes[at] ^= 1;
                }
            }
        });
    });
    out.is_all_of(from);
    says_why(&out);
}

#[test]
fn s07_the_file_of_segments_cut_short() {
    for root in [true, false] {
        let from = closed_in_segments();
        let mut kept = 0;
        let out = after(from, |dir| {
            segments(dir, |bytes| {
                let used = bytes.chunks(ALIGN).rposition(|block| block.iter().any(|&b| b != 0));
                kept = used.expect("something") * ALIGN * 2 / 3 + 100;
                bytes.truncate(kept);
            });
            if !root {
                remove(dir, ROOT);
            }
        });
        let cut = from.with_segments(|store| {
            let is_cut = |page: &u32| store.place(PageNo(*page)).1 as usize + ALIGN > kept;
            (0..store.pages()).filter(is_cut).collect::<Vec<u32>>()
        });
        let mut lost: BTreeSet<_> = rows_on(from, &cut);
        lost.extend(rows_over(from, &cut));
        out.are_all_from_its_past(from);
        says_why(&out);
        let found = from.rows.iter().filter(|(key, value)| out.rows.get(*key) == Some(value));
        let found = found.count();
        println!("{found} of {} rows as they were last, {} hit", from.rows.len(), lost.len());
        assert!(found >= from.rows.len() - lost.len(), "rows that could be saved");
    }
}

#[test]
fn s08_nothing_to_save() {
    let dir = tempfile::tempdir().expect("a directory");
    let (damaged, saved) = (dir.path().join("damaged"), dir.path().join("saved"));
    crate::fixture::copy(&closed_in_segments().dir, &damaged);
    remove(&damaged, ROOT);
    let mut random = fastrand::Rng::with_seed(3);
    segments(&damaged, |bytes| bytes.fill_with(|| random.u8(..)));
    let options = weir_salvage::Options::default();
    let error = weir_salvage::salvage(&damaged, &saved, &options, &mut |_, _, _| ());
    let words = error.expect_err("nothing there").to_string();
    assert!(words.contains("how long segments are"), "{words}");
    assert!(!saved.join("control").exists(), "nothing is left of a database");
}
