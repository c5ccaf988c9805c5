//! The figures of a run or a phase, computed from its seconds.
use crate::host::ProcessorFigures;
use crate::section::{Section, latencies, over};
use crate::target::PageWrites;
use hdrhistogram::Histogram;
use serde::Serialize;

/// What a run (or one phase of it) showed. Names and units are those of the JSON report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Threads at work; of a run with several phases the most.
    pub threads: usize,
    /// Measured time.
    pub seconds: f64,
    /// Transactions acknowledged in it.
    pub transactions: u64,
    /// Transactions per second: the mean of all seconds.
    pub tps_mean: f64,
    /// Coefficient of variation: standard deviation of the seconds over their mean.
    pub tps_cv: f64,
    /// The worst second as part of the mean.
    pub tps_worst_second_over_mean: f64,
    /// Seconds in which fewer than a tenth of the mean committed.
    pub stalled_seconds: u64,
    /// What the machine's processors did meanwhile; none where the system does not tell.
    pub processors: Option<ProcessorFigures>,
    /// How long transactions took.
    pub latency_micros: LatencyMicros,
    /// Bytes of redo per transaction.
    pub redo_bytes_per_transaction: f64,
    /// Pages written per transaction.
    pub page_writes_per_transaction: f64,
    /// The least that uniform updates allow, `N(1-e^(-W/N))/W` for `N` pages and `W` updates in the
    /// log behind the checkpoint; only for the update workload, in a database of its own, and once
    /// the age is steady.
    pub page_writes_per_transaction_least: Option<f64>,
    /// Pages written as multiple of that least.
    pub page_writes_over_least: Option<f64>,
    /// Pages written, by cause.
    pub page_writes: PageWrites,
    /// The mean of the checkpoint age, sampled every 10 ms, as part of its limit.
    pub checkpoint_age_mean_over_limit: f64,
    /// The greatest age (the store's own peak, not only samples) as part of its limit.
    pub checkpoint_age_max_over_limit: f64,
    /// Write calls to all files.
    pub device_writes: u64,
    /// Bytes written to all files.
    pub device_bytes_written: u64,
    /// Read calls to all files.
    pub device_reads: u64,
    /// Bytes read from all files.
    pub device_bytes_read: u64,
    /// Sync calls to all files.
    pub device_syncs: u64,
    /// Write calls of the log.
    pub log_writes: u64,
    /// Transactions that one log write carried, on average.
    pub commits_per_log_write: f64,
    /// How often a thread waited for a free frame.
    pub free_frame_waits: u64,
    /// How often a thread was held back by the admission of redo.
    pub admission_waits: u64,
    /// For how long, over all threads.
    pub admission_wait_micros: u64,
}

/// Percentiles of the time that a transaction took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LatencyMicros {
    /// Half took no longer.
    pub p50: u64,
    /// 99 % took no longer.
    pub p99: u64,
    /// 99.9 % took no longer.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// The age counts as steady when it ends no further from where it began, as part of the limit.
const AGE_DRIFT_MAX: f64 = 0.1;

/// A second counts as stalled below this part of the mean.
const STALLED_BELOW: f64 = 0.1;

