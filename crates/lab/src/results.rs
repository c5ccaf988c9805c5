//! What an arm showed, kept in a file so that a run that was stopped goes on from there.
use crate::arm::Arm;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use weir_bench::{Figures, Phase, Rates, Report, Settling, settled_tps};

/// Of one arm.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Result1 {
    pub(crate) name: String,
    pub(crate) original: String,
    pub(crate) is_deadline: bool,
    /// Arms of the same group may be compared.
    pub(crate) group: String,
    /// C and Cm in pages a second.
    pub(crate) capacity: Option<(u64, u64)>,
    pub(crate) tps: f64,
    pub(crate) cv: f64,
    pub(crate) worst: f64,
    pub(crate) stalled: u64,
    pub(crate) p99_micros: u64,
    pub(crate) age_mean: f64,
    pub(crate) age_max: f64,
    pub(crate) age_limit_bytes: u64,
    pub(crate) pages_per_tx: f64,
    pub(crate) page_writes_per_second: f64,
    /// Part of the page writes that were for free frames.
    pub(crate) free_share: f64,
    pub(crate) redo_per_second: f64,
    pub(crate) log_bytes: u64,
    /// Threads and tps of each phase.
    pub(crate) phases: Vec<(usize, f64)>,
    /// Transactions of each measured second.
    pub(crate) seconds: Vec<f64>,
    pub(crate) warmup_seconds: u64,
    pub(crate) verified: bool,
    pub(crate) interrupted: bool,
    /// Anything else, by name: as it is shown.
    pub(crate) extra: Vec<(String, String)>,
    /// Settings as the report shows them.
    pub(crate) about: Vec<(String, String)>,
    /// The rows, for the charts.
    pub(crate) run: serde_json::Value,
}

impl Result1 {
    pub(crate) fn of(
        arm: &Arm,
        report: &Report,
        capacity: Option<(u64, u64)>,
        run: serde_json::Value,
    ) -> Result1 {
        let figures = &report.figures;
        let writes = &figures.page_writes;
        let all = writes.total().max(1) as f64;
        let seconds = figures.seconds.max(1e-9);
        let (cv, worst) = evenness(report.phases_asked(), &report.series.tps, figures);
        Result1 {
            name: arm.name.clone(),
            original: arm.original.to_owned(),
            is_deadline: capacity.is_none(),
            group: arm.group(),
            capacity,
            tps: figures.tps_mean,
            cv,
            worst,
            stalled: figures.stalled_seconds,
            p99_micros: figures.latency_micros.p99,
            age_mean: figures.checkpoint_age_mean_over_limit,
            age_max: figures.checkpoint_age_max_over_limit,
            age_limit_bytes: report.setup.checkpoint_age_limit_bytes,
            pages_per_tx: figures.page_writes_per_transaction,
            page_writes_per_second: writes.total() as f64 / seconds,
            free_share: writes.free_frames as f64 / all,
            redo_per_second: figures.redo_bytes_per_transaction * figures.tps_mean,
            log_bytes: report.setup.log_bytes,
            phases: report.phases.iter().map(|phase| (phase.threads, phase.tps_mean)).collect(),
            seconds: report.series.tps.clone(),
            warmup_seconds: report.warmup_seconds,
            verified: report.verified,
            interrupted: report.interrupted,
            extra: felt(&report.settling),
            about: weir_bench::page::about(report),
            run,
        }
    }

    /// Seconds of every log wrap.
    pub(crate) fn wrap_seconds(&self) -> f64 {
        if self.redo_per_second > 0.0 {
            self.log_bytes as f64 / self.redo_per_second
        } else {
            f64::INFINITY
        }
    }

    /// Transactions a second from the beginning, the warm-up included.
    pub(crate) fn all_seconds(&self) -> Vec<f64> {
        let column = |name: &str| {
            let columns = self.run["columns"].as_array()?;
            columns.iter().position(|column| column["name"] == name)
        };
        let Some(at) = column("weir_bench_rate_transactions") else { return Vec::new() };
        let rows = self.run["rows"].as_array().map_or(&[][..], Vec::as_slice);
        rows.iter().filter_map(|row| row[at].as_f64()).collect()
    }

