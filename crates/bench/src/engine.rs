//! The adapter: `weir::Db` as a [`Target`], the disk it runs on, and that disk's own rate.
use crate::durability::Durability;
use crate::options::{DoubleWriteMode, Options};
use crate::record::KEY_BYTES;
use crate::target::{Counters, PageWrites, Table, Target, Visit, Watched};
use anyhow::{Context, Result, anyhow};
use std::ops::ControlFlow;
use std::sync::Arc;
use weir::{BlockFile, Config, Db, DiskSpec, FileVolume, ThrottledVolume, Volume};
use weir_base::{ALIGN, AlignedBuf, Clock, SystemClock};

/// Called with what recovery is at.
pub type OnRecovery = Arc<dyn Fn(&weir::Progress) + Send + Sync>;

/// A database opened for a run.
pub struct Opened {
    /// The store that is measured.
    pub engine: Engine,
    /// What it lies on.
    pub volume: Arc<dyn Volume>,
    /// Starts at zero when the volume is opened, as the times of a disk's changes do
    /// (`half=40s+30s`).
    pub clock: Arc<dyn Clock>,
}

impl Opened {
    /// 4 KiB append-and-sync per second that the volume does now, alone: measured for a second.
    ///
    /// # Errors
    /// Whatever the volume reports.
    pub fn raw_sync_rate(&self) -> Result<f64> {
        raw_rate(self.volume.as_ref(), self.clock.as_ref())
    }
}

/// `weir::Db` as a target.
pub struct Engine {
    db: Db,
    /// The disk that is imitated.
    disk: Option<Arc<ThrottledVolume>>,
}

/// Bytes of the file that the raw rate is measured on: zero-filled when it is made and then written
/// over, as the log's segments are, so that the file system has nothing to allocate meanwhile.
const RAW_BYTES: u64 = 4 << 20;
/// How long the raw rate is measured.
const RAW_MICROS: u64 = 1_000_000;
const RAW_NAME: &str = "raw-sync-rate.tmp";

/// Opens the database of `options`, on the disk that they ask for.
///
/// # Errors
/// When the disk is unknown, the directory holds something else, or the database cannot be opened.
pub fn open(options: &Options, on_recovery: Option<OnRecovery>) -> Result<Opened> {
    options.check()?;
    let disk = options.disk.as_deref().map(parse_disk).transpose()?;
    let what = || format!("cannot open {}", options.dir.display());
    let config = config(options, on_recovery);
    Db::check_directory(&options.dir, &config).with_context(what)?;
    let volume = FileVolume::open(&options.dir).with_context(what)?;
    let mut volume: Arc<dyn Volume> = Arc::new(volume);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let disk =
        disk.map(|spec| Arc::new(ThrottledVolume::with_clock(volume.clone(), spec, clock.clone())));
    if let Some(disk) = &disk {
        volume = disk.clone();
    }
    let db = Db::open_on(volume.clone(), config).with_context(what)?;
    if db.stats().log_capacity_bytes != options.log_bytes {
        db.set_log_bytes(options.log_bytes).context("changing the log's capacity")?;
    }
    db.set_recovery_seconds(options.recovery_seconds)?;
    Ok(Opened { engine: Engine { db, disk }, volume, clock })
}

fn parse_disk(text: &str) -> Result<DiskSpec> {
    text.parse::<DiskSpec>().map_err(|error| anyhow!("{error}"))
}

fn config(options: &Options, on_recovery: Option<OnRecovery>) -> Config {
    let mut config = Config {
        pool_bytes: options.pool_bytes,
        log_bytes: options.log_bytes,
        page_size: options.page_size,
        recovery_progress: on_recovery,
        store: options.store,
        encryption: options.encryption.clone(),
        lab: options.lab.policy.clone(),
        ..Config::default()
    };
    let doublewrite = &mut config.doublewrite;
    if let Some(mode) = options.doublewrite.mode {
        doublewrite.mode = match mode {
            DoubleWriteMode::On => weir::DoubleWriteMode::On,
            DoubleWriteMode::DetectOnly => weir::DoubleWriteMode::DetectOnly,
            DoubleWriteMode::Off => weir::DoubleWriteMode::Off,
        };
    }
    doublewrite.files = options.doublewrite.files.unwrap_or(doublewrite.files);
    doublewrite.pages = options.doublewrite.pages.unwrap_or(doublewrite.pages);
    config
}

fn raw_rate(volume: &dyn Volume, clock: &dyn Clock) -> Result<f64> {
    let measure = || -> std::io::Result<f64> {
        if volume.exists(RAW_NAME)? {
            volume.remove(RAW_NAME)?;
        }
        let file = volume.create(RAW_NAME, RAW_BYTES)?;
        let rate = sync_rate(file.as_ref(), clock);
        drop(file);
        volume.remove(RAW_NAME)?;
        rate
    };
    measure().context("measuring the disk's own rate of synced writes")
}

