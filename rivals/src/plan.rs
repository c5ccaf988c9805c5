//! The workloads: their names, on which rows each runs, how durably, with how many threads.

use std::str::FromStr;

use anyhow::{Error, bail};
use serde::{Deserialize, Serialize};

use crate::engine::Durability;
use crate::group::Limits;
use crate::rows::Keys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Rows in key order into an empty store, by its own way for that.
    LoadSorted,
    /// Rows in random order into an empty store, a thousand in a transaction.
    LoadRandom,
    /// Point reads, each row as likely.
    Read,
    /// A hundred rows in order, from anywhere.
    ScanShort,
    /// All rows in order, again and again.
    ScanFull,
    /// One-row updates, each row as likely.
    Update(Durability),
    /// A to F of YCSB's core workloads.
    Ycsb(Mix, Durability),
    /// All rows replaced by others, twice, a thousand in a transaction.
    Churn,
    /// A process killed under load, and its store opened.
    Kill,
}

/// YCSB's core workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Half reads, half updates; zipfian.
    A,
    /// 95 % reads, 5 % updates; zipfian.
    B,
    /// Reads; zipfian.
    C,
    /// 95 % reads, 5 % inserts; latest.
    D,
    /// 95 % scans of 1 to 100 rows, 5 % inserts; zipfian.
    E,
    /// Half reads, half reads that are followed by an update of the same row; zipfian.
    F,
}

use Durability::{Lazy, Synced, Written};
use Workload::{Churn, Kill, LoadRandom, LoadSorted, Read, ScanFull, ScanShort, Update, Ycsb};

/// All, in the order in which they run (YCSB's own: A, B, C, F, D, E), and their names.
pub const ALL: &[(&str, Workload)] = &[
    ("load-sorted", LoadSorted),
    ("read", Read),
    ("scan-short", ScanShort),
    ("scan-full", ScanFull),
    ("update-lazy", Update(Lazy)),
    ("update-written", Update(Written)),
    ("update-synced", Update(Synced)),
    ("kill", Kill),
    ("load-random", LoadRandom),
    ("ycsb-a", Ycsb(Mix::A, Lazy)),
    ("ycsb-b", Ycsb(Mix::B, Lazy)),
    ("ycsb-c", Ycsb(Mix::C, Lazy)),
    ("ycsb-f", Ycsb(Mix::F, Lazy)),
    ("ycsb-d", Ycsb(Mix::D, Lazy)),
    ("ycsb-e", Ycsb(Mix::E, Lazy)),
    ("ycsb-a-synced", Ycsb(Mix::A, Synced)),
    ("ycsb-b-synced", Ycsb(Mix::B, Synced)),
    ("ycsb-f-synced", Ycsb(Mix::F, Synced)),
    ("ycsb-d-synced", Ycsb(Mix::D, Synced)),
    ("ycsb-e-synced", Ycsb(Mix::E, Synced)),
    ("churn", Churn),
];

impl FromStr for Workload {
    type Err = Error;

    fn from_str(name: &str) -> Result<Workload, Error> {
        match ALL.iter().find(|(known, _)| *known == name) {
            Some(&(_, workload)) => Ok(workload),
            None => {
                let names: Vec<&str> = ALL.iter().map(|&(known, _)| known).collect();
                bail!("unknown workload {name:?}; there are {}", names.join(", "))
            }
        }
    }
}

impl Workload {
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// In which of the two loaded stores it runs.
    pub fn keys(self) -> Keys {
        match self {
            LoadSorted | Read | ScanShort | ScanFull | Update(_) | Kill => Keys::Dense,
            LoadRandom | Ycsb(..) | Churn => Keys::Hashed,
        }
    }

    /// What each commit promises.
    pub fn durability(self) -> Durability {
        match self {
            Update(durability) | Ycsb(_, durability) => durability,
            // A load as a whole is synced at its end.
            LoadSorted | LoadRandom | Read | ScanShort | ScanFull | Churn => Lazy,
            Kill => Synced,
        }
    }

