//! Figures of one run: what the assertions read and the table shows.

/// One second of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Second {
    pub(crate) commits: f64,
    pub(crate) pages: f64,
    pub(crate) age_over_limit: f64,
}

/// Figures over the measured part of a run.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) tps_mean: f64,
    /// Worst coefficient of variation of the per-second commits within a segment.
    pub(crate) tps_cv: f64,
    /// Worst second over the mean of its segment.
    pub(crate) worst_second: f64,
    pub(crate) age_mean: f64,
    pub(crate) age_min: f64,
    /// Mean age over the limit in the last 20 seconds.
    pub(crate) age_last: f64,
    /// Largest age over the limit at any append of the whole run.
    pub(crate) age_max: f64,
    pub(crate) gate_closed_seconds: f64,
    /// Page writes per transaction over N(1-e^(-W/N))/W; 0 where that has no meaning.
    pub(crate) pages_over_least: f64,
    /// Longest admission queue, in transactions.
    pub(crate) waiting_max: usize,
    /// Longest time without a commit, in seconds, of the whole run.
    pub(crate) standstill_seconds: f64,
    /// The whole run, second by second.
    pub(crate) seconds: Vec<Second>,
    /// CV of the per-second page writes within each log wrap, from the first on.
    pub(crate) cv_by_wrap: Vec<f64>,
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(crate) fn cv(values: &[f64]) -> f64 {
    let mean = mean(values);
    let variance =
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len().max(1) as f64;
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}

impl Report {
    pub(crate) fn header() -> String {
        "| scenario | tx/s | CV | worst s | mean age | least age | largest age | pages/least |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|"
            .to_owned()
    }

    pub(crate) fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {:.0} | {:.3} | {:.2} | {:.3} | {:.3} | {:.3} | {:.3} |",
            self.tps_mean,
            self.tps_cv,
            self.worst_second,
            self.age_mean,
            self.age_min,
            self.age_max,
            self.pages_over_least,
        )
    }
}
