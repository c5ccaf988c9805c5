//! Rows in few bytes: how many columns there are (so that later ones can be added), a bit for each
//! column that may be NULL, then the columns one after another: bytes of 8-bit numbers, truth
//! values and floats as they are, other numbers as varints (signed ones in zigzag), bytes and texts
//! with their length before them. A column is found by skipping those before it.
use weir_base::varint;

use crate::key::Malformed;
use crate::value::{ColumnType, Value};

/// One column of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowColumn {
    /// What it holds.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// Turns rows of certain columns into bytes and back.
#[derive(Clone, Debug, Default)]
pub struct RowCodec {
    columns: Vec<RowColumn>,
}

const SHORT: Malformed = Malformed("a row ends too early");

impl RowCodec {
    /// For rows of these columns.
    #[must_use]
    pub fn new(columns: Vec<RowColumn>) -> Self {
        RowCodec { columns }
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }

    /// Appends a row. `false`: there are not as many values as columns, or one does not fit its
    /// column; what was appended is of no use.
    #[must_use]
    pub fn encode<'v>(
        &self,
        values: impl Iterator<Item = &'v Value> + Clone,
        out: &mut Vec<u8>,
    ) -> bool {
        varint::put(out, self.columns.len() as u64);
        let mut bits = BitWriter::default();
        let mut pairs = self.columns.iter().zip(values.clone());
        let fits = pairs.all(|(column, value)| {
            if column.nullable {
                bits.push(value.is_null(), out);
            }
            if value.is_null() { column.nullable } else { value.fits(column.kind) }
        });
        bits.finish(out);
        if !fits || values.clone().count() != self.columns.len() {
            return false;
        }
        for (column, value) in self.columns.iter().zip(values) {
            put_value(out, value, column.kind);
        }
        true
    }

    /// Reads a whole row, each column into its place. Columns that were added since the row was
    /// written are NULL.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(&self, bytes: &[u8], mut out: impl FnMut(usize, Value)) -> Result<(), Malformed> {
        let mut rest = bytes;
        let nulls = self.head(&mut rest)?;
        for (at, column) in self.columns.iter().enumerate() {
            out(at, if nulls.is_null(at) { Value::Null } else { take(&mut rest, column.kind)? });
        }
        if rest.is_empty() { Ok(()) } else { Err(Malformed("a row goes on behind its end")) }
    }

    /// Reads one column and skips those before it.
    ///
    /// # Errors
    /// [`Malformed`]; what lies behind the column is not looked at.
    pub fn column(&self, bytes: &[u8], wanted: usize) -> Result<Value, Malformed> {
        let mut rest = bytes;
        let nulls = self.head(&mut rest)?;
        let column = self.columns.get(wanted).ok_or(Malformed("a row has no such column"))?;
        for (at, before) in self.columns.iter().enumerate().take(wanted) {
            if !nulls.is_null(at) {
                skip(&mut rest, before.kind)?;
            }
        }
        if nulls.is_null(wanted) { Ok(Value::Null) } else { take(&mut rest, column.kind) }
    }

    fn head<'b>(&self, rest: &mut &'b [u8]) -> Result<Nulls<'b, '_>, Malformed> {
        let count = varint::take(rest).ok_or(SHORT)?;
        if count > self.columns.len() as u64 {
            return Err(Malformed("a row has more columns than its table"));
        }
        let count = count as usize;
        let (old, new) = self.columns.split_at(count);
        if new.iter().any(|column| !column.nullable) {
            return Err(Malformed("a row lacks a column that is never NULL"));
        }
        let bits = old.iter().filter(|column| column.nullable).count();
        let bytes = bits.div_ceil(8);
        if rest.len() < bytes {
            return Err(SHORT);
        }
        let (bitmap, behind) = rest.split_at(bytes);
        *rest = behind;
        if bits % 8 != 0 && bitmap[bytes - 1] >> (bits % 8) != 0 {
            return Err(Malformed("a row says NULL of columns that it does not have"));
        }
        Ok(Nulls { bitmap, count, columns: &self.columns })
    }
}

struct Nulls<'b, 'c> {
    bitmap: &'b [u8],
    count: usize,
    columns: &'c [RowColumn],
}

impl Nulls<'_, '_> {
    fn is_null(&self, at: usize) -> bool {
        if at >= self.count {
            return true;
        }
        if !self.columns[at].nullable {
            return false;
        }
        let bit = self.columns[..at].iter().filter(|column| column.nullable).count();
        self.bitmap[bit / 8] >> (bit % 8) & 1 == 1
    }
}

#[derive(Default)]
struct BitWriter {
    byte: u8,
    bits: u32,
}

impl BitWriter {
    fn push(&mut self, bit: bool, out: &mut Vec<u8>) {
        self.byte |= u8::from(bit) << self.bits;
        self.bits += 1;
        if self.bits == 8 {
            out.push(self.byte);
            *self = Self::default();
        }
    }

    fn finish(self, out: &mut Vec<u8>) {
        if self.bits > 0 {
            out.push(self.byte);
        }
    }
}

fn is_byte(kind: ColumnType) -> bool {
    matches!(kind, ColumnType::Bool | ColumnType::I8 | ColumnType::U8)
}

/// Appends a value that is not NULL.
pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value, kind: ColumnType) {
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int(v) if is_byte(kind) => out.push(*v as u8),
        Value::UInt(v) if is_byte(kind) => out.push(*v as u8),
        Value::Int(v) => varint::put(out, (*v << 1 ^ *v >> 63) as u64),
        Value::UInt(v) => varint::put(out, *v),
        Value::F32(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::F64(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Bytes(v) => put_bytes(out, v),
        Value::Text(v) => put_bytes(out, v.as_bytes()),
    }
}

/// Appends bytes with their length before them.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes bytes with their length before them.
pub(crate) fn take_bytes<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], Malformed> {
    let len = varint::take(rest).ok_or(SHORT)?;
    if len > rest.len() as u64 {
        return Err(SHORT);
    }
    take_exact(rest, len as usize)
}

