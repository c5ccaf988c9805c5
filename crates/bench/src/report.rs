//! What a run leaves behind: a JSON file.
use crate::driver::Driven;
use crate::durability::Durability;
use crate::figures::Figures;
use crate::options::{DoubleWrite, Options, Phase, Phases, WorkloadKind};
use crate::section::Section;
use crate::settle::{Settling, changes, settlings};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// All that is known about a run. The names are the JSON's.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The figures of all phases together.
    #[serde(flatten)]
    pub figures: Figures,
    /// When a commit counted as done.
    pub durability: Durability,
    /// Whether every row was read back and is what it must be (BENCH-5).
    pub verified: bool,
    /// Rows read back.
    pub verified_rows: u64,
    /// What was wrong with them, if anything: the first few.
    pub problems: Vec<String>,
    /// The error that ended the run early.
    pub error: Option<String>,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// Whether the figures are those of the warm-up, because the run never got further.
    pub warmup_only: bool,
    /// Seconds of warm-up before the figures.
    pub warmup_seconds: u64,
    /// Seconds from opening the volume to the first measured second: the times of a disk's changes
    /// (`half=40s+30s`) count from the opening, the series from here.
    pub measured_from_seconds: f64,
    /// 4 KiB append-and-sync per second that the same volume did alone: the mean of the two below.
    pub raw_sync_rate: Option<f64>,
    /// In the second before the run.
    pub raw_sync_rate_before: Option<f64>,
    /// In the second after the run; none after an interrupted one.
    pub raw_sync_rate_after: Option<f64>,
    /// `tps_mean` over `raw_sync_rate`. None unless both rates were measured and agree within a
    /// quarter: a shared disk can change its rate a hundredfold within seconds, and a ratio to a
    /// rate of another moment would say nothing.
    pub tps_mean_over_raw_sync_rate: Option<f64>,
    /// What ran, on what.
    pub setup: Setup,
    /// The figures of each phase.
    pub phases: Vec<Figures>,
    /// How long each change of threads or disk was felt.
    pub settling: Vec<Settling>,
    /// Second by second.
    pub series: Series,
}

/// What ran, on what.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// The workload.
    pub workload: WorkloadKind,
    /// Rows at the start.
    pub rows: u64,
    /// Whether the table was there already.
    pub table_reused: bool,
    /// Whether the database holds no other bench table.
    pub table_alone: bool,
    /// Threads and seconds.
    pub phases: Phases,
    /// Memory for pages, bytes.
    pub pool_bytes: u64,
    /// Capacity of the log, bytes.
    pub log_bytes: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Pages that the trees occupy after the run.
    pub pages_allocated: u64,
    /// The greatest checkpoint age allowed, bytes.
    pub checkpoint_age_limit_bytes: u64,
    /// The disk that was imitated.
    pub disk: Option<String>,
    /// What the volume says about itself.
    pub volume: String,
    /// Where pages were kept, after the run.
    pub store: String,
    /// How torn page writes were guarded against, as far as it was asked for.
    pub doublewrite: DoubleWrite,
    /// The version of weir.
    pub version: &'static str,
    /// Processors that the operating system gives us.
    pub cpus: usize,
    /// Operating system and architecture.
    pub platform: String,
}

