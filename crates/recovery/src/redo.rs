//! Repeating history, a page at a time: the changes that a page lacks are made in order when it is
//! read in, by whoever reads it.
use weir_base::{Lsn, PageNo};
use weir_change::{apply, decode};
use weir_pool::{PageRedo, Pool, PoolError};
use weir_redo::Chunk;

use crate::analysis::Analysis;
use crate::chains::{Chain, Chains, Records};
use crate::collect::Collected;

/// Changes touched ahead of their turn.
const AHEAD: usize = 16;

/// Says to the pool which pages the log may be ahead of, and leaves to it what was read of the log.
/// Returns who was under way, and how many pages are owed redo. `forgotten` plants the bug that the
/// checkpoint does not wait for them.
pub fn owe(collected: Collected, pool: &Pool, forgotten: bool) -> (Analysis, u64) {
    let Collected { chunks, chains, analysis, end } = collected;
    let redo = History::new(chunks, chains);
    let since = |first| if forgotten { end.end } else { first };
    let pages: Vec<(PageNo, Lsn)> = redo.pages.iter().map(|c| (c.page, since(c.first))).collect();
    let owed = pages.len() as u64;
    pool.owe(pages, Box::new(redo));
    (analysis, owed)
}

/// What was read of the log.
struct History {
    chunks: Vec<Chunk>,
    records: Records,
    pages: Vec<Chain>,
}

impl History {
    fn new(chunks: Vec<Chunk>, chains: Chains) -> Self {
        History { chunks, pages: chains.pages(), records: chains.into_records() }
    }

    fn make(page: PageNo, body: &[u8], bytes: &mut [u8]) -> Result<(), String> {
        let (header, ops) = decode(body).map_err(|e| e.to_string())?;
        for op in ops {
            let op = op.map_err(|e| e.to_string())?;
            if op.page() == Some(page) {
                apply(&op, header.writer(), bytes).map_err(|e| e.to_string())?;
            }
        }
        Ok(())
    }
}

impl PageRedo for History {
    fn makes(&self, index: usize) -> bool {
        self.pages[index].makes
    }

    fn bring_forward(
        &self,
        index: usize,
        page: PageNo,
        bytes: &mut [u8],
    ) -> Result<Option<Lsn>, PoolError> {
        let lsn = weir_page::lsn(bytes);
        let lacking = self.pages[index].behind(&self.records, lsn);
        let Some(last) = lacking.last() else { return Ok(None) };
        let mut first = None;
        for (i, record) in lacking.iter().enumerate() {
            // A page's changes lie all over the log in memory: touching those to come, the
            // processor fetches several at once.
            if i % AHEAD == 0 {
                for next in lacking[i..].iter().take(2 * AHEAD).skip(AHEAD) {
                    next.place.touch(&self.chunks);
                }
            }
            let groups = record.place.groups(&self.chunks);
            for (span, body) in groups.filter(|(span, _)| span.end > lsn) {
                first.get_or_insert(span.start);
                let behind = |cause| PoolError::Behind { page, lsn: span.end, cause };
                Self::make(page, body, bytes).map_err(behind)?;
            }
        }
        weir_page::set_lsn(bytes, last.end);
        Ok(first)
    }
}