fn take_exact<'b>(rest: &mut &'b [u8], len: usize) -> Result<&'b [u8], Malformed> {
    if rest.len() < len {
        return Err(SHORT);
    }
    let (taken, behind) = rest.split_at(len);
    *rest = behind;
    Ok(taken)
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    take_exact(rest, N)?.try_into().map_err(|_| SHORT)
}

/// Takes a value of this type.
pub(crate) fn take(rest: &mut &[u8], kind: ColumnType) -> Result<Value, Malformed> {
    let value = match kind {
        ColumnType::Bool => match take_array::<1>(rest)? {
            [0] => Value::Bool(false),
            [1] => Value::Bool(true),
            _ => return Err(Malformed("a truth value of a row is neither 0 nor 1")),
        },
        ColumnType::I8 => Value::Int(i8::from_le_bytes(take_array(rest)?).into()),
        ColumnType::U8 => Value::UInt(u8::from_le_bytes(take_array(rest)?).into()),
        ColumnType::I16 | ColumnType::I32 | ColumnType::I64 => {
            let zigzag = varint::take(rest).ok_or(SHORT)?;
            Value::Int((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
        }
        ColumnType::U16 | ColumnType::U32 | ColumnType::U64 => {
            Value::UInt(varint::take(rest).ok_or(SHORT)?)
        }
        ColumnType::F32 => Value::F32(f32::from_le_bytes(take_array(rest)?)),
        ColumnType::F64 => Value::F64(f64::from_le_bytes(take_array(rest)?)),
        ColumnType::Bytes => Value::Bytes(take_bytes(rest)?.to_vec()),
        ColumnType::Text => {
            let text = std::str::from_utf8(take_bytes(rest)?);
            Value::Text(text.map_err(|_| Malformed("a text of a row is not UTF-8"))?.to_string())
        }
    };
    if value.fits(kind) { Ok(value) } else { Err(Malformed("a number of a row is out of range")) }
}

fn skip(rest: &mut &[u8], kind: ColumnType) -> Result<(), Malformed> {
    match kind {
        ColumnType::Bool | ColumnType::I8 | ColumnType::U8 => take_exact(rest, 1).map(|_| ()),
        ColumnType::F32 => take_exact(rest, 4).map(|_| ()),
        ColumnType::F64 => take_exact(rest, 8).map(|_| ()),
        ColumnType::Bytes | ColumnType::Text => take_bytes(rest).map(|_| ()),
        _ => varint::take(rest).map(|_| ()).ok_or(SHORT),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::value_of;

    fn codec(least: usize) -> impl Strategy<Value = RowCodec> {
        prop::collection::vec((0..ColumnType::ALL.len(), any::<bool>()), least..12).prop_map(
            |all| {
                let column = |(kind, nullable)| RowColumn { kind: ColumnType::ALL[kind], nullable };
                RowCodec::new(all.into_iter().map(column).collect())
            },
        )
    }

    fn with_row() -> impl Strategy<Value = (RowCodec, Vec<Value>)> {
        codec(0).prop_flat_map(|codec| {
            let row: Vec<_> =
                codec.columns().iter().map(|c| value_of(c.kind, c.nullable)).collect();
            (Just(codec), row)
        })
    }

    fn decode(codec: &RowCodec, bytes: &[u8]) -> Result<Vec<Value>, Malformed> {
        let mut back = Vec::new();
        codec.decode(bytes, |_, value| back.push(value))?;
        Ok(back)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn rows_come_back((codec, row) in with_row()) {
            let mut bytes = Vec::new();
            prop_assert!(codec.encode(row.iter(), &mut bytes));
            prop_assert_eq!(decode(&codec, &bytes).expect("well-formed"), row.clone());
            for (at, value) in row.iter().enumerate() {
                prop_assert_eq!(&codec.column(&bytes, at).expect("well-formed"), value);
            }
            prop_assert!(codec.column(&bytes, row.len()).is_err());
            for cut in 0..bytes.len() {
                prop_assert!(decode(&codec, &bytes[..cut]).is_err());
            }
            bytes.push(0);
            prop_assert!(decode(&codec, &bytes).is_err());
        }

        #[test]
        fn columns_added_later_are_null(
            (codec, row) in with_row(),
            kind in 0..ColumnType::ALL.len(),
        ) {
            let mut bytes = Vec::new();
            prop_assert!(codec.encode(row.iter(), &mut bytes));
            let added = |nullable| {
                let mut columns = codec.columns().to_vec();
                columns.push(RowColumn { kind: ColumnType::ALL[kind], nullable });
                RowCodec::new(columns)
            };
            let mut expected = row.clone();
            expected.push(Value::Null);
            prop_assert_eq!(decode(&added(true), &bytes).expect("well-formed"), expected);
            prop_assert!(decode(&added(false), &bytes).is_err());
        }

        #[test]
        fn any_bytes_give_a_row_or_an_error(
            codec in codec(1),
            count in 0u8..13,
            bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..60),
        ) {
            for bytes in [&bytes[..], &[&[count], &bytes[..]].concat()] {
                if let Ok(row) = decode(&codec, bytes) {
                    let mut again = Vec::new();
                    prop_assert!(codec.encode(row.iter(), &mut again));
                    prop_assert_eq!(decode(&codec, &again).expect("well-formed"), row);
                }
                let _ = codec.column(bytes, codec.columns().len() - 1);
            }
        }
    }
}
