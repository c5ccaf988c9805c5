//! The 48 bytes that begin every page, its checksum, and what can be wrong with it.
use crate::bytes::Bytes;
use thiserror::Error;
use weir_base::{DbId, Lsn, PageNo, TreeId, checksum};

/// Bytes of the header that every page begins with.
pub const HEADER_BYTES: usize = 48;
/// The page sizes that a database can be created with, in bytes.
pub const PAGE_SIZES: [usize; 3] = [4096, 8192, 16384];

pub(crate) const CRC: usize = 0;
pub(crate) const PAGE_NO: usize = 4;
pub(crate) const LSN: usize = 8;
pub(crate) const KIND: usize = 16;
pub(crate) const LEVEL: usize = 17;
pub(crate) const COUNT: usize = 18;
pub(crate) const HEAP_START: usize = 20;
pub(crate) const GARBAGE: usize = 22;
pub(crate) const PREFIX_OFF: usize = 24;
pub(crate) const PREFIX_LEN: usize = 26;
pub(crate) const DB: usize = 28;
pub(crate) const LINK: usize = 32;
pub(crate) const MARKS: usize = 36;
pub(crate) const DATA_LEN: usize = 38;
pub(crate) const TREE: usize = 40;

/// What a page is used for. Zero is none of them, so that a page never written is not taken for
/// one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Belongs to nothing.
    Free = 1,
    /// Rows of a tree.
    Leaf = 2,
    /// Separators and children of a tree.
    Inner = 3,
    /// A piece of a value too large for its leaf.
    Overflow = 4,
    /// A bit for every page of a range: taken or not.
    SpaceMap = 5,
    /// A page that a floor above lays out itself, behind the header.
    Meta = 6,
}

impl Kind {
    /// The kind with this number, if there is one.
    #[must_use]
    pub fn from_u8(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Free,
            2 => Kind::Leaf,
            3 => Kind::Inner,
            4 => Kind::Overflow,
            5 => Kind::SpaceMap,
            6 => Kind::Meta,
            _ => return None,
        })
    }
}

/// What is wrong with a page, where, and how it shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Damage {
    /// Every byte is zero: never written, or lost by the device.
    #[error("the page is all zeros: it was never written, or the device lost it")]
    Zeroed,
    /// The bytes are not those that were sealed.
    #[error("checksum {found:#010x} computed, {expected:#010x} stored at byte 0")]
    Checksum {
        /// The checksum that the page carries.
        expected: u32,
        /// The checksum of its bytes.
        found: u32,
    },
    /// A whole page, but another one.
    #[error("page {found} found where page {expected} belongs")]
    Misdirected {
        /// The page that was asked for.
        expected: PageNo,
        /// The page that lies there.
        found: PageNo,
    },
    /// A whole page of this number, but of another database.
    #[error(
        "the page bears the mark {found:#010x} of another database; this one's is {expected:#010x}"
    )]
    OtherDatabase {
        /// This database's mark.
        expected: u32,
        /// The mark that the page bears.
        found: u32,
    },
    /// A change that the log does not have: the log is older than the page, or the page of another
    /// copy of the database.
    #[error("its last change is at position {lsn} of the log, which ends at {end}")]
    Ahead {
        /// The page's LSN.
        lsn: Lsn,
        /// Where the durable log ends.
        end: Lsn,
    },
    /// An older state than the one that was written.
    #[error(
        "it was written with its change at position {written} of the log, and read with the one at \
         {found}: the device lost a write"
    )]
    LostWrite {
        /// The LSN with which it was written last.
        written: Lsn,
        /// The LSN with which it was read.
        found: Lsn,
    },
    /// The block that should hold it, in a store that packs pages, does not.
    #[error("{0}")]
    Block(&'static str),
    /// Another page than the space map that must lie there.
    #[error("it is not the space map that lies there")]
    NotASpaceMap,
    /// A field does not hold what it must.
    #[error("{what} at byte {offset}: expected {expected}, found {found}")]
    Field {
        /// Which rule is broken.
        what: &'static str,
        /// Byte offset within the page.
        offset: usize,
        /// What the rule asks for (or its bound).
        expected: u64,
        /// What the page says.
        found: u64,
    },
}

