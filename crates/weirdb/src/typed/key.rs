//! Keys of types: bytes that compare as their values do.
use std::cmp::Reverse;
use std::time::Duration;

use crate::typed::value::Malformed;

/// A type that can be a key of a [`TypedTree`](crate::TypedTree): its bytes compare as its values
/// do, and none is the beginning of another's, so that tuples are one after the other.
///
/// | type | bytes |
/// |---|---|
/// | unsigned numbers | the greatest byte first |
/// | signed numbers | the same, with the sign turned |
/// | `bool`, `char` | one byte; four, the greatest first |
/// | `String`, `Vec<u8>` | a zero byte as `00 FF`, at the end `00 00` |
/// | `[u8; N]` | themselves |
/// | `Option` | `00` for `None`, `01` and the value |
/// | tuples | one after the other |
/// | `Reverse` | each byte turned |
/// | [`Duration`] | the seconds, the nanoseconds |
/// | `Uuid` (feature `uuid`) | its 16 bytes |
/// | `OffsetDateTime` (feature `time`) | nanoseconds since 1970, UTC, as `i128` |
pub trait Key: Sized {
    /// Appends the bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes a value from the front.
    ///
    /// # Errors
    /// [`Malformed`] when there is none.
    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed>;
}

/// What a key is looked for by: itself, or what it borrows.
pub trait AsKey<K> {
    /// Appends the bytes of the key.
    fn encode_key(&self, out: &mut Vec<u8>);
}

impl<K: Key> AsKey<K> for K {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
}

impl AsKey<String> for str {
    fn encode_key(&self, out: &mut Vec<u8>) {
        put_escaped(out, self.as_bytes());
    }
}

impl AsKey<Vec<u8>> for [u8] {
    fn encode_key(&self, out: &mut Vec<u8>) {
        put_escaped(out, self);
    }
}

/// The first parts of a key that is a tuple, or the beginning of one that is text.
pub trait Prefix<K> {
    /// Appends the bytes that all keys with this prefix begin with.
    fn encode_prefix(&self, out: &mut Vec<u8>);
}

impl Prefix<String> for str {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        put_open(out, self.as_bytes());
    }
}

impl Prefix<Vec<u8>> for [u8] {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        put_open(out, self);
    }
}

/// The bytes of a key that are not taken yet.
#[derive(Debug)]
pub struct KeyBytes<'k> {
    rest: &'k [u8],
    /// In which bits they are turned.
    mask: u8,
}

impl<'k> KeyBytes<'k> {
    pub(crate) fn new(bytes: &'k [u8]) -> Self {
        KeyBytes { rest: bytes, mask: 0 }
    }

    /// Takes so many bytes.
    ///
    /// # Errors
    /// [`Malformed`] when there are fewer.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) =
            self.rest.split_first_chunk::<N>().ok_or(Malformed("it is too short"))?;
        self.rest = rest;
        Ok(taken.map(|byte| byte ^ self.mask))
    }

    /// Whether there are none left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn escaped(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut bytes = Vec::new();
        loop {
            match self.take::<1>()? {
                [0] => match self.take::<1>()? {
                    [0] => return Ok(bytes),
                    [0xff] => bytes.push(0),
                    _ => return Err(Malformed("a zero byte has neither 00 nor FF behind it")),
                },
                [byte] => bytes.push(byte),
            }
        }
    }
}

fn put_open(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
}

fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    put_open(out, bytes);
    out.extend_from_slice(&[0, 0]);
}

macro_rules! numbers {
    ($($number:ty, $flip:expr);* $(;)?) => {$(
        impl Key for $number {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&(self ^ $flip).to_be_bytes());
            }

            fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
                Ok(<$number>::from_be_bytes(bytes.take()?) ^ $flip)
            }
        }
    )*};
}

numbers! {
    u8, 0; u16, 0; u32, 0; u64, 0; u128, 0;
    i8, i8::MIN; i16, i16::MIN; i32, i32::MIN; i64, i64::MIN; i128, i128::MIN;
}

impl Key for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        match bytes.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed("a truth value is neither 0 nor 1")),
        }
    }
}

impl Key for char {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(*self).encode(out);
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        char::from_u32(u32::decode(bytes)?).ok_or(Malformed("there is no such character"))
    }
}

impl Key for String {
    fn encode(&self, out: &mut Vec<u8>) {
        put_escaped(out, self.as_bytes());
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        String::from_utf8(bytes.escaped()?).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

impl Key for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_escaped(out, self);
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        bytes.escaped()
    }
}

impl<const N: usize> Key for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        bytes.take()
    }
}

impl<K: Key> Key for Option<K> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(key) = self {
            key.encode(out);
        }
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        bool::decode(bytes)?.then(|| K::decode(bytes)).transpose()
    }
}

impl<K: Key> Key for Reverse<K> {
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.0.encode(out);
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        bytes.mask = !bytes.mask;
        let key = K::decode(bytes);
        bytes.mask = !bytes.mask;
        key.map(Reverse)
    }
}

impl Key for Duration {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.as_secs(), self.subsec_nanos()).encode(out);
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        let (seconds, nanos) = <(u64, u32)>::decode(bytes)?;
        if nanos >= 1_000_000_000 {
            return Err(Malformed("a second has too many nanoseconds"));
        }
        Ok(Duration::new(seconds, nanos))
    }
}

impl Key for () {
    fn encode(&self, _out: &mut Vec<u8>) {}

