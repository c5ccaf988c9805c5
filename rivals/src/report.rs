//! The tables: one of medians over the rounds, and the same with every series in JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::run::{Series, Shape};

/// One store under one workload with one number of threads, over all rounds.
#[derive(Serialize)]
pub struct Row {
    pub workload: String,
    pub threads: usize,
    pub engine: String,
    pub how: String,
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
    /// The median over rounds of each round's worst second over its mean.
    pub worst_over_mean: f64,
    /// The median over rounds; it includes the flushes of everybody else.
    pub flushes_per_op: Option<f64>,
    pub rounds: Vec<Series>,
}

impl Row {
    pub fn new(workload: &str, threads: usize, engine: &str, how: String) -> Row {
        Row {
            workload: workload.to_string(),
            threads,
            engine: engine.to_string(),
            how,
            median: 0.0,
            lowest: 0.0,
            highest: 0.0,
            worst_over_mean: 0.0,
            flushes_per_op: None,
            rounds: Vec::new(),
        }
    }

    pub fn add(&mut self, series: Series) {
        self.rounds.push(series);
        let means: Vec<f64> = self.rounds.iter().map(|round| round.mean).collect();
        self.median = median(&means);
        self.lowest = means.iter().copied().fold(f64::INFINITY, f64::min);
        self.highest = means.iter().copied().fold(0.0, f64::max);
        let worst: Vec<f64> = self.rounds.iter().map(|round| round.worst_over_mean).collect();
        self.worst_over_mean = median(&worst);
        let flushes: Vec<f64> = self.rounds.iter().filter_map(|r| r.flushes_per_op).collect();
        self.flushes_per_op = (!flushes.is_empty()).then(|| median(&flushes));
    }
}

#[derive(Serialize)]
pub struct Report {
    pub shape: Shape,
    pub rounds: u64,
    pub versions: Vec<(String, String)>,
    pub cells: Vec<Row>,
    pub verified: bool,
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
    }
}

impl Report {
    /// The row for these, made on first use.
    pub fn row(&mut self, workload: &str, threads: usize, engine: &str, how: &str) -> &mut Row {
        let found = self.cells.iter().position(|row| {
            row.workload == workload && row.threads == threads && row.engine == engine
        });
        let at = found.unwrap_or_else(|| {
            self.cells.push(Row::new(workload, threads, engine, how.to_string()));
            self.cells.len() - 1
        });
        &mut self.cells[at]
    }

    pub fn markdown(&self) -> String {
        let shape = &self.shape;
        let mut text = format!(
            "{} rows, 8-byte keys, {}-byte values, {} rounds of {} s each, cache {} MiB\n\n",
            shape.rows,
            shape.value_bytes,
            self.rounds,
            shape.seconds,
            shape.cache_bytes >> 20
        );
        for (engine, version) in &self.versions {
            let _ = writeln!(text, "- {engine}: {version}");
        }
        text.push_str(
            "\n| workload | threads | store | per second, median | lowest to highest round",
        );
        text.push_str(" | worst second / mean | device flushes per op | durable how |");
        text.push_str("\n|---|---|---|---|---|---|---|---|\n");
        for row in &self.cells {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.0} | {:.0} to {:.0} | {:.2} | {} | {} |",
                row.workload,
                row.threads,
                row.engine,
                row.median,
                row.lowest,
                row.highest,
                row.worst_over_mean,
                row.flushes_per_op.map_or("-".to_string(), |flushes| format!("{flushes:.3}")),
                row.how
            );
        }
        let verdict = if self.verified { "every row, and a sample of bytes" } else { "NO" };
        let _ = writeln!(text, "\nverified at the end: {verdict}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
