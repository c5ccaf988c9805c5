//! What may be locked: a key, or all keys from one up to another, whether or not rows are there.
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use weir_base::{TreeId, checksum_more};

/// What is locked in a tree, rows and the absence of rows alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place<'a> {
    /// This key.
    Key(&'a [u8]),
    /// The keys from `from` on that are below `to`. What comes directly behind a key `k` is `k`
    /// with a zero byte, so that every interval can be said this way.
    Range {
        /// The first.
        from: &'a [u8],
        /// The first behind it; `None`: it has no end.
        to: Option<&'a [u8]>,
    },
}

impl<'a> Place<'a> {
    /// Every key.
    pub const ALL: Place<'static> = Place::Range { from: &[], to: None };

    pub(super) fn is_empty(self) -> bool {
        matches!(self, Place::Range { from, to: Some(to) } if to <= from)
    }

    /// As bounds of a map's range.
    pub(super) fn bounds(self) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
        match self {
            Place::Key(key) => (Bound::Included(key), Bound::Included(key)),
            Place::Range { from, to } => {
                (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded))
            }
        }
    }
}

/// A range of keys that is not empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Span {
    from: Box<[u8]>,
    to: Option<Box<[u8]>>,
}

impl Span {
    pub(super) fn new(from: &[u8], to: Option<&[u8]>) -> Self {
        Span { from: from.into(), to: to.map(Into::into) }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place::Range { from: &self.from, to: self.to.as_deref() }
    }

    fn has(&self, key: &[u8]) -> bool {
        *self.from <= *key && is_below(key, self.to.as_deref())
    }

    /// Whether some key is in both.
    pub(super) fn meets(&self, place: Place<'_>) -> bool {
        match place {
            Place::Key(key) => self.has(key),
            Place::Range { from, to } => {
                is_below(from, self.to.as_deref()) && is_below(&self.from, to)
            }
        }
    }

    /// Becomes the smallest range that has all of both.
    pub(super) fn absorb(&mut self, from: &[u8], to: Option<&[u8]>) {
        if *from < *self.from {
            self.from = from.into();
        }
        if !is_no_later(to, self.to.as_deref()) {
            self.to = to.map(Into::into);
        }
    }
}

pub(super) fn is_below(key: &[u8], end: Option<&[u8]>) -> bool {
    end.is_none_or(|end| key < end)
}

/// Whether the end `one` comes no later than `other`.
pub(super) fn is_no_later(one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    match (one, other) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(one), Some(other)) => one <= other,
    }
}

/// A place as it is kept in reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceBuf {
    /// This key.
    Key(Box<[u8]>),
    /// From a key on, up to the one before `to`; `None`: without end.
    Range {
        /// The first.
        from: Box<[u8]>,
        /// The first behind it.
        to: Option<Box<[u8]>>,
    },
}

impl PlaceBuf {
    /// As one that is asked for.
    #[must_use]
    pub fn as_place(&self) -> Place<'_> {
        match self {
            PlaceBuf::Key(key) => Place::Key(key),
            PlaceBuf::Range { from, to } => Place::Range { from, to: to.as_deref() },
        }
    }
}

impl From<Place<'_>> for PlaceBuf {
    fn from(place: Place<'_>) -> Self {
        match place {
            Place::Key(key) => PlaceBuf::Key(key.into()),
            Place::Range { from, to } => {
                PlaceBuf::Range { from: from.into(), to: to.map(Into::into) }
            }
        }
    }
}

/// Bytes of a key that a report shows.
const KEY_SHOWN_BYTES: usize = 32;

struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.0;
        let shown = &key[..key.len().min(KEY_SHOWN_BYTES)];
        if shown.iter().all(|b| b.is_ascii_graphic() || *b == b' ') {
            write!(f, "\"{}\"", shown.escape_ascii())?;
        } else {
            f.write_str("0x")?;
            shown.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        }
        if shown.len() < key.len() { write!(f, "... ({} bytes)", key.len()) } else { Ok(()) }
    }
}

