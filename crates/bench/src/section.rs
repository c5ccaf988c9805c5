//! What was seen, second by second, in one part of a run (the warm-up, or one phase).
use crate::processors::Processors;
use crate::target::Counters;
use hdrhistogram::Histogram;

/// Latencies above two minutes are recorded as two minutes.
const LATENCY_MICROS_MAX: u64 = 120_000_000;

/// An empty histogram of latencies in microseconds, exact to a thousandth.
pub(crate) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, 3).expect("the bounds are in order")
}

/// As [`latencies`], exact to a hundredth only, for those of which a run has thousands.
pub(crate) fn coarse_latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, 2).expect("the bounds are in order")
}

/// One second of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Second {
    /// Transactions per second, over the time that really passed between the two samples.
    pub(crate) tps: f64,
    /// The checkpoint age at the second's end, as part of the limit.
    pub(crate) age_over_limit: f64,
    pub(crate) dirty_pages: u64,
    pub(crate) page_writes_per_second: f64,
    pub(crate) redo_bytes_per_second: f64,
    pub(crate) latency_micros_p99: u64,
    /// Of the machine, where it tells.
    pub(crate) processors: Option<Processors>,
}

/// One part of a run.
pub(crate) struct Section {
    pub(crate) threads: usize,
    pub(crate) seconds: Vec<Second>,
    pub(crate) latencies: Histogram<u64>,
    /// Time from the first sample to the last.
    pub(crate) micros: u64,
    pub(crate) transactions: u64,
    pub(crate) before: Counters,
    pub(crate) after: Counters,
    /// Sum and number of the samples of age as part of the limit.
    pub(crate) age_sum: f64,
    pub(crate) age_samples: u64,
    pub(crate) age_max_over_limit: f64,
}

impl Section {
    pub(crate) fn new(threads: usize, before: Counters) -> Self {
        Section {
            threads,
            seconds: Vec::new(),
            latencies: latencies(),
            micros: 0,
            transactions: 0,
            before,
            after: before,
            age_sum: 0.0,
            age_samples: 0,
            age_max_over_limit: 0.0,
        }
    }

    /// A sample of the age between seconds.
    pub(crate) fn sample_age(&mut self, seen: &Counters) {
        let age = over(seen.checkpoint_age_bytes, seen.checkpoint_age_limit_bytes);
        self.age_sum += age;
        self.age_samples += 1;
        self.age_max_over_limit = self.age_max_over_limit.max(age);
    }

    /// A whole second has passed: `micros` long, with these transactions and their latencies.
    pub(crate) fn end_second(
        &mut self,
        micros: u64,
        transactions: u64,
        latencies: &Histogram<u64>,
        seen: Counters,
    ) {
        let length = (micros as f64 / 1e6).max(1e-6);
        let peak = over(seen.checkpoint_age_max_bytes, seen.checkpoint_age_limit_bytes);
        self.age_max_over_limit = self.age_max_over_limit.max(peak);
        let writes = seen.page_writes.since(&self.after.page_writes).total();
        let redo = seen.redo_bytes.saturating_sub(self.after.redo_bytes);
        self.seconds.push(Second {
            tps: transactions as f64 / length,
            age_over_limit: over(seen.checkpoint_age_bytes, seen.checkpoint_age_limit_bytes),
            dirty_pages: seen.dirty_pages,
            page_writes_per_second: writes as f64 / length,
            redo_bytes_per_second: redo as f64 / length,
            latency_micros_p99: latencies.value_at_quantile(0.99),
            processors: None,
        });
        self.latencies.add(latencies).expect("all histograms have the same bounds");
        self.micros += micros;
        self.transactions += transactions;
        self.after = seen;
    }

    /// What the machine's processors did in the second that has ended last.
    pub(crate) fn note_processors(&mut self, processors: Option<Processors>) {
        if let Some(last) = self.seconds.last_mut() {
            last.processors = processors;
        }
    }
}

/// `part / whole`, 0 when there is no whole.
pub(crate) fn over(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
