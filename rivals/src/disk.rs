//! What the disk alone does, measured beside the stores: 4 KiB appended and synced, one at a time.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::drive::stopped;

const BLOCK: usize = 4096;
/// Flush requests that the block device under `dir` has completed since boot, if the kernel tells
/// (Documentation/block/stat.rst, field 16; partitions have no such count, so their disk is asked).
/// Evidence for what each store claims: one thread that syncs each commit must cause one flush
/// each. The flushes of all processes are in it, so that it can only be too high.
pub fn flushes(dir: &Path) -> Option<u64> {
    let device = std::fs::metadata(dir).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let mut folder = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    if folder.join("partition").exists() {
        folder.pop();
    }
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    stat.split_whitespace().nth(15)?.parse().ok()
}

/// Room written with zeros beforehand in the second and third way, then gone over again and again.
const LOG_BYTES: u64 = 64 << 20;

/// A block at an address that O_DIRECT accepts.
#[repr(C, align(4096))]
struct Block([u8; BLOCK]);

/// The ways a log can be appended to.
#[derive(Clone, Copy)]
pub enum Way {
    /// The file grows with each block: what a simple log does.
    Growing,
    /// Over space already written: no metadata changes with a sync.
    Recycled,
    /// The same, past the page cache.
    RecycledDirect,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Growing, Way::Recycled, Way::RecycledDirect];

    pub fn name(self) -> &'static str {
        match self {
            Way::Growing => "4 KiB append + fdatasync, file grows",
            Way::Recycled => "4 KiB append + fdatasync, space recycled",
            Way::RecycledDirect => "4 KiB append + fdatasync, space recycled, O_DIRECT",
        }
    }
}

/// Appends and syncs for `seconds`; blocks made durable in each second, or in all of a shorter
/// time.
pub fn measure(dir: &Path, way: Way, seconds: f64) -> Result<Vec<f64>> {
    std::fs::create_dir_all(dir)?;
    let path = dir.join("disk.probe");
    let block = Box::new(Block([0xa5; BLOCK]));
    if !matches!(way, Way::Growing) {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
        let zeros = vec![0; 1 << 20];
        for at in (0..LOG_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, at)?;
        }
        file.sync_all()?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    match way {
        Way::Growing => _ = options.truncate(true),
        Way::Recycled => {}
        Way::RecycledDirect => _ = options.custom_flags(libc::O_DIRECT),
    }
    let file = options.open(&path)?;
    let (mut per_second, mut count, mut at) = (Vec::new(), 0_u64, 0_u64);
    let start = Instant::now();
    let look = Duration::from_secs_f64(seconds.min(1.0));
    let looks = (seconds / look.as_secs_f64()).round() as usize;
    let mut next = start + look;
    while per_second.len() < looks && !stopped() {
        file.write_all_at(&block.0, at)?;
        file.sync_data()?;
        count += 1;
        at += BLOCK as u64;
        if at == LOG_BYTES && !matches!(way, Way::Growing) {
            at = 0;
        }
        if Instant::now() >= next {
            per_second.push(count as f64 / look.as_secs_f64());
            count = 0;
            next += look;
        }
    }
    std::fs::remove_file(&path)?;
    Ok(per_second)
}