impl fmt::Display for PlaceBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = match self {
            PlaceBuf::Key(key) => return write!(f, "key {}", Shown(key)),
            PlaceBuf::Range { from, to } => (from, to.as_deref()),
        };
        f.write_str("the keys ")?;
        match from.split_last() {
            None => {}
            Some((0, key)) => write!(f, "after {} ", Shown(key))?,
            Some(_) => write!(f, "from {} ", Shown(from))?,
        }
        match to.map(|to| (to, to.split_last())) {
            None => f.write_str("to the end"),
            Some((_, Some((0, key)))) => write!(f, "through {}", Shown(key)),
            Some((to, _)) => write!(f, "up to {}", Shown(to)),
        }
    }
}

/// Where a transaction holds or wants something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LockTarget {
    /// At a key.
    Row(TreeId, Arc<[u8]>),
    /// Ranges of this tree.
    Ranges(TreeId),
}

impl LockTarget {
    pub(super) fn tree(&self) -> TreeId {
        match self {
            LockTarget::Row(tree, _) | LockTarget::Ranges(tree) => *tree,
        }
    }
}

/// A hash whose upper bits are good.
#[inline]
pub(super) fn hash(tree: TreeId, key: &[u8]) -> u64 {
    // The golden ratio's bits, as in Knuth's multiplicative hashing (TAOCP 3, 6.4).
    let seed = (tree.0 ^ (tree.0 >> 32)) as u32;
    u64::from(checksum_more(seed, key)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &'static str) -> Span {
        let (from, to) = text.split_once("..").expect("a range");
        Span::new(from.as_bytes(), (!to.is_empty()).then_some(to.as_bytes()))
    }

    #[test]
    fn which_ranges_meet_and_what_holds_both() {
        let table = [
            ("b..d", "b..d", true, "b..d"),
            ("b..d", "d..e", false, "b..e"),
            ("b..d", "a..b", false, "a..d"),
            ("b..d", "e..f", false, "b..f"),
            ("b..d", "c..f", true, "b..f"),
            ("b..d", "a..c", true, "a..d"),
            ("a..f", "b..d", true, "a..f"),
            ("b..", "a..b", false, "a.."),
            ("b..", "c..", true, "b.."),
            ("b..", "c..d", true, "b.."),
            ("b..d", "d..", false, "b.."),
            ("..", "c..", true, ".."),
            ("b..d", "b..bb", true, "b..d"),
        ];
        for (one, other, meets, both) in table {
            let (a, b) = (span(one), span(other));
            assert_eq!((a.meets(b.place()), b.meets(a.place())), (meets, meets), "{one} {other}");
            for (mut sum, more) in [(a.clone(), &b), (b.clone(), &a)] {
                sum.absorb(&more.from, more.to.as_deref());
                assert_eq!(sum, span(both), "{one} {other}");
            }
        }
    }

    #[test]
    fn keys_are_ranges_of_one() {
        for (key, inside) in [("a", false), ("b", true), ("c\u{ff}", true), ("d", false)] {
            assert_eq!(span("b..d").meets(Place::Key(key.as_bytes())), inside);
        }
        let behind = Span::new(b"k\0", Some(b"m\0"));
        assert!(!behind.has(b"k") && behind.has(b"k\0") && behind.has(b"m") && !behind.has(b"m\0"));
        assert!(Place::Range { from: b"b", to: Some(b"b") }.is_empty());
        assert!(!Place::ALL.is_empty() && !Place::Key(b"").is_empty());
    }

    #[test]
    fn places_in_reports_are_short_and_readable() {
        let shown = |key: &[u8]| PlaceBuf::Key(key.into()).to_string();
        assert_eq!(shown(b"ab c"), "key \"ab c\"");
        assert_eq!(shown(b"a\"b"), "key \"a\\\"b\"");
        assert_eq!(shown(&[0, 255]), "key 0x00ff");
        assert_eq!(shown(&[b'x'; 40]), format!("key \"{}\"... (40 bytes)", "x".repeat(32)));
        let range =
            |from: &[u8], to: Option<&[u8]>| PlaceBuf::from(Place::Range { from, to }).to_string();
        assert_eq!(range(b"", None), "the keys to the end");
        assert_eq!(range(b"a", Some(b"b")), "the keys from \"a\" up to \"b\"");
        assert_eq!(range(b"a\0", Some(b"b\0")), "the keys after \"a\" through \"b\"");
    }
}
