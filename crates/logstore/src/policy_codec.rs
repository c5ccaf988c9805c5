//! How pages are packed whose tree asks for nothing: decided from what is measured, without a
//! clock, a lock or a setting.
//!
//! Packing takes time of the processors and saves time of the device. While processors are idle
//! their time costs nothing, and what saves most is taken: it saves room, too. The fewer are idle,
//! the more a second of theirs counts, until it counts as much as one of the device: each is
//! reckoned as a share of the machine, so a second of one of four processors is a quarter.
use crate::format::Codec;

/// From this share of idle processors on, packing costs nothing.
const IDLE_FREE: f64 = 0.25;
/// Up to this one, it costs as much as the work that it keeps the processors from.
const IDLE_NONE: f64 = 0.05;
/// Another codec is taken when it is better by this share of what is at stake.
const MARGIN: f64 = 0.25;
/// And when it has been for so long: the processors are looked at about once a second.
const HOLD_MICROS: u64 = 3_000_000;

/// What packing by one codec was measured to take, and to leave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packs {
    /// Seconds of one processor for each byte of page.
    pub seconds_per_byte: f64,
    /// Share of the bytes that is saved, 0 to 1.
    pub saved: f64,
}

/// What was measured of late.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// By LZ4; `None`: not measured yet.
    pub lz4: Option<Packs>,
    /// By zstd.
    pub zstd: Option<Packs>,
    /// Seconds of the device for each byte that is written; `None`: not known yet.
    pub device_seconds_per_byte: Option<f64>,
    /// Share of the processors' time that was not used, 0 to 1.
    pub idle: f64,
    /// Processors that there are, 1 at least.
    pub processors: f64,
    /// The disk has no more room: what saves most is worth more than any time.
    pub is_disk_full: bool,
}

/// Why a codec is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Why {
    /// Not enough was measured to choose another.
    #[default]
    Unmeasured,
    /// Processors are idle: what saves most is taken.
    Idle,
    /// It saves more time of the device than it takes of busy processors.
    Device,
    /// The processors are busy, and another would take more of them than it saves of the device.
    Processors,
    /// The disk is full: what saves most is taken.
    FullDisk,
}

impl Why {
    /// In words, for a line of output.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Why::Unmeasured => "nothing was measured yet",
            Why::Idle => "processors are idle",
            Why::Device => "it saves more of the device than it takes of the processors",
            Why::Processors => "the processors are busy and the device is fast",
            Why::FullDisk => "the disk is full",
        }
    }
}

/// How much a second of the processors counts, 0 to 1.
#[must_use]
pub fn processor_price(idle: f64) -> f64 {
    ((IDLE_FREE - idle) / (IDLE_FREE - IDLE_NONE)).clamp(0.0, 1.0)
}

/// The codec that is best as things were measured, when `now` is in use: another only where it is
/// clearly better.
#[must_use]
pub fn choose(seen: &Measured, now: Codec) -> (Codec, Why) {
    let (Some(lz4), Some(zstd), Some(device)) = (seen.lz4, seen.zstd, seen.device_seconds_per_byte)
    else {
        return (now, Why::Unmeasured);
    };
    let price = processor_price(seen.idle);
    let packs = |codec| match codec {
        Codec::Raw => Packs { seconds_per_byte: 0.0, saved: 0.0 },
        Codec::Lz4 => lz4,
        Codec::Zstd => zstd,
    };
    let cost = |codec| price * packs(codec).seconds_per_byte / seen.processors.max(1.0);
    let gain = |codec| device * packs(codec).saved;
    let net = |codec| gain(codec) - cost(codec);
    // Raw stands first: of equals, the one that does less is taken.
    let all = [Codec::Raw, Codec::Lz4, Codec::Zstd];
    let best = all.into_iter().fold(
        Codec::Raw,
        |best, codec| {
            if net(codec) > net(best) { codec } else { best }
        },
    );
    // What is at stake is what the two differ in.
    let stake = (gain(best) - gain(now)).abs().max((cost(best) - cost(now)).abs());
    let chosen = if net(best) - net(now) > MARGIN * stake { best } else { now };
    let why = match chosen {
        _ if price == 0.0 => Why::Idle,
        Codec::Zstd => Why::Device,
        Codec::Lz4 | Codec::Raw => Why::Processors,
    };
    (chosen, why)
}

/// Which codec is in use, and what speaks against it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Pages are packed by this.
    pub codec: Codec,
    /// Why.
    pub why: Why,
    /// Another has been better since, in microseconds.
    rival: Option<(Codec, u64)>,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { codec: Codec::Zstd, why: Why::Unmeasured, rival: None }
    }
}

