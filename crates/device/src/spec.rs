//! What a person says about a disk: `2000iops,32MiB,slices,sync=200us,half=40s+30s`, or a name.
use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use weir_base::parse_size;

/// The rates and habits of a throttled disk, which all files of a volume share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskSpec {
    /// Operations per second; `None` for no limit.
    pub iops: Option<u64>,
    /// Bytes per second, reads and writes together; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// Whether the rates count writes only; reads are as fast as the volume below.
    pub reads_are_free: bool,
    /// What a sync, or a durable write, takes longer, in microseconds.
    pub sync_micros: u64,
    /// How long the slices are in which the rates are handed out, in microseconds, 0 for none.
    /// cgroups v1 and cloud volumes have slices of 100 ms: a slice's share may be used at once,
    /// then every thread waits for the next slice.
    pub slice_micros: u64,
    /// Times at which the rates differ. Where two overlap, both factors apply.
    pub changes: Vec<RateChange>,
}

/// A span of time during which the rates of a [`DiskSpec`] are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// The factor, in thousandths: 500 for half the rate, 0 for a stall.
    pub factor_thousandths: u32,
    /// When it begins, in microseconds after the volume was opened.
    pub start_micros: u64,
    /// How long it lasts, in microseconds.
    pub duration_micros: u64,
}

/// A text that describes no disk.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "disk '{text}': '{item}' {problem}. Disks: {names}; or rates such as 2000iops, 32MiB or both. \
     Options: free-reads, slices, slices=1s, sync=200us, half=40s+30s, x0.3=40s+30s (a factor \
     from the 40th second for 30), stall=20s+1s; all separated by commas",
    names = NAMES.map(|(name, _)| name).join(", ")
)]
pub struct DiskSpecError {
    text: String,
    item: String,
    problem: &'static str,
}

/// The disks that have names. The SATA SSD is the one of the first flushing article that the
/// project grew from (30,000 writes/s of 16 KiB); the cloud disk is a general-purpose volume with
/// its free allowance; the others are typical of their kind.
const NAMES: [(&str, &str); 7] = [
    ("none", ""),
    ("free", ""),
    ("sata-ssd", "30000iops,480000KiB"),
    ("hdd", "180iops,150MiB,sync=8ms"),
    ("nvme", "500000iops,3GiB,sync=20us"),
    ("cloud-3000", "3000iops,125MiB"),
    ("cloud-slices", "3000iops,125MiB,slices"),
];

/// A slower disk would make single operations take minutes.
const BYTES_PER_SECOND_MIN: u64 = 4096;
const BYTES_PER_SECOND_MAX: u64 = 1 << 40;
const IOPS_MAX: u64 = 100_000_000;
/// What slices are where nothing else is said.
const SLICE_MICROS: u64 = 100_000;
const FACTOR_MAX: u32 = 100_000;
/// One day.
const MICROS_MAX: u64 = 86_400_000_000;
const CHANGES_MAX: usize = 64;

impl DiskSpec {
    /// A disk without limits.
    #[must_use]
    pub fn unlimited() -> Self {
        DiskSpec::default()
    }

    /// Whether such a disk never makes any thread wait.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        let stalls = self.changes.iter().any(|change| change.factor_thousandths == 0);
        !stalls && self.rates_are_unlimited() && self.sync_micros == 0
    }

    fn rates_are_unlimited(&self) -> bool {
        self.iops.is_none() && self.bytes_per_second.is_none()
    }

    /// The rates alone, for people: `2000 iops 32 MiB/s`.
    #[must_use]
    pub fn rates(&self) -> String {
        let iops = self.iops.map(|iops| format!("{iops} iops"));
        let bytes = self.bytes_per_second.map(|b| format!("{}/s", weir_base::format_size(b)));
        let parts: Vec<String> = iops.into_iter().chain(bytes).collect();
        match (parts.is_empty(), self.reads_are_free) {
            (true, _) => "no limit".to_owned(),
            (false, false) => parts.join(" "),
            (false, true) => format!("{} for writes", parts.join(" ")),
        }
    }

    fn add(&mut self, item: &str) -> Result<(), &'static str> {
        if item == "slices" {
            self.slice_micros = SLICE_MICROS;
        } else if item == "free-reads" {
            self.reads_are_free = true;
        } else if let Some((key, value)) = item.split_once('=') {
            match key.trim() {
                "sync" => self.sync_micros = micros(value)?,
                "slices" => match micros(value)? {
                    0 => return Err("has slices of no length"),
                    length => self.slice_micros = length,
                },
                "half" => self.change(500, value)?,
                "stall" => self.change(0, value)?,
                other => match other.strip_prefix('x') {
                    Some(factor) => self.change(thousandths(factor)?, value)?,
                    None => return Err("is not an option"),
                },
            }
        } else if let Some(number) = item.strip_suffix("iops") {
            let iops = number.trim().replace('_', "").parse().map_err(|_| "has no whole number")?;
            if !(1..=IOPS_MAX).contains(&iops) {
                return Err("is outside of 1 to 100,000,000");
            }
            self.iops = Some(iops);
        } else if item.ends_with(['B', 'b', 'K', 'k', 'M', 'm', 'G', 'g']) {
            let bytes = parse_size(item).map_err(|_| "is neither a disk, a rate nor an option")?;
            if !(BYTES_PER_SECOND_MIN..=BYTES_PER_SECOND_MAX).contains(&bytes) {
                return Err("is outside of 4 KiB to 1 TiB a second");
            }
            self.bytes_per_second = Some(bytes);
        } else {
            return Err("is neither a disk, a rate nor an option");
        }
        Ok(())
    }

    fn change(&mut self, factor_thousandths: u32, span: &str) -> Result<(), &'static str> {
        let (start, duration) = span.split_once('+').ok_or("has no start and duration")?;
        if self.changes.len() == CHANGES_MAX {
            return Err("is one change too many");
        }
        let (start_micros, duration_micros) = (micros(start)?, micros(duration)?);
        self.changes.push(RateChange { factor_thousandths, start_micros, duration_micros });
        Ok(())
    }
}

