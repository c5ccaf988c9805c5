//! What a run of TPC-C adds to the report of a run.
use super::consistency::Consistency;
use super::deck::Kind;
use super::store::Isolation;
use super::terminals::{Tally, retries_by_name};
use crate::figures::LatencyMicros;
use crate::report::{Report, RunReport};
use serde::Serialize;
use std::collections::BTreeMap;

/// All that is known about a run. The names are the JSON's.
#[derive(Clone, Debug, Serialize)]
pub struct TpccReport {
    /// As of every workload. `verified` says that all conditions hold, and that everything
    /// acknowledged is there and nothing else.
    #[serde(flatten)]
    pub report: Report,
    /// New-Orders committed per minute. There is no think time, so this is no tpmC of the
    /// specification, which allows at most 12.86 for each warehouse.
    pub tpmc: f64,
    /// Warehouses.
    pub warehouses: u16,
    /// Whether threads went on while their commits were synced.
    pub pipeline: bool,
    /// Whether the run began as soon as the database was open.
    pub restarted: bool,
    /// What transactions saw of each other.
    pub isolation: Isolation,
    /// By transaction.
    pub types: BTreeMap<&'static str, TypeFigures>,
    /// New-Orders that were rolled back because an item does not exist (clause 2.4.1.4). They are
    /// in no other figure.
    pub rolled_back: u64,
    /// Transactions tried again, by reason.
    pub retries: BTreeMap<&'static str, u64>,
    /// The twelve conditions; none when the database could not be read.
    pub consistency: Option<Consistency>,
}

/// Of one of the five transactions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TypeFigures {
    /// Acknowledged.
    pub count: u64,
    /// Of all that were.
    pub percent: f64,
    /// From its beginning to its acknowledgement, with all tries.
    pub latency_micros: LatencyMicros,
}

/// What was run.
pub(super) struct Ran {
    pub(super) warehouses: u16,
    pub(super) pipeline: bool,
    pub(super) restarted: bool,
    pub(super) isolation: Isolation,
}

impl RunReport for TpccReport {
    fn common(&self) -> &Report {
        &self.report
    }
}

impl TpccReport {
    /// The report of what `tally` counted in the time that `report` is about.
    pub(super) fn new(report: Report, tally: &Tally, ran: Ran) -> Self {
        let all: u64 = tally.latencies.iter().map(hdrhistogram::Histogram::len).sum();
        let minutes = report.figures.seconds / 60.0;
        let new_orders = tally.latencies[Kind::NewOrder as usize].len();
        let figures = |kind: Kind| {
            let latencies = &tally.latencies[kind as usize];
            let count = latencies.len();
            let percent = 100.0 * crate::section::over(count, all);
            let latency_micros = LatencyMicros::of_histogram(latencies);
            (kind.name(), TypeFigures { count, percent, latency_micros })
        };
        TpccReport {
            tpmc: if minutes > 0.0 { new_orders as f64 / minutes } else { 0.0 },
            warehouses: ran.warehouses,
            pipeline: ran.pipeline,
            restarted: ran.restarted,
            isolation: ran.isolation,
            types: Kind::ALL.into_iter().map(figures).collect(),
            rolled_back: tally.rolled_back,
            retries: retries_by_name(tally).collect(),
            consistency: None,
            report,
        }
    }
}
