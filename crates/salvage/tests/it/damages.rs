//! The damages, each a test.
use std::collections::BTreeSet;
use std::path::Path;

use weir_page::Kind;
use weir_table::Tables;

use crate::after;
use crate::fixture::{BIRDS, Fixture, Key, PAGE, TREES, closed, crashed, crashed_in_segments};
use crate::layout::{
    change, change_file, files, flip, number_of, pages, pages_of, remove, rows_on, rows_over, zero,
};

fn nothing(_dir: &Path) {}

pub(crate) fn only<const N: usize>(pages: &[u32]) -> [u32; N] {
    std::array::from_fn(|at| pages[pages.len() * (2 * at + 1) / (2 * N)])
}

/// All inner nodes of all trees.
fn inner_nodes(from: &Fixture) -> Vec<u32> {
    from.names.values().flat_map(|name| pages_of(from, Kind::Inner, name)).collect()
}

fn catalog(dir: &Path) {
    let bytes = pages(dir);
    let of_catalog = |at: &u32| {
        let node = weir_page::Node::new(&bytes[*at as usize * PAGE..][..PAGE]);
        node.tree().0 == 1 && matches!(node.kind(), Some(Kind::Leaf | Kind::Inner))
    };
    let all: Vec<u32> = (0..(bytes.len() / PAGE) as u32).filter(of_catalog).collect();
    flip(dir, &all);
}

#[test]
fn d01_nothing_closed() {
    let out = after(closed(), nothing);
    out.is_all_of(closed());
    assert!(out.report.is_whole(), "{}", out.report);
    let tables = Tables::open(&out.db).expect("tables");
    let birds = tables.open_table("birds").expect("the table");
    let mut txn = out.db.begin(weir::TxnOptions::default());
    for id in 0..BIRDS {
        let bird = birds.get(&mut txn, &[id.into()]).expect("read").expect("a bird");
        assert_eq!(bird[1], format!("bird {}", id % 97).as_str().into());
    }
}

#[test]
fn d02_nothing_crashed() {
    let out = after(crashed(), nothing);
    out.is_all_of(crashed());
    assert!(out.report.is_whole(), "{}", out.report);
    assert_eq!(out.report.losers, 2);
    assert_eq!(out.report.prepared, [b"coordinator's".to_vec()]);
    let rolled_back: u64 = out.report.trees.iter().map(|tree| tree.rolled_back).sum();
    assert!(rolled_back > 300, "{rolled_back}");
}

#[test]
fn d03_control_file_removed_closed() {
    let out = after(closed(), |dir| remove(dir, "control"));
    out.is_all_of(closed());
}

#[test]
fn d04_control_file_removed_crashed() {
    let out = after(crashed(), |dir| remove(dir, "control"));
    out.is_all_of(crashed());
}

#[test]
fn d05_control_file_zeroed_crashed() {
    let out = after(crashed(), |dir| change_file(dir, "control", |bytes| bytes.fill(0)));
    out.is_all_of(crashed());
}

#[test]
fn d06_catalog_damaged() {
    let out = after(closed(), catalog);
    out.is_all_of(closed());
    assert!(out.report.trees.iter().all(|tree| tree.is_renamed), "{}", out.report);
    assert!(!out.report.is_whole());
}

#[test]
fn d07_root_of_a_tree_damaged() {
    let from = closed();
    let roots = pages_of(from, Kind::Inner, "herons");
    let bytes = from.pages();
    let level = |page: &u32| bytes[*page as usize * PAGE + 17];
    let root = roots.into_iter().max_by_key(level).expect("a root");
    let out = after(from, |dir| flip(dir, &[root]));
    out.is_all_of(from);
    assert_eq!(out.tree(from, "herons").inner_missing, 1);
}

#[test]
fn d08_all_inner_nodes_damaged() {
    let out = after(closed(), |dir| flip(dir, &inner_nodes(closed())));
    out.is_all_of(closed());
    assert!(!out.report.is_whole());
}