impl Choice {
    /// The choice after what was measured at `now_micros`: another codec when that was better at
    /// each look for some seconds.
    #[must_use]
    pub fn after(self, seen: &Measured, now_micros: u64) -> Choice {
        if seen.is_disk_full {
            let saved = |packs: Option<Packs>| packs.map_or(0.0, |packs| packs.saved);
            let codec = if saved(seen.lz4) > saved(seen.zstd) { Codec::Lz4 } else { Codec::Zstd };
            return Choice { codec, why: Why::FullDisk, rival: None };
        }
        let (codec, why) = choose(seen, self.codec);
        if codec == self.codec {
            return Choice { codec, why, rival: None };
        }
        match self.rival {
            Some((rival, since)) if rival == codec => {
                if now_micros.saturating_sub(since) >= HOLD_MICROS {
                    Choice { codec, why, rival: None }
                } else {
                    self
                }
            }
            _ => Choice { rival: Some((codec, now_micros)), ..self },
        }
    }
}

/// What of the earlier still counts with each new one.
const MEMORY: f64 = 0.98;
/// Sizes of writes that differ by less than this share do not tell what a byte costs.
const SPREAD_MIN: f64 = 0.2;

/// Seconds that writes take for each byte, from writes of several sizes: a line through those of
/// late, so that what a write takes however small it is (a sync, say) is not taken for the bytes'.
/// While all have one size, that is in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteCost {
    weight: f64,
    bytes: f64,
    seconds: f64,
    bytes_squared: f64,
    bytes_seconds: f64,
}

impl ByteCost {
    /// Takes one write.
    pub fn learn(&mut self, bytes: f64, seconds: f64) {
        let add = |sum: &mut f64, value: f64| *sum = *sum * MEMORY + value;
        add(&mut self.weight, 1.0);
        add(&mut self.bytes, bytes);
        add(&mut self.seconds, seconds);
        add(&mut self.bytes_squared, bytes * bytes);
        add(&mut self.bytes_seconds, bytes * seconds);
    }

