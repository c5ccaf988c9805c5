//! Positions and names as types, so that one cannot be given for another.
use std::fmt;

/// Log sequence number: a byte position in the redo stream as it lies on disk (block headers
/// included). Differences of two are bytes of log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before everything.
    pub const ZERO: Lsn = Lsn(0);
    /// After everything.
    pub const MAX: Lsn = Lsn(u64::MAX);

    /// Bytes of log from `earlier` to this position; 0 when `earlier` is not earlier.
    #[must_use]
    pub fn bytes_since(self, earlier: Lsn) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The position `bytes` further on.
    #[must_use]
    pub fn advanced(self, bytes: u64) -> Lsn {
        Lsn(self.0.saturating_add(bytes))
    }

    /// The position `bytes` before, or zero.
    #[must_use]
    pub fn back(self, bytes: u64) -> Lsn {
        Lsn(self.0.saturating_sub(bytes))
    }
}

/// A page's logical number. Where the page lies on disk is the page store's business.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageNo(pub u32);

impl PageNo {
    /// No page at all (an end of a chain, a missing child).
    pub const NONE: PageNo = PageNo(u32::MAX);
}

/// A tree's number. Never used again after the tree is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TreeId(pub u64);

/// A transaction's number: 48 bits are kept in a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TxnId(pub u64);

impl TxnId {
    /// The number of rows that no transaction wrote (bulk load): visible to all.
    pub const NONE: TxnId = TxnId(0);
    /// The largest number that a row can hold: at 100,000 transactions a second, 89 years.
    pub const MAX: TxnId = TxnId((1 << 48) - 1);
}

/// What the control file and the data file beside it have in common: drawn anew with each
/// checkpoint, so that one of them that is older than the other, or of another copy of the same
/// database, is recognised (`docs/decisions/whose-page.md`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Era {
    /// Grows by one with each.
    pub number: u64,
    /// Drawn at random: two copies of a database that went separate ways have eras of the same
    /// number.
    pub mark: u64,
}

/// Drawn at random when a database is created and stamped on all its files, so that a file of
/// another database is recognised.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DbId(pub u64);

impl DbId {
    /// The number folded to 32 bits, never 0: what each page bears of it. Two databases have the
    /// same mark once in 2^32 pairs.
    #[inline]
    #[must_use]
    pub fn mark(self) -> u32 {
        ((self.0 >> 32) as u32 ^ self.0 as u32).max(1)
    }
}

macro_rules! shown {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}
shown!(Lsn, PageNo, TreeId, TxnId);

impl fmt::Display for DbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
impl fmt::Debug for DbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DbId({self})")
    }
}
