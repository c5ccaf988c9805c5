//! How fast threads commit 150-byte groups durably, beside the device's own rate of durable 4 KiB
//! writes, in one run:
//! `cargo run --release -p weir-redo --example commit_bench -- DIR [SECONDS [DISK]]`,
//! DISK being a throttled disk such as `2000iops`.
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use weir_base::{AlignedBuf, DbId, Lsn};
use weir_device::{BlockFile, FileVolume, ThrottledVolume, Volume};
use weir_redo::{Durability, Log, LogConfig, ScanOptions, scan};

const BODY: [u8; 148] = [42; 148];
const DB: DbId = DbId(7);

/// Slices of a measurement: other users of the machine disturb some of them.
const SLICES: usize = 5;

/// The device's rate of durable 4 KiB writes.
fn raw_rate(file: &dyn BlockFile, time: Duration) -> f64 {
    let page = AlignedBuf::zeroed(4096);
    let start = Instant::now();
    let mut writes = 0u64;
    while start.elapsed() < time {
        file.write_durable_at(writes % 4096 * 4096, &page).expect("write");
        writes += 1;
    }
    writes as f64 / start.elapsed().as_secs_f64()
}

/// Commits a second, members of a mean round, microseconds of gathering in a round.
fn commit_rate(log: &Log, threads: usize, time: Duration) -> (f64, f64, f64) {
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let (rounds, gather) = (log.stats().group_commits.get(), log.stats().gather_micros.get());
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut commits = 0;
                while !stop.load(Relaxed) {
                    let span = log.append(&BODY, |_| ()).expect("append");
                    log.wait(span.end, Durability::Synced).expect("wait");
                    commits += 1;
                }
                total.fetch_add(commits, Relaxed);
            });
        }
        while start.elapsed() < time {
            thread::sleep(Duration::from_millis(20));
            log.set_checkpoint(log.durable());
            while log.maintain().expect("maintain") {}
        }
        stop.store(true, Relaxed);
    });
    let seconds = start.elapsed().as_secs_f64();
    let rounds = (log.stats().group_commits.get() - rounds).max(1);
    let gather = log.stats().gather_micros.get() - gather;
    let commits = total.load(Relaxed) as f64;
    (commits / seconds, commits / rounds as f64, gather as f64 / rounds as f64)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print_commits(log: &Log, file: &dyn BlockFile, threads: usize, time: Duration) {
    let slice = time / SLICES as u32;
    let (mut raws, mut rates, mut ratios) = (vec![], vec![], vec![]);
    let (mut group, mut gather) = (0.0, 0.0);
    for _ in 0..SLICES {
        let raw = raw_rate(file, slice / 2);
        let (rate, members, gathering) = commit_rate(log, threads, slice);
        let raw = (raw + raw_rate(file, slice / 2)) / 2.0;
        raws.push(raw);
        rates.push(rate);
        ratios.push(rate / raw);
        group += members / SLICES as f64;
        gather += gathering / SLICES as f64;
    }
    let best = rates.iter().copied().fold(0.0, f64::max);
    println!(
        "{threads:>3} threads, synced {:>8.0} commits/s (best {best:>8.0}), {:>5.2} x raw \
             ({:>6.0}), \
         mean group {group:>5.1}, gathering {gather:>4.1} us a round",
        median(&mut rates),
        median(&mut ratios),
        median(&mut raws),
    );
}

/// Nanoseconds for an append into an empty buffer.
fn append_nanos(log: &Log, threads: usize) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..20 {
        log.flush(Durability::Synced).expect("flush");
        log.set_checkpoint(log.durable());
        let start = Instant::now();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..40_000 / threads {
                        log.append(&BODY, |_| ()).expect("append");
                    }
                });
            }
        });
        best = best.min(start.elapsed().as_nanos() as f64 * threads as f64 / 40_000.0);
    }
    best
}

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().expect("usage: commit_bench DIR [SECONDS]"));
    let seconds: f64 = args.next().map_or(1.0, |text| text.parse().expect("seconds"));
    let time = Duration::from_secs_f64(seconds);
    std::fs::create_dir_all(&dir).expect("directory");
    let mut volume: Arc<dyn Volume> = Arc::new(FileVolume::open(&dir).expect("volume"));
    if let Some(disk) = args.next() {
        volume = Arc::new(ThrottledVolume::new(volume, disk.parse().expect("a disk")));
    }
    Log::remove_all(&*volume).expect("remove");
    if volume.exists("raw").expect("exists") {
        volume.remove("raw").expect("remove");
    }
    println!("{}", volume.describe());
    let file = volume.create("raw", 16 << 20).expect("create");
    file.sync().expect("sync");
    let config = LogConfig { db: DB, capacity_bytes: 256 << 20, buffer_bytes: 8 << 20 };
    let log = Log::create(Arc::clone(&volume), config, Lsn(0)).expect("create");
    for threads in [1, 2, 4, 8, 16, 32, 64, 128] {
        print_commits(&log, &*file, threads, time);
    }
    for threads in [1, 2] {
        println!("{threads} threads: {:.0} ns an append", append_nanos(&log, threads));
    }
    scan_rate(&log, &*volume);
    drop(log);
    Log::remove_all(&*volume).expect("remove");
    volume.remove("raw").expect("remove");
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