/// The rows of these leaves are lost, no others; each is in a range that is reported.
fn leaves_lost(from: &'static Fixture, leaves: &[u32], damage: impl FnOnce(&Path)) {
    let lost = rows_on(from, leaves);
    assert!(!lost.is_empty());
    let out = after(from, damage);
    out.has_all_but(from, &lost);
    let expected = from.rows.len() - lost.len();
    assert_eq!(out.rows.len(), expected, "rows that could be saved");
    out.are_all_from_its_past(from);
    for (tree, key) in &lost {
        let is_in = |range: &weir_salvage::MissingRange| {
            range.low.as_ref().is_none_or(|low| low <= key)
                && range.high.as_ref().is_none_or(|high| key < high)
                && leaves.contains(&range.page)
                && range.offset == u64::from(range.page) * PAGE as u64
        };
        assert!(out.tree(from, tree).missing.iter().any(is_in), "{tree} {key:?}");
    }
    let told: u64 = out.report.trees.iter().map(|tree| tree.leaves_missing).sum();
    assert_eq!(told, leaves.len() as u64);
}

#[test]
fn d09_a_leaf_damaged() {
    let leaves = only::<1>(&pages_of(closed(), Kind::Leaf, "herons"));
    leaves_lost(closed(), &leaves, |dir| flip(dir, &leaves));
}

#[test]
fn d10_leaves_of_several_trees_zeroed() {
    let mut leaves = only::<9>(&pages_of(closed(), Kind::Leaf, "herons")).to_vec();
    leaves.extend(only::<2>(&pages_of(closed(), Kind::Leaf, "weirs")));
    leaves_lost(closed(), &leaves, |dir| zero(dir, &leaves));
}

#[test]
fn d11_a_leaf_in_the_place_of_another() {
    let [one, other] = only::<2>(&pages_of(closed(), Kind::Leaf, "herons"));
    leaves_lost(closed(), &[other], |dir| {
        change(dir, |bytes| {
            let from = one as usize * PAGE;
            bytes.copy_within(from..from + PAGE, other as usize * PAGE);
        });
    });
}

#[test]
fn d12_space_map_damaged() {
    let out = after(closed(), |dir| flip(dir, &[0]));
    out.is_all_of(closed());
}

#[test]
fn d13_space_map_and_all_inner_nodes_damaged() {
    let from = closed();
    let out = after(from, |dir| {
        flip(dir, &inner_nodes(from));
        flip(dir, &[0]);
    });
    // Nothing says which leaves were freed: all rows are there, reported as what may be older.
    out.are_all_from_its_past(from);
    let found = |key: &Key| out.rows.get(key).or_else(|| out.strays.get(key));
    let lost = from.rows.iter().filter(|(key, value)| found(key) != Some(value)).count();
    assert_eq!(lost, 0, "{}", out.report);
    assert!(!out.report.is_whole());
}

#[test]
fn d14_log_removed_closed() {
    let out = after(closed(), |dir| remove(dir, "redo-"));
    out.is_all_of(closed());
}

#[test]
fn d15_log_removed_crashed() {
    let from = crashed();
    let out = after(from, |dir| remove(dir, "redo-"));
    let (same, others) = out.are_all_from_its_past(from);
    println!("{same} of {} rows as they were last, {others} others", from.rows.len());
    assert!(!out.report.is_current);
    assert!(same * 100 > from.rows.len() * 60, "{same} of {}", from.rows.len());
}

/// Where the middle of the log that recovery needs lies: file, and byte in it.
pub(crate) fn middle_of_log(from: &Fixture) -> (String, usize) {
    // The checkpoint and the end, from the control file.
    let control = from.file("control");
    let sequence = |at: usize| u64::from_le_bytes(control[at + 24..at + 32].try_into().expect("8"));
    let newer = if sequence(4096) > sequence(0) { 4096 } else { 0 };
    let field =
        |at: usize| u64::from_le_bytes(control[newer + at..newer + at + 8].try_into().expect("8"));
    let (checkpoint, synced) = (field(32), field(100));
    let middle = (checkpoint + synced) / 2;
    for name in files(&from.dir, "redo-") {
        let bytes = from.file(&name);
        let field = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8"));
        let (start, len) = (field(32), field(40));
        if bytes[..8] == *b"WEIRREDO" && (start..start + len).contains(&middle) {
            return (name, (4096 + middle - start) as usize);
        }
    }
    panic!("no file has it");
}

