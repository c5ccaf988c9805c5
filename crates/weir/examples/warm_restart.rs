//! How fast a restarted database is, with what it keeps of which pages were in memory and without:
//! `cargo run --release --example warm_restart -- DIR [DISK]`, with a disk as `weir bench --disk`
//! takes it (for example `2000iops,32MiB`). Makes a database of 1,000,000 rows (230 MB) if there is
//! none in DIR.
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir::{Config, Db, DiskSpec, Durability, FileVolume, ThrottledVolume, Volume};

const ROWS: u64 = 1_000_000;
const VALUE_BYTES: usize = 200;
/// Throughput is shown for each so many milliseconds,
const SLICE_MILLIS: u64 = 250;
/// so often.
const SLICES: usize = 40;

/// What follows the opening.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Work {
    Nothing,
    Reads,
    SyncedUpdates,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().ok_or("usage: warm_restart DIR [DISK]")?;
    let disk = args.next().map(|text| text.parse::<DiskSpec>()).transpose()?;
    let dir = Path::new(&dir);
    make(dir)?;
    for work in [Work::Nothing, Work::Reads, Work::SyncedUpdates] {
        for is_warm in [true, false] {
            if work == Work::Nothing && !is_warm {
                continue;
            }
            run(dir, disk.as_ref(), work, is_warm)?;
        }
    }
    Ok(())
}

fn make(dir: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(dir, Config::default())?;
    let tree = db.open_tree("rows")?;
    if tree.get(&(ROWS - 1).to_be_bytes())?.is_none() {
        for row in 0..ROWS {
            tree.put(&row.to_be_bytes(), &[row as u8; VALUE_BYTES], Durability::Lazy)?;
        }
    }
    let mut cursor = tree.cursor();
    let mut on = cursor.seek_first()?;
    while on {
        on = cursor.next()?;
    }
    let stats = db.stats();
    let resident = stats.pool_frames - stats.pool_frames_free;
    println!("{resident} pages of {} bytes are in memory", stats.page_size);
    let began = Instant::now();
    db.close()?;
    println!("closed in {:.3} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn run(
    dir: &Path,
    disk: Option<&DiskSpec>,
    work: Work,
    is_warm: bool,
) -> Result<(), Box<dyn Error>> {
    let kept = dir.join("warm");
    let list = std::fs::read(&kept)?;
    if !is_warm {
        std::fs::remove_file(&kept)?;
    }
    let volume: Arc<dyn Volume> = Arc::new(FileVolume::open(dir)?);
    let volume = match disk {
        Some(disk) => Arc::new(ThrottledVolume::new(volume, disk.clone())),
        None => volume,
    };
    let began = Instant::now();
    let db = Db::open_on(volume, Config::default())?;
    println!(
        "\n{work:?}, {}: opened in {:.3} s; the list has {} bytes",
        if is_warm { "with the list" } else { "without" },
        began.elapsed().as_secs_f64(),
        list.len()
    );
    match work {
        Work::Nothing => alone(&db, began),
        _ => first_seconds(&db, work)?,
    }
    db.close()?;
    // The next run finds the same list.
    std::fs::write(&kept, list)?;
    Ok(())
}

fn alone(db: &Db, began: Instant) {
    let mut last = (0, began.elapsed());
    // Over when nothing has come for so long.
    while began.elapsed() - last.1 < Duration::from_millis(500) {
        let warmed = db.stats().pages_warmed;
        if warmed > last.0 {
            last = (warmed, began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{} pages in {:.3} s", last.0, last.1.as_secs_f64());
}

fn first_seconds(db: &Db, work: Work) -> Result<(), Box<dyn Error>> {
    let threads = if work == Work::Reads { 2 } else { 8 };
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let slowest = AtomicU64::new(0);
    let tree = db.open_tree("rows")?;
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let (tree, done, stop, slowest) = (&tree, &done, &stop, &slowest);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !stop.load(Ordering::Relaxed) {
                    let row = random.u64(0..ROWS);
                    let began = Instant::now();
                    let went = match work {
                        Work::SyncedUpdates => {
                            let value = [row as u8; VALUE_BYTES];
                            tree.put(&row.to_be_bytes(), &value, Durability::Synced)
                        }
                        _ => tree.get(&row.to_be_bytes()).map(|_| ()),
                    };
                    if let Err(e) = went {
                        eprintln!("{e}");
                        return;
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    slowest.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
                }
            });
        }
        let mut before = 0;
        let began = Instant::now();
        for slice in 1..=SLICES {
            let until = Duration::from_millis(SLICE_MILLIS * slice as u64);
            std::thread::sleep(until.saturating_sub(began.elapsed()));
            let now = done.load(Ordering::Relaxed);
            let stats = db.stats();
            let shown = slice <= 8 || slice % 4 == 0;
            let worst = slowest.swap(0, Ordering::Relaxed);
            if shown {
                println!(
                    "{:5.2} s  {:9} /s  slowest {:6.1} ms  {:6} pages warmed, {:6} read by others",
                    until.as_secs_f64(),
                    (now - before) * 1000 / SLICE_MILLIS,
                    worst as f64 / 1000.0,
                    stats.pages_warmed,
                    stats.page_reads - stats.pages_warmed
                );
            }
            before = now;
        }
        stop.store(true, Ordering::Relaxed);
    });
    Ok(())
}
