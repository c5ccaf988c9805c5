//! Repeating history, a page at a time: the changes that a page lacks are made in order when it is
//! read in, by the thread that reads it.
use weir_base::{Lsn, PageNo};
use weir_change::{apply, decode};
use weir_pool::{PageRedo, Pool, PoolError};
use weir_redo::Chunk;

use crate::analysis::Analysis;
use crate::chains::{Chain, Place, Records};
use crate::collect::Collected;
use crate::indexer::Indexer;
use crate::stretches::{Loaded, Stretches};

/// Changes touched ahead of their turn.
const AHEAD: usize = 16;

/// What is left when the pool has what was read of the log.
pub struct Left {
    /// The transactions under way.
    pub analysis: Analysis,
    /// To go on following the log.
    pub indexer: Indexer,
    /// How many pages have pending redo.
    pub pending_pages: u64,
}

/// Says to the pool which pages the log may be ahead of, and leaves to it what was read of the log.
/// `forgotten` plants the bug that the checkpoint does not wait for them.
///
/// # Errors
/// Those of [`Pool::set_pending`].
pub fn set_pending(collected: Collected, pool: &Pool, forgotten: bool) -> Result<Left, PoolError> {
    let Collected { chunks, chains, stretches, analysis, end, indexer, .. } = collected;
    let (pages, records) = (chains.pages(), chains.into_records());
    let redo = History::new(chunks, records, pages, stretches);
    let pending_pages =
        set_pending_chains(redo, pool, |first| if forgotten { end.end } else { first })?;
    Ok(Left { analysis, indexer, pending_pages })
}

/// Hands history to the pool; how many pages it is of. `since`: which first change a page is listed
/// under.
pub(crate) fn set_pending_chains(
    redo: History,
    pool: &Pool,
    since: impl Fn(Lsn) -> Lsn,
) -> Result<u64, PoolError> {
    let pages: Vec<(PageNo, Lsn)> = redo.pages.iter().map(|c| (c.page, since(c.first))).collect();
    let pending_pages = pages.len() as u64;
    pool.set_pending(pages, Box::new(redo))?;
    Ok(pending_pages)
}

/// What was read of the log.
pub(crate) struct History {
    chunks: Vec<Chunk>,
    records: Records,
    pages: Vec<Chain>,
    /// What was not.
    stretches: Option<Stretches>,
}

/// A page on its way.
struct Forward<'a> {
    page: PageNo,
    bytes: &'a mut [u8],
    /// The page's LSN before.
    lsn: Lsn,
    /// Where the first change that it lacked begins.
    first: Option<Lsn>,
    /// Where the last one ends.
    last: Lsn,
}

impl Forward<'_> {
    /// Makes the changes of groups that lie together, up to `end`.
    fn take(&mut self, end: Lsn, place: Place, chunks: &[Chunk]) -> Result<(), PoolError> {
        let (page, lsn) = (self.page, self.lsn);
        for (span, body) in place.groups(chunks).filter(|(span, _)| span.end > lsn) {
            self.first.get_or_insert(span.start);
            let behind = |cause| PoolError::Behind { page, lsn: span.end, cause };
            self.make(body).map_err(behind)?;
        }
        self.last = end;
        Ok(())
    }

    /// Makes the changes of a stretch, or of parts of one.
    fn take_all(&mut self, read: &Loaded, page_index: usize) -> Result<(), PoolError> {
        for &place in read.changes_of(page_index) {
            let end = place.end(&read.chunks);
            if end > self.lsn {
                self.take(end, place, &read.chunks)?;
            }
        }
        Ok(())
    }

    fn make(&mut self, body: &[u8]) -> Result<(), String> {
        let (header, ops) = decode(body).map_err(|e| e.to_string())?;
        for op in ops {
            let op = op.map_err(|e| e.to_string())?;
            if op.page() == Some(self.page) {
                apply(&op, header.writer(), self.bytes).map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}

impl History {
    pub(crate) fn new(
        chunks: Vec<Chunk>,
        records: Records,
        pages: Vec<Chain>,
        stretches: Option<Stretches>,
    ) -> Self {
        History { chunks, records, pages, stretches }
    }

    /// Makes the changes of a page in a stretch that was not read, one `of` so many.
    fn take_stretch(
        &self,
        page: &mut Forward<'_>,
        (number, index): (usize, usize),
        of: usize,
    ) -> Result<(), PoolError> {
        let Some(stretches) = &self.stretches else { return Ok(()) };
        match stretches.get(number, of)? {
            Some(stretch) => page.take_all(stretch, index),
            // A thread that waits for one page does not wait for all others of the stretch.
            None => page.take_all(&stretches.read_page(number, index, page.page)?, 0),
        }
    }
}

impl PageRedo for History {
    fn read_ahead(&self) -> bool {
        self.stretches.as_ref().is_some_and(Stretches::read_next)
    }

    fn reads(&self) -> bool {
        self.stretches.as_ref().is_some_and(|stretches| !stretches.are_read())
    }

    fn is_read_much(&self) -> bool {
        self.stretches.as_ref().is_none_or(Stretches::are_asked_much)
    }

    fn makes(&self, index: usize) -> bool {
        self.pages[index].makes
    }

    fn apply_pending(
        &self,
        index: usize,
        page: PageNo,
        bytes: &mut [u8],
    ) -> Result<Option<Lsn>, PoolError> {
        let lsn = weir_page::lsn(bytes);
        let lacking = self.pages[index].behind(&self.records, lsn);
        let mut forward = Forward { page, bytes, lsn, first: None, last: lsn };
        for (i, record) in lacking.iter().enumerate() {
            // A page's changes lie all over the log in memory: touching those to come, the
            // processor fetches several at once.
            if i % AHEAD == 0 {
                for next in lacking[i..].iter().take(2 * AHEAD).skip(AHEAD) {
                    next.place.touch(&self.chunks);
                }
            }
            match record.place.as_stretch() {
                Some(in_stretch) => self.take_stretch(&mut forward, in_stretch, lacking.len())?,
                None => forward.take(record.end, record.place, &self.chunks)?,
            }
        }
        if forward.first.is_some() {
            weir_page::set_lsn(forward.bytes, forward.last);
        }
        Ok(forward.first)
    }
}