#[test]
fn d16_log_damaged_in_the_middle() {
    let from = crashed();
    let out = after(from, |dir| {
        let (file, at) = middle_of_log(from);
        change_file(dir, &file, |bytes| bytes[at + 100] ^= 1);
    });
    let (same, others) = out.are_all_from_its_past(from);
    println!("{same} of {} rows as they were last, {others} others", from.rows.len());
    assert!(!out.report.is_current);
    // Pages that the log says were changed behind the damage are reported apart.
    let found = |key: &Key| out.rows.get(key).or_else(|| out.strays.get(key));
    let same = from.rows.iter().filter(|(key, value)| found(key) == Some(value)).count();
    println!("with those told apart {same}");
    assert!(same * 100 > from.rows.len() * 90, "{same} of {}", from.rows.len());
    assert!(!out.strays.is_empty());
}

#[test]
fn d17_a_file_of_the_log_removed() {
    let from = crashed();
    let out = after(from, |dir| {
        let (file, _) = middle_of_log(from);
        std::fs::remove_file(dir.join(file)).expect("removed");
    });
    let (same, others) = out.are_all_from_its_past(from);
    println!("{same} of {} rows as they were last, {others} others", from.rows.len());
    assert!(!out.report.is_current);
    assert!(same * 100 > from.rows.len() * 60, "{same} of {}", from.rows.len());
}

#[test]
fn d18_a_header_of_the_log_damaged() {
    let from = crashed();
    let out = after(from, |dir| {
        let (file, _) = middle_of_log(from);
        change_file(dir, &file, |bytes| bytes[20] ^= 1);
    });
    let (same, _) = out.are_all_from_its_past(from);
    assert!(!out.report.is_current);
    assert!(same * 100 > from.rows.len() * 60, "{same} of {}", from.rows.len());
}

#[test]
fn d19_overflow_pages_damaged() {
    let from = closed();
    let overflow = only::<5>(&pages_of(from, Kind::Overflow, "weirs"));
    let lost = rows_over(from, &overflow);
    assert!(lost.len() >= 3, "{lost:?}");
    let out = after(from, |dir| flip(dir, &overflow));
    out.has_all_but(from, &lost);
    let weirs = out.tree(from, "weirs");
    let told: BTreeSet<Key> =
        weirs.values_lost_keys.iter().map(|key| ("weirs".to_owned(), key.clone())).collect();
    assert_eq!((told, weirs.values_lost), (lost.clone(), lost.len() as u64));
}

#[test]
fn d20_data_file_cut_short() {
    let from = closed();
    let whole = from.pages().len() / PAGE;
    let kept = whole * 2 / 3;
    let cut: Vec<u32> = (kept as u32..whole as u32).collect();
    let mut lost = rows_on(from, &cut);
    lost.extend(rows_over(from, &cut));
    assert!(lost.len() > 50, "{}", lost.len());
    let out = after(from, |dir| change(dir, |bytes| bytes.truncate(kept * PAGE + 512)));
    out.has_all_but(from, &lost);
    // More, where the doublewrite area has a copy of a page that was cut off.
    assert!(out.rows.len() >= from.rows.len() - lost.len(), "rows that could be saved");
}

#[test]
fn d21_control_file_catalog_and_log_gone() {
    let out = after(closed(), |dir| {
        remove(dir, "control");
        remove(dir, "redo-");
        catalog(dir);
    });
    out.has_all_but(closed(), &BTreeSet::new());
    assert!(!out.report.is_current, "nothing says that it was closed in order");
}