impl FromStr for DiskSpec {
    type Err = DiskSpecError;

    fn from_str(text: &str) -> Result<Self, DiskSpecError> {
        let mut spec = DiskSpec::default();
        for (number, item) in text.split(',').enumerate() {
            let item = item.trim();
            let wrong =
                |problem| DiskSpecError { text: text.to_owned(), item: item.to_owned(), problem };
            let named = NAMES.iter().find(|(name, _)| *name == item);
            match named {
                Some(_) if number > 0 => return Err(wrong("must come first")),
                Some((_, "")) => {}
                Some((_, meaning)) => {
                    meaning.split(',').try_for_each(|part| spec.add(part)).map_err(wrong)?;
                }
                None => spec.add(item).map_err(wrong)?,
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for DiskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = Vec::new();
        items.extend(self.iops.map(|iops| format!("{iops}iops")));
        items.extend(self.bytes_per_second.map(exact_size));
        if items.is_empty() {
            items.push("none".to_owned());
        }
        if self.reads_are_free {
            items.push("free-reads".to_owned());
        }
        match self.slice_micros {
            0 => {}
            SLICE_MICROS => items.push("slices".to_owned()),
            length => items.push(format!("slices={}", exact_time(length))),
        }
        if self.sync_micros > 0 {
            items.push(format!("sync={}", exact_time(self.sync_micros)));
        }
        for change in &self.changes {
            let what = match change.factor_thousandths {
                0 => "stall".to_owned(),
                500 => "half".to_owned(),
                n => format!("x{}.{:03}", n / 1000, n % 1000),
            };
            let (start, duration) = (change.start_micros, change.duration_micros);
            items.push(format!("{what}={}+{}", exact_time(start), exact_time(duration)));
        }
        f.write_str(&items.join(","))
    }
}

fn exact_size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes.is_multiple_of(1 << shift));
    unit.map_or(format!("{bytes}B"), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

fn exact_time(micros: u64) -> String {
    let units = [(1_000_000, "s"), (1_000, "ms")];
    let unit = units.into_iter().find(|(size, _)| micros.is_multiple_of(*size));
    unit.map_or(format!("{micros}us"), |(size, unit)| format!("{}{unit}", micros / size))
}

/// A time such as `200us`, `8ms` or `1.5s`.
fn micros(text: &str) -> Result<u64, &'static str> {
    let text = text.trim();
    let (number, size) = if let Some(number) = text.strip_suffix("us") {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1e3)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, 1e6)
    } else {
        return Err("has a time without one of the units us, ms, s");
    };
    let micros = decimal(number).ok_or("has a time that is not a number")? * size;
    if micros > MICROS_MAX as f64 {
        return Err("has a time of more than a day");
    }
    Ok(micros.round() as u64)
}

fn thousandths(text: &str) -> Result<u32, &'static str> {
    let factor = decimal(text).ok_or("has a factor that is not a number")?;
    let factor = (factor * 1000.0).round();
    if factor > f64::from(FACTOR_MAX) {
        return Err("has a factor above 100");
    }
    Ok(factor as u32)
}

