//! Keys whose bytes compare as their values do. No encoding is the beginning of another of the same
//! columns, so that columns, and whole keys, can follow each other.
//!
//! A column that may be NULL begins with 0 for NULL or 1 for a value. Signed numbers are big-endian
//! with the sign bit turned, unsigned ones big-endian. Floats: all bits turned if negative, else
//! the sign bit. Bytes and texts: `00` becomes `00 FF`, the end is `00 00`. A descending column has
//! all its bytes complemented, the NULL mark included.
use crate::value::{ColumnType, Value};

/// Bytes that are not what an encoder writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("malformed: {0}")]
pub struct Malformed(pub &'static str);

/// How one column stands in a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// What it holds.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether greater values come first.
    pub descending: bool,
}

/// Appends one column. `false`: the value does not fit the column, and nothing was appended.
#[must_use]
pub fn put_column(out: &mut Vec<u8>, column: KeyColumn, value: &Value) -> bool {
    let start = out.len();
    match value {
        Value::Null if !column.nullable => return false,
        Value::Null => out.push(0),
        value if !value.fits(column.kind) => return false,
        value => {
            if column.nullable {
                out.push(1);
            }
            put_value(out, column.kind, value);
        }
    }
    if column.descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    true
}

/// The value fits the type.
fn put_value(out: &mut Vec<u8>, kind: ColumnType, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int(v) => {
            let bytes = (*v as u64 ^ 1 << (8 * width(kind) - 1)).to_be_bytes();
            out.extend_from_slice(&bytes[8 - width(kind)..]);
        }
        Value::UInt(v) => out.extend_from_slice(&v.to_be_bytes()[8 - width(kind)..]),
        Value::F32(v) => {
            let bits = v.to_bits();
            let turned = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            out.extend_from_slice(&turned.to_be_bytes());
        }
        Value::F64(v) => {
            let bits = v.to_bits();
            let turned = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&turned.to_be_bytes());
        }
        Value::Bytes(v) => put_escaped(out, v),
        Value::Text(v) => put_escaped(out, v.as_bytes()),
    }
}

/// Bytes of a whole number's key.
fn width(kind: ColumnType) -> usize {
    match kind {
        ColumnType::I8 | ColumnType::U8 => 1,
        ColumnType::I16 | ColumnType::U16 => 2,
        ColumnType::I32 | ColumnType::U32 => 4,
        _ => 8,
    }
}

fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Takes one column from the front of `bytes`.
///
/// # Errors
/// [`Malformed`].
pub fn take_column(bytes: &mut &[u8], column: KeyColumn) -> Result<Value, Malformed> {
    let mask = if column.descending { 0xff } else { 0 };
    let mut rest = Masked { bytes, mask };
    if column.nullable {
        match rest.byte()? {
            0 => return Ok(Value::Null),
            1 => {}
            _ => return Err(Malformed("a NULL mark of a key is neither 0 nor 1")),
        }
    }
    Ok(match column.kind {
        ColumnType::Bool => match rest.byte()? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            _ => return Err(Malformed("a truth value of a key is neither 0 nor 1")),
        },
        ColumnType::I8 | ColumnType::I16 | ColumnType::I32 | ColumnType::I64 => {
            let unused = 64 - 8 * width(column.kind) as u32;
            let turned = rest.number(width(column.kind))? ^ 1 << (63 - unused);
            Value::Int((turned << unused) as i64 >> unused)
        }
        ColumnType::U8 | ColumnType::U16 | ColumnType::U32 | ColumnType::U64 => {
            Value::UInt(rest.number(width(column.kind))?)
        }
        ColumnType::F32 => {
            let turned = rest.number(4)? as u32;
            let bits = if turned >> 31 == 1 { turned & !(1 << 31) } else { !turned };
            Value::F32(f32::from_bits(bits))
        }
        ColumnType::F64 => {
            let turned = rest.number(8)?;
            let bits = if turned >> 63 == 1 { turned & !(1 << 63) } else { !turned };
            Value::F64(f64::from_bits(bits))
        }
        ColumnType::Bytes => Value::Bytes(rest.escaped()?),
        ColumnType::Text => Value::Text(
            String::from_utf8(rest.escaped()?)
                .map_err(|_| Malformed("a text of a key is not UTF-8"))?,
        ),
    })
}

/// Takes all columns of a key, each into its place of `out`.
///
/// # Errors
/// [`Malformed`].
pub fn take_columns(
    bytes: &mut &[u8],
    columns: &[KeyColumn],
    mut out: impl FnMut(usize, Value),
) -> Result<(), Malformed> {
    for (at, column) in columns.iter().enumerate() {
        out(at, take_column(bytes, *column)?);
    }
    Ok(())
}

