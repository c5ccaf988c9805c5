//! Places of a value where other bytes come. A statement that sets columns far apart in a row is
//! said by what lies at these columns, not by all that lies between them.
//!
//! As bytes: the *shape*, and then all the bytes one after the other. The shape has two numbers for
//! each place: how far behind the end of the one before it begins, doubled, plus 1 if another one
//! follows; and its length.
use weir_base::varint;

/// Fewer equal bytes between two places are cheaper than the numbers of a second one.
const GAP_MIN: usize = 4;
/// The most places; the last one reaches as far as the values differ.
const PLACES_MAX: usize = 12;
/// Two numbers of up to three bytes (a value is smaller than a page) for each place.
const SHAPE_BYTES_MAX: usize = PLACES_MAX * 6;

/// Where two values of one length differ.
#[derive(Clone, Debug)]
pub struct Shape {
    bytes: [u8; SHAPE_BYTES_MAX],
    len: usize,
}

impl Shape {
    /// Nowhere.
    #[must_use]
    pub fn nothing() -> Shape {
        Shape { bytes: [0; SHAPE_BYTES_MAX], len: 2 }
    }

    /// Where `old` and `new` differ; they have the same length, less than 1 MiB.
    #[must_use]
    pub fn between(old: &[u8], new: &[u8]) -> Shape {
        debug_assert!(old.len() == new.len() && old.len() < 1 << 20);
        let (mut end, mut places) = (0, 1);
        let mut next = differs_from(old, new, 0);
        if next == old.len() {
            return Shape::nothing();
        }
        let mut shape = Shape { bytes: [0; SHAPE_BYTES_MAX], len: 0 };
        while next < old.len() {
            let (gap, start) = (next - end, next);
            end =
                if places == PLACES_MAX { last_difference(old, new) } else { run(old, new, start) };
            next = differs_from(old, new, end);
            places += 1;
            shape.put(gap << 1 | usize::from(next < old.len()));
            shape.put(end - start);
        }
        shape
    }

    fn put(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.bytes[self.len] = number as u8 | 0x80;
            self.len += 1;
            number >>= 7;
        }
        self.bytes[self.len] = number as u8;
        self.len += 1;
    }

    pub(crate) fn places(&self) -> Places<'_> {
        Places(&self.bytes[..self.len])
    }

    /// What `value`, which is as long as the two, has at these places.
    #[must_use]
    pub fn of<'a>(&'a self, value: &'a [u8]) -> Patches<'a> {
        Patches { places: self.places(), bytes: Bytes::In(value) }
    }
}

/// Where the values differ next, from `from` on; their length if nowhere.
fn differs_from(old: &[u8], new: &[u8], from: usize) -> usize {
    let (a, b) = (&old[from..], &new[from..]);
    for (nth, bits) in words(a, b).enumerate() {
        if bits != 0 {
            return from + nth * 8 + bits.trailing_zeros() as usize / 8;
        }
    }
    let rest = a.len() / 8 * 8;
    let differs = a[rest..].iter().zip(&b[rest..]).position(|(a, b)| a != b);
    differs.map_or(old.len(), |at| from + rest + at)
}

/// The bits that differ, eight bytes at a time, as far as there are so many.
fn words(a: &[u8], b: &[u8]) -> impl Iterator<Item = u64> {
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    a.chunks_exact(8).zip(b.chunks_exact(8)).map(move |(a, b)| word(a) ^ word(b))
}

/// Just behind the place that begins at `start`: where enough bytes are equal to end it.
fn run(old: &[u8], new: &[u8], start: usize) -> usize {
    let mut end = start + 1;
    loop {
        // Whole words without an equal byte: most of a text or number that was replaced.
        let whole = words(&old[end..], &new[end..]).take_while(|bits| !has_zero(*bits));
        end += whole.count() * 8;
        let next = differs_from(old, new, end);
        if next == old.len() || next - end >= GAP_MIN {
            return end;
        }
        end = next + 1;
    }
}

/// Whether one of its bytes is 0.
fn has_zero(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
}

/// Just behind the last byte that differs.
fn last_difference(old: &[u8], new: &[u8]) -> usize {
    old.iter().zip(new).rposition(|(a, b)| a != b).map_or(0, |at| at + 1)
}

/// Places of a value, as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Places<'a>(&'a [u8]);

impl<'a> Places<'a> {
    /// Takes them from the front, and tells how many bytes lie in them; `None` if they are none, or
    /// not said as [`Shape::between`] does.
    #[inline]
    pub(crate) fn take(rest: &mut &'a [u8]) -> Option<(Places<'a>, usize)> {
        let all = *rest;
        let (mut end, mut bytes, mut is_first) = (0usize, 0, true);
        loop {
            let gap = usize::try_from(varint::take(rest)?).ok()?;
            let len = usize::try_from(varint::take(rest)?).ok()?;
            // That nothing changes is said by one empty place at the beginning.
            if len == 0 && !(is_first && gap == 0) {
                return None;
            }
            end = end.checked_add(gap >> 1)?.checked_add(len)?;
            // Not more than `end`.
            bytes += len;
            is_first = false;
            if gap & 1 == 0 {
                return Some((Places(&all[..all.len() - rest.len()]), bytes));
            }
        }
    }

