//! What a transaction of a million rows costs, with a pool and a log of 64 MiB: changed and rolled
//! back, changed and committed, and rolled back by recovery: `cargo run --release --example
//! large_transaction -- DIR [ROWS]`. Run it twice: the first run ends without a commit, as a crash
//! would.
use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir::{Config, Db, Durability, Tree, Txn, TxnOptions};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: large_transaction DIR [ROWS]")?);
    let rows = args.next().map_or(Ok(1_000_000), |s| s.parse())?;
    let config = Config { pool_bytes: 64 << 20, log_bytes: 64 << 20, ..Config::default() };
    let began = Instant::now();
    let db = Db::open(&dir, config)?;
    said("opened", began, &db);
    if let Some(tree) = db.tree("rows")? {
        check(&db, &tree, rows, 2)?;
        return Ok(db.close()?);
    }
    let tree = db.create_tree("rows")?;
    tree.bulk_load((0..rows).map(|n| (n.to_be_bytes(), value(n, 1))))?;
    said("loaded", began, &db);
    for (byte, commits) in [(3, false), (2, true)] {
        let began = Instant::now();
        let txn = change_all(&db, &tree, rows, byte)?;
        said("changed", began, &db);
        let ending = Instant::now();
        if commits {
            txn.commit_durably(Durability::Synced)?;
            said("committed", ending, &db);
        } else {
            let mut reader = db.begin(TxnOptions::default());
            for n in (0..rows).step_by(1_000) {
                assert!(reader.get(&tree, &n.to_be_bytes())?.is_some_and(|v| v[0] == 1));
            }
            said("read beside it", ending, &db);
            reader.rollback()?;
            let ending = Instant::now();
            txn.rollback()?;
            said("rolled back", ending, &db);
        }
        check(&db, &tree, rows, if commits { 2 } else { 1 })?;
    }
    let txn = change_all(&db, &tree, rows, 4)?;
    tree.put(&rows.to_be_bytes(), b"", Durability::Synced)?;
    tree.delete(&rows.to_be_bytes(), Durability::Synced)?;
    println!("ends in the middle of a transaction: run it again");
    std::mem::forget(txn);
    std::process::exit(0);
}

fn value(row: u64, byte: u8) -> Vec<u8> {
    vec![byte; 100 + row as usize % 50]
}

fn change_all(db: &Db, tree: &Tree, rows: u64, byte: u8) -> Outcome<Txn> {
    let mut txn = db.begin(TxnOptions::default());
    for n in 0..rows {
        txn.put(tree, &n.to_be_bytes(), &value(n, byte))?;
    }
    Ok(txn)
}

fn check(db: &Db, tree: &Tree, rows: u64, byte: u8) -> Outcome<()> {
    for n in 0..rows {
        assert!(tree.get(&n.to_be_bytes())? == Some(value(n, byte)), "row {n}");
    }
    // What the commit left to do is done in the background.
    std::thread::sleep(Duration::from_secs(2));
    let report = db.check(&mut |_, _| {})?;
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    println!("checked     {} rows, {} pages in use", rows, report.pages_used);
    Ok(())
}

fn said(what: &str, began: Instant, db: &Db) {
    let seconds = began.elapsed().as_secs_f64();
    let stats = db.stats();
    let redo = stats.redo_bytes >> 20;
    let age = stats.checkpoint_age_bytes >> 20;
    println!("{what:<15} {seconds:6.2} s, redo {redo} MiB in all, age {age} MiB, {}", memory());
}

/// The process's resident memory, where the system tells.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or_else(String::new, |kib| kib.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    format!("resident {}, most {}", line("VmRSS:"), line("VmHWM:"))
}