    /// What a byte takes; `None`: nothing was written.
    #[must_use]
    pub fn seconds_per_byte(&self) -> Option<f64> {
        if self.bytes <= 0.0 {
            return None;
        }
        let (bytes, mean) = (self.bytes / self.weight, self.seconds / self.bytes);
        let spread = self.bytes_squared / self.weight - bytes * bytes;
        if spread <= (SPREAD_MIN * bytes).powi(2) {
            return Some(mean);
        }
        let both = self.bytes_seconds / self.weight - bytes * self.seconds / self.weight;
        Some((both / spread).clamp(0.0, mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As measured for pages of 16 KiB (`docs/decisions/log-structured.md`, compression).
    const LZ4: Packs = Packs { seconds_per_byte: 23e-6 / 16384.0, saved: 0.36 };
    const ZSTD: Packs = Packs { seconds_per_byte: 38e-6 / 16384.0, saved: 0.54 };

    fn seen(mib_per_second: f64, idle: f64, processors: f64) -> Measured {
        let device_seconds_per_byte = Some(1.0 / (mib_per_second * 1048576.0));
        let (lz4, zstd, is_disk_full) = (Some(LZ4), Some(ZSTD), false);
        Measured { lz4, zstd, device_seconds_per_byte, idle, processors, is_disk_full }
    }

    #[test]
    fn a_fast_device_and_busy_processors_ask_for_less() {
        use Codec::{Lz4, Raw, Zstd};
        // MiB a second, idle, processors, of Zstd and of Raw what comes.
        for (device, idle, processors, packed, raw) in [
            (32.0, 0.0, 2.0, Zstd, Zstd),
            (32.0, 0.9, 2.0, Zstd, Zstd),
            (300.0, 0.0, 2.0, Zstd, Zstd),
            // Worth as much as it costs: what there is stays.
            (468.0, 0.0, 2.0, Zstd, Raw),
            (1000.0, 0.0, 2.0, Raw, Raw),
            (3000.0, 0.0, 2.0, Raw, Raw),
            (3000.0, 0.15, 2.0, Raw, Raw),
            (3000.0, 0.3, 2.0, Zstd, Zstd),
            (3000.0, 0.0, 32.0, Zstd, Zstd),
        ] {
            let seen = seen(device, idle, processors);
            let came = (choose(&seen, Zstd).0, choose(&seen, Raw).0);
            assert_eq!(came, (packed, raw), "{device} MiB/s, {idle} idle, {processors}");
        }
        // LZ4 where zstd takes far longer for little more.
        let slow = Packs { seconds_per_byte: 4.0 * ZSTD.seconds_per_byte, saved: 0.4 };
        let seen = Measured { zstd: Some(slow), ..seen(300.0, 0.0, 2.0) };
        assert_eq!(choose(&seen, Zstd), (Lz4, Why::Processors));
        assert_eq!(choose(&Measured { zstd: None, ..seen }, Raw), (Raw, Why::Unmeasured));
    }

    #[test]
    fn a_codec_is_left_when_another_was_better_for_some_seconds() {
        let fast = seen(3000.0, 0.0, 2.0);
        let mut choice = Choice::default();
        for tick in 0..60u64 {
            choice = choice.after(&fast, tick * 100_000);
            let expected = if tick < 30 { Codec::Zstd } else { Codec::Raw };
            assert_eq!(choice.codec, expected, "tick {tick}");
        }
        assert_eq!(choice.why, Why::Processors);
        // A moment of idle processors is no reason; when it is over, the time begins anew.
        let idle = seen(3000.0, 1.0, 2.0);
        for tick in 60..500u64 {
            let now = if tick % 29 == 0 { &fast } else { &idle };
            choice = choice.after(now, tick * 100_000);
            assert_eq!(choice.codec, Codec::Raw, "tick {tick}");
        }
        // A full disk is a reason at once, and for as long as it is full.
        let full = Measured { is_disk_full: true, ..fast };
        let packed = choice.after(&full, 50_000_000);
        assert_eq!((packed.codec, packed.why), (Codec::Zstd, Why::FullDisk));
        let late = (500..540u64).fold(choice, |choice, tick| choice.after(&idle, tick * 100_000));
        assert_eq!((late.codec, late.why), (Codec::Zstd, Why::Idle));
    }

    #[test]
    fn the_cost_of_a_byte_is_without_that_of_a_write() {
        let mut cost = ByteCost::default();
        assert_eq!(cost.seconds_per_byte(), None);
        cost.learn(4096.0, 4096e-9);
        assert!((cost.seconds_per_byte().expect("known") - 1e-9).abs() < 1e-15);
        for n in 0..200 {
            let bytes = f64::from(1 + n % 50) * 4096.0;
            cost.learn(bytes, 2e-3 + bytes * 3e-9);
        }
        let found = cost.seconds_per_byte().expect("known");
        assert!((found - 3e-9).abs() < 0.3e-9, "{found}");
    }

    fn packs() -> impl Strategy<Value = Packs> {
        (0.0..1e-7, 0.0..1.0)
            .prop_map(|(seconds_per_byte, saved)| Packs { seconds_per_byte, saved })
    }

    fn codec() -> impl Strategy<Value = Codec> {
        prop_oneof![Just(Codec::Raw), Just(Codec::Lz4), Just(Codec::Zstd)]
    }

    fn measured() -> impl Strategy<Value = Measured> {
        (packs(), packs(), 0.0..1e-6, 0.0..1.0, 1.0..64.0).prop_map(
            |(lz4, zstd, device, idle, processors)| Measured {
                lz4: Some(lz4),
                zstd: Some(zstd),
                device_seconds_per_byte: Some(device),
                idle,
                processors,
                is_disk_full: false,
            },
        )
    }

    fn seconds_of(seen: &Measured, codec: Codec) -> f64 {
        match codec {
            Codec::Raw => 0.0,
            Codec::Lz4 => seen.lz4.expect("measured").seconds_per_byte,
            Codec::Zstd => seen.zstd.expect("measured").seconds_per_byte,
        }
    }

    proptest! {
        /// What was chosen is chosen again: nothing swings while nothing changes.
        #[test]
        fn a_choice_stands(seen in measured(), now in codec()) {
            let (chosen, _) = choose(&seen, now);
            prop_assert_eq!(choose(&seen, chosen).0, chosen);
        }

        /// Idle processors never make it save less.
        #[test]
        fn idle_processors_are_used(seen in measured(), now in codec()) {
            let idle = Measured { idle: 1.0, ..seen };
            let saved = |codec| match codec {
                Codec::Raw => 0.0,
                Codec::Lz4 => seen.lz4.expect("measured").saved,
                Codec::Zstd => seen.zstd.expect("measured").saved,
            };
            let (chosen, _) = choose(&idle, now);
            prop_assert!(saved(chosen) >= saved(choose(&seen, chosen).0));
        }

        /// A faster device never makes it pack by what takes longer.
        #[test]
        fn a_faster_device_asks_for_no_more(seen in measured(), now in codec()) {
            // A codec that takes longer and saves less is taken by none.
            let (lz4, zstd) = (seen.lz4.expect("measured"), seen.zstd.expect("measured"));
            prop_assume!(lz4.saved < zstd.saved && lz4.seconds_per_byte < zstd.seconds_per_byte);
            let (chosen, _) = choose(&seen, now);
            let device = seen.device_seconds_per_byte.map(|seconds| seconds / 2.0);
            let faster = Measured { device_seconds_per_byte: device, ..seen };
            let then = choose(&faster, chosen).0;
            prop_assert!(seconds_of(&seen, then) <= seconds_of(&seen, chosen));
        }
    }
}