    pub(crate) fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Where each begins, in bytes, and how long it is, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = (usize, usize)> + use<'a> {
        let (mut shape, mut end) = (self.0, 0);
        std::iter::from_fn(move || {
            let gap = varint::take(&mut shape)? as usize >> 1;
            let len = varint::take(&mut shape)? as usize;
            let start = end + gap;
            end = start + len;
            Some((start, len))
        })
    }

    /// Just behind the last place: a value must be as long.
    pub(crate) fn end(self) -> usize {
        self.iter().last().map_or(0, |(start, len)| start + len)
    }
}

/// Places of a value and what they hold.
#[derive(Clone, Copy, Debug)]
pub struct Patches<'a> {
    places: Places<'a>,
    bytes: Bytes<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Bytes<'a> {
    /// One after the other.
    Packed(&'a [u8]),
    /// Where they are in a whole value.
    In(&'a [u8]),
}

impl<'a> Patches<'a> {
    /// Takes places and bytes from the front.
    pub(crate) fn take(rest: &mut &'a [u8]) -> Option<Patches<'a>> {
        let (places, len) = Places::take(rest)?;
        let (bytes, behind) = rest.split_at_checked(len)?;
        *rest = behind;
        Some(Patches { places, bytes: Bytes::Packed(bytes) })
    }

    /// Puts places and bytes behind the others.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.places.as_bytes());
        for (_, bytes) in self.iter() {
            out.extend_from_slice(bytes);
        }
    }

    /// The places of a value, in order: where each begins, in bytes, and what it holds.
    pub fn iter(self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let mut packed = 0;
        self.places.iter().map_while(move |(start, len)| {
            packed += len;
            let bytes = match self.bytes {
                Bytes::Packed(bytes) => bytes.get(packed - len..packed),
                Bytes::In(value) => value.get(start..start + len),
            };
            bytes.map(|bytes| (start, bytes))
        })
    }

    /// Just behind the last place: a value must be as long.
    #[must_use]
    pub fn end(self) -> usize {
        self.places.end()
    }

    /// Puts the bytes in their places.
    ///
    /// # Panics
    /// When the value is shorter than [`Patches::end`].
    #[inline]
    pub fn apply(self, value: &mut [u8]) {
        for (start, bytes) in self.iter() {
            value[start..start + bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// The same places with the same bytes.
impl PartialEq for Patches<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.places == other.places && self.iter().eq(other.iter())
    }
}

impl Eq for Patches<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two values of one length that differ here and there.
    fn pair() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let run = (prop_oneof![Just(0u8), 1..=255u8], 1usize..12, any::<u8>());
        prop::collection::vec(run, 0..40).prop_map(|runs| {
            let old: Vec<u8> = runs.iter().flat_map(|&(_, len, byte)| vec![byte; len]).collect();
            let mask = runs.iter().flat_map(|&(mask, len, _)| vec![mask; len]);
            let new = old.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
            (old, new)
        })
    }

    proptest! {
        #[test]
        fn a_shape_says_all_that_differs((old, new) in pair()) {
            let shape = Shape::between(&old, &new);
            let (forth, back) = (shape.of(&new), shape.of(&old));
            prop_assert!(forth.end() <= old.len());
            let mut value = old.clone();
            forth.apply(&mut value);
            prop_assert_eq!(&value, &new);
            back.apply(&mut value);
            prop_assert_eq!(&value, &old);
            // As bytes, and back.
            let mut bytes = Vec::new();
            forth.put(&mut bytes);
            bytes.push(77);
            let mut rest = bytes.as_slice();
            let taken = Patches::take(&mut rest).expect("it was put");
            prop_assert_eq!(rest, &[77][..]);
            prop_assert_eq!(taken, forth);
        }
    }

    #[test]
    fn columns_far_apart_cost_what_they_hold() {
        let old = [7u8; 300];
        let mut new = old;
        (new[6], new[250], new[257]) = (8, 9, 10);
        let mut bytes = Vec::new();
        Shape::between(&old, &new).of(&new).put(&mut bytes);
        // The third place is 6 bytes behind the second: one of its own.
        assert_eq!(bytes, [13, 1, 0xe7, 0x03, 1, 12, 1, 8, 9, 10]);
        // Everywhere a little: the last place takes the rest.
        let new: Vec<u8> = (0..300).map(|at| if at % 10 == 0 { 8 } else { 7 }).collect();
        let shape = Shape::between(&old, &new);
        assert_eq!(shape.of(&new).iter().count(), PLACES_MAX);
        assert_eq!(shape.of(&new).iter().last().map(|(_, bytes)| bytes.len()), Some(181));
    }

    #[test]
    fn what_no_shape_says_is_refused() {
        for bad in [&[][..], &[0], &[1, 0, 0, 1, 5], &[2, 0], &[1, 1, 0, 0, 5], &[0, 3, 1, 2]] {
            assert!(Patches::take(&mut &*bad).is_none(), "{bad:?}");
        }
        let huge = [[0xff; 9].as_slice(), &[1], &[0xff; 9], &[1], &[0, 1]].concat();
        assert!(Patches::take(&mut huge.as_slice()).is_none());
        assert_eq!(Patches::take(&mut [0u8, 0].as_slice()).map(Patches::end), Some(0));
    }
}