    /// After how many log wraps the throughput stays within a tenth of its last half's mean.
    pub(crate) fn settled_after_wraps(&self) -> Option<f64> {
        settled_tps(&self.all_seconds()).map(|seconds| seconds as f64 / self.wrap_seconds())
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(self)?;
        let part = path.with_extension("part");
        let saved = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
        saved.with_context(|| format!("cannot keep the result {}", path.display()))
    }

    /// What was kept; `None` when there is nothing, or nothing that can be read.
    pub(crate) fn load(path: &Path) -> Option<Result1> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

/// Fewer seconds than these say nothing of evenness.
const SECONDS_MIN: usize = 3;

/// CV and the worst second over the mean. Of a run in phases within the seconds of as many threads,
/// since the step from one number of threads to another is no unevenness: the mean of the CVs by
/// seconds, and the worst of the worst.
fn evenness(phases: &[Phase], tps: &[f64], whole: &Figures) -> (f64, f64) {
    if phases.len() < 2 {
        return (whole.tps_cv, whole.tps_worst_second_over_mean);
    }
    let mut by_threads: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut rest = tps;
    for phase in phases {
        let (seconds, behind) = rest.split_at((phase.seconds as usize).min(rest.len()));
        by_threads.entry(phase.threads).or_default().extend(seconds);
        rest = behind;
    }
    let (mut cvs, mut seconds, mut worst) = (0.0, 0.0, f64::INFINITY);
    for tps in by_threads.values().filter(|tps| tps.len() >= SECONDS_MIN) {
        let rates = Rates::of(tps);
        cvs += tps.len() as f64 * rates.cv;
        seconds += tps.len() as f64;
        worst = worst.min(rates.worst_over_mean);
    }
    if seconds == 0.0 {
        return (whole.tps_cv, whole.tps_worst_second_over_mean);
    }
    (cvs / seconds, worst)
}

/// How many log wraps each change of the load was felt, as it is shown.
fn felt(settling: &[Settling]) -> Vec<(String, String)> {
    if settling.iter().all(|change| change.log_wraps.is_none()) {
        return Vec::new();
    }
    let wraps = |change: &Settling| change.log_wraps.map_or("-".into(), |w| format!("{w:.1}"));
    let all: Vec<String> = settling.iter().map(wraps).collect();
    vec![("felt, log wraps".to_owned(), all.join(", "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_load_are_no_unevenness() {
        let whole = Figures { tps_cv: 0.6, tps_worst_second_over_mean: 0.3, ..Figures::default() };
        let phase = |threads, seconds| Phase { threads, seconds };
        assert_eq!(evenness(&[phase(4, 8)], &[1.0, 9.0], &whole), (0.6, 0.3));
        let steps = [phase(4, 2), phase(32, 4), phase(4, 2)];
        let flat = [10.0, 10.0, 40.0, 40.0, 40.0, 40.0, 10.0, 10.0];
        assert_eq!(evenness(&steps, &flat, &whole), (0.0, 1.0));
        let uneven = [10.0, 10.0, 20.0, 60.0, 20.0, 60.0, 10.0, 10.0];
        assert_eq!(evenness(&steps, &uneven, &whole), (0.25, 0.5));
        // Cut off, and bursts too short to say anything of.
        let (cv, worst) = evenness(&steps, &uneven[..5], &whole);
        assert!((cv - 0.5657).abs() < 1e-4 && (worst - 0.6).abs() < 1e-9, "{cv} {worst}");
        assert_eq!(evenness(&[phase(4, 1), phase(64, 1)], &[10.0, 90.0], &whole), (0.6, 0.3));
    }

    #[test]
    fn a_reaction_time_is_given_in_wraps() {
        let change = |log_wraps| Settling {
            change: String::new(),
            at_second: 0,
            tps_seconds: None,
            age_seconds: None,
            log_wraps,
        };
        assert!(felt(&[change(None)]).is_empty());
        let shown = felt(&[change(Some(0.26)), change(None)]);
        assert_eq!(shown, [("felt, log wraps".to_owned(), "0.3, -".to_owned())]);
    }
}
