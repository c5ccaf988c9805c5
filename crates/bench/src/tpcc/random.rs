//! Random values as clauses 2.1.6 and 4.3.2 define them.
use super::text::Text;
use crate::record::scramble;

/// A stream of random values; the same seed gives the same stream.
pub(crate) struct Random(fastrand::Rng);

/// Clause 4.3.2.2: letters of both cases and digits.
const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &[u8; 10] = b"0123456789";
const LETTERS: &[u8] = ALPHANUMERIC.split_at(26).0;
/// Clause 4.3.2.3.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(fastrand::Rng::with_seed(scramble(seed)))
    }

    /// The stream that belongs to these numbers: asking for it again gives it again.
    pub(crate) fn of(seed: u64, numbers: [u32; 4]) -> Self {
        let mix = |mixed, number| scramble(mixed ^ u64::from(number)).wrapping_add(1);
        Random::new(numbers.into_iter().fold(seed, mix))
    }

    /// Uniform in `min..=max` (clause 2.1.5).
    pub(crate) fn within(&mut self, min: u32, max: u32) -> u32 {
        self.0.u32(min..=max)
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.within(1, 100) <= percent
    }

    /// A 64-bit word.
    #[cfg(test)]
    fn word(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Clause 2.1.6: not uniform in `x..=y`.
    pub(crate) fn nurand(&mut self, a: u32, c: u32, x: u32, y: u32) -> u32 {
        (((self.within(0, a) | self.within(x, y)) + c) % (y - x + 1)) + x
    }

    /// Shuffles in place (Fisher and Yates).
    pub(crate) fn shuffle<X>(&mut self, all: &mut [X]) {
        self.0.shuffle(all);
    }

    fn fill(&mut self, bytes: &mut [u8], from: &[u8]) {
        // One word gives eight characters: a row of the customer table has some 500.
        for chunk in bytes.chunks_mut(8) {
            let word = self.0.u64(..).to_le_bytes();
            for (byte, random) in chunk.iter_mut().zip(word) {
                *byte = from[(usize::from(random) * from.len()) >> 8];
            }
        }
    }

    fn text<const N: usize>(&mut self, min: u32, max: u32, from: &[u8]) -> Text<N> {
        let length = self.within(min, max) as usize;
        debug_assert!(length <= N);
        let mut text = Text::EMPTY;
        text.push_cut(&[0; N][..length]);
        self.fill(text.bytes_mut(), from);
        text
    }

    /// A random a-string (clause 4.3.2.2).
    pub(crate) fn alphanumeric<const N: usize>(&mut self, min: u32, max: u32) -> Text<N> {
        self.text(min, max, ALPHANUMERIC)
    }

    /// A random a-string of exactly `N` characters.
    pub(crate) fn letters_and_digits<const N: usize>(&mut self) -> [u8; N] {
        self.exactly(ALPHANUMERIC)
    }

    /// Two letters or so.
    pub(crate) fn letters<const N: usize>(&mut self) -> [u8; N] {
        self.exactly(LETTERS)
    }

    /// A random n-string of exactly `N` digits.
    pub(crate) fn digits<const N: usize>(&mut self) -> [u8; N] {
        self.exactly(DIGITS)
    }

    fn exactly<const N: usize>(&mut self, from: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        self.fill(&mut out, from);
        out
    }

    /// Clause 4.3.2.7: four random digits and `11111`.
    pub(crate) fn zip(&mut self) -> [u8; 9] {
        let mut zip = *b"000011111";
        zip[..4].copy_from_slice(&self.digits::<4>());
        zip
    }

    /// Clause 4.3.3.1: a-string of 26 to 50, every tenth with `ORIGINAL` somewhere in it.
    pub(crate) fn data(&mut self) -> Text<50> {
        let mut data = self.alphanumeric(26, 50);
        if self.percent(10) {
            let at = self.within(0, (data.len() - ORIGINAL.len()) as u32) as usize;
            data.bytes_mut()[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        }
        data
    }
}

/// What marks an item, and its stock, as not generic (clause 2.4.2.2).
const ORIGINAL: &[u8] = b"ORIGINAL";

/// Whether [`Random::data`] wrote the mark.
pub(crate) fn is_original(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len()).any(|window| window == ORIGINAL)
}

/// Clause 4.3.2.3: the last name of number 0 to 999.
pub(crate) fn last_name(number: u32) -> Text<16> {
    let mut name = Text::EMPTY;
    for digit in [number / 100, number / 10 % 10, number % 10] {
        name.push_cut(SYLLABLES[digit as usize].as_bytes());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_of_the_clause() {
        for (number, name) in
            [(0, "BARBARBAR"), (371, "PRICALLYOUGHT"), (999, "EINGEINGEING"), (40, "BARPRESBAR")]
        {
            assert_eq!(&*last_name(number), name.as_bytes());
        }
    }

    #[test]
    fn nurand_keeps_its_range_and_is_skewed() {
        let mut random = Random::new(7);
        let mut seen = vec![0u32; 3001];
        for _ in 0..300_000 {
            seen[random.nurand(1023, 259, 1, 3000) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let met = seen.iter().filter(|&&n| n > 0).count();
        assert!(met > 2500, "nearly every customer is met, not {met}");
        let most = *seen.iter().max().unwrap();
        assert!(most > 500, "uniform values would be met a hundred times each, not {most}");
    }

    #[test]
    fn texts() {
        let mut random = Random::new(3);
        let (mut shortest, mut longest, mut originals) = (50, 0, 0);
        for _ in 0..10_000 {
            let data = random.data();
            assert!((26..=50).contains(&data.len()));
            assert!(data.iter().all(u8::is_ascii_alphanumeric), "{data:?}");
            (shortest, longest) = (shortest.min(data.len()), longest.max(data.len()));
            originals += u32::from(is_original(&data));
        }
        assert_eq!((shortest, longest), (26, 50));
        assert!((850..1150).contains(&originals), "{originals} of 10,000");
        assert!(random.zip().ends_with(b"11111"));
        assert!(random.letters::<2>().iter().all(u8::is_ascii_uppercase));
        assert!(random.digits::<16>().iter().all(u8::is_ascii_digit));
    }

    #[test]
    fn streams_differ_and_are_reproducible() {
        let word = |numbers| Random::of(5, numbers).word();
        assert_eq!(word([1, 2, 3, 4]), word([1, 2, 3, 4]));
        assert_ne!(word([1, 2, 3, 4]), word([1, 2, 4, 3]));
        assert_ne!(Random::of(6, [1, 2, 3, 4]).word(), word([1, 2, 3, 4]));
    }
}
