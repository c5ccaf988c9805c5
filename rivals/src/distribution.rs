//! YCSB's distributions, by its definitions (`site.ycsb.generator`): zipfian with the constant
//! 0.99, by the method of Gray et al., "Quickly generating billion-record synthetic databases"
//! (SIGMOD 1994); scrambled zipfian, which scatters the popular ones over all rows; and latest,
//! which counts back from the newest row.

/// YCSB's `ZIPFIAN_CONSTANT`.
const THETA: f64 = 0.99;

/// Zipfian numbers: 0 is the most popular.
#[derive(Clone)]
pub struct Zipfian {
    items: u64,
    zeta_items: f64,
    zeta_2: f64,
    alpha: f64,
}

/// The sum of `1 / i^theta` for `i` from `from + 1` to `to`.
fn zeta(from: u64, to: u64) -> f64 {
    (from..to).map(|i| ((i + 1) as f64).powf(-THETA)).sum()
}

impl Zipfian {
    /// Of so many items, at least one; takes a moment for each million.
    pub fn new(items: u64) -> Zipfian {
        Zipfian::with(items, zeta(0, items))
    }

    fn with(items: u64, zeta_items: f64) -> Zipfian {
        Zipfian { items, zeta_items, zeta_2: zeta(0, 2), alpha: 1.0 / (1.0 - THETA) }
    }

    /// There are more items now; the sum only needs the new ones.
    fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta_items += zeta(self.items, items);
            self.items = items;
        }
    }

    /// One of them.
    pub fn next(&self, random: &mut fastrand::Rng) -> u64 {
        let u = random.f64();
        let uz = u * self.zeta_items;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(THETA) {
            return 1.min(self.items - 1);
        }
        let items = self.items as f64;
        let eta = (1.0 - (2.0 / items).powf(1.0 - THETA)) / (1.0 - self.zeta_2 / self.zeta_items);
        let rank = items * (eta * u - eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }
}

/// YCSB's `Utils.fnvhash64`: FNV-1a over the eight bytes, lowest first, then the absolute value.
fn fnv_hash(mut word: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for _ in 0..8 {
        hash = (hash ^ (word & 0xff)).wrapping_mul(1_099_511_628_211);
        word >>= 8;
    }
    (hash as i64).unsigned_abs()
}

/// Zipfian numbers with the popular ones anywhere: YCSB's `ScrambledZipfianGenerator`.
#[derive(Clone)]
pub struct Scrambled {
    items: u64,
    zipfian: Zipfian,
}

/// Its ranks are drawn from so many, whatever the number of rows.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
/// Their zeta for the constant 0.99, which takes long to sum up (`ZETAN` there).
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

impl Scrambled {
    pub fn new(items: u64) -> Scrambled {
        Scrambled { items, zipfian: Zipfian::with(SCRAMBLED_ITEMS, SCRAMBLED_ZETA) }
    }

    pub fn next(&self, random: &mut fastrand::Rng) -> u64 {
        fnv_hash(self.zipfian.next(random)) % self.items
    }
}

/// The newest rows are the most popular: YCSB's `SkewedLatestGenerator`.
#[derive(Clone)]
pub struct Latest(Zipfian);

impl Latest {
    /// Of the rows that are there at the start.
    pub fn new(items: u64) -> Latest {
        Latest(Zipfian::new(items))
    }

    /// One of the rows below `items`, which only grows.
    pub fn next(&mut self, items: u64, random: &mut fastrand::Rng) -> u64 {
        self.0.grow(items);
        items - 1 - self.0.next(random).min(items - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(draws: u64, mut next: impl FnMut() -> u64, items: usize) -> Vec<f64> {
        let mut counts = vec![0_u64; items];
        (0..draws).for_each(|_| counts[next() as usize] += 1);
        counts.iter().map(|&count| count as f64 / draws as f64).collect()
    }

    #[test]
    fn ranks_have_the_shares_of_the_definition() {
        let (items, mut random) = (1_000, fastrand::Rng::with_seed(7));
        let zipfian = Zipfian::new(items);
        let seen = shares(1_000_000, || zipfian.next(&mut random), items as usize);
        // The method is exact for the first two, an approximation for the rest.
        for rank in [0, 1] {
            let asked = ((rank + 1) as f64).powf(-THETA) / zeta(0, items);
            assert!((seen[rank] / asked - 1.0).abs() < 0.02, "{rank}: {} {asked}", seen[rank]);
        }
        let tenth: f64 = seen[..100].iter().sum();
        let asked = zeta(0, 100) / zeta(0, items);
        assert!((tenth / asked - 1.0).abs() < 0.05, "{tenth} {asked}");
        assert!(seen[900..].iter().all(|&share| share > 0.0));
    }

    #[test]
    fn a_grown_sum_is_the_sum() {
        let mut grown = Zipfian::new(100);
        grown.grow(5_000);
        let whole = Zipfian::new(5_000);
        assert!((grown.zeta_items - whole.zeta_items).abs() < 1e-9);
    }

    #[test]
    fn scrambled_ones_are_everywhere_and_one_is_by_far_the_most_popular() {
        let (items, mut random) = (1_000, fastrand::Rng::with_seed(8));
        let scrambled = Scrambled::new(items);
        let seen = shares(1_000_000, || scrambled.next(&mut random), items as usize);
        assert!(seen.iter().all(|&share| share > 0.0));
        // Rank 0 has 1 / zeta of all draws; others fall on the same row.
        let top = seen.iter().copied().fold(0.0, f64::max);
        assert!((1.0 / SCRAMBLED_ZETA..0.05).contains(&top), "{top}");
        let at = seen.iter().position(|&share| share == top);
        assert_eq!(at, Some((fnv_hash(0) % items) as usize));
    }

    #[test]
    fn the_newest_row_is_the_most_popular() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut latest = Latest::new(100);
        let seen = shares(100_000, || latest.next(200, &mut random), 200);
        assert!(seen[199] > seen[198] && seen[198] > seen[190] && seen[190] > seen[0]);
        assert!(seen[199] > 0.1);
    }

    /// By hand: the FNV-1a offset basis after eight zero bytes.
    #[test]
    fn the_hash_is_the_one_of_fnv() {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        (0..8).for_each(|_| hash = hash.wrapping_mul(0x100_0000_01b3));
        assert_eq!(fnv_hash(0), (hash as i64).unsigned_abs());
    }
}
