//! What a larger or smaller log would cost or save, from what was observed.
//!
//! How many pages are written for a byte of redo follows from how often pages are changed. At any
//! moment the newest change of each dirty page is known, and so how many different pages were
//! changed within the last w bytes of log, for each w up to the checkpoint age: the working set.
//! A mixture of pages with different rates of change is fitted to that curve; a page that is
//! changed at rate r (per byte) and written when its first change is A bytes old is written
//! r / (1 + r A) times a byte.
use std::sync::Arc;

use weir_base::{ALIGN, AlignedBuf, checksum};
use weir_device::Volume;

/// The file that keeps what was observed when the database was closed.
pub(crate) const FILE: &str = "observed";
const MAGIC: u64 = u64::from_le_bytes(*b"WEIROBS1");
/// Points of the working set's curve.
pub(crate) const POINTS: usize = 24;

/// What was observed of a database at work.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Checkpoint age, bytes.
    pub age_bytes: u64,
    /// Capacity of the log, bytes.
    pub log_bytes: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Bytes of log that the latest recovery applied in a second; 0 when there was none.
    pub recovery_bytes_per_second: u64,
    /// Different pages changed within the last so many bytes of log, ascending.
    pub working_set: Vec<(u64, u64)>,
}

/// One size of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// As multiple of the log that there is.
    pub factor: f64,
    /// Capacity, bytes.
    pub log_bytes: u64,
    /// Pages written for each GiB of redo.
    pub page_writes_per_gib: f64,
    /// As multiple of those with the log that there is.
    pub page_writes_factor: f64,
    /// Seconds that recovery from the oldest possible checkpoint takes; none while no recovery of
    /// this database has been measured.
    pub recovery_seconds: Option<f64>,
}

/// The sizes that advice is given for.
const FACTORS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];

impl Observed {
    /// What logs half, twice and four times as large would do.
    #[must_use]
    pub fn advice(&self) -> Vec<Advice> {
        let mixture = Mixture::fit(&self.working_set);
        let writes = |factor: f64| mixture.page_writes_per_byte(self.age_bytes as f64 * factor);
        let now = writes(1.0);
        let row = |factor: f64| {
            let rate = self.recovery_bytes_per_second;
            let age = self.age_bytes as f64 * factor;
            Advice {
                factor,
                log_bytes: (self.log_bytes as f64 * factor) as u64,
                page_writes_per_gib: writes(factor) * f64::from(1 << 30),
                page_writes_factor: if now > 0.0 { writes(factor) / now } else { 1.0 },
                recovery_seconds: (rate > 0).then(|| age / rate as f64),
            }
        };
        FACTORS.map(row).to_vec()
    }

    fn encode(&self) -> AlignedBuf {
        let mut block = AlignedBuf::zeroed(ALIGN);
        let head = [
            self.age_bytes,
            self.log_bytes,
            self.page_size,
            self.recovery_bytes_per_second,
            self.working_set.len() as u64,
        ];
        let points = self.working_set.iter().flat_map(|&(bytes, pages)| [bytes, pages]);
        let words = std::iter::once(MAGIC).chain(head).chain(points);
        for (word, to) in words.zip(block[8..].chunks_exact_mut(8)) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let crc = checksum(&block[8..]);
        block[..4].copy_from_slice(&crc.to_le_bytes());
        block
    }

