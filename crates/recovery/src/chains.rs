//! What the log has for each page: its changes as a chain, from the last one back to the first that
//! matters.
use weir_base::{Lsn, PageNo};
use weir_redo::{Chunk, Span};

/// Where groups lie in what was read: one, or several one directly after the other; or in a stretch
/// that was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) chunk: u32,
    /// Where the first one begins, with its length.
    pub(crate) at: u32,
    /// How many bytes they take.
    pub(crate) len: u32,
}

/// The order of a list of what is said of pages: page number above, place in the list below, so
/// that what is said of a page comes together, as the list has it. Numbers in one word each are
/// sorted several times as fast as what they stand for.
pub(crate) fn by_page(pages: impl Iterator<Item = PageNo>) -> Vec<u64> {
    let key = |(at, page): (usize, PageNo)| u64::from(page.0) << 32 | at as u64;
    let mut order: Vec<u64> = pages.enumerate().map(key).collect();
    order.sort_unstable();
    order
}

/// In the place of where groups begin: they are in a stretch that was not read.
const IN_STRETCH: u32 = u32::MAX;

impl Place {
    /// All groups of a stretch that was not read.
    pub(crate) fn stretch(number: u32) -> Place {
        Place { chunk: number, at: IN_STRETCH, len: 0 }
    }

    /// Those of them that change one page: by its place among the pages of the stretch.
    pub(crate) fn page_of_stretch(number: u32, page_index: u32) -> Place {
        Place { chunk: number, at: IN_STRETCH, len: page_index }
    }

    /// The stretch that it stands for, if it does, and the page's place in it.
    #[inline]
    pub(crate) fn as_stretch(self) -> Option<(usize, usize)> {
        (self.at == IN_STRETCH).then_some((self.chunk as usize, self.len as usize))
    }

    /// Adds the place of the group directly behind; `false`, with nothing done: it lies elsewhere.
    #[inline]
    pub(crate) fn extend(&mut self, next: Place) -> bool {
        let follows =
            self.at != IN_STRETCH && self.chunk == next.chunk && self.at + self.len == next.at;
        if follows {
            self.len += next.len;
        }
        follows
    }

    /// Whether the last of them is that one.
    pub(crate) fn ends_with(self, group: Place) -> bool {
        if self.at == IN_STRETCH || group.at == IN_STRETCH {
            return self == group;
        }
        self.chunk == group.chunk && self.at + self.len == group.at + group.len
    }

    /// The groups with their bodies.
    pub(crate) fn groups(self, chunks: &[Chunk]) -> impl Iterator<Item = (Span, &[u8])> {
        let chunk = &chunks[self.chunk as usize];
        let (from, len) = (self.at as usize, self.len as usize);
        let groups = chunk.groups_in(from..from + len);
        groups.map(|group| (group.span, &chunk.payload()[group.body]))
    }

    /// Where the last of them ends in the log.
    pub(crate) fn end(self, chunks: &[Chunk]) -> Lsn {
        chunks[self.chunk as usize].lsn_at((self.at + self.len) as usize)
    }

    /// Its first byte, so that the processor has it.
    pub(crate) fn touch(self, chunks: &[Chunk]) {
        if self.as_stretch().is_none() {
            std::hint::black_box(chunks[self.chunk as usize].payload()[self.at as usize]);
        }
    }
}

/// What changes a page, one group directly after the other: small, and complete enough that changes
/// that the page has already are passed over without a look at the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The last group's end: the page's LSN if this was its last change.
    pub(crate) end: Lsn,
    pub(crate) place: Place,
    /// The page's change before these; `NONE`: nothing before them matters.
    before: u32,
}

const NONE: u32 = u32::MAX;

/// Records in blocks, so that millions of them are never moved.
#[derive(Default)]
pub(crate) struct Records {
    blocks: Vec<Vec<Record>>,
}

const BLOCK_RECORDS: u32 = 1 << 14;

