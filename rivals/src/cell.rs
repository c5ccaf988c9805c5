//! What one cell has shown: one store under one workload with one number of threads, once.

use serde::{Deserialize, Serialize};

use crate::plan::Workload;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    pub workload: String,
    pub threads: usize,
    pub durability: String,
    pub engine: String,
    pub round: u64,
    /// What is counted.
    pub unit: String,
    /// Of that in a second, over the time that really passed.
    pub mean: f64,
    /// Each whole second by itself.
    pub per_second: Vec<f64>,
    /// None with fewer than two whole seconds.
    pub worst_over_mean: Option<f64>,
    /// Device flushes per operation, by all processes; none where the kernel counts none.
    pub flushes_per_op: Option<f64>,
    /// How commits were made durable.
    pub how: String,
    /// Rows read back afterwards, all of them right.
    pub verified_rows: u64,
    /// Bytes on disk afterwards, with the store closed.
    pub size: Option<Size>,
    /// What opening took after a kill.
    pub opened: Option<Opened>,
    /// The most memory of the run's control group, cached files included, where there is one.
    #[serde(default)]
    pub memory_peak_bytes: Option<u64>,
    /// Why there is no figure.
    pub cannot: Option<String>,
}

/// Bytes that a store's files occupy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// All but logs and journals.
    pub data: u64,
    /// Logs and journals.
    pub log: u64,
    /// The most of both together while it worked, looked at once a second.
    pub greatest: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Opened {
    /// From the call to open until the first row was read.
    pub seconds: f64,
    /// Bytes on disk when the process was killed.
    pub bytes: u64,
    /// Commits that it had acknowledged: all of them were found.
    pub acknowledged: u64,
}

impl Cell {
    pub fn new(workload: Workload, threads: usize, engine: &str, round: u64) -> Cell {
        Cell {
            workload: workload.name().to_string(),
            threads,
            durability: workload.durability_name().to_string(),
            engine: engine.to_string(),
            round,
            unit: workload.unit().to_string(),
            ..Cell::default()
        }
    }

    /// Takes over what was seen, and what follows from it.
    pub fn saw(&mut self, per_second: Vec<f64>, mean: f64) {
        let worst = per_second.iter().copied().fold(f64::INFINITY, f64::min);
        self.worst_over_mean =
            (per_second.len() >= 2 && mean > 0.0).then(|| worst / mean.max(f64::MIN_POSITIVE));
        (self.mean, self.per_second) = (mean, per_second);
    }

    /// Whether these are the same row and column of the table, whatever the round.
    pub fn is_same(&self, workload: &str, threads: usize, engine: &str) -> bool {
        self.workload == workload && self.threads == threads && self.engine == engine
    }

    /// One thread's synced commits cannot share a flush, so fewer flushes than commits is a promise
    /// not kept, or a benchmark that is wrong. (Where a device has FUA a write may be durable
    /// without one.)
    pub fn is_suspect(&self) -> bool {
        self.workload == "update-synced"
            && self.threads == 1
            && self.flushes_per_op.is_some_and(|flushes| flushes < 0.95)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Durability;

    #[test]
    fn the_worst_second_is_relative_to_the_mean() {
        let mut cell = Cell::default();
        cell.saw(vec![10.0, 20.0, 30.0], 20.0);
        assert_eq!((cell.mean, cell.worst_over_mean), (20.0, Some(0.5)));
        cell.saw(vec![10.0], 10.0);
        assert_eq!(cell.worst_over_mean, None);
    }

    #[test]
    fn a_synced_cell_without_its_flushes_is_suspect() {
        let with = |durability, threads, flushes_per_op| Cell {
            flushes_per_op,
            ..Cell::new(Workload::Update(durability), threads, "x", 1)
        };
        assert!(with(Durability::Synced, 1, Some(0.261)).is_suspect());
        assert!(!with(Durability::Synced, 1, Some(1.0)).is_suspect());
        assert!(!with(Durability::Synced, 1, None).is_suspect());
        assert!(!with(Durability::Synced, 8, Some(0.2)).is_suspect());
        assert!(!with(Durability::Lazy, 1, Some(0.0)).is_suspect());
    }
}
