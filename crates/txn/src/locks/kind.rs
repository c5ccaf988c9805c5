//! What may be locked and how, and which locks exclude each other.
use std::fmt;

use weir_base::{TreeId, checksum_more};

/// How a place is locked.
///
/// | asked \ held by another | share | exclusive | gap | insert intention |
/// |---|---|---|---|---|
/// | share | | waits | | |
/// | exclusive | waits | waits | | |
/// | gap | | | | waits |
/// | insert intention | | | waits | |
///
/// A transaction never waits for itself; exclusive covers share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The row, shared with other readers.
    RowShare,
    /// The row, alone.
    RowExclusive,
    /// The gap before the key: nobody else inserts there. Others may lock the same gap.
    Gap,
    /// The wish to insert into the gap before the key.
    InsertIntention,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] =
        [Kind::RowShare, Kind::RowExclusive, Kind::Gap, Kind::InsertIntention];

    /// Whether it locks the row, not the gap before it.
    #[must_use]
    pub fn is_row(self) -> bool {
        matches!(self, Kind::RowShare | Kind::RowExclusive)
    }

    /// Whether a transaction that asks for `self` waits for another that holds `held`.
    #[must_use]
    pub fn conflicts_with(self, held: Kind) -> bool {
        self.conflicts().has(held)
    }

    /// The kinds that it waits for when others hold them.
    pub(super) fn conflicts(self) -> Modes {
        match self {
            Kind::RowShare => Modes::of(Kind::RowExclusive),
            Kind::RowExclusive => Modes::of(Kind::RowShare).and(Kind::RowExclusive),
            Kind::Gap => Modes::of(Kind::InsertIntention),
            Kind::InsertIntention => Modes::of(Kind::Gap),
        }
    }

    /// The kinds of the same thing: of the row, or of the gap.
    pub(super) fn class(self) -> Modes {
        match self {
            Kind::RowShare | Kind::RowExclusive => {
                Modes::of(Kind::RowShare).and(Kind::RowExclusive)
            }
            Kind::Gap | Kind::InsertIntention => Modes::of(Kind::Gap).and(Kind::InsertIntention),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::RowShare => "share",
            Kind::RowExclusive => "exclusive",
            Kind::Gap => "gap",
            Kind::InsertIntention => "insert intention",
        })
    }
}

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Modes(u8);

impl Modes {
    pub(super) const NONE: Modes = Modes(0);

    pub(super) fn of(kind: Kind) -> Modes {
        Modes(1 << kind as u8)
    }
    #[must_use]
    pub(super) fn and(self, kind: Kind) -> Modes {
        Modes(self.0 | 1 << kind as u8)
    }
    pub(super) fn has(self, kind: Kind) -> bool {
        self.meets(Modes::of(kind))
    }
    pub(super) fn meets(self, other: Modes) -> bool {
        self.0 & other.0 != 0
    }
    /// Whether who holds these has what `kind` would give.
    pub(super) fn cover(self, kind: Kind) -> bool {
        self.has(kind) || kind == Kind::RowShare && self.has(Kind::RowExclusive)
    }
    /// One of them that is also in `other`.
    pub(super) fn first_in(self, other: Modes) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&k| self.has(k) && other.has(k))
    }
}

/// Where in a tree a lock lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place<'a> {
    /// At this key: its row, or the gap before it.
    Key(&'a [u8]),
    /// Behind the last key of the tree: the last gap.
    End,
}

/// A place as it is kept in reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlaceBuf {
    /// At this key.
    Key(Box<[u8]>),
    /// Behind the last key.
    End,
}

/// Bytes of a key that a report shows.
const KEY_SHOWN_BYTES: usize = 32;

impl fmt::Display for PlaceBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlaceBuf::Key(key) = self else { return f.write_str("the end") };
        let shown = &key[..key.len().min(KEY_SHOWN_BYTES)];
        if shown.iter().all(|b| b.is_ascii_graphic() || *b == b' ') {
            write!(f, "key \"{}\"", shown.escape_ascii())?;
        } else {
            f.write_str("key 0x")?;
            shown.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        }
        if shown.len() < key.len() { write!(f, "... ({} bytes)", key.len()) } else { Ok(()) }
    }
}

/// A tree and a place in it, with the hash that leads to its queue. Shared between the queue and
/// those who hold or want something there.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub(super) hash: u64,
    pub(super) tree: TreeId,
    key: Option<Box<[u8]>>,
}

impl Target {
    pub(super) fn new(hash: u64, tree: TreeId, place: Place<'_>) -> Self {
        let key = match place {
            Place::Key(key) => Some(key.into()),
            Place::End => None,
        };
        Target { hash, tree, key }
    }
    pub(super) fn place(&self) -> Place<'_> {
        self.key.as_deref().map_or(Place::End, Place::Key)
    }
    pub(super) fn is(&self, tree: TreeId, place: Place<'_>) -> bool {
        self.tree == tree && self.place() == place
    }
    pub(super) fn place_buf(&self) -> PlaceBuf {
        self.key.clone().map_or(PlaceBuf::End, PlaceBuf::Key)
    }
}

/// A hash whose upper and lower bits are both good. Places whose hashes are equal have queues of
/// their own all the same.
#[inline]
pub(super) fn hash(tree: TreeId, place: Place<'_>) -> u64 {
    let (sum, salt) = match place {
        Place::Key(key) => (checksum_more(tree.0, key), 1),
        Place::End => (checksum_more(tree.0, &[]), 2),
    };
    // The golden ratio's bits, as in Knuth's multiplicative hashing (TAOCP 3, 6.4).
    ((u64::from(sum) << 2) | salt).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_whom() {
        use Kind::{Gap, InsertIntention, RowExclusive, RowShare};
        let waits = [
            (RowShare, RowExclusive),
            (RowExclusive, RowShare),
            (RowExclusive, RowExclusive),
            (Gap, InsertIntention),
            (InsertIntention, Gap),
        ];
        for asked in Kind::ALL {
            for held in Kind::ALL {
                let expected = waits.contains(&(asked, held));
                assert_eq!(asked.conflicts_with(held), expected, "{asked} against {held}");
                assert_eq!(held.conflicts_with(asked), expected, "conflicts are mutual");
                assert_eq!(asked.class().has(held), asked.is_row() == held.is_row());
                let covers = asked == held || (asked, held) == (RowShare, RowExclusive);
                assert_eq!(Modes::of(held).cover(asked), covers, "{held} covers {asked}");
            }
        }
    }

    #[test]
    fn keys_in_reports_are_short_and_readable() {
        let shown = |key: &[u8]| PlaceBuf::Key(key.into()).to_string();
        assert_eq!(shown(b"ab c"), "key \"ab c\"");
        assert_eq!(shown(b"a\"b"), "key \"a\\\"b\"");
        assert_eq!(shown(&[0, 255]), "key 0x00ff");
        assert_eq!(shown(&[b'x'; 40]), format!("key \"{}\"... (40 bytes)", "x".repeat(32)));
        assert_eq!(PlaceBuf::End.to_string(), "the end");
    }

    #[test]
    fn ends_and_empty_keys_are_different_places() {
        let tree = TreeId(1);
        assert_ne!(hash(tree, Place::End), hash(tree, Place::Key(b"")));
        assert!(!Target::new(0, tree, Place::End).is(tree, Place::Key(b"")));
        assert!(!Target::new(0, tree, Place::End).is(TreeId(2), Place::End));
    }
}
