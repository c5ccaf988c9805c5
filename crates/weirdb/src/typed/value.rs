//! Values of types.
use crate::error::{Cause, Error};

/// Bytes that are not of the type that they are read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl From<Malformed> for Cause {
    fn from(e: Malformed) -> Self {
        Cause::new(e)
    }
}

impl From<Malformed> for Error {
    fn from(e: Malformed) -> Self {
        Error::Decode(e.into())
    }
}

/// A type that can be a value of a [`TypedTree`](crate::TypedTree).
///
/// Bytes and texts are themselves; numbers are their bytes, the least first; `()` is nothing. With
/// the feature `serde` so is whatever `serde_value!` says, or is wrapped in
/// `Serde`, in the format of `postcard`. Other formats: implement this.
pub trait Value: Sized {
    /// Appends the bytes.
    ///
    /// # Errors
    /// [`Cause`] when the value cannot be written so; the error is then [`Error::InvalidInput`].
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Cause>;

    /// The value of all these bytes.
    ///
    /// # Errors
    /// [`Cause`] when there is none; the error is then [`Error::Decode`].
    fn decode(bytes: &[u8]) -> Result<Self, Cause>;
}

impl Value for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Cause> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Cause> {
        Ok(bytes.to_vec())
    }
}

impl Value for String {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Cause> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Cause> {
        String::from_utf8(bytes.to_vec()).map_err(Cause::new)
    }
}

impl Value for () {
    fn encode(&self, _out: &mut Vec<u8>) -> Result<(), Cause> {
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Cause> {
        if bytes.is_empty() { Ok(()) } else { Err(Malformed("it is not empty").into()) }
    }
}

impl<const N: usize> Value for [u8; N] {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Cause> {
        out.extend_from_slice(self);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Cause> {
        bytes.try_into().map_err(|_| Malformed("it has another length").into())
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Value for $number {
            fn encode(&self, out: &mut Vec<u8>) -> Result<(), Cause> {
                out.extend_from_slice(&self.to_le_bytes());
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<Self, Cause> {
                <[u8; size_of::<$number>()]>::decode(bytes).map(<$number>::from_le_bytes)
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

/// A value of any type that `serde` knows, in the format of `postcard`. That names no fields: the
/// type may get new variants at the end of an enum, and nothing else, without older values being
/// misread.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Serde<T>(pub T);

#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Value for Serde<T> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Cause> {
        serde_encode(&self.0, out)
    }

    fn decode(bytes: &[u8]) -> Result<Self, Cause> {
        serde_decode(bytes).map(Serde)
    }
}

#[cfg(feature = "serde")]
#[doc(hidden)]
pub fn serde_encode<T: serde::Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Cause> {
    *out = postcard::to_extend(value, std::mem::take(out)).map_err(Cause::new)?;
    Ok(())
}

#[cfg(feature = "serde")]
#[doc(hidden)]
pub fn serde_decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Cause> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(Cause::new)?;
    if rest.is_empty() { Ok(value) } else { Err(Malformed("it has bytes left over").into()) }
}

/// Makes types that `serde` knows values of a [`TypedTree`](crate::TypedTree), in the format of
/// `postcard`: `serde_value!(User, Order);`. See [`Serde`].
#[cfg(feature = "serde")]
#[macro_export]
macro_rules! serde_value {
    ($($value:ty),+ $(,)?) => {$(
        impl $crate::Value for $value {
            fn encode(
                &self,
                out: &mut ::std::vec::Vec<u8>,
            ) -> ::std::result::Result<(), $crate::Cause> {
                $crate::serde_encode(self, out)
            }

            fn decode(bytes: &[u8]) -> ::std::result::Result<Self, $crate::Cause> {
                $crate::serde_decode(bytes)
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<V: Value + PartialEq + std::fmt::Debug>(value: V, len: usize) {
        let mut out = Vec::new();
        value.encode(&mut out).expect("written");
        assert_eq!(out.len(), len);
        assert_eq!(V::decode(&out).expect("its own"), value);
        out.push(0);
        if len > 0 && len <= 8 && !std::any::type_name::<V>().contains("::") {
            assert!(V::decode(&out).is_err(), "{value:?}");
        }
    }

    #[test]
    fn values_come_back() {
        there_and_back(7u8, 1);
        there_and_back(-7i64, 8);
        there_and_back(1.5f64, 8);
        there_and_back(u128::MAX, 16);
        there_and_back([1u8, 2, 3], 3);
        there_and_back("heron".to_string(), 5);
        there_and_back(vec![0u8; 5], 5);
        there_and_back((), 0);
        assert!(String::decode(&[0xff]).is_err() && <()>::decode(&[0]).is_err());
    }

    #[cfg(feature = "serde")]
    #[test]
    fn values_of_serde_come_back() {
        there_and_back(Serde((Some(300u32), vec!["a".to_string()], [1u8; 30])), 3 + 3 + 30);
        let mut out = Vec::new();
        Serde(5u8).encode(&mut out).expect("written");
        out.push(1);
        assert!(Serde::<u8>::decode(&out).is_err(), "left over");
        assert!(Serde::<String>::decode(&[9]).is_err(), "cut short");
    }
}
