//! Figures of reading that the workloads of `weir bench` do not show, of both page stores in turns:
//! a full scan of a tree that was loaded, and of one whose rows were all updated in random order,
//! and reads of single rows, each with an eighth of the data in the pool:
//! `cargo run --release --example store_figures -- DIR [ROWS [ROUNDS]]`, with a DIR that is new.
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir::{Config, Db, Durability, StoreKind, Tree, TxnOptions};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const VALUE: usize = 120;
const READS: u64 = 20_000;
const UPDATES_A_COMMIT: u64 = 100;
/// What the store does by itself when nothing else goes on.
const IDLE: Duration = Duration::from_secs(30);

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("usage: store_figures DIR [ROWS [ROUNDS]]")?);
    let rows: u64 = args.next().map_or(Ok(5_000_000), |n| n.parse())?;
    let rounds: u64 = args.next().map_or(Ok(2), |n| n.parse())?;
    std::fs::create_dir(&dir)?;
    for round in 0..rounds {
        let mut stores = [StoreKind::InPlace, StoreKind::Log];
        stores.rotate_left(round as usize % 2);
        for store in stores {
            let dir = dir.join(format!("{round}-{store:?}"));
            figures(&dir, store, rows)?;
            std::fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}

fn figures(dir: &Path, store: StoreKind, rows: u64) -> Outcome<()> {
    let pool_bytes = rows * (VALUE as u64 + 30) / 8;
    let open = || {
        Db::open(
            dir,
            Config { store: Some(store), log_bytes: 1 << 30, pool_bytes, ..Config::default() },
        )
    };
    let db = open()?;
    let tree = db.open_tree("rows")?;
    tree.bulk_load((0..rows).map(|n| (n.to_be_bytes(), value(n))))?;
    drop(tree);
    db.close()?;
    let say = |what: &str, figure: String| println!("{store:?}: {what:<28} {figure}");

    let db = open()?;
    let tree = db.open_tree("rows")?;
    say("scan after the load", scan(&tree, rows)?);
    say("reads of one row", reads(&tree, rows)?);
    // Each row once, in an order without neighbours: a step that has no divisor in common with the
    // number of rows.
    let step = (1 << 30) + 7;
    for begin in (0..rows).step_by(UPDATES_A_COMMIT as usize) {
        let mut txn = db.begin(TxnOptions::default());
        for n in begin..(begin + UPDATES_A_COMMIT).min(rows) {
            let row = (n as u128 * step % u128::from(rows)) as u64;
            txn.put(&tree, &row.to_be_bytes(), &value(row ^ 0x5555))?;
        }
        txn.commit_durably(Durability::Lazy)?;
    }
    drop(tree);
    db.close()?;

    let db = open()?;
    let tree = db.open_tree("rows")?;
    say("scan after updates of all", scan(&tree, rows)?);
    std::thread::sleep(IDLE);
    say("scan after half a minute", scan(&tree, rows)?);
    say("reads of one row", reads(&tree, rows)?);
    drop(tree);
    Ok(db.close()?)
}

/// Letters and digits, each of 62: what packs as TPC-C's strings do.
fn value(seed: u64) -> [u8; VALUE] {
    const SIGNS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut random = seed;
    std::array::from_fn(|_| {
        random = scatter(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
        SIGNS[(random % 62) as usize]
    })
}

fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn scan(tree: &Tree, rows: u64) -> Outcome<String> {
    let began = Instant::now();
    let (mut cursor, mut found, mut bytes) = (tree.cursor(), 0, 0);
    let mut is_there = cursor.seek_first()?;
    while is_there {
        found += 1;
        bytes += cursor.key().len() + cursor.value()?.len();
        is_there = cursor.next()?;
    }
    let seconds = began.elapsed().as_secs_f64();
    if found != rows {
        return Err(format!("{found} rows of {rows}").into());
    }
    Ok(format!("{:.0} rows/s, {:.0} MB/s", found as f64 / seconds, bytes as f64 / seconds / 1e6))
}

fn reads(tree: &Tree, rows: u64) -> Outcome<String> {
    let (mut micros, mut row) = (Vec::new(), Vec::new());
    for n in 0..READS {
        let key = scatter(n ^ 0xabcd) % rows;
        let began = Instant::now();
        if !tree.get_into(&key.to_be_bytes(), &mut row)? {
            return Err(format!("row {key} is not there").into());
        }
        micros.push(began.elapsed().as_nanos() as f64 / 1e3);
    }
    micros.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| micros[(micros.len() as f64 * share) as usize];
    Ok(format!("p50 {:.0} us, p90 {:.0} us, p99 {:.0} us", at(0.5), at(0.9), at(0.99)))
}
