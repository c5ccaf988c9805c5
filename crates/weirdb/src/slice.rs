//! Bytes that were read.
use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that were read: they deref to `[u8]`, compare as `[u8]` does, and are cheap to clone where
/// they came with others from a scan. They are a copy: no page of the database is held by them, so
/// they may be kept as long as one likes, also when the database has been closed.
#[derive(Clone)]
pub struct Slice {
    bytes: Bytes,
}

#[derive(Clone)]
enum Bytes {
    Own(Vec<u8>),
    /// Of several rows.
    Part {
        of: Arc<Vec<u8>>,
        from: usize,
        to: usize,
    },
}

impl Slice {
    /// A part of what was read of several rows, which it must not pass.
    pub(crate) fn part(of: &Arc<Vec<u8>>, from: usize, to: usize) -> Self {
        Slice { bytes: Bytes::Part { of: of.clone(), from, to } }
    }

    /// The bytes, without copying them where nothing else shares them.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self.bytes {
            Bytes::Own(bytes) => bytes,
            Bytes::Part { .. } => self.to_vec(),
        }
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Own(bytes) => bytes,
            Bytes::Part { of, from, to } => of.get(*from..*to).unwrap_or_default(),
        }
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Self {
        Slice { bytes: Bytes::Own(bytes) }
    }
}

impl From<Slice> for Vec<u8> {
    fn from(bytes: Slice) -> Self {
        bytes.into_vec()
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Slice {
    /// As a byte string: `b"heron\x00"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Slice {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Slice {}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.deref().cmp(other)
    }
}

impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.deref().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashSet};

    #[test]
    fn they_are_as_their_bytes() {
        let of = Arc::new(b"heron\0egret".to_vec());
        let (heron, egret) = (Slice::part(&of, 0, 5), Slice::part(&of, 6, 11));
        assert!(heron == b"heron" && heron == "heron" && heron == vec![104, 101, 114, 111, 110]);
        assert!(egret < heron);
        assert_eq!(heron, Slice::from(b"heron".to_vec()));
        assert_eq!(format!("{:?}", Slice::part(&of, 3, 7)), r#"b"on\x00e""#);
        assert!(BTreeMap::from([(heron.clone(), 1)]).contains_key(&b"heron"[..]));
        assert!(HashSet::from([heron.clone()]).contains(&b"heron"[..]));
        assert_eq!(Vec::from(heron), b"heron");
        assert_eq!(&*Slice::part(&of, 3, 2), b"");
        assert_eq!(&*Slice::part(&of, 3, 99), b"");
    }
}