    fn decode(block: &[u8]) -> Option<Observed> {
        let word = |i: usize| {
            let bytes = block.get(8 + i * 8..16 + i * 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let crc = u32::from_le_bytes(block.get(..4)?.try_into().ok()?);
        if crc != checksum(&block[8..]) || word(0)? != MAGIC {
            return None;
        }
        let points = usize::try_from(word(5)?).ok().filter(|&points| points <= POINTS)?;
        let point = |i: usize| Some((word(6 + 2 * i)?, word(7 + 2 * i)?));
        Some(Observed {
            age_bytes: word(1)?,
            log_bytes: word(2)?,
            page_size: word(3)?,
            recovery_bytes_per_second: word(4)?,
            working_set: (0..points).map(point).collect::<Option<_>>()?,
        })
    }

    /// What the database kept when it was closed.
    pub(crate) fn read(volume: &Arc<dyn Volume>) -> Option<Observed> {
        let file = volume.open(FILE).ok()?;
        let mut block = AlignedBuf::zeroed(ALIGN);
        file.read_at(0, &mut block).ok()?;
        Observed::decode(&block)
    }

    /// Keeps it. A failure does not matter: the next closing tries again.
    pub(crate) fn write(&self, volume: &Arc<dyn Volume>) {
        let file = match volume.exists(FILE) {
            Ok(true) => volume.open(FILE),
            _ => volume.create(FILE, ALIGN as u64),
        };
        let Ok(file) = file else { return };
        let _ = file.write_durable_at(0, &self.encode());
    }
}

/// Pages by how often they are changed.
struct Mixture {
    /// Changes per byte of log, and pages that are changed so often.
    classes: Vec<(f64, f64)>,
}

/// Rounds of the fit: after these nothing changes that could be told from noise. (A hundredth of a
/// second.)
const ROUNDS: usize = 10_000;

impl Mixture {
    /// Numbers of pages of fixed rates that explain the curve, by Richardson's and Lucy's rule:
    /// every number stays positive, and each round explains the curve better.
    fn fit(curve: &[(u64, u64)]) -> Mixture {
        let Some(&(span, pages)) = curve.last() else { return Mixture { classes: Vec::new() } };
        let span = span.max(1) as f64;
        // From one change in 1024 spans to 1024 in one.
        let rates = (-20..=20).map(|step| 2f64.powf(f64::from(step) / 2.0) / span);
        let mut classes: Vec<(f64, f64)> = rates.map(|rate| (rate, pages as f64 / 41.0)).collect();
        // What part of a class has been changed within each stretch of the curve.
        let seen = |rate: f64| {
            let part = |&(bytes, _): &(u64, u64)| 1.0 - (-rate * bytes as f64).exp();
            curve.iter().map(part).collect::<Vec<f64>>()
        };
        let seen: Vec<Vec<f64>> = classes.iter().map(|(rate, _)| seen(*rate)).collect();
        for _ in 0..ROUNDS {
            let mut explained = vec![0.0; curve.len()];
            for ((_, number), seen) in classes.iter().zip(&seen) {
                for (sum, part) in explained.iter_mut().zip(seen) {
                    *sum += number * part;
                }
            }
            for ((_, number), seen) in classes.iter_mut().zip(&seen) {
                let (mut wanted, mut weight) = (0.0, 1e-300);
                for ((&(_, pages), explained), part) in curve.iter().zip(&explained).zip(seen) {
                    wanted += part * pages as f64 / explained.max(1e-9);
                    weight += part;
                }
                *number *= wanted / weight;
            }
        }
        Mixture { classes }
    }

    /// Page writes for a byte of redo when each page is written `age` bytes after its first change.
    fn page_writes_per_byte(&self, age: f64) -> f64 {
        self.classes.iter().map(|(rate, pages)| pages * rate / (1.0 + rate * age)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The working set of `pages` pages that are all changed equally often, once in `every` bytes.
    fn uniform(pages: f64, every: f64, age: u64) -> Observed {
        let point = |i: usize| {
            let bytes = (age as f64 * 2f64.powf(-((POINTS - 1 - i) as f64) / 3.0)) as u64;
            (bytes, (pages * (1.0 - (-(bytes as f64) / every).exp())).round() as u64)
        };
        Observed {
            age_bytes: age,
            log_bytes: age,
            page_size: 8192,
            recovery_bytes_per_second: 100 << 20,
            working_set: (0..POINTS).map(point).collect(),
        }
    }

    #[test]
    fn uniform_updates_are_predicted() {
        // 20,000 pages, each changed once in 2.9 MB, as 145 bytes of redo for each of 20,000 are.
        let observed = uniform(20_000.0, 2.9e6, 60_000_000);
        for advice in observed.advice() {
            let expected = 20_000.0 / (2.9e6 + 60e6 * advice.factor) * f64::from(1 << 30);
            let off = advice.page_writes_per_gib / expected - 1.0;
            assert!(off.abs() < 0.05, "{advice:?} where {expected} are exact");
            let seconds = 60e6 * advice.factor / f64::from(100 << 20);
            assert!((advice.recovery_seconds.unwrap_or(0.0) - seconds).abs() < 1e-6);
        }
    }

    #[test]
    fn pages_that_are_changed_once_gain_nothing_from_a_larger_log() {
        // Appending: a new page for each 8,000 bytes, never touched again.
        let mut observed = uniform(1.0, 1.0, 64_000_000);
        for (bytes, pages) in &mut observed.working_set {
            *pages = *bytes / 8_000;
        }
        for advice in observed.advice() {
            // Pages that are changed never again and those changed once in a few spans look alike.
            let tolerance = if advice.factor > 1.0 { 0.13 } else { 0.05 };
            assert!((advice.page_writes_factor - 1.0).abs() < tolerance, "{advice:?}");
        }
    }

    #[test]
    fn kept_and_read_back_and_nothing_else_is_taken_for_it() {
        let observed = uniform(2_000.0, 1e6, 9_000_000);
        let block = observed.encode();
        assert_eq!(Observed::decode(&block), Some(observed));
        for at in [0, 9, 20, 100, 500] {
            let mut other = AlignedBuf::zeroed(ALIGN);
            other.copy_from_slice(&block);
            other[at] ^= 4;
            assert_eq!(Observed::decode(&other), None, "byte {at}");
        }
        assert_eq!(Observed::decode(&[0; 4096]), None);
        assert_eq!(Observed::decode(&[]), None);
        assert!(Observed { working_set: Vec::new(), ..uniform(1.0, 1.0, 1) }.advice().len() == 4);
    }
}