impl Figures {
    /// Of sections that follow each other without a gap. `uniform_updates`: whether the least
    /// number of page writes can be computed.
    pub(crate) fn of(sections: &[&Section], uniform_updates: bool) -> Self {
        let (Some(first), Some(last)) = (sections.first(), sections.last()) else {
            return Figures::default();
        };
        let (before, after) = (&first.before, &last.after);
        let tps: Vec<f64> = sections.iter().flat_map(|s| s.seconds.iter().map(|x| x.tps)).collect();
        let rates = Rates::of(&tps);
        let transactions = sections.iter().map(|s| s.transactions).sum::<u64>();
        let page_writes = after.page_writes.since(&before.page_writes);
        let redo_bytes = after.redo_bytes.saturating_sub(before.redo_bytes);
        let redo_per_transaction = over(redo_bytes, transactions);
        let age_samples = sections.iter().map(|s| s.age_samples).sum::<u64>();
        let age_sum = sections.iter().map(|s| s.age_sum).sum::<f64>();
        let age_mean = if age_samples == 0 { 0.0 } else { age_sum / age_samples as f64 };
        let writes_per_transaction = over(page_writes.total(), transactions);
        // While the age grows, pages are still being saved up: what is written then has no least.
        let drift = after.checkpoint_age_bytes.abs_diff(before.checkpoint_age_bytes);
        let steady = over(drift, after.checkpoint_age_limit_bytes) <= AGE_DRIFT_MAX;
        let least = (uniform_updates && steady).then(|| {
            let age_bytes = age_mean * after.checkpoint_age_limit_bytes as f64;
            least_page_writes(after.pages_allocated as f64, age_bytes / redo_per_transaction)
        });
        let least = least.flatten();
        let log_writes = after.log_writes.saturating_sub(before.log_writes);
        Figures {
            threads: sections.iter().map(|s| s.threads).max().unwrap_or(0),
            seconds: sections.iter().map(|s| s.micros).sum::<u64>() as f64 / 1e6,
            transactions,
            tps_mean: rates.mean,
            tps_cv: rates.cv,
            tps_worst_second_over_mean: rates.worst_over_mean,
            stalled_seconds: rates.stalled,
            processors: ProcessorFigures::of(sections.iter().flat_map(|s| &s.seconds)),
            latency_micros: LatencyMicros::of(sections),
            redo_bytes_per_transaction: redo_per_transaction,
            page_writes_per_transaction: writes_per_transaction,
            page_writes_per_transaction_least: least,
            page_writes_over_least: least.map(|least| writes_per_transaction / least),
            page_writes,
            checkpoint_age_mean_over_limit: age_mean,
            checkpoint_age_max_over_limit: sections
                .iter()
                .fold(0.0, |max, s| s.age_max_over_limit.max(max)),
            device_writes: after.device_writes.saturating_sub(before.device_writes),
            device_bytes_written: after
                .device_bytes_written
                .saturating_sub(before.device_bytes_written),
            device_reads: after.device_reads.saturating_sub(before.device_reads),
            device_bytes_read: after.device_bytes_read.saturating_sub(before.device_bytes_read),
            device_syncs: after.device_syncs.saturating_sub(before.device_syncs),
            log_writes,
            commits_per_log_write: over(transactions, log_writes),
            free_frame_waits: after.free_frame_waits.saturating_sub(before.free_frame_waits),
            admission_waits: after.admission_waits.saturating_sub(before.admission_waits),
            admission_wait_micros: after
                .admission_wait_micros
                .saturating_sub(before.admission_wait_micros),
        }
    }
}

impl LatencyMicros {
    fn of(sections: &[&Section]) -> Self {
        let mut all = latencies();
        for section in sections {
            all.add(&section.latencies).expect("all histograms have the same bounds");
        }
        LatencyMicros::of_histogram(&all)
    }

    /// The percentiles of a histogram of microseconds.
    pub(crate) fn of_histogram(all: &Histogram<u64>) -> Self {
        LatencyMicros {
            p50: all.value_at_quantile(0.5),
            p99: all.value_at_quantile(0.99),
            p999: all.value_at_quantile(0.999),
            max: all.max(),
        }
    }
}

/// How even transactions a second are.
#[derive(Debug, PartialEq)]
pub struct Rates {
    /// Transactions a second.
    pub mean: f64,
    /// Standard deviation over the mean.
    pub cv: f64,
    /// The worst second over the mean.
    pub worst_over_mean: f64,
    /// Seconds that stood still.
    pub stalled: u64,
}

impl Rates {
    /// Of the seconds one after the other.
    #[must_use]
    pub fn of(tps: &[f64]) -> Self {
        let count = tps.len().max(1) as f64;
        let mean = tps.iter().sum::<f64>() / count;
        if mean <= 0.0 {
            // Nothing happened at all: every second stood still.
            return Rates { mean: 0.0, cv: 0.0, worst_over_mean: 0.0, stalled: tps.len() as u64 };
        }
        let variance = tps.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let worst = tps.iter().copied().fold(f64::INFINITY, f64::min);
        let stalled = tps.iter().filter(|&&x| x < STALLED_BELOW * mean).count();
        Rates {
            mean,
            cv: variance.sqrt() / mean,
            worst_over_mean: worst / mean,
            stalled: stalled as u64,
        }
    }
}

