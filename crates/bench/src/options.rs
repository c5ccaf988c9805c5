//! What a run is asked to do.
use crate::durability::Durability;
use crate::feed::Feed;
use anyhow::{Result, bail, ensure};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use weir::StoreKind;

/// Everything that a run needs to know, apart from where to print.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the threads do.
    pub workload: WorkloadKind,
    /// The database's directory.
    pub dir: PathBuf,
    /// Rows in the table at the start.
    pub rows: u64,
    /// How many threads for how long.
    pub phases: Phases,
    /// When a commit counts as done.
    pub durability: Durability,
    /// Memory for pages.
    pub pool_bytes: u64,
    /// Capacity of the log.
    pub log_bytes: u64,
    /// Seconds that opening after a crash may take; 0: as long as the log's capacity leads to.
    pub recovery_seconds: f64,
    /// Bytes of a page at creation; 0 leaves it to the store.
    pub page_size: usize,
    /// The disk to imitate; `None` runs at the real one's speed.
    pub disk: Option<String>,
    /// Seconds before the figures start; `None` waits for one log wrap.
    pub warmup_seconds: Option<u64>,
    /// Drop the table and load it anew.
    pub fresh: bool,
    /// Where a new database keeps its pages; `None` leaves it to the store.
    pub store: Option<StoreKind>,
    /// With which keys the database is encrypted.
    pub encryption: Option<weir::Encryption>,
    /// How torn page writes are guarded against.
    pub doublewrite: DoubleWrite,
    /// Where to note each acknowledged change.
    pub ack_file: Option<PathBuf>,
    /// Measure the disk's own rate of synced 4 KiB writes before and after.
    pub raw: bool,
    /// For the laboratory: another policy that writes pages.
    pub lab: Lab,
    /// Where the run's seconds go, for a report or for people looking on.
    pub feed: Feed,
    /// Whether to paint a picture over itself every second instead of printing a line.
    pub compact: bool,
}

impl Options {
    /// A run of a million rows on the real disk, each commit synced, with everything else as the
    /// store decides.
    #[must_use]
    pub fn new(workload: WorkloadKind, dir: PathBuf, phases: Phases) -> Self {
        Options {
            workload,
            dir,
            rows: 1_000_000,
            phases,
            durability: Durability::Synced,
            pool_bytes: 1 << 30,
            log_bytes: 64 << 20,
            recovery_seconds: 0.0,
            page_size: 0,
            disk: None,
            warmup_seconds: None,
            fresh: false,
            store: None,
            encryption: None,
            doublewrite: DoubleWrite::default(),
            ack_file: None,
            raw: false,
            lab: Lab::default(),
            feed: Feed::default(),
            compact: false,
        }
    }

    /// Whether this can be run, as far as the store does not say so itself.
    ///
    /// # Errors
    /// What cannot be, and what can.
    pub fn check(&self) -> Result<()> {
        // How much TPC-C has is its scale's affair.
        let needs_rows = !matches!(self.workload, WorkloadKind::Insert | WorkloadKind::Tpcc);
        ensure!(
            self.rows > 0 || !needs_rows,
            "a table of 0 rows has nothing to {}",
            self.workload.name()
        );
        ensure!(self.log_bytes > 0, "a log of 0 bytes is not possible; 64MiB is usual");
        ensure!(
            self.recovery_seconds.is_finite() && self.recovery_seconds >= 0.0,
            "recovery cannot take {} seconds; with 0 the log decides",
            self.recovery_seconds
        );
        Ok(())
    }
}

/// What a laboratory asks of a run; by default nothing.
#[derive(Clone, Default)]
pub struct Lab {
    /// Another engine's policy in the place of the store's own.
    pub policy: Option<Arc<weir::lab::MakeSetup>>,
}

impl Lab {
    /// With this policy, or the store's own.
    #[must_use]
    pub fn with_policy(policy: Option<Arc<weir::lab::MakeSetup>>) -> Self {
        Lab { policy }
    }
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.policy.is_some() { "another policy" } else { "the store's own" })
    }
}

/// What the threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// Replace 120 of the 128 value bytes of a row chosen uniformly.
    Update,
    /// Insert a row with a new key, in random key order.
    Insert,
    /// Read a row chosen uniformly.
    Read,
    /// Read 100 neighbouring rows, upwards and downwards in turn.
    Scan,
    /// The five transactions of TPC-C, on nine tables.
    Tpcc,
}

