//! How many cache lines that all cores share one operation writes, by site: the table of
//! `docs/shared-lines.md`, which this writes (`WEIR_BLESS=1`) and checks.
use std::collections::BTreeMap;
use std::fmt::Write as _;

use weir::{Db, Durability, Isolation, SimVolume, Tree, TxnOptions};
use weir_base::lines::{are_counted, count};

use crate::support::open;

/// So many of each, so that what every eighth commit does is in the mean.
const TIMES: u64 = 256;

const BEGIN: &str = "<!-- lines: WEIR_BLESS=1 cargo test -p weir --test it shared_lines -->";
const END: &str = "<!-- end of lines -->";

fn key(n: u64) -> [u8; 8] {
    (n % 16).to_be_bytes()
}

/// What one does, of so many.
type Operation = (&'static str, fn(&Db, &Tree, u64));

const OPERATIONS: &[Operation] = &[
    ("a row put", |_, tree, n| {
        tree.put(&key(n), &[n as u8; 40], Durability::Lazy).expect("put");
    }),
    ("a transaction of one row", |db, tree, n| {
        let mut txn = db.begin(TxnOptions::default());
        txn.put(tree, &key(n), &[n as u8; 40]).expect("put");
        txn.commit_durably(Durability::Lazy).expect("committed");
    }),
    ("a row read", |_, tree, n| {
        assert!(tree.get(&key(n)).expect("read").is_some());
    }),
    ("a transaction that reads a row", |db, tree, n| {
        let isolation = Isolation::ReadCommitted;
        let mut txn = db.begin(TxnOptions { isolation, ..TxnOptions::default() });
        assert!(txn.get(tree, &key(n)).expect("read").is_some());
        txn.commit_durably(Durability::Lazy).expect("committed");
    }),
    ("a snapshot", |db, _, _| drop(db.snapshot())),
];

/// By site, of each operation.
fn measured() -> BTreeMap<&'static str, Vec<u64>> {
    let db = open(&SimVolume::new(1)).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    let mut sites: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
    for (at, (_, operation)) in OPERATIONS.iter().enumerate() {
        // Pages are dirty, frames warm, memory is there.
        (0..TIMES).for_each(|n| operation(&db, &tree, n));
        let ((), wrote) = count(|| (0..TIMES).for_each(|n| operation(&db, &tree, n)));
        for (site, times) in wrote {
            sites.entry(site).or_insert_with(|| vec![0; OPERATIONS.len()])[at] = times;
        }
    }
    sites
}

fn table(sites: &BTreeMap<&'static str, Vec<u64>>) -> String {
    let mut text = String::from("| line |");
    OPERATIONS.iter().for_each(|(name, _)| write!(text, " {name} |").expect("written"));
    text.push_str("\n|---|");
    text.push_str(&"--:|".repeat(OPERATIONS.len()));
    let mean = |times: u64| match times as f64 / TIMES as f64 {
        0.0 => String::new(),
        few if few < 0.05 => "< 0.1".to_owned(),
        mean => format!("{mean:.1}"),
    };
    let mut row = |name: &str, times: &[u64]| {
        write!(text, "\n| {name} |").expect("written");
        times.iter().for_each(|&times| write!(text, " {} |", mean(times)).expect("written"));
    };
    for (site, times) in sites {
        row(site, times);
    }
    let sums: Vec<u64> =
        (0..OPERATIONS.len()).map(|at| sites.values().map(|times| times[at]).sum()).collect();
    row("**all**", &sums);
    text.push('\n');
    text
}

#[test]
fn the_page_says_which_shared_lines_are_written() {
    if !are_counted() {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/shared-lines.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("a place for the table");
    let (_, after) = rest.split_once(END).expect("an end of it");
    let wanted = format!("{before}{BEGIN}\n{}{END}{after}", table(&measured()));
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(path, wanted).expect("written");
        return;
    }
    assert!(page == wanted, "WEIR_BLESS=1 writes docs/shared-lines.md anew:\n{wanted}");
}
