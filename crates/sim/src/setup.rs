//! How a simulated database is set up, drawn from a seed.
use std::sync::Arc;

use weir::{
    Background, Config, Create, DoubleWriteConfig, DoubleWriteMode, Encryption, Numbers,
    PlantedBug, StoreKind, TestKey,
};
use weir_base::{Lsn, TreeId, TxnId};
use weir_device::AtomicPromise;

/// Bugs planted on purpose, to see that the simulation would find such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// Pages are written without waiting for the log.
    SkipLogGate,
    /// Pages tear and nothing puts them right, but the configuration does not expect it.
    TornPages,
    /// The device forgets to sync the file of pages, or of segments.
    PagesNotSynced,
    /// The device forgets to sync the log.
    LogNotSynced,
    /// The device forgets to sync the doublewrite area.
    DoubleWriteNotSynced,
    /// The device promises atomic writes, and tears them.
    AtomicWritesTear,
    /// One of those of transactions.
    Txn(PlantedBug),
}

impl Planted {
    /// All of them, with the names that the command line takes.
    pub const ALL: [(&'static str, Planted); 33] = [
        ("nothing", Planted::Nothing),
        ("skip-log-gate", Planted::SkipLogGate),
        ("torn-pages", Planted::TornPages),
        ("pages-not-synced", Planted::PagesNotSynced),
        ("log-not-synced", Planted::LogNotSynced),
        ("doublewrite-not-synced", Planted::DoubleWriteNotSynced),
        ("atomic-writes-tear", Planted::AtomicWritesTear),
        ("pin-forgotten", Planted::Txn(PlantedBug::PinForgotten)),
        ("relog-short", Planted::Txn(PlantedBug::RelogShort)),
        ("row-not-restored", Planted::Txn(PlantedBug::RowNotRestored)),
        ("purge-not-noted", Planted::Txn(PlantedBug::PurgeNotNoted)),
        ("snapshot-too-new", Planted::Txn(PlantedBug::SnapshotTooNew)),
        ("locks-not-asked", Planted::Txn(PlantedBug::LocksNotAsked)),
        ("ranges-not-locked", Planted::Txn(PlantedBug::RangesNotLocked)),
        ("prepared-short", Planted::Txn(PlantedBug::PreparedShort)),
        ("prepared-forgets-locks", Planted::Txn(PlantedBug::PreparedForgetsLocks)),
        ("versions-not-archived", Planted::Txn(PlantedBug::VersionsNotArchived)),
        ("dropped-tree-not-freed", Planted::Txn(PlantedBug::DroppedTreeNotFreed)),
        ("drop-not-locked", Planted::Txn(PlantedBug::DropNotLocked)),
        ("forgotten-too-soon", Planted::Txn(PlantedBug::ForgottenTooSoon)),
        ("pending-forgotten", Planted::Txn(PlantedBug::PendingForgotten)),
        ("contents-lack-part", Planted::Txn(PlantedBug::ContentsLackPart)),
        ("windows-forget-open", Planted::Txn(PlantedBug::WindowsForgetOpen)),
        ("window-not-written", Planted::Txn(PlantedBug::WindowNotWritten)),
        ("contents-lack-open", Planted::Txn(PlantedBug::ContentsLackOpen)),
        ("contents-lack-ended", Planted::Txn(PlantedBug::ContentsLackEnded)),
        ("given-up-too-soon", Planted::Txn(PlantedBug::GivenUpTooSoon)),
        ("punched-too-soon", Planted::Txn(PlantedBug::PunchedTooSoon)),
        ("holes-handed-out", Planted::Txn(PlantedBug::HolesHandedOut)),
        ("scrub-asks-no-pool", Planted::Txn(PlantedBug::ScrubAsksNoPool)),
        ("index-too-early", Planted::Txn(PlantedBug::IndexTooEarly)),
        ("rewrite-without-rest", Planted::Txn(PlantedBug::RewriteWithoutRest)),
        ("columns-before-layouts", Planted::Txn(PlantedBug::ColumnsBeforeLayouts)),
    ];
}

/// The settings of one simulated database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Bytes a page.
    pub page_size: usize,
    /// Memory for pages, in bytes.
    pub pool_bytes: u64,
    /// The log's capacity at creation, in bytes.
    pub log_bytes: u64,
    /// Where pages are kept.
    pub store: StoreKind,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
    /// How pages that are kept in place are kept from tearing.
    pub doublewrite: DoubleWriteConfig,
    /// What the device promises of atomic writes.
    pub atomic: Option<AtomicPromise>,
    /// The opening before wrote pages that could tear.
    pub torn_before: bool,
    /// Memory for versions, in bytes; the engine's own measure when 0.
    pub versions_bytes: u64,
    /// Bytes of log in a stretch whose contents are written down; nothing is when 0.
    pub contents_bytes: u64,
    /// Log that opening may hold in memory, in bytes; without bound when 0.
    pub held_log_bytes: u64,
    /// Where the numbers of the new database begin.
    pub first: Numbers,
    /// What is wrong on purpose.
    pub planted: Planted,
}

