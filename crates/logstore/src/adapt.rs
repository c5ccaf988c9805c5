//! What the choice of a codec is made from: measuring, and remembering what was decided.
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use weir_base::lock::Mutex;
use weir_base::{Clock, rank};

use crate::codec::Packing;
use crate::format::Codec;
use crate::policy_codec::{ByteCost, Choice, Measured, Packs};

/// One page of so many is packed by every codec, to measure them.
const SAMPLE_EVERY: u32 = 32;
/// What of earlier samples still counts with each new one.
const MEMORY: f64 = 0.95;
/// Samples without which nothing is known of a codec.
const SAMPLES_MIN: f64 = 8.0;
/// What of the processors' earlier looks still counts: there are about ten a second.
const IDLE_MEMORY: f64 = 0.9;

/// Sums of what samples of one codec took, the older ones counting less.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: f64,
    bytes: f64,
    packed: f64,
    seconds: f64,
}

impl Samples {
    fn learn(&mut self, bytes: usize, packed: usize, seconds: f64) {
        let add = |sum: &mut f64, value: f64| *sum = *sum * MEMORY + value;
        add(&mut self.count, 1.0);
        add(&mut self.bytes, bytes as f64);
        add(&mut self.packed, packed as f64);
        add(&mut self.seconds, seconds);
    }

    fn known(&self) -> Option<Packs> {
        let saved = (1.0 - self.packed / self.bytes).max(0.0);
        (self.count >= SAMPLES_MIN)
            .then(|| Packs { seconds_per_byte: self.seconds / self.bytes, saved })
    }
}

/// What was measured.
#[derive(Debug, Default)]
struct Seen {
    lz4: Samples,
    zstd: Samples,
    device: ByteCost,
    idle: Option<f64>,
    choice: Choice,
}

/// The codec in use for pages whose tree asks for none.
#[derive(Default)]
pub(crate) struct Adapt {
    /// With a clock, it adapts.
    clock: OnceLock<Arc<dyn Clock>>,
    seen: Mutex<rank::CodecChoice, Seen>,
    /// Of `seen`, for threads that pack: 0 is the first choice.
    codec: AtomicU8,
    pages: AtomicU32,
}

impl Adapt {
    pub(crate) fn begin(&self, clock: Arc<dyn Clock>) {
        let _ = self.clock.set(clock);
    }

    pub(crate) fn choice(&self) -> Choice {
        self.seen.lock().choice
    }

    /// The codec for a page.
    pub(crate) fn codec(&self) -> Codec {
        match self.codec.load(Ordering::Relaxed) {
            0 => Choice::default().codec,
            number => Codec::from_u8(number - 1).unwrap_or(Codec::Zstd),
        }
    }

    /// A page goes by that may be packed by any: now and then, all are tried.
    pub(crate) fn sample(&self, packing: &Packing, page: &[u8], spare: &mut [u8]) {
        let Some(clock) = self.clock.get() else { return };
        if !self.pages.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE_EVERY) {
            return;
        }
        let mut time = |codec| {
            let begun = clock.now_micros();
            let (_, len) = packing.pack(codec, page, spare);
            (len, clock.now_micros().saturating_sub(begun) as f64 / 1e6)
        };
        let (lz4, zstd) = (time(Codec::Lz4), time(Codec::Zstd));
        let mut seen = self.seen.lock();
        seen.lz4.learn(page.len(), lz4.0, lz4.1);
        seen.zstd.learn(page.len(), zstd.0, zstd.1);
    }

    pub(crate) fn now_micros(&self) -> u64 {
        self.clock_micros().unwrap_or(0)
    }

    /// The time, where it is measured.
    pub(crate) fn clock_micros(&self) -> Option<u64> {
        self.clock.get().map(|clock| clock.now_micros())
    }

    /// A batch of so many bytes was written and synced in that time.
    pub(crate) fn wrote(&self, bytes: u64, micros: u64) {
        if self.clock.get().is_some() {
            self.seen.lock().device.learn(bytes as f64, micros as f64 / 1e6);
        }
    }

    /// What share of the processors is busy, and what follows.
    pub(crate) fn note_processors(&self, busy: f64, processors: f64, is_disk_full: bool) {
        let Some(clock) = self.clock.get() else { return };
        let now = clock.now_micros();
        let mut seen = self.seen.lock();
        let was = seen.idle.unwrap_or(1.0 - busy);
        let idle = was * IDLE_MEMORY + (1.0 - busy) * (1.0 - IDLE_MEMORY);
        seen.idle = Some(idle);
        let measured = Measured {
            lz4: seen.lz4.known(),
            zstd: seen.zstd.known(),
            device_seconds_per_byte: seen.device.seconds_per_byte(),
            idle,
            processors,
            is_disk_full,
        };
        seen.choice = seen.choice.after(&measured, now);
        self.codec.store(seen.choice.codec as u8 + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::ManualClock;

    #[test]
    fn it_adapts_only_with_a_clock_and_to_what_was_measured() {
        let (packing, adapt) = (Packing::default(), Adapt::default());
        let (page, mut spare) = ([7u8; 4096], [0u8; 4096]);
        let steps = |adapt: &Adapt, busy: f64| {
            for _ in 0..60 {
                adapt.note_processors(busy, 2.0, false);
            }
        };
        steps(&adapt, 1.0);
        assert_eq!(adapt.codec(), Codec::Zstd);
        let clock = Arc::new(ManualClock::default());
        adapt.begin(clock.clone());
        let mut spend = || {
            for _ in 0..SAMPLE_EVERY * 20 {
                adapt.sample(&packing, &page, &mut spare);
            }
        };
        spend();
        {
            // A manual clock stands still: as if packing took what the study measured.
            let mut seen = adapt.seen.lock();
            (seen.lz4.seconds, seen.zstd.seconds) =
                (1.4e-9 * seen.lz4.bytes, 2.3e-9 * seen.zstd.bytes);
            assert!(seen.zstd.known().expect("measured").saved > 0.9);
        }
        adapt.wrote(1 << 20, 100);
        for _ in 0..100 {
            clock.advance(100_000);
            adapt.note_processors(1.0, 2.0, false);
        }
        assert_eq!(adapt.codec(), Codec::Raw, "{:?}", adapt.choice());
        for _ in 0..200 {
            clock.advance(100_000);
            adapt.note_processors(0.2, 2.0, false);
        }
        assert_eq!(adapt.codec(), Codec::Zstd, "{:?}", adapt.choice());
    }
}
