//! `weir bench sizes`: what a row costs by its size. For each size a database of its own: rows are
//! put in key order, read at random, scanned, updated at random, and all compared at the end with
//! what was acknowledged.
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result, anyhow, bail, ensure};
use weir::{Config, Db, Tree};
use weir_base::{Clock, SystemClock, parse_size};

use crate::durability::Durability;
use crate::record::scramble;

/// Sizes between two bounds are these: powers of two, and those around which stores change how
/// they lay a row out.
const STEPS: [u64; 19] = [
    64, 128, 256, 512, 1000, 1500, 2000, 2800, 3000, 4000, 4500, 5000, 6000, 8000, 12_000, 16_384,
    65_536, 262_144, 1_048_576,
];
const TREE: &str = "bench-sizes";
/// The largest value that is measured.
const VALUE_MAX_BYTES: u64 = 64 << 20;
/// Random steps between two looks at the clock.
const STEPS_PER_LOOK: u64 = 16;

/// The sizes of values to measure, in bytes: `64..1MiB` for steps in between, or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

impl FromStr for Sizes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let size = |part: &str| -> Result<u64> {
            let bytes = parse_size(part).map_err(|e| anyhow!("{e}"))?;
            ensure!(
                (16..=VALUE_MAX_BYTES).contains(&bytes),
                "a value of {bytes} bytes cannot be measured; 16 bytes to 64MiB can"
            );
            Ok(bytes)
        };
        let sizes = match text.split_once("..") {
            Some((from, to)) => {
                let (from, to) = (size(from)?, size(to)?);
                ensure!(from <= to, "{from} is beyond {to}: write the smaller size first");
                let between = STEPS.iter().copied().filter(|&step| from < step && step < to);
                let mut sizes: Vec<u64> = std::iter::once(from).chain(between).collect();
                if to > from {
                    sizes.push(to);
                }
                sizes
            }
            None => text.split(',').map(size).collect::<Result<_>>()?,
        };
        Ok(Sizes(sizes))
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct SizesOptions {
    /// Where the databases go; each is removed when it has been measured.
    pub dir: PathBuf,
    /// The sizes of values.
    pub sizes: Sizes,
    /// About so many bytes of values in each database.
    pub data_bytes: u64,
    /// How long reads and updates are measured, each.
    pub seconds: f64,
    /// Memory for pages.
    pub pool_bytes: u64,
    /// Bytes of a page; 0 leaves it to the store.
    pub page_size: usize,
    /// When a commit counts as done.
    pub durability: Durability,
}

/// What a size costs.
#[derive(Clone, Debug)]
pub struct SizeFigures {
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Bytes of pages in use after loading, a row.
    pub disk_bytes_per_row: f64,
    /// Rows put in key order, a second.
    pub loads: f64,
    /// Rows read at random, a second.
    pub reads: f64,
    /// Rows scanned, a second.
    pub scans: f64,
    /// Rows updated at random, a second: eight bytes of each.
    pub updates: f64,
}

/// The bytes of a row.
fn fill(value: &mut [u8], row: u64, version: u32) {
    let mut random = fastrand::Rng::with_seed(scramble(row));
    random.fill(value);
    // In the first part, as the counter of a row is.
    value[8..12].copy_from_slice(&version.to_le_bytes());
}

/// Measures each size, a line each as it comes. `None`: interrupted.
///
/// # Errors
/// When a directory is there already, a database fails, or a row is not what was acknowledged.
pub fn sizes(
    options: &SizesOptions,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Option<Vec<SizeFigures>>> {
    writeln!(
        out,
        "{:>9} {:>9} {:>12} {:>9} {:>11} {:>11} {:>11} {:>11}",
        "value", "rows", "disk/row", "disk/data", "load/s", "read/s", "scan/s", "update/s"
    )?;
    let mut all = Vec::new();
    for &value_bytes in &options.sizes.0 {
        let dir = options.dir.join(format!("value-{value_bytes}"));
        ensure!(!dir.exists(), "{} is there already: remove it first", dir.display());
        let measured = one(options, &dir, value_bytes, interrupt);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))?;
        }
        let Some(f) = measured.with_context(|| format!("values of {value_bytes} bytes"))? else {
            return Ok(None);
        };
        writeln!(
            out,
            "{:>9} {:>9} {:>12.1} {:>9.3} {:>11.0} {:>11.0} {:>11.0} {:>11.0}",
            f.value_bytes,
            f.rows,
            f.disk_bytes_per_row,
            f.disk_bytes_per_row / (f.value_bytes + 8) as f64,
            f.loads,
            f.reads,
            f.scans,
            f.updates
        )?;
        all.push(f);
    }
    Ok(Some(all))
}

/// A table under measurement.
struct Bench<'a> {
    clock: SystemClock,
    interrupt: &'a AtomicBool,
    durability: weir::Durability,
    tree: Tree,
    value: Vec<u8>,
    versions: Vec<u32>,
    random: fastrand::Rng,
}