impl WorkloadKind {
    /// Whether it changes rows.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, WorkloadKind::Update | WorkloadKind::Insert | WorkloadKind::Tpcc)
    }

    /// The word for it on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::Update => "update",
            WorkloadKind::Insert => "insert",
            WorkloadKind::Read => "read",
            WorkloadKind::Scan => "scan",
            WorkloadKind::Tpcc => "tpcc",
        }
    }
}

/// How torn page writes are guarded against; `None` leaves a choice to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DoubleWrite {
    /// Whether pages are written twice.
    pub mode: Option<DoubleWriteMode>,
    /// Files of the doublewrite area.
    pub files: Option<usize>,
    /// Pages per batch.
    pub pages: Option<usize>,
}

/// Whether pages are written twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoubleWriteMode {
    /// Torn pages are found and repaired.
    On,
    /// Torn pages are found.
    DetectOnly,
    /// Neither; for media that write a page as one.
    Off,
}

impl FromStr for DoubleWriteMode {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "on" => DoubleWriteMode::On,
            "detect-only" => DoubleWriteMode::DetectOnly,
            "off" => DoubleWriteMode::Off,
            _ => bail!("'{text}' is no doublewrite mode; choose on, detect-only or off"),
        })
    }
}

/// A number of threads for a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Phase {
    /// Threads at work.
    pub threads: usize,
    /// For how long.
    pub seconds: u64,
}

/// The phases of a run, one after the other without a pause.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Phases(Vec<Phase>);

/// More threads than this is a typing error.
const THREADS_MAX: usize = 4096;
/// A week. Longer is a typing error.
const SECONDS_MAX: u64 = 7 * 24 * 3600;

impl Phases {
    /// Reads `8` (then `seconds` says for how long) or steps such as `2:20s,32:20s,2:20s`.
    ///
    /// # Errors
    /// When the text is neither, a number is out of range, or steps come with `seconds`.
    pub fn parse(text: &str, seconds: Option<u64>) -> Result<Self> {
        let wrong = |part: &str| {
            anyhow::anyhow!(
                "'{part}' is no thread count; write a number such as 8, or steps such as \
                 2:20s,32:20s,2:20s (threads:seconds)"
            )
        };
        let phases = if text.contains(':') {
            ensure!(
                seconds.is_none(),
                "steps such as {text} say how long they last; leave out --seconds"
            );
            let step = |part: &str| {
                let (threads, length) = part.split_once(':')?;
                let length = length.trim();
                let length = length.strip_suffix('s').unwrap_or(length);
                Some(Phase { threads: threads.trim().parse().ok()?, seconds: length.parse().ok()? })
            };
            let steps = text.split(',').map(|part| step(part).ok_or_else(|| wrong(part)));
            steps.collect::<Result<Vec<_>>>()?
        } else {
            let threads = text.trim().parse().map_err(|_| wrong(text))?;
            vec![Phase { threads, seconds: seconds.unwrap_or(60) }]
        };
        for phase in &phases {
            let threads = phase.threads;
            ensure!(
                (1..=THREADS_MAX).contains(&threads),
                "{threads} threads; choose 1 to {THREADS_MAX}"
            );
            let seconds = phase.seconds;
            ensure!(
                (1..=SECONDS_MAX).contains(&seconds),
                "{seconds} seconds; choose 1 to {SECONDS_MAX}"
            );
        }
        Ok(Phases(phases))
    }

    /// Them.
    #[must_use]
    pub fn all(&self) -> &[Phase] {
        &self.0
    }

    /// The most threads that are at work at any time.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        self.0.iter().map(|phase| phase.threads).max().unwrap_or(1)
    }

    /// All of them together.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.0.iter().map(|phase| phase.seconds).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases() {
        let one = Phases::parse("8", Some(5)).unwrap();
        assert_eq!(one.all(), [Phase { threads: 8, seconds: 5 }]);
        let steps = Phases::parse("2:20s, 32:30 ,2:20s", None).unwrap();
        assert_eq!((steps.threads_max(), steps.seconds(), steps.all().len()), (32, 70, 3));
        for wrong in ["", "0", "-1", "x", "2:", ":5", "2:20s,", "2:0s", "5000", "2:20m", "8,9"] {
            assert!(Phases::parse(wrong, None).is_err(), "{wrong}");
        }
        assert!(Phases::parse("2:20s", Some(5)).is_err());
        assert!(Phases::parse("2", Some(0)).is_err());
    }
}
