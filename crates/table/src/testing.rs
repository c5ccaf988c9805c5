//! Values for property tests.
use proptest::prelude::*;

use crate::value::{ColumnType, Value};

/// Any value of a type; small alphabets, so that equal ones and common prefixes come up.
pub(crate) fn value_of(kind: ColumnType, nullable: bool) -> BoxedStrategy<Value> {
    let signed = |min: i64, max: i64| {
        prop_oneof![Just(min), Just(max), -2..=2i64, min..=max].prop_map(Value::Int).boxed()
    };
    let unsigned =
        |max: u64| prop_oneof![Just(0), Just(max), 0..=2u64, 0..=max].prop_map(Value::UInt).boxed();
    let some = match kind {
        ColumnType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        ColumnType::F32 => any::<u32>().prop_map(|b| Value::F32(f32::from_bits(b))).boxed(),
        ColumnType::F64 => prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::NEG_INFINITY),
        ]
        .prop_map(Value::F64)
        .boxed(),
        ColumnType::Bytes => {
            let byte = prop_oneof![Just(0u8), Just(1), Just(0xff), any::<u8>()];
            prop::collection::vec(byte, 0..6).prop_map(Value::Bytes).boxed()
        }
        ColumnType::Text => {
            let letter = prop_oneof![Just('\0'), Just('a'), Just('b'), any::<char>()];
            prop::collection::vec(letter, 0..5)
                .prop_map(|letters| Value::Text(letters.into_iter().collect()))
                .boxed()
        }
        kind => match (kind.signed_range(), kind.unsigned_max()) {
            (Some((min, max)), _) => signed(min, max),
            (None, max) => unsigned(max.expect("the other types are above")),
        },
    };
    if nullable { prop_oneof![1 => Just(Value::Null), 4 => some].boxed() } else { some }
}