fn one(
    options: &SizesOptions,
    dir: &std::path::Path,
    value_bytes: u64,
    interrupt: &AtomicBool,
) -> Result<Option<SizeFigures>> {
    let config = Config {
        pool_bytes: options.pool_bytes,
        page_size: options.page_size,
        ..Config::default()
    };
    let db = Db::open(dir, config)?;
    let before = db.stats();
    let rows = (options.data_bytes / value_bytes).clamp(16, 10_000_000);
    let mut bench = Bench {
        clock: SystemClock::new(),
        interrupt,
        durability: crate::engine::durability(options.durability),
        tree: db.create_tree(TREE)?,
        value: vec![0; value_bytes as usize],
        versions: vec![0; rows as usize],
        random: fastrand::Rng::with_seed(value_bytes),
    };
    let micros = (options.seconds * 1e6) as u64;
    let Some(loads) = bench.load()? else { return Ok(None) };
    let pages = db.stats().pages_allocated - before.pages_allocated;
    let disk_bytes_per_row = (pages * before.page_size as u64) as f64 / rows as f64;
    let Some(reads) = bench.for_a_while(micros, &mut Bench::read)? else { return Ok(None) };
    let Some(scans) = bench.scan()? else { return Ok(None) };
    let Some(updates) = bench.for_a_while(micros, &mut Bench::update)? else { return Ok(None) };
    // What was acknowledged, compared once more.
    if bench.scan()?.is_none() {
        return Ok(None);
    }
    drop(bench);
    db.close().context("closing")?;
    let loads = rows as f64 / loads;
    Ok(Some(SizeFigures { value_bytes, rows, disk_bytes_per_row, loads, reads, scans, updates }))
}

impl Bench<'_> {
    fn seconds_since(&self, begun: u64) -> f64 {
        (self.clock.now_micros() - begun).max(1) as f64 / 1e6
    }

    /// Puts all rows in order of their keys; returns seconds.
    fn load(&mut self) -> Result<Option<f64>> {
        let begun = self.clock.now_micros();
        for row in 0..self.versions.len() as u64 {
            if self.interrupt.load(Relaxed) {
                return Ok(None);
            }
            fill(&mut self.value, row, 0);
            self.tree.put(&row.to_be_bytes(), &self.value, self.durability)?;
        }
        Ok(Some(self.seconds_since(begun)))
    }

    fn pick(&mut self) -> u64 {
        self.random.u64(..self.versions.len() as u64)
    }

    /// Reads a row into `found` and looks at its version.
    fn read(&mut self) -> Result<()> {
        let row = self.pick();
        let there = self.tree.get_into(&row.to_be_bytes(), &mut self.value)?;
        let version = self.versions[row as usize];
        if !there || self.value.get(8..12) != Some(&version.to_le_bytes()[..]) {
            bail!("row {row} is not what was acknowledged (version {version})");
        }
        Ok(())
    }

    fn update(&mut self) -> Result<()> {
        let row = self.pick();
        let version = self.versions[row as usize] + 1;
        fill(&mut self.value, row, version);
        self.tree.put(&row.to_be_bytes(), &self.value, self.durability)?;
        self.versions[row as usize] = version;
        Ok(())
    }

    /// Does `step` for so long; returns steps a second.
    fn for_a_while(
        &mut self,
        micros: u64,
        step: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<Option<f64>> {
        let begun = self.clock.now_micros();
        let mut steps = 0;
        while self.clock.now_micros() - begun < micros {
            if self.interrupt.load(Relaxed) {
                return Ok(None);
            }
            for _ in 0..STEPS_PER_LOOK {
                step(self)?;
            }
            steps += STEPS_PER_LOOK;
        }
        Ok(Some(steps as f64 / self.seconds_since(begun)))
    }

    /// Walks over all rows; each must be what was acknowledged, to the last byte. Returns rows a
    /// second, the comparison not counted.
    fn scan(&mut self) -> Result<Option<f64>> {
        let begun = self.clock.now_micros();
        let mut cursor = self.tree.cursor();
        let mut on = cursor.seek_first()?;
        let mut bytes = 0u64;
        while on {
            bytes += cursor.value()?.len() as u64;
            on = cursor.next()?;
        }
        let rows = self.versions.len() as u64;
        let rate = rows as f64 / self.seconds_since(begun);
        ensure!(bytes == rows * self.value.len() as u64, "{bytes} bytes were scanned");
        let mut on = cursor.seek_first()?;
        for row in 0..rows {
            if self.interrupt.load(Relaxed) {
                return Ok(None);
            }
            fill(&mut self.value, row, self.versions[row as usize]);
            ensure!(
                on && cursor.key() == row.to_be_bytes() && cursor.value()? == &self.value[..],
                "row {row} is not what was acknowledged"
            );
            on = cursor.next()?;
        }
        ensure!(!on, "there are more rows than were put");
        Ok(Some(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_steps_or_a_list() {
        let of = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.0);
        assert_eq!(of("900..2KiB").ok(), Some(vec![900, 1000, 1500, 2000, 2048]));
        assert_eq!(of("64").ok(), Some(vec![64]));
        assert_eq!(of("3000,100").ok(), Some(vec![3000, 100]));
        assert_eq!(of("64..64").ok(), Some(vec![64]));
        for wrong in ["", "8", "2KiB..900", "1..", "x", "1GiB"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_loaded_read_updated_and_compared() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = SizesOptions {
            dir: dir.path().to_owned(),
            sizes: Sizes(vec![16, 3000, 9000]),
            data_bytes: 100_000,
            seconds: 0.02,
            pool_bytes: 16 << 20,
            page_size: 0,
            durability: Durability::Lazy,
        };
        let mut out = Vec::new();
        let figures = sizes(&options, &AtomicBool::new(false), &mut out).expect("measured");
        let figures = figures.expect("not interrupted");
        assert_eq!(figures.iter().map(|f| f.rows).collect::<Vec<_>>(), [6250, 33, 16]);
        assert!(figures.iter().all(|f| f.disk_bytes_per_row >= f.value_bytes as f64));
        assert!(figures.iter().all(|f| f.reads > 0.0 && f.updates > 0.0));
        assert_eq!(String::from_utf8_lossy(&out).lines().count(), 4);
        assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0, "all is removed");
        let interrupted = sizes(&options, &AtomicBool::new(true), &mut out).expect("no error");
        assert!(interrupted.is_none());
    }
}
