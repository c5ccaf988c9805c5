//! Figures of transactions that the workloads of `weir bench` do not show: redo of an update as a
//! transaction of its own, one hot row, snapshots beside a thousand open transactions, and what a
//! reader costs that holds a snapshot: `cargo run --release --example transaction_figures -- DIR
//! [SECONDS [redo|hot-row|snapshots|long-reader [POOL_MIB]]]`.
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir::{Config, Db, Durability, Tree, TxnOptions};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROWS: u64 = 1_000_000;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: transaction_figures DIR [SECONDS [PART [POOL_MIB]]]")?;
    let seconds = args.next().map_or(Ok(10), |s| s.parse())?;
    let only = args.next();
    let pool_mib: u64 = args.next().map_or(Ok(1024), |s| s.parse())?;
    let asked = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let time = Duration::from_secs(seconds);
    let config = Config { log_bytes: 1 << 30, pool_bytes: pool_mib << 20, ..Config::default() };
    let db = Db::open(&PathBuf::from(dir), config)?;
    let tree = db.open_tree("rows")?;
    if tree.get(&0u64.to_be_bytes())?.is_none() {
        tree.bulk_load((0..ROWS).map(|n| (n.to_be_bytes(), [n as u8; 128])))?;
    }
    if asked("redo") {
        redo(&db, &tree)?;
    }
    if asked("hot-row") {
        hot_row(&db, &tree, time)?;
    }
    if asked("snapshots") {
        snapshots(&db, &tree)?;
    }
    if asked("long-reader") {
        long_reader(&db, &tree, time)?;
    }
    Ok(db.close()?)
}

/// Changes 120 of the 128 bytes of a row, in a transaction.
fn update(db: &Db, tree: &Tree, row: u64, what: u64, durability: Durability) -> Outcome<()> {
    let mut txn = db.begin(TxnOptions::default());
    txn.update(tree, &row.to_be_bytes(), |old, new| {
        new.extend_from_slice(&old[..8]);
        (0..15).for_each(|n| new.extend_from_slice(&scatter(what ^ n).to_le_bytes()));
        true
    })?;
    Ok(txn.commit_durably(durability)?)
}

fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (n >> 31)
}

fn redo(db: &Db, tree: &Tree) -> Outcome<()> {
    let (count, before) = (50_000, db.stats().redo_bytes);
    for n in 0..count {
        update(db, tree, scatter(n) % ROWS, n, Durability::Lazy)?;
    }
    let bytes = (db.stats().redo_bytes - before) as f64 / count as f64;
    println!("redo        {bytes:.0} bytes for an update of 120 bytes as a transaction");
    Ok(())
}

/// Commits a second, and the longest and the 99.9th percentile of one, in microseconds.
fn run(
    threads: u64,
    time: Duration,
    one: &(dyn Fn(u64, u64) -> Outcome<()> + Sync),
) -> Outcome<(f64, u64, u64)> {
    let (stop, next) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    let work = |thread| -> Outcome<Vec<u64>> {
        let mut micros = Vec::new();
        while !stop.load(Relaxed) {
            let began = Instant::now();
            one(thread, next.fetch_add(1, Relaxed))?;
            micros.push(began.elapsed().as_micros() as u64);
        }
        Ok(micros)
    };
    let work = &work;
    let mut micros = std::thread::scope(|scope| -> Outcome<Vec<u64>> {
        let workers: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        std::thread::sleep(time);
        stop.store(true, Relaxed);
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| "a thread panicked")??);
        }
        Ok(all)
    })?;
    let rate = micros.len() as f64 / began.elapsed().as_secs_f64();
    micros.sort_unstable();
    let at = |share: f64| micros.get((micros.len() as f64 * share) as usize).copied().unwrap_or(0);
    Ok((rate, at(0.999), micros.last().copied().unwrap_or(0)))
}

