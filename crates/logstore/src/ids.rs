//! Names of the store's own things, as types.
use weir_base::ALIGN;

/// What places are counted in: blocks begin at multiples of it.
pub const UNIT: usize = 64;

/// A segment's number: it begins at that many times the segment size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SegmentNo(pub u32);

/// One use of a segment, from its opening until it is free: a number that the store never gives
/// out again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// A chunk's number: the life in which it was written above the count within that life, so that a
/// chunk that was written later has the greater one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

impl Seq {
    const LIFE_SHIFT: u32 = 40;
    /// Lives that can be told apart.
    pub const LIVES_MAX: u64 = 1 << (64 - Self::LIFE_SHIFT);

    /// Before the first chunk of a life.
    #[must_use]
    pub fn before(life: u64) -> Seq {
        Seq(life << Self::LIFE_SHIFT)
    }

    /// The life in which the chunk was written: how often the store had been opened by then.
    #[must_use]
    pub fn life(self) -> u64 {
        self.0 >> Self::LIFE_SHIFT
    }

    /// The chunk after this one. A life has 2^40 of them, more than a device writes.
    #[must_use]
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }

    /// The number before this one.
    #[must_use]
    pub fn back(self) -> Seq {
        Seq(self.0.saturating_sub(1))
    }
}

/// Where a block lies, in 64 bits: 40 of position in units, 9 of length in units, and 15 drawn from
/// the number of its chunk, so that an older block that was left in the place by a write that the
/// device lost is told from it (all but once in 32,768).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Place(u64);

impl Place {
    /// Nowhere: the page was never written, or is no more. No block lies at the store's first byte.
    pub const NONE: Place = Place(0);
    /// The longest block, in units.
    pub const UNITS_MAX: usize = (1 << 9) - 1;
    /// Positions end before this many units: 64 TiB.
    pub const POSITION_MAX: u64 = 1 << 40;
    /// No file of segments is longer.
    pub const BYTES_MAX: u64 = Self::POSITION_MAX * UNIT as u64;

    /// A block of `units` units at unit `position` of the store, in chunk `seq`.
    #[must_use]
    pub fn new(position: u64, units: usize, seq: Seq) -> Place {
        debug_assert!(position < Self::POSITION_MAX && (1..=Self::UNITS_MAX).contains(&units));
        Place(position << 24 | (units as u64) << 15 | u64::from(Self::check_of(seq)))
    }

    /// From the bits that [`Place::bits`] gave.
    #[must_use]
    pub fn from_bits(bits: u64) -> Place {
        Place(bits)
    }

    /// As it is written in a leaf.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether it is [`Place::NONE`].
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Where the block begins, in units from the store's first byte.
    #[must_use]
    pub fn position(self) -> u64 {
        self.0 >> 24
    }

    /// Its length in units, header included.
    #[must_use]
    pub fn units(self) -> usize {
        (self.0 >> 15) as usize & Self::UNITS_MAX
    }

    /// Where it begins, in bytes from the store's first.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.position() * UNIT as u64
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.units() * UNIT
    }

    /// Whether a block of chunk `seq` can be the one that is meant.
    #[must_use]
    pub fn is_of(self, seq: Seq) -> bool {
        self.0 as u16 & 0x7fff == Self::check_of(seq)
    }

    fn check_of(seq: Seq) -> u16 {
        // The count's low bits differ between chunks near each other; the life's are folded in.
        ((seq.0 ^ seq.0 >> 15 ^ seq.0 >> 33) & 0x7fff) as u16
    }
}

/// `len` bytes in whole units.
#[must_use]
pub fn units_of(len: usize) -> usize {
    len.div_ceil(UNIT)
}

const _: () = assert!(ALIGN.is_multiple_of(UNIT));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_its_parts() {
        for (position, units) in [(1, 1), (77, 65), (Place::POSITION_MAX - 1, Place::UNITS_MAX)] {
            for seq in [Seq(1), Seq::before(3).next(), Seq(u64::MAX)] {
                let place = Place::from_bits(Place::new(position, units, seq).bits());
                assert_eq!((place.position(), place.units()), (position, units));
                assert!(place.is_of(seq) && !place.is_of(seq.back()) && !place.is_none());
            }
        }
        assert!(Place::NONE.is_none());
    }

    #[test]
    fn later_lives_have_greater_numbers() {
        let last = Seq(Seq::before(4).0 - 1);
        assert_eq!((last.life(), Seq::before(4).next().life()), (3, 4));
        assert!(last < Seq::before(4));
    }
}
