//! What is updated: clients over time, and which pages their transactions touch.

/// What asks for transactions.
#[derive(Clone, Debug)]
pub(crate) enum Clients {
    /// Threads that each wait for their own synced commit: from when (seconds), how many.
    Closed(Vec<(f64, usize)>),
    /// Threads that do not wait for the log, each `cpu_seconds` a transaction.
    Lazy { threads: usize, cpu_seconds: f64 },
    /// Transactions per second that arrive whatever happens, as a function of time.
    Open(fn(f64) -> f64),
}

impl Clients {
    /// Threads at `at` seconds (0 for an open loop).
    pub(crate) fn threads(&self, at: f64) -> usize {
        match self {
            Clients::Closed(steps) => {
                steps.iter().rev().find(|(from, _)| *from <= at).map_or(0, |(_, count)| *count)
            }
            Clients::Lazy { threads, .. } => *threads,
            Clients::Open(_) => 0,
        }
    }

    pub(crate) fn threads_max(&self) -> usize {
        match self {
            Clients::Closed(steps) => steps.iter().map(|(_, count)| *count).max().unwrap_or(0),
            Clients::Lazy { threads, .. } => *threads,
            Clients::Open(_) => 0,
        }
    }
}

/// Which pages a transaction modifies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pages {
    /// Any of so many, alike.
    Uniform(u32),
    /// `hot` pages get nine tenths of the updates, `cold` others the rest.
    Skewed { hot: u32, cold: u32 },
    /// A new page every `per_page` transactions, besides a uniform update of one of `old`.
    Append { old: u32, per_page: u32 },
    /// As TPC-C's: classes of pages, each with how many of them a transaction modifies, and new
    /// ones.
    Mix { classes: &'static [Class], new_pages: f64 },
}

/// Pages that are modified alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    pub(crate) pages: u32,
    /// Of them that a transaction modifies, on average.
    pub(crate) touches: f64,
}

/// What 16 threads of TPC-C with 20 warehouses do to pages of 8 KiB, with 1,008 bytes of redo a
/// transaction: fitted to the dirty pages seen at 12 to 350 MB of log while none was written.
pub(crate) const TPCC: Pages = Pages::Mix {
    classes: &[Class { pages: 60_000, touches: 3.0 }, Class { pages: 50_000, touches: 0.7 }],
    new_pages: 0.15,
};

/// xorshift64*: the model's only randomness.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        ((drawn * u64::from(bound)) >> 32) as u32
    }
}