impl Setup {
    /// The smallest of everything: most happens per operation.
    #[must_use]
    pub fn tiny(page_size: usize) -> Self {
        Setup {
            page_size,
            pool_bytes: 256 << 10,
            log_bytes: 640 << 10,
            store: StoreKind::InPlace,
            is_encrypted: false,
            doublewrite: DoubleWriteConfig { mode: DoubleWriteMode::On, files: 2, pages: 16 },
            atomic: None,
            torn_before: false,
            versions_bytes: 0,
            contents_bytes: 4_000,
            held_log_bytes: 0,
            first: Numbers::default(),
            planted: Planted::Nothing,
        }
    }

    /// Drawn from a seed.
    #[must_use]
    pub fn random(seed: u64, planted: Planted) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5e70);
        let page_size = *random.choice(&[4096, 8192, 16384]).unwrap_or(&4096);
        let mode = match random.u8(0..8) {
            _ if planted == Planted::TornPages => DoubleWriteMode::Off,
            _ if planted == Planted::DoubleWriteNotSynced => DoubleWriteMode::On,
            _ if planted == Planted::AtomicWritesTear => DoubleWriteMode::On,
            0 => DoubleWriteMode::Off,
            1 => DoubleWriteMode::DetectOnly,
            _ => DoubleWriteMode::On,
        };
        let (files, pages) = (random.usize(1..4), *random.choice(&[4, 16, 64]).unwrap_or(&16));
        Setup {
            page_size,
            pool_bytes: (256 << 10) * random.u64(1..5),
            log_bytes: (640 << 10) + random.u64(0..4) * (128 << 10),
            store: store_of(seed, planted),
            // A stream of its own: the others stay what they were.
            is_encrypted: fastrand::Rng::with_seed(seed ^ 0xc4e7).u8(..3) == 0,
            doublewrite: DoubleWriteConfig { mode, files, pages },
            atomic: atomic_of(seed, planted),
            torn_before: false,
            // Mostly so little that snapshots of a few dozen transactions are old.
            versions_bytes: *random.choice(&[0, 2_000, 4_000, 20_000]).unwrap_or(&0),
            contents_bytes: *random.choice(&[0, 1_000, 3_000, 20_000]).unwrap_or(&0),
            held_log_bytes: *random.choice(&[0, 0, 4_000, 40_000]).unwrap_or(&0),
            first: first_numbers(&mut random),
            planted,
        }
    }

    /// What the next opening may set otherwise, drawn from a seed: the pool, the shape of the
    /// doublewrite area, and whether there is one where its absence is no surprise.
    #[must_use]
    pub fn varied(&self, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut varied = *self;
        varied.torn_before = self.doublewrite.mode != DoubleWriteMode::On;
        if self.planted != Planted::Nothing || random.bool() {
            return varied;
        }
        // Another machine has it from here on.
        varied.atomic = atomic_of(seed, self.planted);
        varied.pool_bytes = (256 << 10) * random.u64(1..5);
        varied.doublewrite.files = random.usize(1..4);
        varied.doublewrite.pages = *random.choice(&[4, 16, 64]).unwrap_or(&16);
        if random.u8(0..4) == 0 {
            varied.doublewrite.mode = match varied.doublewrite.mode {
                DoubleWriteMode::On => DoubleWriteMode::Off,
                DoubleWriteMode::DetectOnly | DoubleWriteMode::Off => DoubleWriteMode::On,
            };
        }
        varied
    }

    /// Whether a page torn by a crash is an error to be expected (SIM-3).
    #[must_use]
    pub fn may_tear(&self) -> bool {
        if self.store == StoreKind::Log {
            return false;
        }
        let may_tear = self.doublewrite.mode != DoubleWriteMode::On || self.torn_before;
        may_tear && self.planted != Planted::TornPages
    }

    /// The keys, where it is encrypted.
    #[must_use]
    pub fn encryption(&self) -> Option<Encryption> {
        self.is_encrypted.then(|| Encryption::new(Arc::new(TestKey([7; 32]))))
    }

    /// The settings as the engine takes them.
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            pool_bytes: self.pool_bytes,
            log_bytes: self.log_bytes,
            page_size: self.page_size,
            store: Some(self.store),
            encryption: self.encryption(),
            doublewrite: self.doublewrite,
            create: Create::IfMissing,
            background: Background::Manual,
            pages_max: 1 << 16,
            versions_max_bytes: (self.versions_bytes > 0).then_some(self.versions_bytes),
            contents_bytes: (self.contents_bytes > 0).then_some(self.contents_bytes),
            held_log_bytes: (self.held_log_bytes > 0).then_some(self.held_log_bytes),
            first: self.first,
            skip_log_gate: self.planted == Planted::SkipLogGate,
            planted: match self.planted {
                Planted::Txn(bug) => bug,
                _ => PlantedBug::Nothing,
            },
            ..Config::default()
        }
    }
}

