//! How numbers and texts lie in a value: numbers at fixed offsets at its front, to be patched in
//! place, then texts with their lengths.
use super::text::Text;

/// A number or a text of fixed length.
pub(crate) trait Fixed: Sized + Copy {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> Option<Self>;
    fn write(self, bytes: &mut [u8]);
}

macro_rules! fixed_numbers {
    ($($number:ty),*) => {$(
        impl Fixed for $number {
            const BYTES: usize = size_of::<$number>();
            #[inline]
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| <$number>::from_le_bytes(*bytes))
            }
            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

fixed_numbers!(u8, u16, i16, u32, i64);

impl<const N: usize> Fixed for [u8; N] {
    const BYTES: usize = N;
    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied()
    }
    #[inline]
    fn write(self, bytes: &mut [u8]) {
        bytes[..N].copy_from_slice(&self);
    }
}

/// The numbers that a value begins with.
pub(crate) trait Front: Sized + Copy {
    /// Bytes that it takes.
    const BYTES: usize;

    /// Reads it; `None` when the value is too short.
    fn read(value: &[u8]) -> Option<Self>;

    /// Writes it over the front of a value that has one.
    fn write(&self, value: &mut [u8]);

    /// Replaces `out` by a value of nothing else.
    fn begin(&self, out: &mut Vec<u8>) {
        out.clear();
        out.resize(Self::BYTES, 0);
        self.write(out);
    }
}

/// Declares a [`Front`].
macro_rules! front {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$what])* pub $field: $kind,)* }

        impl Front for $name {
            const BYTES: usize = 0 $(+ <$kind as Fixed>::BYTES)*;

            #[inline]
            #[allow(unused_assignments)] // Behind the last field nothing is read.
            fn read(value: &[u8]) -> Option<Self> {
                let mut rest = value.get(..Self::BYTES)?;
                $(
                    let $field = <$kind as Fixed>::read(rest)?;
                    rest = &rest[<$kind as Fixed>::BYTES..];
                )*
                Some($name { $($field),* })
            }

            #[inline]
            #[allow(unused_assignments)]
            fn write(&self, value: &mut [u8]) {
                let mut rest = &mut value[..Self::BYTES];
                $(
                    let (this, behind) = rest.split_at_mut(<$kind as Fixed>::BYTES);
                    self.$field.write(this);
                    rest = behind;
                )*
            }
        }
    };
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    // Only a customer's data is longer than a byte tells; two bytes for all would cost more.
    weir_base::varint::put(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// The text at the front of `bytes`, which then begin behind it.
#[inline]
pub(crate) fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(weir_base::varint::take(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<Text<N>> {
    Text::new(take_text(bytes)?)
}

pub(super) fn take_fixed<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

pub(super) use front;
