//! How fast threads commit 150-byte groups durably, beside the device's own rate of durable 4 KiB
//! writes, in one run: `cargo run --release -p weir-redo --example commit_bench -- DIR [SECONDS]`.
#![allow(clippy::disallowed_methods)]
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use weir_base::{AlignedBuf, DbId, Lsn};
use weir_device::{FileVolume, Volume};
use weir_redo::{Durability, Log, LogConfig, ScanOptions, scan};

const BODY: [u8; 148] = [42; 148];
const DB: DbId = DbId(7);

fn raw_rate(volume: &dyn Volume, time: Duration) -> f64 {
    let file = volume.create("raw", 16 << 20).expect("create");
    file.sync().expect("sync");
    let page = AlignedBuf::zeroed(4096);
    let start = Instant::now();
    let mut writes = 0u64;
    while start.elapsed() < time {
        file.write_durable_at(writes % 4096 * 4096, &page).expect("write");
        writes += 1;
    }
    volume.remove("raw").expect("remove");
    writes as f64 / start.elapsed().as_secs_f64()
}

fn commit_rate(
    log: &Log,
    threads: usize,
    time: Duration,
    durability: Durability,
) -> (f64, f64, f64) {
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let (rounds, gather) = (log.stats().group_commits.get(), log.stats().gather_micros.get());
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut commits = 0;
                while !stop.load(Relaxed) {
                    let span = log.append(&BODY, |_| ()).expect("append");
                    log.wait(span.end, durability).expect("wait");
                    commits += 1;
                    if durability == Durability::Lazy && commits % 1024 == 0 {
                        log.set_checkpoint(log.durable());
                    }
                }
                total.fetch_add(commits, Relaxed);
            });
        }
        while start.elapsed() < time {
            thread::sleep(Duration::from_millis(5));
            log.set_checkpoint(log.durable());
            while log.maintain().expect("maintain") {}
            if durability == Durability::Lazy && log.backlog_bytes() > 2 << 20 {
                log.flush(Durability::Written).expect("flush");
            }
        }
        stop.store(true, Relaxed);
    });
    let seconds = start.elapsed().as_secs_f64();
    let rounds = (log.stats().group_commits.get() - rounds).max(1);
    let gather = log.stats().gather_micros.get() - gather;
    let commits = total.load(Relaxed) as f64;
    (commits / seconds, commits / rounds as f64, gather as f64 / rounds as f64)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().expect("usage: commit_bench DIR [SECONDS]"));
    let seconds: f64 = args.next().map_or(1.0, |text| text.parse().expect("seconds"));
    let time = Duration::from_secs_f64(seconds);
    std::fs::create_dir_all(&dir).expect("directory");
    let volume: Arc<dyn Volume> = Arc::new(FileVolume::open(&dir).expect("volume"));
    Log::remove_all(&*volume).expect("remove");
    println!("{}", volume.describe());
    let raw = raw_rate(&*volume, time);
    println!("raw durable 4 KiB writes          {raw:>9.0} /s");
    let config = LogConfig { db: DB, capacity_bytes: 256 << 20, buffer_bytes: 8 << 20 };
    let log = Log::create(Arc::clone(&volume), config, Lsn(0)).expect("create");
    for threads in [1, 2, 4, 8, 16, 32, 64, 128] {
        let (rate, group, gather) = commit_rate(&log, threads, time, Durability::Synced);
        println!(
            "{threads:>3} threads, synced  {rate:>9.0} commits/s, {:>5.2} x raw, mean group \
             {group:>5.1}, gathering {gather:>4.1} us a round",
            rate / raw
        );
    }
    for threads in [1, 2] {
        let (rate, ..) = commit_rate(&log, threads, time, Durability::Lazy);
        let nanos = threads as f64 * 1e9 / rate;
        println!("{threads:>3} threads, lazy    {rate:>9.0} commits/s, {nanos:.0} ns each");
    }
    scan_rate(&log, &*volume);
    drop(log);
    Log::remove_all(&*volume).expect("remove");
}

fn scan_rate(log: &Log, volume: &dyn Volume) {
    log.flush(Durability::Synced).expect("flush");
    let from = log.end();
    log.set_checkpoint(from);
    while log.end().bytes_since(from) < log.limit_bytes() {
        log.append(&BODY, |_| ()).expect("append");
    }
    log.flush(Durability::Synced).expect("flush");
    for read_ahead in [false, true] {
        let start = Instant::now();
        let options = ScanOptions { read_ahead, progress: None };
        let end = scan(volume, DB, from, options, |_, _| ControlFlow::Continue(())).expect("scan");
        let bytes = end.end.bytes_since(from) as f64;
        println!(
            "scan of {:.0} MB, read ahead {read_ahead}: {:.0} MB/s",
            bytes / 1e6,
            bytes / 1e6 / start.elapsed().as_secs_f64()
        );
    }
}