    /// What the durability column says of it.
    pub fn durability_name(self) -> &'static str {
        match self {
            LoadSorted | LoadRandom => "synced at the end",
            Read | ScanShort | ScanFull | Ycsb(Mix::C, _) => "-",
            other => other.durability().name(),
        }
    }

    /// Numbers of threads that it runs with.
    pub fn threads(self, quick: bool) -> &'static [usize] {
        match self {
            LoadSorted | LoadRandom | Churn => &[1],
            ScanFull if quick => &[1],
            Update(Synced) => &[1, 8, 64],
            Kill | Ycsb(_, Synced) => &[8],
            Ycsb(_, _) => &[2],
            _ if quick => &[2],
            _ => &[1, 2],
        }
    }

    /// Whether the quick set has it.
    pub fn is_quick(self) -> bool {
        !matches!(self, Update(Written) | Ycsb(_, Synced))
    }

    /// Whether it changes which rows there are: it then runs on a copy.
    pub fn on_a_copy(self) -> bool {
        matches!(self, Churn | Kill | Ycsb(Mix::D | Mix::E, _))
    }

    pub fn is_load(self) -> bool {
        matches!(self, LoadSorted | LoadRandom)
    }

    /// What is counted each second.
    pub fn unit(self) -> &'static str {
        match self {
            LoadSorted | LoadRandom | ScanFull | Churn => "rows",
            ScanShort => "scans",
            Read => "reads",
            Update(_) | Kill => "commits",
            Ycsb(..) => "operations",
        }
    }

    /// What it does, in a sentence for the report.
    pub fn about(self) -> &'static str {
        match self {
            LoadSorted => "rows in key order into an empty store, its own way of bulk loading",
            LoadRandom => "rows in random key order into an empty store, 1,000 a transaction",
            Read => "point reads, uniform, each in a snapshot of its own",
            ScanShort => "100 rows in key order from a uniform place",
            ScanFull => "all rows in key order, again and again",
            Update(_) => "one-row updates, uniform, one a transaction",
            Kill => "kill -9 under synced updates, then opened: see \"Opened after kill -9\"",
            Churn => "rows deleted and as many others inserted, uniform, 1,000 each a transaction",
            Ycsb(Mix::A, _) => "50 % reads, 50 % updates; scrambled zipfian 0.99",
            Ycsb(Mix::B, _) => "95 % reads, 5 % updates; scrambled zipfian 0.99",
            Ycsb(Mix::C, _) => "100 % reads; scrambled zipfian 0.99",
            Ycsb(Mix::D, _) => "95 % reads, 5 % inserts; latest",
            Ycsb(Mix::E, _) => {
                "95 % scans of 1 to 100 rows (uniform), 5 % inserts; starts scrambled zipfian 0.99"
            }
            Ycsb(Mix::F, _) => "50 % reads, 50 % read-modify-writes; scrambled zipfian 0.99",
        }
    }
}

/// What is the same in every cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    pub rows: u64,
    pub value_bytes: usize,
    /// Measured seconds of a cell that does not end by itself.
    pub seconds: f64,
    /// Seconds before them that are not counted.
    pub warmup_seconds: f64,
    pub cache_bytes: usize,
    /// Seconds of load before a process is killed.
    pub kill_seconds: f64,
    /// What the kernel allows a store.
    #[serde(default)]
    pub limits: Limits,
}

impl Shape {
    /// Seconds between two looks: a second, or less in a test.
    pub fn look_seconds(&self) -> f64 {
        self.seconds.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_one_name_and_is_found_by_it() {
        for (name, workload) in ALL {
            assert_eq!(workload.name(), *name);
            assert_eq!(name.parse::<Workload>().unwrap(), *workload);
            assert!(!workload.about().is_empty() && !workload.threads(true).is_empty());
        }
        let wrong = "ycsb-g".parse::<Workload>().unwrap_err().to_string();
        assert!(wrong.contains("ycsb-f") && wrong.contains("load-sorted"), "{wrong}");
    }
}