impl Setup {
    pub(crate) fn of(
        options: &Options,
        volume: &str,
        table_reused: bool,
        table_alone: bool,
    ) -> Self {
        Setup {
            workload: options.workload,
            rows: options.rows,
            table_reused,
            table_alone,
            phases: options.phases.clone(),
            pool_bytes: options.pool_bytes,
            log_bytes: options.log_bytes,
            page_size: 0,
            pages_allocated: 0,
            checkpoint_age_limit_bytes: 0,
            disk: options.disk.clone(),
            volume: volume.to_owned(),
            store: String::new(),
            doublewrite: options.doublewrite,
            version: env!("CARGO_PKG_VERSION"),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// One entry a second, warm-up not included.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// Transactions per second.
    pub tps: Vec<f64>,
    /// Checkpoint age as part of its limit, at the second's end.
    pub checkpoint_age_over_limit: Vec<f64>,
    /// Dirty pages at the second's end.
    pub dirty_pages: Vec<u64>,
    /// Pages written per second.
    pub page_writes_per_second: Vec<f64>,
    /// Redo bytes per second.
    pub redo_bytes_per_second: Vec<f64>,
    /// 99th percentile of the second's latencies, microseconds.
    pub latency_micros_p99: Vec<u64>,
    /// Processors of the machine that were at work; null where the system does not tell.
    pub processors_busy: Vec<Option<f64>>,
    /// Processors that were wanted and that the host gave to others.
    pub processors_stolen: Vec<Option<f64>>,
    /// Threads at work.
    pub threads: Vec<usize>,
}

impl Series {
    fn of(sections: &[&Section]) -> Self {
        let mut series = Series::default();
        for section in sections {
            for second in &section.seconds {
                series.tps.push(second.tps);
                series.checkpoint_age_over_limit.push(second.age_over_limit);
                series.dirty_pages.push(second.dirty_pages);
                series.page_writes_per_second.push(second.page_writes_per_second);
                series.redo_bytes_per_second.push(second.redo_bytes_per_second);
                series.latency_micros_p99.push(second.latency_micros_p99);
                series.processors_busy.push(second.processors.map(|p| p.busy));
                series.processors_stolen.push(second.processors.map(|p| p.stolen));
                series.threads.push(section.threads);
            }
        }
        series
    }
}

/// Two rates further apart than this (the greater over the smaller) are not one disk's rate
/// (BENCH-6).
const RAW_RATES_APART_MAX: f64 = 1.25;

/// `tps` over the mean of the two rates, if they agree.
fn over_steady(tps: f64, before: f64, after: f64) -> Option<f64> {
    let (least, most) = (before.min(after), before.max(after));
    let steady = least > 0.0 && most / least <= RAW_RATES_APART_MAX;
    steady.then(|| tps * 2.0 / (before + after))
}

impl Report {
    /// The report of what was driven, still unverified.
    pub(crate) fn of(
        driven: &Driven,
        options: &Options,
        mut setup: Setup,
        before: Option<f64>,
        after: Option<f64>,
    ) -> Self {
        let measured = driven.phases.iter().any(|section| !section.seconds.is_empty());
        let sections: Vec<&Section> =
            if measured { driven.phases.iter().collect() } else { vec![&driven.warmup] };
        let uniform = setup.workload == WorkloadKind::Update && setup.table_alone;
        let figures = Figures::of(&sections, uniform);
        if let Some(last) = sections.last() {
            setup.page_size = last.after.page_size;
            setup.pages_allocated = last.after.pages_allocated;
            setup.checkpoint_age_limit_bytes = last.after.checkpoint_age_limit_bytes;
        }
        let raw = before.zip(after);
        let over_raw = raw.and_then(|(before, after)| over_steady(figures.tps_mean, before, after));
        let series = Series::of(&sections);
        let measured_from_seconds = driven.measured_from_micros as f64 / 1e6;
        let told = if measured { changes(options, measured_from_seconds) } else { Vec::new() };
        Report {
            settling: settlings(&told, &series, setup.log_bytes),
            phases: driven.phases.iter().map(|section| Figures::of(&[section], uniform)).collect(),
            series,
            figures,
            durability: Durability::Synced,
            verified: false,
            verified_rows: 0,
            problems: Vec::new(),
            error: driven.error.as_ref().map(|error| format!("{error:#}")),
            interrupted: driven.interrupted,
            warmup_only: !measured,
            warmup_seconds: driven.warmup.seconds.len() as u64,
            measured_from_seconds,
            raw_sync_rate: raw.map(|(before, after)| (before + after) / 2.0).or(before),
            raw_sync_rate_before: before,
            raw_sync_rate_after: after,
            tps_mean_over_raw_sync_rate: over_raw,
            setup,
        }
    }

    /// The phases that were asked for, beside those that were reached.
    #[must_use]
    pub fn phases_asked(&self) -> &[Phase] {
        self.setup.phases.all()
    }
}

/// The report of any run: one of a table, or one with more in it.
pub trait RunReport: Serialize {
    /// What every run reports.
    fn common(&self) -> &Report;
}

impl RunReport for Report {
    fn common(&self) -> &Report {
        self
    }
}

/// Writes the report, whole or not at all: a temporary file beside it is renamed into place.
///
/// # Errors
/// When the file exists and may not be replaced, or cannot be written.
pub fn write_json(path: &Path, report: &impl RunReport, replace: bool) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(report)?;
    text.push(b'\n');
    replace_file(path, &text, replace)
}

/// Writes a file, whole or not at all: a temporary one beside it is renamed into place.
///
/// # Errors
/// When the file exists and may not be replaced, or cannot be written.
pub fn replace_file(path: &Path, bytes: &[u8], replace: bool) -> Result<()> {
    // A pipe or a device is written to: renaming a file into the place of /dev/null would put a
    // file there for all.
    if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return std::fs::write(path, bytes)
            .with_context(|| format!("cannot write the report {}", path.display()));
    }
    ensure!(replace || !path.exists(), "{} exists; --force replaces it", path.display());
    let mut name = path.file_name().context("the report needs a file name")?.to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let write = || -> Result<()> {
        let mut file = std::fs::File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&part, path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write the report {}", path.display())).inspect_err(
        |_| {
            // The error above is the one to tell; a leftover is harmless.
            let _ = std::fs::remove_file(&part);
        },
    )
}

#[cfg(test)]
mod tests {
    use super::over_steady;

    #[test]
    fn a_ratio_needs_a_steady_disk() {
        assert_eq!(over_steady(900.0, 1000.0, 1000.0), Some(0.9));
        assert_eq!(over_steady(900.0, 900.0, 1100.0), Some(0.9));
        assert_eq!(over_steady(27_314.0, 261.0, 34_150.0), None, "seen on a shared disk");
        assert_eq!(over_steady(900.0, 0.0, 0.0), None);
    }
}