impl Records {
    /// Adds one; tells its number.
    fn push(&mut self, record: Record) -> u32 {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK_RECORDS as usize) {
            self.blocks.push(Vec::with_capacity(BLOCK_RECORDS as usize));
        }
        let number = (self.blocks.len() as u32 - 1) * BLOCK_RECORDS;
        let Some(block) = self.blocks.last_mut() else { return NONE };
        block.push(record);
        number + block.len() as u32 - 1
    }

    fn get(&self, number: u32) -> Option<&Record> {
        self.blocks.get((number / BLOCK_RECORDS) as usize)?.get((number % BLOCK_RECORDS) as usize)
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Record> {
        let block = self.blocks.get_mut((number / BLOCK_RECORDS) as usize)?;
        block.get_mut((number % BLOCK_RECORDS) as usize)
    }

    /// Adds a group to a record; `false`, with nothing done: it does not lie directly behind.
    fn extend(&mut self, number: u32, end: Lsn, group: Place) -> bool {
        let Some(record) = self.get_mut(number) else { return false };
        let follows = record.place.extend(group);
        if follows {
            record.end = end;
        }
        follows
    }

    /// Nothing before its last group, this one, matters.
    fn cut(&mut self, number: u32, group: Place) {
        if let Some(record) = self.get_mut(number) {
            (record.place, record.before) = (group, NONE);
        }
    }
}

/// A page's chain.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The last change; `NONE`: the page has none.
    last: u32,
    /// Whether the first one makes the page anew.
    makes: bool,
    /// Where the first one begins.
    first: Lsn,
    /// Where the last one's group ends: as its record says, which need not be looked at.
    end: Lsn,
}

const EMPTY: Head = Head { last: NONE, makes: false, first: Lsn::ZERO, end: Lsn::ZERO };

/// Pages whose heads lie together.
const BLOCK_PAGES: usize = 1024;

/// What a page takes at most: its head, its chain, and its place in the list of pages with pending
/// redo.
const PAGE_BYTES: usize = size_of::<Head>() + size_of::<Chain>() + 32;

/// All chains, while the log is read.
#[derive(Default)]
pub(crate) struct Chains {
    records: Records,
    /// By page number, in blocks that exist where a page of theirs has a change.
    heads: Vec<Option<Box<[Head; BLOCK_PAGES]>>>,
}

impl Chains {
    /// Takes in that a group changes a page; it may be said more than once, one group after the
    /// other. `makes`: what the page held before does not matter.
    pub(crate) fn add(&mut self, page: PageNo, span: Span, place: Place, makes: bool) {
        let (block, at) = (page.0 as usize / BLOCK_PAGES, page.0 as usize % BLOCK_PAGES);
        if block >= self.heads.len() {
            self.heads.resize_with(block + 1, || None);
        }
        let heads = self.heads[block].get_or_insert_with(|| Box::new([EMPTY; BLOCK_PAGES]));
        let head = &mut heads[at];
        let is_first = head.last == NONE;
        if makes || is_first {
            (head.makes, head.first) = (makes, span.start);
        }
        let is_known = !is_first && head.end == span.end;
        if is_known && !makes {
            return;
        }
        // A page's changes often come one directly after the other: rows in the order of keys.
        let follows = !is_first && !makes && head.end == span.start;
        head.end = span.end;
        if follows && self.records.extend(head.last, span.end, place) {
            return;
        }
        if is_known {
            self.records.cut(head.last, place);
        } else {
            let before = if makes { NONE } else { head.last };
            head.last = self.records.push(Record { end: span.end, place, before });
        }
    }

    /// The pages with their chains, by number.
    pub(crate) fn pages(&self) -> Vec<Chain> {
        let blocks = self.heads.iter().enumerate();
        let heads =
            blocks.filter_map(|(n, block)| Some((n, block.as_ref()?))).flat_map(|(n, block)| {
                block.iter().enumerate().map(move |(at, head)| (n * BLOCK_PAGES + at, head))
            });
        heads
            .filter(|(_, head)| head.last != NONE)
            .map(|(page, head)| Chain {
                page: PageNo(page as u32),
                last: head.last,
                makes: head.makes,
                first: head.first,
            })
            .collect()
    }

    /// Memory for all this, with what [`Chains::pages`] and the list of pages with pending redo
    /// will take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let blocks = self.heads.iter().flatten().count();
        let records = self.records.blocks.iter().map(Vec::len).sum::<usize>();
        records * size_of::<Record>() + blocks * BLOCK_PAGES * PAGE_BYTES
    }

    /// Forgets the pages.
    pub(crate) fn into_records(self) -> Records {
        self.records
    }
}