fn hot_row(db: &Db, tree: &Tree, time: Duration) -> Outcome<()> {
    for durability in [Durability::Lazy, Durability::Synced] {
        let mut alone = 0.0;
        for threads in [1, 64] {
            let (rate, p999, max) = run(threads, time, &|_, n| update(db, tree, 7, n, durability))?;
            if threads == 1 {
                alone = rate;
            }
            println!(
                "hot row     {threads:2} sessions, {durability:?}: {rate:.0}/s ({:.2} of one), \
                 p99.9 {p999} us, longest {max} us",
                rate / alone
            );
        }
    }
    Ok(())
}

fn snapshots(db: &Db, tree: &Tree) -> Outcome<()> {
    let take = || {
        let began = Instant::now();
        (0..200_000).for_each(|_| drop(db.snapshot()));
        began.elapsed().as_nanos() as f64 / 200_000.0
    };
    let alone = take();
    let mut open = Vec::new();
    for n in 0u64..1_000 {
        let mut txn = db.begin(TxnOptions::default());
        txn.put(tree, &(n * 7).to_be_bytes(), &[0; 128])?;
        open.push(txn);
    }
    println!("snapshot    {alone:.0} ns with none open, {:.0} ns with 1,000 open", take());
    Ok(())
}

fn long_reader(db: &Db, tree: &Tree, time: Duration) -> Outcome<()> {
    let calls = AtomicU64::new(0);
    let one = |_, n| {
        let row = scatter(calls.fetch_add(1, Relaxed)) % ROWS;
        update(db, tree, row, n, Durability::Lazy)
    };
    // Page writes share the processors from then on, with the reader and without.
    while age_percent(db) < 75.0 {
        run(2, time / 5, &one)?;
    }
    let (before, ..) = run(2, time, &one)?;
    let snapshot = db.snapshot();
    let mut reader = db.begin(TxnOptions::default());
    reader.share(&snapshot).expect("of this database");
    let seen = all_rows(&mut reader, tree)?;
    let memory = resident_mib();
    let (began, mut rates) = (Instant::now(), Vec::new());
    while began.elapsed() < time * 6 {
        rates.push(run(2, time / 5, &one)?.0);
    }
    let beside = rates.iter().sum::<f64>() / rates.len() as f64;
    let worst = rates.iter().copied().fold(f64::MAX, f64::min);
    let (stats, held) = (db.stats(), began.elapsed().as_secs_f64());
    let (age, more) = (age_percent(db), resident_mib().saturating_sub(memory));
    let began = Instant::now();
    let still_seen = all_rows(&mut reader, tree)?;
    let read = began.elapsed().as_secs_f64();
    if still_seen != seen || seen.0 != ROWS {
        return Err("the snapshot has changed".into());
    }
    drop((reader, snapshot));
    // Until what it held is given back.
    run(2, time, &one)?;
    let (after, ..) = run(2, time, &one)?;
    println!(
        "long reader {held:.0} s: {beside:.0} updates/s beside it, worst stretch {worst:.0}; \
         {before:.0} before and {after:.0} after it: {:.2} of them\n            history {} \
         transactions, {} MiB of versions, {} more in trees, {more} MiB more resident, age \
         {age:.1} % of the limit; it reads {} rows in {read:.1} s",
        2.0 * beside / (before + after),
        stats.history_transactions,
        stats.version_bytes >> 20,
        stats.archived_versions,
        seen.0,
    );
    Ok(())
}

fn age_percent(db: &Db) -> f64 {
    let stats = db.stats();
    100.0 * stats.checkpoint_age_bytes as f64 / stats.checkpoint_age_limit_bytes as f64
}

/// How many rows a transaction sees, and a number made from all their bytes.
fn all_rows(reader: &mut weir::Txn, tree: &Tree) -> Outcome<(u64, u64)> {
    let mut cursor = reader.cursor(tree);
    let (mut rows, mut sum) = (0, 0u64);
    let mut on = cursor.seek_first(reader)?;
    while on {
        rows += 1;
        for part in cursor.value().chunks(8) {
            let word = part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            sum = scatter(sum ^ word);
        }
        on = cursor.next(reader)?;
    }
    Ok((rows, sum))
}

/// Memory of this process, as Linux tells; 0 elsewhere.
fn resident_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4 / 1024
}
