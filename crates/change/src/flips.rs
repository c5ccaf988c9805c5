//! What two strings of bytes of the same length differ in, as the bits that differ: it makes either
//! of them from the other, so that one copy serves redo and undo. Texts and numbers differ in the
//! low bits of each byte: bytes are packed with as many bits as the widest of them needs.
use smallvec::SmallVec;

use crate::patches::{Places, Shape};

/// Bytes worked on at once: so many of `width` bits each are `width` whole bytes.
const CHUNK: usize = 8;

/// A packed difference in memory of its own.
#[derive(Clone, Debug)]
pub struct Difference {
    shape: Shape,
    width: u8,
    packed: SmallVec<[u8; 128]>,
}

/// A packed difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flips<'a> {
    places: Places<'a>,
    width: u8,
    packed: &'a [u8],
}

impl Difference {
    /// Nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Difference { shape: Shape::nothing(), width: 0, packed: SmallVec::new() }
    }

    /// What differs between two strings of the same length, less than 1 MiB.
    #[must_use]
    pub fn between(one: &[u8], other: &[u8]) -> Self {
        let shape = Shape::between(one, other);
        let mut bits: SmallVec<[u8; 256]> = SmallVec::new();
        for (start, len) in shape.places().iter() {
            let at = bits.len();
            bits.extend_from_slice(&one[start..start + len]);
            flip(&mut bits[at..], &other[start..start + len]);
        }
        let width = 8 - bits.iter().fold(0, |all, bits| all | bits).leading_zeros() as u8;
        let mut packed = SmallVec::new();
        if width == 8 {
            packed.extend_from_slice(&bits);
            return Difference { shape, width, packed };
        }
        // Each chunk writes a whole word; the next one covers what of it means nothing.
        packed.resize(bits.len().div_ceil(CHUNK) * usize::from(width) + CHUNK, 0);
        let (fields, mut len) = (Fields::of(width), 0);
        for bits in bits.chunks(CHUNK) {
            let chunk = fields.squeeze(word(bits)).to_le_bytes();
            packed[len..len + CHUNK].copy_from_slice(&chunk);
            len += (bits.len() * usize::from(width)).div_ceil(8);
        }
        packed.truncate(len);
        Difference { shape, width, packed }
    }

    /// To be written down.
    #[must_use]
    pub fn flips(&self) -> Flips<'_> {
        Flips { places: self.shape.places(), width: self.width, packed: &self.packed }
    }
}

impl<'a> Flips<'a> {
    /// As it was written down; `None` when no [`Difference`] is written so.
    #[inline]
    pub(crate) fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let (places, len) = Places::take(rest)?;
        let (&width, behind) = rest.split_first()?;
        if width > 8 {
            return None;
        }
        let (packed, behind) = behind.split_at_checked(packed_len(len, width)?)?;
        *rest = behind;
        Some(Flips { places, width, packed })
    }

    /// Puts it behind the others.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.places.as_bytes());
        out.push(self.width);
        out.extend_from_slice(self.packed);
    }

    /// How long a value must be.
    #[must_use]
    pub fn end(self) -> usize {
        self.places.end()
    }

    /// Makes the one string from the other.
    ///
    /// # Panics
    /// When `value` is shorter than [`Flips::end`].
    pub fn flip(self, value: &mut [u8]) {
        if self.width == 0 {
            return;
        }
        let mut spread: SmallVec<[u8; 256]> = SmallVec::new();
        let mut bits = self.packed;
        if self.width < 8 {
            let (fields, width) = (Fields::of(self.width), usize::from(self.width));
            spread.resize(self.packed.len().div_ceil(width) * CHUNK, 0);
            for (nth, bits) in spread.chunks_exact_mut(CHUNK).enumerate() {
                // What is not of this part is passed over.
                let word = word(&self.packed[nth * width..]);
                bits.copy_from_slice(&fields.spread(word).to_le_bytes());
            }
            bits = &spread;
        }
        for (start, len) in self.places.iter() {
            flip(&mut value[start..start + len], bits);
            bits = &bits[len..];
        }
    }
}

/// A difference that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlipsBuf(Box<[u8]>);

impl From<Flips<'_>> for FlipsBuf {
    fn from(flips: Flips<'_>) -> Self {
        let mut bytes = Vec::new();
        flips.put(&mut bytes);
        FlipsBuf(bytes.into())
    }
}

impl FlipsBuf {
    /// Makes the one string from the other; `false`, with nothing done: it is too short.
    #[must_use]
    pub fn flip(&self, value: &mut [u8]) -> bool {
        let flips = Flips::take(&mut &*self.0).filter(|flips| flips.end() <= value.len());
        flips.inspect(|flips| flips.flip(value)).is_some()
    }

