//! How something may be locked, and which locks exclude each other.
use std::fmt;

/// How a place is locked: its rows, and the absence of rows.
///
/// | asked \ held by another | share | exclusive |
/// |---|---|---|
/// | share | | waits |
/// | exclusive | waits | waits |
///
/// A transaction never waits for itself; exclusive covers share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Together with other readers.
    Share,
    /// Alone.
    Exclusive,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Share, Kind::Exclusive];

    /// Whether a transaction that asks for `self` waits for another that holds `held`.
    #[inline]
    #[must_use]
    pub fn conflicts_with(self, held: Kind) -> bool {
        self == Kind::Exclusive || held == Kind::Exclusive
    }

    /// Whether the holder of `self` has what `other` would give.
    #[inline]
    pub(super) fn covers(self, other: Kind) -> bool {
        self >= other
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Share => "share",
            Kind::Exclusive => "exclusive",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::{self, Exclusive, Share};

    #[test]
    fn which_kinds_conflict() {
        for asked in Kind::ALL {
            for held in Kind::ALL {
                let expected = (asked, held) != (Share, Share);
                assert_eq!(asked.conflicts_with(held), expected, "{asked} against {held}");
                assert_eq!(held.covers(asked), (held, asked) != (Share, Exclusive));
            }
        }
    }
}
