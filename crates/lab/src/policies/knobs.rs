//! What an operator of these engines has to set, with the defaults of their versions.
use super::kind::Kind;

/// The knobs. Names are those of the servers' settings, without `innodb_`.
#[derive(Clone, Debug, PartialEq)]
pub struct Knobs {
    /// `io_capacity`: pages per second (C).
    pub io_capacity: u64,
    /// `io_capacity_max`: pages per second at most (Cm).
    pub io_capacity_max: u64,
    /// `lru_scan_depth`: free pages kept ahead, for each instance of the pool.
    pub lru_scan_depth: u64,
    /// `buffer_pool_instances`.
    pub pool_instances: u64,
    /// `max_dirty_pages_pct`.
    pub max_dirty_pct: f64,
    /// `max_dirty_pages_pct_lwm`: below it dirty pages alone are no reason to write; 0: only at the
    /// maximum.
    pub max_dirty_pct_lwm: f64,
    /// `adaptive_flushing_lwm`: below this percentage of the log there is no adaptive flushing.
    pub adaptive_flushing_lwm: u64,
    /// `flushing_avg_loops`: looks over which rates are averaged.
    pub avg_loops: u64,
    /// `idle_flush_pct`: percent of C written while there is no commit (8.0.18 on).
    pub idle_flush_pct: u64,
    /// Threads at work that the log keeps room for.
    pub threads: u64,
    /// Percona's `cleaner_lsn_age_factor=high_checkpoint` instead of `legacy`.
    pub high_checkpoint: bool,
    /// Limits of the redo log as from MySQL 8.0.30 instead of those before.
    pub redo_capacity: bool,
    /// `doublewrite`, as far as a policy asks for it (`estimate` does).
    pub doublewrite: bool,
}

impl Knobs {
    /// The defaults of the version that the policy is from.
    #[must_use]
    pub fn defaults(kind: Kind) -> Self {
        let modern = Knobs {
            io_capacity: 200,
            io_capacity_max: 2000,
            lru_scan_depth: 1024,
            pool_instances: 8,
            max_dirty_pct: 90.0,
            max_dirty_pct_lwm: 10.0,
            adaptive_flushing_lwm: 10,
            avg_loops: 30,
            idle_flush_pct: 100,
            threads: 32,
            high_checkpoint: false,
            redo_capacity: false,
            doublewrite: true,
        };
        match kind {
            Kind::Deadline | Kind::Mysql8 => modern,
            Kind::Mysql56 => Knobs { max_dirty_pct: 75.0, max_dirty_pct_lwm: 0.0, ..modern },
            Kind::Mariadb105 => {
                Knobs { max_dirty_pct_lwm: 0.0, pool_instances: 1, lru_scan_depth: 1536, ..modern }
            }
            // Written into the program, not a setting.
            Kind::Furious => Knobs {
                io_capacity: 100,
                io_capacity_max: 100,
                pool_instances: 1,
                lru_scan_depth: 128,
                ..modern
            },
            Kind::Reflex | Kind::Estimate | Kind::KeepAverage => {
                Knobs { max_dirty_pct: 75.0, pool_instances: 1, lru_scan_depth: 128, ..modern }
            }
        }
    }

    /// The same with this C and Cm.
    #[must_use]
    pub fn with_capacity(self, io_capacity: u64, io_capacity_max: u64) -> Self {
        Knobs { io_capacity, io_capacity_max, ..self }
    }

    /// `PCT_IO`: so many percent of C, rounded down.
    pub(crate) fn percent_of_capacity(&self, percent: u64) -> u64 {
        (self.io_capacity as f64 * (percent as f64 / 100.0)) as u64
    }

    /// Free pages that the cleaner keeps, over all instances.
    pub(crate) fn lru_pages(&self) -> u64 {
        self.lru_scan_depth * self.pool_instances
    }

    /// Dirty pages as percentage of the pool.
    pub(crate) fn dirty_percent(dirty: u64, frames: u64) -> f64 {
        100.0 * dirty as f64 / (1.0 + frames as f64)
    }
}