/// Bytes still to be read, each complemented if the column is descending.
struct Masked<'r, 'b> {
    bytes: &'r mut &'b [u8],
    mask: u8,
}

impl Masked<'_, '_> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.bytes.split_first().ok_or(Malformed("a key ends too early"))?;
        *self.bytes = rest;
        Ok(first ^ self.mask)
    }

    fn number(&mut self, width: usize) -> Result<u64, Malformed> {
        let mut number = 0;
        for _ in 0..width {
            number = number << 8 | u64::from(self.byte()?);
        }
        Ok(number)
    }

    fn escaped(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                match self.byte()? {
                    0 => return Ok(out),
                    0xff => {}
                    _ => return Err(Malformed("an escape in a key is neither FF nor the end")),
                }
            }
            out.push(byte);
        }
    }
}

/// The least key above every key that begins with `prefix`; `None` when there is none.
#[must_use]
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::value_of;

    fn column() -> impl Strategy<Value = KeyColumn> {
        (0..ColumnType::ALL.len(), any::<bool>(), any::<bool>()).prop_map(
            |(kind, nullable, descending)| KeyColumn {
                kind: ColumnType::ALL[kind],
                nullable,
                descending,
            },
        )
    }

    /// Some columns, and two rows of them.
    fn two_keys() -> impl Strategy<Value = (Vec<KeyColumn>, Vec<Value>, Vec<Value>)> {
        prop::collection::vec(column(), 1..4).prop_flat_map(|columns| {
            let row: Vec<_> = columns.iter().map(|c| value_of(c.kind, c.nullable)).collect();
            (Just(columns), row.clone(), row)
        })
    }

    fn encode(columns: &[KeyColumn], values: &[Value]) -> Vec<u8> {
        let mut out = Vec::new();
        for (column, value) in columns.iter().zip(values) {
            assert!(put_column(&mut out, *column, value));
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn bytes_compare_as_values_do((columns, a, b) in two_keys()) {
            let mut expected = std::cmp::Ordering::Equal;
            for ((x, y), column) in a.iter().zip(&b).zip(&columns) {
                let one = if column.descending { y.cmp(x) } else { x.cmp(y) };
                expected = expected.then(one);
            }
            let (x, y) = (encode(&columns, &a), encode(&columns, &b));
            prop_assert_eq!(x.cmp(&y), expected);
            prop_assert_eq!(x.starts_with(&y), x == y, "no key begins another");
        }

        #[test]
        fn keys_come_back(
            (columns, a, _) in two_keys(),
            tail in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let mut bytes = encode(&columns, &a);
            let whole = bytes.len();
            bytes.extend_from_slice(&tail);
            let mut rest = &bytes[..];
            let mut back = Vec::new();
            take_columns(&mut rest, &columns, |_, value| back.push(value)).expect("well-formed");
            prop_assert_eq!(&back, &a);
            prop_assert_eq!(rest, &tail[..]);
            for cut in 0..whole {
                let mut short = &bytes[..cut];
                prop_assert!(take_columns(&mut short, &columns, |_, _| {}).is_err(), "cut {cut}");
            }
        }

        #[test]
        fn any_bytes_are_refused_or_are_what_would_be_written(
            column in column(),
            bytes in prop::collection::vec(
                prop_oneof![Just(0u8), Just(1), Just(0xff), any::<u8>()],
                0..24,
            ),
        ) {
            let mut rest = &bytes[..];
            if let Ok(value) = take_column(&mut rest, column) {
                let used = bytes.len() - rest.len();
                prop_assert_eq!(encode(&[column], &[value]), &bytes[..used]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let column = |kind, nullable| KeyColumn { kind, nullable, descending: false };
        let mut out = vec![7];
        for (kind, nullable, value) in [
            (ColumnType::I8, true, Value::Int(128)),
            (ColumnType::U16, true, Value::UInt(65_536)),
            (ColumnType::U16, true, Value::Int(1)),
            (ColumnType::Text, false, Value::Null),
            (ColumnType::F32, true, Value::F64(1.0)),
        ] {
            assert!(!put_column(&mut out, column(kind, nullable), &value), "{value:?}");
        }
        assert_eq!(out, [7]);
    }

    #[test]
    fn successors_of_prefixes() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xff]), None);
        assert_eq!(after_prefix(&[]), None);
    }
}
