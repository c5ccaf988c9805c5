//! What a seed means.
use std::fmt;
use std::sync::Arc;

use weir::{Config, DiskSpec, Encryption, StoreKind, TestKey, format_size};

/// How a round ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Closed,
    Killed,
}

/// A round of a database.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) number: u64,
    pub(super) seconds: u64,
    /// How many rounds the database has.
    pub(super) rounds: u64,
    pub(super) store: StoreKind,
    pub(super) is_encrypted: bool,
    pub(super) page_size: usize,
    pub(super) log_bytes: u64,
    pub(super) threads: u32,
    /// Rows of each thread.
    pub(super) rows: u32,
    /// Whether few rows are changed often.
    pub(super) is_skewed: bool,
    /// Of a thousand values, how many have pages of their own.
    pub(super) long_values: u32,
    /// The disk that is imitated, as text.
    pub(super) disk: Option<&'static str>,
    /// Whether the disk is full at times.
    pub(super) fills_up: bool,
    pub(super) end: End,
}

/// One that takes some work; one that takes little; one that does nothing for a while.
const DISKS: [&str; 3] =
    ["3000iops,100MiB", "600iops,20MiB,sync=2ms", "3000iops,100MiB,stall=4s+5s"];

impl Plan {
    pub(super) fn of(seed: u64, number: u64, seconds: u64) -> Plan {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut plan = Plan {
            seed,
            number,
            seconds,
            rounds: random.u64(2..4),
            // Both in turn, so that a short run has both.
            store: if seed.is_multiple_of(2) { StoreKind::Log } else { StoreKind::InPlace },
            is_encrypted: random.u32(0..4) == 0,
            page_size: [4096, 4096, 8192, 16384][random.usize(0..4)],
            log_bytes: [2 << 20, 4 << 20, 8 << 20, 32 << 20][random.usize(0..4)],
            threads: random.u32(3..6),
            rows: [2_000, 8_000, 20_000][random.usize(0..3)],
            is_skewed: random.bool(),
            long_values: [0, 5, 40][random.usize(0..3)],
            disk: None,
            fills_up: random.u32(0..3) == 0,
            end: End::Closed,
        };
        let slow = random.u32(0..3) == 0;
        let disk = DISKS[random.usize(0..DISKS.len())];
        plan.disk = slow.then_some(disk);
        let mut random = fastrand::Rng::with_seed(seed ^ (number << 32));
        plan.end = if random.bool() { End::Killed } else { End::Closed };
        plan
    }

    pub(super) fn disk(&self) -> Option<DiskSpec> {
        self.disk.map(|text| text.parse().expect("a disk"))
    }

    pub(super) fn random(&self, of: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed ^ (self.number << 32) ^ (of + 1) << 48)
    }

    /// The least pool: of 64 pages, enough for all threads.
    pub(super) fn pool_bytes_min(&self) -> u64 {
        64 * self.page_size as u64
    }

    /// All rows, about, without long values.
    pub(super) fn data_bytes(&self) -> u64 {
        u64::from(self.threads * self.rows) * 250
    }

    pub(super) fn encryption(&self) -> Option<Encryption> {
        self.is_encrypted.then(|| Encryption::new(Arc::new(TestKey([7; 32]))))
    }

    pub(super) fn config(&self, pool_bytes: u64) -> Config {
        Config {
            pool_bytes,
            log_bytes: self.log_bytes,
            page_size: self.page_size,
            store: Some(self.store),
            encryption: self.encryption(),
            pages_max: 1 << 18,
            ..Config::default()
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rounds of {} s, {}{}, pages of {}, log {}, {} threads of {} rows{}, long values \
             {}/1000, disk {}{}",
            self.rounds,
            self.seconds,
            self.store,
            if self.is_encrypted { " encrypted" } else { "" },
            self.page_size,
            format_size(self.log_bytes),
            self.threads,
            self.rows,
            if self.is_skewed { " skewed" } else { "" },
            self.long_values,
            self.disk.unwrap_or("as it is"),
            if self.fills_up { ", full at times" } else { "" },
        )
    }
}
