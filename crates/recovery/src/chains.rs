//! What the log has for each page: its changes as a chain, from the last one back to the first that
//! matters.
use weir_base::{Lsn, PageNo};
use weir_redo::{Chunk, Span};

/// Where a group's body lies in what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) chunk: u32,
    pub(crate) at: u32,
    pub(crate) len: u32,
}

impl Body {
    pub(crate) fn of<'a>(&self, chunks: &'a [Chunk]) -> &'a [u8] {
        &chunks[self.chunk as usize].payload()[self.at as usize..][..self.len as usize]
    }
}

/// A group's change of one page: small, and complete enough that a change that the page has already
/// is passed over without a look at the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The group's end: the page's LSN if this was its last change.
    pub(crate) end: Lsn,
    pub(crate) body: Body,
    /// The page's change before this one; `NONE`: nothing before this one matters.
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

    /// Nothing before this one matters.
    fn cut(&mut self, number: u32) {
        self.blocks[(number / BLOCK_RECORDS) as usize][(number % BLOCK_RECORDS) as usize].before =
            NONE;
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
    /// Where the last one's group ends.
    end: Lsn,
}

const EMPTY: Head = Head { last: NONE, makes: false, first: Lsn::ZERO, end: Lsn::ZERO };

/// Pages whose heads lie together.
const BLOCK_PAGES: usize = 1024;

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
    pub(crate) fn add(&mut self, page: PageNo, span: Span, body: Body, makes: bool) {
        let (block, at) = (page.0 as usize / BLOCK_PAGES, page.0 as usize % BLOCK_PAGES);
        if block >= self.heads.len() {
            self.heads.resize_with(block + 1, || None);
        }
        let heads = self.heads[block].get_or_insert_with(|| Box::new([EMPTY; BLOCK_PAGES]));
        let head = &mut heads[at];
        let is_first = head.last == NONE;
        if is_first || head.end != span.end {
            let record = Record { end: span.end, body, before: head.last };
            head.last = self.records.push(record);
            head.end = span.end;
        }
        if makes || is_first {
            head.makes = makes;
            head.first = span.start;
        }
        if makes {
            self.records.cut(head.last);
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
    /// The changes behind `lsn`, oldest first: those that a page with this LSN lacks.
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

    fn ends(chains: &Chains, page: u32, lsn: u64) -> Vec<u64> {
        let all = chains.pages();
        let chain = all.iter().find(|c| c.page.0 == page).expect("has changes");
        chain.behind(&chains.records, Lsn(lsn)).iter().map(|r| r.end.0).collect()
    }

    #[test]
    fn a_chain_has_a_pages_changes_in_order_and_begins_where_it_is_made() {
        let mut chains = Chains::default();
        for (n, page) in [7, 9, 7, 5_000_000, 7, 9].into_iter().enumerate() {
            chains.add(PageNo(page), span(100 + 10 * n as u64), Body::default(), false);
        }
        assert_eq!(ends(&chains, 7, 0), [110, 130, 150]);
        assert_eq!(ends(&chains, 7, 110), [130, 150], "what the page has is left out");
        assert_eq!(ends(&chains, 9, 0), [120, 160]);
        assert_eq!(ends(&chains, 5_000_000, 0), [140]);
        let pages = chains.pages();
        assert_eq!(pages.iter().map(|c| c.page.0).collect::<Vec<_>>(), [7, 9, 5_000_000]);
        assert_eq!(pages.iter().map(|c| c.first.0).collect::<Vec<_>>(), [100, 110, 130]);
        assert!(pages.iter().all(|c| !c.makes));
        // Twice in one group is one change, also where the second one makes the page.
        chains.add(PageNo(7), span(160), Body::default(), false);
        chains.add(PageNo(7), span(160), Body::default(), true);
        chains.add(PageNo(7), span(160), Body::default(), false);
        chains.add(PageNo(7), span(170), Body::default(), false);
        assert_eq!(ends(&chains, 7, 0), [170, 180], "nothing before it is made anew");
        let made = chains.pages()[0];
        assert!(made.makes && made.first == Lsn(160));
    }
}