/// Page writes per update that no policy can undercut when `updates` uniform updates lie between
/// the checkpoint and the log's end and hit `pages` pages: so many distinct pages, `N(1-e^(-W/N))`,
/// must be written once per `W` updates. `None` when either is nothing.
fn least_page_writes(pages: f64, updates: f64) -> Option<f64> {
    let sane = pages >= 1.0 && updates.is_finite() && updates >= 1.0;
    sane.then(|| pages * -(-updates / pages).exp_m1() / updates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Counters;

    #[test]
    fn rates() {
        let flat = Rates::of(&[100.0; 10]);
        assert_eq!(flat, Rates { mean: 100.0, cv: 0.0, worst_over_mean: 1.0, stalled: 0 });
        // Mean 100, deviations 100, 100: standard deviation 100.
        let wave = Rates::of(&[0.0, 200.0, 0.0, 200.0]);
        assert_eq!(wave, Rates { mean: 100.0, cv: 1.0, worst_over_mean: 0.0, stalled: 2 });
        assert_eq!(Rates::of(&[0.0; 3]).stalled, 3);
        assert_eq!(Rates::of(&[]).stalled, 0);
    }

    #[test]
    fn least_writes() {
        // Few updates over many pages: each writes a page of its own.
        assert!((least_page_writes(1e6, 10.0).unwrap() - 1.0).abs() < 1e-4);
        // Many updates over few pages: every page once per W updates.
        assert!((least_page_writes(100.0, 1e6).unwrap() - 1e-4).abs() < 1e-9);
        // W = N: 1 - 1/e.
        assert!((least_page_writes(500.0, 500.0).unwrap() - 0.632_120_558).abs() < 1e-6);
        assert_eq!(least_page_writes(500.0, f64::INFINITY), None);
        assert_eq!(least_page_writes(0.0, 5.0), None);
    }

    #[test]
    fn sections_add_up() {
        let counters = |n: u64| Counters {
            redo_bytes: 150 * n,
            checkpoint_age_limit_bytes: 1000,
            checkpoint_age_bytes: 900,
            checkpoint_age_max_bytes: 950,
            pages_allocated: 10,
            log_writes: n / 2,
            page_writes: PageWrites { deadline: n / 10, ..PageWrites::default() },
            ..Counters::default()
        };
        let mut micros = latencies();
        micros.record_n(500, 100).unwrap();
        let mut one = Section::new(2, counters(1000));
        one.sample_age(&counters(1000));
        one.end_second(1_000_000, 100, &micros, counters(1100));
        let mut two = Section::new(4, counters(1100));
        two.sample_age(&Counters { checkpoint_age_bytes: 500, ..counters(1100) });
        two.end_second(2_000_000, 100, &micros, counters(1200));
        let all = Figures::of(&[&one, &two], true);
        assert_eq!((all.threads, all.seconds, all.transactions), (4, 3.0, 200));
        assert_eq!((all.tps_mean, all.tps_worst_second_over_mean), (75.0, 50.0 / 75.0));
        assert_eq!(all.redo_bytes_per_transaction, 150.0);
        assert_eq!(all.page_writes_per_transaction, 0.1);
        assert_eq!(all.commits_per_log_write, 2.0);
        assert_eq!(all.checkpoint_age_mean_over_limit, 0.7);
        assert_eq!(all.checkpoint_age_max_over_limit, 0.95);
        assert_eq!(all.latency_micros.p50, 500);
        // W = 700 / 150 updates over 10 pages.
        let updates: f64 = 700.0 / 150.0;
        let least = 10.0 * (1.0 - (-updates / 10.0).exp()) / updates;
        assert!((all.page_writes_per_transaction_least.unwrap() - least).abs() < 1e-9);
        assert_eq!(Figures::of(&[&one], false).page_writes_over_least, None);
        one.before.checkpoint_age_bytes = 0;
        assert_eq!(Figures::of(&[&one, &two], true).page_writes_over_least, None, "still growing");
    }
}
