//! Values and the types of columns.
use std::cmp::Ordering;

/// The type of a column. The numbers are part of the catalog's format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum ColumnType {
    /// [`Value::Bool`].
    Bool = 1,
    /// [`Value::Int`] of 8 bits.
    I8 = 2,
    /// [`Value::Int`] of 16 bits.
    I16 = 3,
    /// [`Value::Int`] of 32 bits.
    I32 = 4,
    /// [`Value::Int`] of 64 bits.
    I64 = 5,
    /// [`Value::UInt`] of 8 bits.
    U8 = 6,
    /// [`Value::UInt`] of 16 bits.
    U16 = 7,
    /// [`Value::UInt`] of 32 bits.
    U32 = 8,
    /// [`Value::UInt`] of 64 bits.
    U64 = 9,
    /// [`Value::F32`].
    F32 = 10,
    /// [`Value::F64`].
    F64 = 11,
    /// [`Value::Bytes`].
    Bytes = 12,
    /// [`Value::Text`], ordered by code points.
    Text = 13,
}

impl ColumnType {
    /// All types.
    pub const ALL: [ColumnType; 13] = [
        ColumnType::Bool,
        ColumnType::I8,
        ColumnType::I16,
        ColumnType::I32,
        ColumnType::I64,
        ColumnType::U8,
        ColumnType::U16,
        ColumnType::U32,
        ColumnType::U64,
        ColumnType::F32,
        ColumnType::F64,
        ColumnType::Bytes,
        ColumnType::Text,
    ];

    pub(crate) fn from_number(number: u8) -> Option<ColumnType> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The least and the greatest of a signed type.
    pub(crate) fn signed_range(self) -> Option<(i64, i64)> {
        match self {
            ColumnType::I8 => Some((i8::MIN.into(), i8::MAX.into())),
            ColumnType::I16 => Some((i16::MIN.into(), i16::MAX.into())),
            ColumnType::I32 => Some((i32::MIN.into(), i32::MAX.into())),
            ColumnType::I64 => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }

    /// The greatest of an unsigned type.
    pub(crate) fn unsigned_max(self) -> Option<u64> {
        match self {
            ColumnType::U8 => Some(u8::MAX.into()),
            ColumnType::U16 => Some(u16::MAX.into()),
            ColumnType::U32 => Some(u32::MAX.into()),
            ColumnType::U64 => Some(u64::MAX),
            _ => None,
        }
    }

    /// The greatest whole number that a column holds, if it holds whole numbers.
    pub(crate) fn integer_max(self) -> Option<u64> {
        self.unsigned_max().or_else(|| self.signed_range().map(|(_, max)| max as u64))
    }
}

/// What a column of a row holds. Ordered as keys are: NULL first, floats in the total order of
/// IEEE 754 (so that -0.0 is below 0.0 and NaN has a place), texts by code points.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    UInt(u64),
    /// A number of single precision.
    F32(f32),
    /// A number of double precision.
    F64(f64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
}

impl Value {
    /// Whether a column of this type, leaving NULL aside, can hold it.
    #[must_use]
    pub fn fits(&self, kind: ColumnType) -> bool {
        match (self, kind) {
            (Value::Bool(_), ColumnType::Bool)
            | (Value::F32(_), ColumnType::F32)
            | (Value::F64(_), ColumnType::F64)
            | (Value::Bytes(_), ColumnType::Bytes)
            | (Value::Text(_), ColumnType::Text) => true,
            (Value::Int(v), kind) => {
                kind.signed_range().is_some_and(|(min, max)| (min..=max).contains(v))
            }
            (Value::UInt(v), kind) => kind.unsigned_max().is_some_and(|max| *v <= max),
            _ => false,
        }
    }

    /// Whether it is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::UInt(_) => 3,
            Value::F32(_) => 4,
            Value::F64(_) => 5,
            Value::Bytes(_) => 6,
            Value::Text(_) => 7,
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
            (Value::F32(a), Value::F32(b)) => a.total_cmp(b),
            (Value::F64(a), Value::F64(b)) => a.total_cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Value::$variant(value.into())
            }
        }
    )*};
}
from!(
    bool => Bool, i8 => Int, i16 => Int, i32 => Int, i64 => Int, u8 => UInt, u16 => UInt,
    u32 => UInt, u64 => UInt, f32 => F32, f64 => F64, Vec<u8> => Bytes, &[u8] => Bytes,
    String => Text, &str => Text,
);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