    fn decode(_bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}

macro_rules! tuples {
    ($(($($name:ident $at:tt),+))*) => {$(
        impl<$($name: Key),+> Key for ($($name,)+) {
            fn encode(&self, out: &mut Vec<u8>) {
                $(self.$at.encode(out);)+
            }

            fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
                Ok(($($name::decode(bytes)?,)+))
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

macro_rules! prefixes {
    ($(($($first:ident)+), ($($rest:ident)+);)*) => {$(
        impl<$($first: Key,)+ $($rest: Key),+> Prefix<($($first,)+ $($rest,)+)> for ($($first,)+) {
            fn encode_prefix(&self, out: &mut Vec<u8>) {
                self.encode(out);
            }
        }
    )*};
}

prefixes! {
    (A), (B);
    (A), (B C);
    (A B), (C);
    (A), (B C D);
    (A B), (C D);
    (A B C), (D);
    (A), (B C D E);
    (A B), (C D E);
    (A B C), (D E);
    (A B C D), (E);
    (A), (B C D E F);
    (A B), (C D E F);
    (A B C), (D E F);
    (A B C D), (E F);
    (A B C D E), (F);
}

#[cfg(feature = "uuid")]
impl Key for uuid::Uuid {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_bytes().encode(out);
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        Ok(uuid::Uuid::from_bytes(bytes.take()?))
    }
}

#[cfg(feature = "time")]
impl Key for time::OffsetDateTime {
    fn encode(&self, out: &mut Vec<u8>) {
        self.unix_timestamp_nanos().encode(out);
    }

    fn decode(bytes: &mut KeyBytes<'_>) -> Result<Self, Malformed> {
        let nanos = i128::decode(bytes)?;
        time::OffsetDateTime::from_unix_timestamp_nanos(nanos)
            .map_err(|_| Malformed("there is no such time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(key: &impl Key) -> Vec<u8> {
        let mut out = Vec::new();
        key.encode(&mut out);
        out
    }

    /// Round trip, order, and no encoding is the beginning of another.
    fn check<K: Key + Ord + std::fmt::Debug + Clone>(a: &K, b: &K) {
        let (one, two) = (bytes(a), bytes(b));
        let mut rest = KeyBytes::new(&one);
        assert_eq!(&K::decode(&mut rest).expect("its own"), a);
        assert!(rest.is_empty());
        assert_eq!(one.cmp(&two), a.cmp(b), "{a:?} {b:?}");
        assert!(a == b || !two.starts_with(&one), "{a:?} {b:?}");
        let both = (Reverse(a.clone()), 7u8);
        let encoded = bytes(&both);
        assert_eq!(<(Reverse<K>, u8)>::decode(&mut KeyBytes::new(&encoded)).expect("both"), both);
        assert_eq!(bytes(&Reverse(a.clone())).cmp(&bytes(&Reverse(b.clone()))), b.cmp(a));
        for short in 0..one.len() {
            assert!(K::decode(&mut KeyBytes::new(&one[..short])).is_err(), "{a:?} cut at {short}");
        }
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop_oneof![Just('\0'), Just('a'), Just('\u{ff}'), any::<char>()],
            0..5,
        )
        .prop_map(|all| all.into_iter().collect())
    }

    proptest! {
        #[test]
        fn numbers(a: (u64, i64, i8), b: (u64, i64, i8), c: (u128, i128), d: (u128, i128)) {
            check(&a, &b);
            check(&c, &d);
            check(&a.0, &b.0);
            check(&a.1, &b.1);
            check(&(a.2 as i16, a.2 as i32), &(b.2 as i16, b.2 as i32));
            check(&(a.2 as u8, a.2 as u16, a.2 as u32), &(b.2 as u8, b.2 as u16, b.2 as u32));
        }

        #[test]
        fn texts(a in (text(), text(), any::<char>()), b in (text(), text(), any::<char>())) {
            check(&a, &b);
            check(&a.0, &b.0);
            check(&a.0.into_bytes(), &b.0.into_bytes());
        }

        #[test]
        fn options(a: (Option<u8>, Option<Option<bool>>), b: (Option<u8>, Option<Option<bool>>)) {
            check(&a, &b);
        }

        #[test]
        fn the_rest(a: ([u8; 3], Duration), b: ([u8; 3], Duration)) {
            check(&a, &b);
            check(&(a.0, (), true), &(b.0, (), false));
        }

        #[test]
        fn prefixes(key in (text(), any::<u8>(), text()), by in text(), number: u8) {
            let begins = |prefix: &dyn Fn(&mut Vec<u8>), key: Vec<u8>| {
                let mut out = Vec::new();
                prefix(&mut out);
                key.starts_with(&out)
            };
            let whole = bytes(&key);
            let one = (by.clone(),);
            let two = (by.clone(), number);
            type Three = (String, u8, String);
            prop_assert_eq!(
                begins(&|out| Prefix::<Three>::encode_prefix(&one, out), whole.clone()),
                key.0 == by
            );
            prop_assert_eq!(
                begins(&|out| Prefix::<Three>::encode_prefix(&two, out), whole),
                (&key.0, key.1) == (&by, number)
            );
            prop_assert_eq!(
                begins(&|out| Prefix::<String>::encode_prefix(&*by, out), bytes(&key.0)),
                key.0.starts_with(&by)
            );
        }

        #[test]
        fn any_bytes_are_a_key_or_malformed(any in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = <(String, Option<char>, Reverse<Vec<u8>>)>::decode(&mut KeyBytes::new(&any));
            let _ = <(Duration, bool, [u8; 2])>::decode(&mut KeyBytes::new(&any));
        }
    }
}
