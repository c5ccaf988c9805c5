//! Ranges of keys as a user says them.
use std::ops::{Bound, RangeBounds};

use crate::error::Error;
use crate::key::after_prefix;
use crate::layout::{KeyColumns, Layout};
use crate::scan::KeyRange;
use crate::value::Value;

/// Which keys to walk over, in the order of the index: bounds are values of its first columns, and
/// stand for all keys that begin with them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    lower: Bound<Vec<Value>>,
    upper: Bound<Vec<Value>>,
}

impl Range {
    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Range { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// Keys whose first columns have these values.
    #[must_use]
    pub fn equal<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        Range { lower: Bound::Included(values.clone()), upper: Bound::Included(values) }
    }

    /// Keys between bounds: `Range::between(vec![Value::from(3u32)]..)`.
    #[must_use]
    pub fn between(bounds: impl RangeBounds<Vec<Value>>) -> Self {
        Range { lower: bounds.start_bound().cloned(), upper: bounds.end_bound().cloned() }
    }

    pub(crate) fn encode(&self, layout: &Layout, key: &KeyColumns) -> Result<KeyRange, Error> {
        let nothing = KeyRange { from: Vec::new(), to: Some(Vec::new()) };
        let from = match &self.lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(values) => layout.prefix(key, values)?,
            Bound::Excluded(values) => match after_prefix(&layout.prefix(key, values)?) {
                Some(from) => from,
                None => return Ok(nothing),
            },
        };
        let to = match &self.upper {
            Bound::Unbounded => None,
            Bound::Included(values) => after_prefix(&layout.prefix(key, values)?),
            Bound::Excluded(values) => Some(layout.prefix(key, values)?),
        };
        Ok(KeyRange { from, to })
    }
}