/// What the device promises: mostly nothing, as most do, and nothing where the bug is another one.
fn atomic_of(seed: u64, planted: Planted) -> Option<AtomicPromise> {
    const MOST: u64 = 64 << 10;
    match (planted, fastrand::Rng::with_seed(seed ^ 0xa701).u8(..6)) {
        (Planted::AtomicWritesTear, _) => Some(AtomicPromise::Broken(MOST)),
        (Planted::Nothing, 0) => Some(AtomicPromise::Kept(MOST)),
        // Enough for small pages only.
        (Planted::Nothing, 1) => Some(AtomicPromise::Kept(8 << 10)),
        (Planted::Nothing, 2) => Some(AtomicPromise::Refused(MOST)),
        _ => None,
    }
}

/// One of both, unless the bug is one of the store in place.
fn store_of(seed: u64, planted: Planted) -> StoreKind {
    use PlantedBug::{GivenUpTooSoon, HolesHandedOut, PunchedTooSoon};
    let is_of_place = matches!(
        planted,
        Planted::TornPages
            | Planted::DoubleWriteNotSynced
            | Planted::AtomicWritesTear
            | Planted::Txn(PunchedTooSoon | HolesHandedOut)
    );
    let is_of_segments = planted == Planted::Txn(GivenUpTooSoon);
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5709e);
    if is_of_segments || !is_of_place && random.bool() {
        StoreKind::Log
    } else {
        StoreKind::InPlace
    }
}

/// Mostly those of any new database; else such that one of them grows past a power of two at which
/// a number that is kept in too few bits comes round.
fn first_numbers(random: &mut fastrand::Rng) -> Numbers {
    let mut first = Numbers::default();
    let mut before = |bits: &[u32], unit: u64, most: u64| {
        let bits = *random.choice(bits).unwrap_or(&32);
        (1u64 << bits).saturating_sub(unit * random.u64(1..most)).max(unit)
    };
    let lsn = Lsn(before(&[19, 32, 41, 48, 56, 62], 4096, 100));
    let txn = TxnId(before(&[16, 24, 32, 40], 1, 200));
    let tree = TreeId(before(&[16, 32, 40, 48, 63], 1, 8).max(first.tree.0));
    match random.u8(0..8) {
        0 => first.lsn = lsn,
        1 => first.txn = txn,
        2 => first.tree = tree,
        3 => (first.lsn, first.txn, first.tree) = (lsn, txn, tree),
        _ => {}
    }
    first
}