#[inline]
pub(crate) fn put_u16(page: &mut [u8], off: usize, value: usize) {
    debug_assert!(value <= usize::from(u16::MAX));
    page[off..off + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

#[inline]
pub(crate) fn put_u64(page: &mut [u8], off: usize, value: u64) {
    page[off..off + 8].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(crate) fn put_u32(page: &mut [u8], off: usize, value: u32) {
    page[off..off + 4].copy_from_slice(&value.to_le_bytes());
}

/// Makes `page` an empty page of this kind: everything behind the header is zero, and so is the LSN
/// (the caller sets it with the change that this is part of) and the database's mark, which
/// [`seal`] sets.
pub fn format(page: &mut [u8], kind: Kind, level: u8, tree: TreeId, page_no: PageNo) {
    page.fill(0);
    put_u32(page, PAGE_NO, page_no.0);
    page[KIND] = kind as u8;
    page[LEVEL] = level;
    // The heap is empty and lies at the end. 16384 fits in the field.
    let size = page.len();
    put_u16(page, HEAP_START, size);
    put_u64(page, TREE, tree.0);
    put_u32(page, LINK, PageNo::NONE.0);
}

/// The LSN of the page's last change: the end of the redo group that made it.
#[must_use]
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(page.u64_at(LSN))
}

/// The tree that the page says to be of; 0: of none.
#[must_use]
pub fn tree_of(page: &[u8]) -> TreeId {
    TreeId(page.u64_at(TREE))
}

/// Sets the LSN of the page's last change: the end of the redo group that made it.
pub fn set_lsn(page: &mut [u8], lsn: Lsn) {
    put_u64(page, LSN, lsn.0);
}

/// Sets the page that this one points to: an inner node's leftmost child, the next overflow page.
pub fn set_link(page: &mut [u8], link: PageNo) {
    put_u32(page, LINK, link.0);
}

/// Sets how many bytes behind the header are in use (overflow pages).
pub fn set_data_len(page: &mut [u8], len_bytes: usize) {
    put_u16(page, DATA_LEN, len_bytes);
}

/// Marks the page as one of the database `db`, and writes the checksum of everything behind it. The
/// last step before a page is written.
pub fn seal(page: &mut [u8], db: DbId) {
    put_u32(page, DB, db.mark());
    let crc = checksum(&page[PAGE_NO..]);
    put_u32(page, CRC, crc);
}

/// Whether `page`, just read, is page `expected_no` of the database `db` as it was sealed.
///
/// # Errors
/// `Zeroed` for a page of zeros, else the first that fails of checksum, database, number, kind.
pub fn verify(page: &[u8], db: DbId, expected_no: PageNo) -> Result<(), Damage> {
    if page.iter().all(|&byte| byte == 0) {
        return Err(Damage::Zeroed);
    }
    if page.len() < HEADER_BYTES {
        let (expected, found) = (HEADER_BYTES as u64, page.len() as u64);
        return Err(Damage::Field { what: "page size", offset: 0, expected, found });
    }
    let (expected, found) = (page.u32_at(CRC), checksum(&page[PAGE_NO..]));
    if expected != found {
        return Err(Damage::Checksum { expected, found });
    }
    let (expected, found) = (db.mark(), page.u32_at(DB));
    if expected != found {
        return Err(Damage::OtherDatabase { expected, found });
    }
    let found = PageNo(page.u32_at(PAGE_NO));
    if found != expected_no {
        return Err(Damage::Misdirected { expected: expected_no, found });
    }
    verify_kind(page)
}

pub(crate) fn verify_kind(page: &[u8]) -> Result<(), Damage> {
    match Kind::from_u8(page.u8_at(KIND)) {
        Some(_) => Ok(()),
        None => Err(Damage::Field {
            what: "page kind",
            offset: KIND,
            expected: Kind::Meta as u64,
            found: u64::from(page.u8_at(KIND)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: DbId = DbId(0x1234_5678_9abc_def0);

    #[test]
    fn sealed_pages_are_believed_and_others_are_not() {
        for size in PAGE_SIZES {
            let mut page = vec![0; size];
            assert_eq!(verify(&page, ONE, PageNo(7)), Err(Damage::Zeroed));
            format(&mut page, Kind::Leaf, 0, TreeId(3), PageNo(7));
            set_lsn(&mut page, Lsn(99));
            seal(&mut page, ONE);
            assert_eq!(verify(&page, ONE, PageNo(7)), Ok(()));
            let other = Damage::Misdirected { expected: PageNo(8), found: PageNo(7) };
            assert_eq!(verify(&page, ONE, PageNo(8)), Err(other));
            let other = DbId(ONE.0 + 1);
            let damage = verify(&page, other, PageNo(7)).unwrap_err();
            let (expected, found) = (other.mark(), ONE.mark());
            assert_eq!(damage, Damage::OtherDatabase { expected, found });
            assert!(damage.to_string().contains("of another database"), "{damage}");
            for bit in (0..size * 8).step_by(61) {
                page[bit / 8] ^= 1 << (bit % 8);
                assert!(matches!(verify(&page, ONE, PageNo(7)), Err(Damage::Checksum { .. })));
                page[bit / 8] ^= 1 << (bit % 8);
            }
            page[KIND] = 77;
            seal(&mut page, ONE);
            let damage = verify(&page, ONE, PageNo(7)).unwrap_err();
            assert_eq!(damage.to_string(), "page kind at byte 16: expected 6, found 77");
        }
        assert!(verify(&[1; 10], ONE, PageNo(0)).is_err());
    }
}