#[test]
fn d22_every_twentieth_page_damaged_crashed() {
    let from = crashed();
    let recovered = tempfile::tempdir().expect("a directory");
    let dir = recovered.path().join("sound");
    crate::fixture::copy(&from.dir, &dir);
    // Where rows lie once the log is applied.
    weir::Db::open(&dir, weir::Config::default()).expect("recovered").close().expect("closed");
    let whole = from.pages().len() / PAGE;
    let hit: Vec<u32> = (7..whole as u32).step_by(20).collect();
    let sound = crate::fixture::alike(from, dir);
    let mut lost = rows_on(&sound, &hit);
    lost.extend(rows_over(&sound, &hit));
    let out = after(from, |dir| flip(dir, &hit));
    out.are_all_from_its_past(from);
    let missing = from.rows.iter().filter(|(key, value)| out.rows.get(*key) != Some(value));
    let missing: BTreeSet<&Key> = missing.map(|(key, _)| key).collect();
    println!("{} rows missing, of {} that lay on damaged pages", missing.len(), lost.len());
    // Rolling back may have moved a few rows where that layout is from.
    assert!(missing.len() <= lost.len() * 21 / 20, "{} of {}", missing.len(), lost.len());
    for (tree, key) in missing {
        let tree = out.tree(from, tree);
        let is_in = |range: &weir_salvage::MissingRange| {
            range.low.as_ref().is_none_or(|low| low <= key)
                && range.high.as_ref().is_none_or(|high| key < high)
        };
        let is_reported = tree.missing.iter().any(is_in) || tree.values_lost_keys.contains(key);
        assert!(is_reported, "{} {key:?} is missing without a word", tree.name);
    }
    assert!(out.report.pages_repaired > 0, "the log makes some of the pages anew");
}

#[test]
fn d23_pages_with_a_copy_in_the_doublewrite_area() {
    let from = crashed();
    let area = files(&from.dir, "doublewrite-");
    let mut copied = Vec::new();
    for name in area {
        let bytes = std::fs::read(from.dir.join(name)).expect("read");
        let count = u32::from_le_bytes(bytes[40..44].try_into().expect("4")) as usize;
        let page = |at: usize| {
            u32::from_le_bytes(bytes[56 + at * 12..60 + at * 12].try_into().expect("4"))
        };
        copied.extend((0..count).map(page));
    }
    copied.retain(|page| *page > 3);
    assert!(!copied.is_empty());
    let out = after(from, |dir| flip(dir, &copied));
    out.are_all_from_its_past(from);
    let found = |key: &Key| out.rows.get(key).or_else(|| out.strays.get(key));
    let lost = from.rows.iter().filter(|(key, value)| found(key) != Some(value)).count();
    assert_eq!(lost, 0, "{}", out.report);
    assert!(out.report.pages_repaired > 0);
}

#[test]
fn d24_the_first_pages_zeroed() {
    let out = after(closed(), |dir| zero(dir, &[0, 1, 2, 3]));
    let from = closed();
    out.are_all_from_its_past(from);
    let found = |key: &Key| out.rows.get(key).or_else(|| out.strays.get(key));
    let missing = from.rows.iter().filter(|(key, value)| found(key) != Some(value));
    let missing: Vec<_> = missing.filter(|(key, _)| TREES.contains(&key.0.as_str())).collect();
    assert_eq!(missing.len(), 0, "{}", out.report);
    assert!(number_of(from, "herons") > 1);
}

#[test]
fn d25_nothing_to_save() {
    let dir = tempfile::tempdir().expect("a directory");
    let (damaged, saved) = (dir.path().join("damaged"), dir.path().join("saved"));
    crate::fixture::copy(&closed().dir, &damaged);
    change(&damaged, |bytes| bytes.fill(0x5a));
    let options = weir_salvage::Options::default();
    let error = weir_salvage::salvage(&damaged, &saved, &options, &mut |_, _, _| ());
    let words = error.expect_err("nothing there").to_string();
    assert!(words.contains("no page of 'pages' is sound"), "{words}");
    assert!(!saved.join("control").exists(), "nothing is left of a database");
    // One that is there is never touched.
    let sound = dir.path().join("sound");
    crate::fixture::copy(&closed().dir, &sound);
    let error = weir_salvage::salvage(&closed().dir, &sound, &options, &mut |_, _, _| ());
    let words = error.expect_err("there is one").to_string();
    assert!(words.contains("already") || words.contains("other files"), "{words}");
    assert!(crate::fixture::contents(&sound) == crate::fixture::contents(&closed().dir));
}

#[test]
fn d26_pages_in_segments_crashed() {
    let from = crashed_in_segments();
    let out = after(from, nothing);
    out.is_all_of(from);
    assert!(out.report.is_whole(), "{}", out.report);
}

#[test]
fn d27_pages_in_segments_control_file_removed_crashed() {
    let from = crashed_in_segments();
    let out = after(from, |dir| remove(dir, "control"));
    out.is_all_of(from);
}