/// Digits with at most one point; none of the other things that floats are read from.
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(factor_thousandths: u32, start_seconds: u64, seconds: u64) -> RateChange {
        RateChange {
            factor_thousandths,
            start_micros: start_seconds * 1_000_000,
            duration_micros: seconds * 1_000_000,
        }
    }

    #[test]
    fn what_people_write() {
        let plain = DiskSpec::default();
        let table = [
            ("none", plain.clone()),
            ("free", plain.clone()),
            ("2000iops", DiskSpec { iops: Some(2000), ..plain.clone() }),
            ("32MiB", DiskSpec { bytes_per_second: Some(32 << 20), ..plain.clone() }),
            (
                " 2_000iops , 32MiB ",
                DiskSpec { iops: Some(2000), bytes_per_second: Some(32 << 20), ..plain.clone() },
            ),
            (
                "2000iops,slices,sync=200us",
                DiskSpec {
                    iops: Some(2000),
                    slice_micros: 100_000,
                    sync_micros: 200,
                    ..plain.clone()
                },
            ),
            (
                "none,half=40s+30s,x0.3=40s+30s,stall=20s+1s",
                DiskSpec {
                    changes: vec![change(500, 40, 30), change(300, 40, 30), change(0, 20, 1)],
                    ..plain.clone()
                },
            ),
            (
                "2000iops,free-reads",
                DiskSpec { iops: Some(2000), reads_are_free: true, ..plain.clone() },
            ),
            (
                "hdd,200iops",
                DiskSpec {
                    iops: Some(200),
                    bytes_per_second: Some(150 << 20),
                    sync_micros: 8000,
                    ..plain.clone()
                },
            ),
        ];
        for (text, spec) in table {
            assert_eq!(text.parse(), Ok(spec), "{text}");
        }
        let ssd: DiskSpec = "sata-ssd".parse().unwrap();
        assert_eq!((ssd.iops, ssd.bytes_per_second), (Some(30_000), Some(30_000 * (16 << 10))));
    }

    #[test]
    fn every_name_is_a_disk() {
        for (name, meaning) in NAMES {
            let spec: DiskSpec = name.parse().unwrap();
            assert_eq!(spec.is_unlimited(), meaning.is_empty(), "{name}");
            assert_eq!(spec.to_string().parse(), Ok(spec), "{name}");
        }
    }

    #[test]
    fn errors_say_what_exists() {
        let bad = [
            "",
            "2000",
            "fast",
            "0iops",
            "-1iops",
            "1.5iops",
            "1KiB",
            "2TB",
            "sync",
            "sync=1",
            "sync=-1s",
            "half=3s",
            "half=1s+nans",
            "x1e3=1s+1s",
            "x=1s+1s",
            "y2=1s+1s",
            "2000iops,hdd",
            "2000iops,,",
            "stall=0s+90000s",
            "x101=1s+1s",
            "sync=infs",
            "slices=0s",
            "slices=fast",
        ];
        for text in bad {
            let error = text.parse::<DiskSpec>().unwrap_err().to_string();
            for part in [text, "sata-ssd", "cloud-slices", "2000iops", "stall=20s+1s"] {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
        let error = "hdd,quick".parse::<DiskSpec>().unwrap_err().to_string();
        assert!(error.starts_with("disk 'hdd,quick': 'quick' is neither a disk"), "{error}");
    }

    fn any_spec() -> impl Strategy<Value = DiskSpec> {
        let change = (0..=FACTOR_MAX, 0..=MICROS_MAX, 0..=MICROS_MAX).prop_map(|(f, s, d)| {
            RateChange { factor_thousandths: f, start_micros: s, duration_micros: d }
        });
        (
            prop::option::of(1..=IOPS_MAX),
            prop::option::of(BYTES_PER_SECOND_MIN..=BYTES_PER_SECOND_MAX),
            any::<bool>(),
            0..=MICROS_MAX,
            prop_oneof![Just(0), Just(SLICE_MICROS), 1..=MICROS_MAX],
            prop::collection::vec(change, 0..5),
        )
            .prop_map(
                |(iops, bytes_per_second, reads_are_free, sync_micros, slice_micros, changes)| {
                    DiskSpec {
                        iops,
                        bytes_per_second,
                        reads_are_free,
                        sync_micros,
                        slice_micros,
                        changes,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn display_round_trips(spec in any_spec()) {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }

        #[test]
        fn any_text_is_an_answer(text in ".*", near in "[0-9xhs=+.,iopsMKBu]{0,24}") {
            for text in [text, near] {
                if let Ok(spec) = text.parse::<DiskSpec>() {
                    prop_assert_eq!(spec.to_string().parse(), Ok(spec));
                }
            }
        }
    }
}