    /// As it was before it was kept.
    #[must_use]
    pub fn flips(&self) -> Option<Flips<'_>> {
        Flips::take(&mut &*self.0)
    }

    /// How many bytes it takes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // None are as good as any other number.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// `None`: more bytes than there can be.
fn packed_len(len: usize, width: u8) -> Option<usize> {
    Some((len / CHUNK).checked_mul(width as usize)? + (len % CHUNK * width as usize).div_ceil(8))
}

/// The first eight bytes, those missing as zeros.
fn word(bytes: &[u8]) -> u64 {
    if let Some(whole) = bytes.first_chunk() {
        return u64::from_le_bytes(*whole);
    }
    let mut all = [0; CHUNK];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// Flips the bits of `bytes` that are set in `bits`.
fn flip(bytes: &mut [u8], bits: &[u8]) {
    bytes.iter_mut().zip(bits).for_each(|(byte, bits)| *byte ^= bits);
}

/// How the low bits of each byte of a word are put side by side: by twos, fours and eights.
struct Fields([Step; 3]);

struct Step {
    /// Half the width of the fields that stand apart.
    bits: u32,
    /// How many bits of each are in use.
    width: u32,
    /// Those of every second field.
    mask: u64,
}

impl Fields {
    fn of(width: u8) -> Fields {
        let step = |bits: u32| {
            let width = u32::from(width) * bits / 8;
            let (mut mask, mut have) = ((1u64 << width) - 1, 2 * bits);
            while have < 64 {
                mask |= mask << have;
                have *= 2;
            }
            Step { bits, width, mask }
        };
        Fields([step(8), step(16), step(32)])
    }

    fn squeeze(&self, mut word: u64) -> u64 {
        for Step { bits, width, mask } in &self.0 {
            word = (word & mask) | ((word >> bits) & mask) << width;
        }
        word
    }

    /// Takes apart again what `squeeze` has put together.
    fn spread(&self, mut word: u64) -> u64 {
        for Step { bits, width, mask } in self.0.iter().rev() {
            word = (word & mask) | ((word >> width) & mask) << bits;
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(flips: Flips<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        flips.put(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn either_is_made_from_the_other(
            pairs in prop::collection::vec((any::<(u8, u8)>(), prop::bool::weighted(0.3)), 0..120),
            mask: u8,
        ) {
            let differs = |((a, b), on)| (a, a ^ (b & if on { mask } else { 0 }));
            let (one, other): (Vec<u8>, Vec<u8>) = pairs.into_iter().map(differs).unzip();
            let difference = Difference::between(&one, &other);
            let flips = difference.flips();
            let mut made = one.clone();
            flips.flip(&mut made);
            prop_assert_eq!(&made, &other);
            let bytes = bytes_of(flips);
            let mut rest = bytes.as_slice();
            let taken = Flips::take(&mut rest).expect("it was put");
            prop_assert!(rest.is_empty());
            prop_assert_eq!(taken, flips);
            let kept = FlipsBuf::from(taken);
            prop_assert!(kept.flip(&mut made));
            prop_assert_eq!(&made, &one);
            if flips.end() > 0 {
                prop_assert!(!kept.flip(&mut made[..flips.end() - 1]));
                prop_assert_eq!(&made, &one);
            }
        }
    }

    #[test]
    fn digits_take_half_a_byte_each_and_equal_bytes_nothing() {
        let packed = |one: &[u8], other: &[u8]| Difference::between(one, other).packed.len();
        assert_eq!(packed(b"68487932199-96439", b"83868641912-28773"), 9);
        assert_eq!(packed(b"weir", b"weir"), 0);
        assert_eq!(packed(b"", b""), 0);
        assert_eq!(packed(b"lower", b"words"), 4, "letters take five bits");
        assert_eq!(packed(&[0; 16], &[255; 16]), 16);
        let row = |a, b| [&[a; 4][..], &[7; 240], &[b; 4]].concat();
        assert_eq!(packed(&row(1, 3), &row(2, 4)), 3, "two columns far apart");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for bad in [&[][..], &[0, 8], &[0, 8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1], &[0, 3, 8, 1, 1]] {
            assert!(Flips::take(&mut &*bad).is_none(), "{bad:?}");
        }
        let huge = [&[0][..], &[0xff; 9], &[1, 8]].concat();
        assert!(Flips::take(&mut huge.as_slice()).is_none());
        assert!(Flips::take(&mut [0u8, 0, 0].as_slice()).is_some());
    }
}