/// The changes of a page that matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) page: PageNo,
    last: u32,
    /// Whether the first one makes the page anew.
    pub(crate) makes: bool,
    /// Where the first one begins.
    pub(crate) first: Lsn,
}

impl Chain {
    /// The changes behind `lsn`, oldest first: those that a page with this LSN lacks. Of the first
    /// record it may have the first groups.
    pub(crate) fn behind(&self, records: &Records, lsn: Lsn) -> Vec<Record> {
        let mut found = Vec::new();
        let mut at = self.last;
        while let Some(record) = records.get(at)
            && record.end > lsn
        {
            found.push(*record);
            at = record.before;
        }
        found.reverse();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64) -> Span {
        Span { start: Lsn(start), end: Lsn(start + 10) }
    }

    /// A group of ten bytes.
    fn place(start: u64) -> Place {
        Place { chunk: 0, at: start as u32, len: 10 }
    }

    fn add(chains: &mut Chains, page: u32, start: u64, makes: bool) {
        chains.add(PageNo(page), span(start), place(start), makes);
    }

    /// Where the records behind `lsn` begin and end.
    fn behind(chains: &Chains, page: u32, lsn: u64) -> Vec<(u32, u64)> {
        let all = chains.pages();
        let chain = all.iter().find(|c| c.page.0 == page).expect("has changes");
        chain.behind(&chains.records, Lsn(lsn)).iter().map(|r| (r.place.at, r.end.0)).collect()
    }

    #[test]
    fn a_chain_has_a_pages_changes_in_order_and_begins_where_it_is_made() {
        let mut chains = Chains::default();
        for (n, page) in [7, 9, 7, 5_000_000, 7, 9].into_iter().enumerate() {
            add(&mut chains, page, 100 + 10 * n as u64, false);
        }
        assert_eq!(behind(&chains, 7, 0), [(100, 110), (120, 130), (140, 150)]);
        assert_eq!(behind(&chains, 7, 110), [(120, 130), (140, 150)], "what it has is left out");
        assert_eq!(behind(&chains, 9, 0), [(110, 120), (150, 160)]);
        assert_eq!(behind(&chains, 5_000_000, 0), [(130, 140)]);
        let pages = chains.pages();
        assert_eq!(pages.iter().map(|c| c.page.0).collect::<Vec<_>>(), [7, 9, 5_000_000]);
        assert_eq!(pages.iter().map(|c| c.first.0).collect::<Vec<_>>(), [100, 110, 130]);
        assert!(pages.iter().all(|c| !c.makes));
        // Twice in one group is one change, also where the second one makes the page.
        for makes in [false, true, false] {
            add(&mut chains, 7, 170, makes);
        }
        add(&mut chains, 7, 200, false);
        assert_eq!(behind(&chains, 7, 0), [(170, 180), (200, 210)], "nothing before it");
        let made = chains.pages()[0];
        assert!(made.makes && made.first == Lsn(170));
    }

    #[test]
    fn groups_one_directly_after_the_other_are_one_record() {
        let mut chains = Chains::default();
        for start in [100, 110, 110, 120] {
            add(&mut chains, 7, start, false);
        }
        assert_eq!(behind(&chains, 7, 0), [(100, 130)]);
        assert_eq!(behind(&chains, 7, 120), [(100, 130)], "of which the page has some");
        assert!(behind(&chains, 7, 130).is_empty());
        // In another chunk, though directly behind in the log.
        chains.add(PageNo(7), span(130), Place { chunk: 1, at: 0, len: 10 }, false);
        assert_eq!(behind(&chains, 7, 0), [(100, 130), (0, 140)]);
        // Made anew behind others in the same group and run.
        for (start, makes) in [(150, false), (160, false), (160, true), (170, false)] {
            add(&mut chains, 7, start, makes);
        }
        assert_eq!(behind(&chains, 7, 0), [(160, 180)]);
        assert_eq!(chains.pages()[0].first, Lsn(160));
    }
}
