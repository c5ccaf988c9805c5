//! Ranges of keys.
use std::ops::{Bound, RangeBounds};

/// Keys from one on, and below another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys {
    pub(crate) from: Vec<u8>,
    /// `None`: to the end.
    pub(crate) to: Option<Vec<u8>>,
}

impl Keys {
    pub(crate) fn all() -> Self {
        Keys { from: Vec::new(), to: None }
    }

    /// Of bounds that are the wrong way round there are none.
    pub(crate) fn of<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> Self {
        let from = match range.start_bound() {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.as_ref().to_vec(),
            Bound::Excluded(key) => behind(key.as_ref()),
        };
        let to = match range.end_bound() {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(behind(key.as_ref())),
            Bound::Excluded(key) => Some(key.as_ref().to_vec()),
        };
        Keys { from, to }
    }

    /// That begin with these bytes.
    pub(crate) fn with_prefix(prefix: &[u8]) -> Self {
        let mut to = prefix.to_vec();
        while to.last() == Some(&0xff) {
            to.pop();
        }
        // What begins with nothing but 0xff goes on to the end.
        let to = to.pop().map(|last| {
            to.push(last + 1);
            to
        });
        Keys { from: prefix.to_vec(), to }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }
}

/// The first key behind this one.
fn behind(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(keys: &Keys, key: &[u8]) -> bool {
        *keys.from <= *key && keys.to.as_ref().is_none_or(|to| key < to)
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0u8), Just(1), Just(0xfe), Just(0xff)];
        prop::collection::vec(byte, 0..4)
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![
            Just(Bound::Unbounded),
            bytes().prop_map(Bound::Included),
            bytes().prop_map(Bound::Excluded)
        ]
    }

    proptest! {
        #[test]
        fn a_range_holds_what_its_bounds_hold(from in bound(), to in bound(), key in bytes()) {
            let range = (from, to);
            prop_assert_eq!(holds(&Keys::of(&range), &key), range.contains(&key));
        }

        #[test]
        fn a_prefix_holds_what_begins_with_it(prefix in bytes(), key in bytes()) {
            let keys = Keys::with_prefix(&prefix);
            prop_assert_eq!(holds(&keys, &key), key.starts_with(&prefix));
            prop_assert!(!keys.is_empty());
        }
    }
}