fn sync_rate(file: &dyn BlockFile, clock: &dyn Clock) -> std::io::Result<f64> {
    let mut block = AlignedBuf::zeroed(ALIGN);
    block.fill(0x5a);
    let start = clock.now_micros();
    let (mut writes, mut offset, mut passed) = (0u64, 0, 0);
    while passed < RAW_MICROS {
        file.write_durable_at(offset, &block)?;
        offset = (offset + ALIGN as u64) % RAW_BYTES;
        writes += 1;
        passed = clock.now_micros() - start;
    }
    Ok(writes as f64 * 1e6 / passed as f64)
}

impl Engine {
    /// A database that is open already.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Engine { db, disk: None }
    }

    /// It.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Writes everything and closes.
    ///
    /// # Errors
    /// When not everything could be written; acknowledged changes are in the log all the same.
    pub fn close(self) -> Result<()> {
        self.db.close().context("closing the database")
    }
}

impl Watched for Engine {
    fn kept_how(&self) -> String {
        let seen = self.db.stats();
        let Some(look) = seen.segments else { return format!("{}", seen.store) };
        let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        let unpacked = look.pages_written * seen.page_size as u64;
        format!(
            "{}: {} of segments, {:.0} % needed; {} pages packed to {:.0} %, {} copied",
            seen.store,
            weir::format_size(look.bytes),
            share(look.live_bytes, look.bytes),
            look.pages_written,
            share(look.bytes_packed, unpacked),
            look.pages_copied,
        )
    }

    fn counters(&self) -> Counters {
        let seen = self.db.stats();
        let writes = &seen.page_writes;
        Counters {
            redo_bytes: seen.redo_bytes,
            checkpoint_age_bytes: seen.checkpoint_age_bytes,
            checkpoint_age_limit_bytes: seen.checkpoint_age_limit_bytes,
            checkpoint_age_max_bytes: seen.checkpoint_age_max_bytes,
            log_capacity_bytes: seen.log_capacity_bytes,
            dirty_pages: seen.dirty_pages,
            pages_allocated: seen.pages_allocated,
            page_size: seen.page_size as u64,
            page_writes: PageWrites {
                deadline: writes.deadline,
                free_frames: writes.free_frames,
                idle: writes.idle,
                segment: writes.segment,
                shutdown: writes.shutdown,
            },
            log_writes: seen.log_writes,
            device_writes: seen.device.writes,
            device_bytes_written: seen.device.bytes_written,
            device_reads: seen.device.reads,
            device_bytes_read: seen.device.bytes_read,
            device_syncs: seen.device.syncs,
            free_frame_waits: seen.free_frame_waits,
            admission_waits: seen.admission_waits,
            admission_wait_micros: seen.admission_wait_micros,
        }
    }

    fn reset_peaks(&self) {
        self.db.reset_peaks();
    }

    fn hurry(&self, on: bool) {
        if let Some(disk) = &self.disk {
            disk.set_unlimited(on);
        }
    }

    fn visit_metrics(&self, visit: &mut dyn FnMut(weir::Metric, f64)) {
        self.db.visit_metrics(visit);
    }
}

impl Target for Engine {
    type Table = weir::Tree;

    fn table(&self, name: &str) -> Result<Option<weir::Tree>> {
        Ok(self.db.tree(name)?)
    }

    fn create_table(&self, name: &str) -> Result<weir::Tree> {
        Ok(self.db.create_tree(name)?)
    }

    fn drop_table(&self, name: &str) -> Result<()> {
        self.db.drop_tree(name)?;
        Ok(())
    }

    fn checkpoint(&self) -> Result<()> {
        Ok(self.db.checkpoint()?)
    }
}

pub(crate) fn durability(asked: Durability) -> weir::Durability {
    match asked {
        Durability::Synced => weir::Durability::Synced,
        Durability::Written => weir::Durability::Written,
        Durability::Lazy => weir::Durability::Lazy,
    }
}

impl Table for weir::Tree {
    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        Ok(weir::Tree::get_into(self, key, out)?)
    }

    fn put(&self, key: &[u8], value: &[u8], asked: Durability) -> Result<()> {
        Ok(weir::Tree::put(self, key, value, durability(asked))?)
    }

    fn bulk_load(&self, sorted: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<u64> {
        Ok(weir::Tree::bulk_load(self, sorted)?)
    }

    fn scan_up(&self, from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        let mut cursor = self.cursor();
        let on = if from.is_empty() { cursor.seek_first()? } else { cursor.seek(from)? };
        if on {
            cursor.visit(|key, value| {
                if visit(key, value) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(())
    }

    fn scan_down(&self, before: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<()> {
        let mut cursor = self.cursor();
        let mut on = match before {
            Some(key) => cursor.seek_before(key)?,
            None => cursor.seek_last()?,
        };
        let mut key = Vec::with_capacity(KEY_BYTES);
        while on {
            key.clear();
            key.extend_from_slice(cursor.key());
            if !visit(&key, cursor.value()?) {
                break;
            }
            on = cursor.prev()?;
        }
        Ok(())
    }
}
