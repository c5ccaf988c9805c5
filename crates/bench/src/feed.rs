//! What a run shows second by second: one row of numbers a second, under the names of one table.
//! The report, the live page and the metrics endpoint all read it; the run itself only appends.
use crate::locked::locked;
use crate::section::Section;
use crate::target::Watched;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::sync::{Arc, Mutex};
use weir::{Metric, MetricKind};

/// The rows of a run so far. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Feed(Arc<Mutex<Rows>>);

#[derive(Default)]
struct Rows {
    columns: Vec<Metric>,
    rows: Vec<Vec<f64>>,
    /// Every so many seconds a row is kept.
    every: u64,
    seen: u64,
    latest: Vec<f64>,
    ended: bool,
    /// How often rows were thinned out: a reader of some must begin anew.
    thinned: u64,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", locked(&self.0).rows.len())
    }
}

/// Some rows with what their columns mean.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Recorded {
    /// What the numbers of a row mean.
    pub columns: Vec<Column>,
    /// Numbers, a row for each second that was kept. Infinite ones are written as null.
    pub rows: Vec<Vec<f64>>,
    /// How many rows there were before the first of these.
    pub from: usize,
    /// Whether no more will come.
    pub ended: bool,
}

/// What a number means.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Its name in the metrics' table.
    pub name: String,
    /// Whether it only grows.
    pub counter: bool,
    /// In what it is counted.
    pub unit: &'static str,
    /// What it tells.
    pub help: &'static str,
}

/// Of a run, not of the store: names without `weir_bench_`, units, help texts.
const OWN: [(&str, &str, &str); 9] = [
    ("elapsed_seconds", "seconds", "since the first row"),
    ("warm_up_state", "state", "1 before the figures begin"),
    ("threads", "threads", "at work"),
    ("rate_transactions", "transactions", "transactions a second, in the last second"),
    ("latency_p50_seconds", "seconds", "half of the last second's transactions took no longer"),
    ("latency_p90_seconds", "seconds", "90 % of the last second's took no longer"),
    ("latency_p99_seconds", "seconds", "99 % of the last second's took no longer"),
    ("latency_p999_seconds", "seconds", "99.9 % of the last second's took no longer"),
    ("latency_max_seconds", "seconds", "the longest of the last second"),
];

/// More rows than this are thinned out to half: a page of more points shows nothing more.
const ROWS_MAX: usize = 14_400;

impl Recorded {
    /// Rows that tell nothing but what was done in each second.
    pub(crate) fn throughput(per_second: Vec<f64>) -> Recorded {
        let (elapsed, rate) = ("weir_bench_elapsed_seconds", "weir_bench_rate_transactions");
        let own = own_columns().into_iter().filter(|own| own.name == elapsed || own.name == rate);
        let rows = (1..).zip(per_second).map(|(second, rate)| vec![f64::from(second), rate]);
        Recorded {
            columns: own.map(Column::of).collect(),
            rows: rows.collect(),
            from: 0,
            ended: true,
        }
    }
}

impl Column {
    fn of(metric: Metric) -> Column {
        Column {
            counter: metric.kind == MetricKind::Counter,
            name: metric.name,
            unit: metric.unit,
            help: metric.help,
        }
    }
}

impl Feed {
    /// A second has ended; `latencies` are its own.
    pub(crate) fn push<T: Watched>(
        &self,
        target: &T,
        now_micros: u64,
        section: &Section,
        latencies: &Histogram<u64>,
        warm_up: bool,
    ) {
        let mut store = Vec::new();
        target.visit_metrics(&mut |metric, value| store.push((metric, value)));
        let quantile = |q: f64| latencies.value_at_quantile(q) as f64 / 1e6;
        let own = [
            now_micros as f64 / 1e6,
            f64::from(u8::from(warm_up)),
            section.threads as f64,
            section.seconds.last().map_or(0.0, |second| second.tps),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(0.999),
            latencies.max() as f64 / 1e6,
        ];
        let mut rows = locked(&self.0);
        if rows.columns.is_empty() {
            rows.columns = own_columns();
            rows.columns.extend(store.iter().map(|(metric, _)| metric.clone()));
            rows.every = 1;
        }
        let values = own.into_iter().chain(store.into_iter().map(|(_, value)| value));
        rows.latest = values.map(rounded).collect();
        rows.seen += 1;
        if rows.seen.is_multiple_of(rows.every) {
            let latest = rows.latest.clone();
            rows.rows.push(latest);
        }
        if rows.rows.len() >= ROWS_MAX {
            rows.every *= 2;
            rows.thinned += 1;
            let mut number = 0;
            rows.rows.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
    }

    /// No more rows will come.
    pub fn end(&self) {
        locked(&self.0).ended = true;
    }

    /// Rows from number `from` on. When there are not so many any more, all of them.
    #[must_use]
    pub fn recorded(&self, from: usize) -> Recorded {
        let rows = locked(&self.0);
        let from = if from <= rows.rows.len() { from } else { 0 };
        let columns = rows.columns.iter().cloned().map(Column::of);
        Recorded {
            columns: columns.collect(),
            rows: rows.rows[from..].to_vec(),
            from,
            ended: rows.ended,
        }
    }

    /// The latest value of each metric.
    #[must_use]
    pub fn latest(&self) -> Vec<(Metric, f64)> {
        let rows = locked(&self.0);
        rows.columns.iter().cloned().zip(rows.latest.iter().copied()).collect()
    }
}

fn own_columns() -> Vec<Metric> {
    let metric = |&(name, unit, help)| Metric {
        name: format!("weir_bench_{name}"),
        kind: MetricKind::Gauge,
        unit,
        help,
    };
    OWN.iter().map(metric).collect()
}

/// Seven digits are enough for anything that is drawn, but not for a counter of bytes.
fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 || !value.is_finite() {
        return value;
    }
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;
    use crate::section::latencies;
    use crate::target::Counters;

    #[test]
    fn a_long_run_is_thinned_out_and_readers_begin_anew() {
        let (feed, fake) = (Feed::default(), Fake::default());
        let section = Section::new(3, Counters::default());
        let push = |second: u64| {
            feed.push(&fake, second * 1_000_000, &section, &latencies(), second < 5);
        };
        (0..ROWS_MAX as u64 - 1).for_each(push);
        assert_eq!(feed.recorded(ROWS_MAX - 2).rows.len(), 1);
        push(ROWS_MAX as u64 - 1);
        let all = feed.recorded(ROWS_MAX - 1);
        assert_eq!((all.from, all.rows.len()), (0, ROWS_MAX / 2), "not so many any more");
        assert_eq!(all.rows[0][..3], [1.0, 1.0, 3.0]);
        push(ROWS_MAX as u64);
        assert_eq!(feed.recorded(0).rows.len(), ROWS_MAX / 2, "every other second now");
        assert_eq!(feed.latest()[0].1, ROWS_MAX as f64);
        assert!(feed.latest()[0].0.name.ends_with("elapsed_seconds"));
    }
}
