//! Repeating history, a page at a time: the changes that a page lacks are made in order when it is
//! read in, by whoever reads it.
use weir_base::{Lsn, PageNo};
use weir_change::{apply, decode};
use weir_pool::{PageRedo, Pool, PoolError};
use weir_redo::Chunk;

use crate::analysis::Analysis;
use crate::chains::{Body, Chain, Chains, Record, Records};
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

    fn body(&self, record: &Record) -> &[u8] {
        record.body.of(&self.chunks)
    }

    fn make(&self, page: PageNo, record: &Record, bytes: &mut [u8]) -> Result<(), String> {
        let (header, ops) = decode(self.body(record)).map_err(|e| e.to_string())?;
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
        let lacking = self.pages[index].behind(&self.records, weir_page::lsn(bytes));
        let (Some(first), Some(last)) = (lacking.first(), lacking.last()) else { return Ok(None) };
        for (i, record) in lacking.iter().enumerate() {
            // A page's changes lie all over the log in memory: touching those to come, the
            // processor fetches several at once.
            if i % AHEAD == 0 {
                for next in lacking[i..].iter().take(2 * AHEAD).skip(AHEAD) {
                    std::hint::black_box(self.body(next).first());
                }
            }
            self.make(page, record, bytes).map_err(|cause| PoolError::Behind {
                page,
                lsn: record.end,
                cause,
            })?;
        }
        weir_page::set_lsn(bytes, last.end);
        let Body { chunk, at, .. } = first.body;
        Ok(Some(self.chunks[chunk as usize].start_of(at as usize)))
    }
}
