//! The pages that say which era the others are of (`docs/decisions/whose-page.md`).
use weir_base::{AlignedBuf, DbId, Era, PageNo, TreeId};
use weir_page::{Bytes, HEADER_BYTES, Kind};

/// The pages that say which era the others are of: the first for those of an even number, the
/// second for the others. They are never in a pool. A write of one that is torn leaves the other,
/// which is of the era before.
pub const ERA_PAGES: [PageNo; 2] = [PageNo(2), PageNo(3)];

/// What such a page says.
pub(crate) fn era_of(bytes: &AlignedBuf) -> Era {
    let [number, mark] = [0, 8].map(|at| bytes.u64_at(HEADER_BYTES + at));
    Era { number, mark }
}

/// The page that says so, and which it is; sealed.
pub(crate) fn era_page(era: Era, page_size: usize, db: DbId) -> (PageNo, AlignedBuf) {
    let page = ERA_PAGES[(era.number % 2) as usize];
    let mut buf = AlignedBuf::zeroed(page_size);
    weir_page::format(&mut buf, Kind::Meta, 0, TreeId(0), page);
    for (at, number) in [(0, era.number), (8, era.mark)] {
        buf[HEADER_BYTES + at..HEADER_BYTES + at + 8].copy_from_slice(&number.to_le_bytes());
    }
    weir_page::seal(&mut buf, db);
    (page, buf)
}
