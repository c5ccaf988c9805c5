//! The scan's harvest: the log's payload in memory, and which page each group changes.
use std::ops::ControlFlow;

use weir_base::{DbId, Lsn};
use weir_change::{Op, decode};
use weir_device::Volume;
use weir_redo::{Chunk, RedoError, ScanEnd, ScanOptions, Span, scan_chunks};

use crate::analysis::Analysis;
use crate::{Phase, Progress};

/// A group's change of one page. Small, and complete enough that a change that the page has already
/// is passed over without a look at the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The group's end: the page's LSN if this was its last change.
    pub(crate) end: Lsn,
    pub(crate) page: u32,
    chunk: u32,
    at: u32,
    /// Length of the body; the highest bit says that the group makes the page anew.
    len: u32,
}

const MAKES: u32 = 1 << 31;

impl Record {
    pub(crate) fn makes(&self) -> bool {
        self.len & MAKES != 0
    }
}

/// What was read of the log.
pub struct Collected {
    pub(crate) chunks: Vec<Chunk>,
    /// Grouped by page, oldest first within a page.
    pub(crate) records: Vec<Record>,
    /// Who was under way.
    pub analysis: Analysis,
    /// Where the log ends.
    pub end: ScanEnd,
}

impl Collected {
    pub(crate) fn span(&self, record: &Record) -> Span {
        let groups = &self.chunks[record.chunk as usize].groups;
        groups[groups.partition_point(|group| group.span.end < record.end)].span
    }

    pub(crate) fn body(&self, record: &Record) -> &[u8] {
        let (at, len) = (record.at as usize, (record.len & !MAKES) as usize);
        &self.chunks[record.chunk as usize].payload[at..at + len]
    }

    /// Pages that the log changes.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.records.len()
    }
}

/// Reads the log from `from` to its end and keeps it in memory.
///
/// # Errors
/// [`RedoError`]: damage, missing files, device errors; also [`RedoError::Damaged`] for groups that
/// cannot be decoded.
pub fn collect(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
    progress: &mut dyn FnMut(Progress),
) -> Result<Collected, RedoError> {
    let mut tell = |done: u64| progress(Progress { phase: Phase::Scan, done, of: 0 });
    let options = ScanOptions { read_ahead: true, progress: Some(&mut tell) };
    // Checksums and de-framing here, decoding in a thread beside: each takes about as long.
    let (to_decoder, chunks_read) = std::sync::mpsc::channel::<Chunk>();
    let (end, decoded) = std::thread::scope(|scope| {
        let decoder = scope.spawn(move || {
            let mut decoder = Decoder::default();
            for chunk in chunks_read {
                if !decoder.take_chunk(chunk) {
                    break;
                }
            }
            decoder
        });
        let end = scan_chunks(volume, db, from, options, |chunk| match to_decoder.send(chunk) {
            Ok(()) => ControlFlow::Continue(()),
            // The decoder has found something that it cannot read.
            Err(_) => ControlFlow::Break(()),
        });
        drop(to_decoder);
        (end, decoder.join())
    });
    let end = end?;
    let Ok(Decoder { chunks, mut records, analysis, bad }) = decoded else {
        // A panic aborts the process before anybody could see this.
        return Err(RedoError::Halted { cause: "the decoding thread has gone".into() });
    };
    if let Some((lsn, what)) = bad {
        return Err(RedoError::Damaged {
            file: format!("the log at position {lsn}"),
            offset: 0,
            what,
            advice: "it was written by another version, or by a faulty program; restore a backup",
        });
    }
    sort_by_page(&mut records);
    Ok(Collected { chunks, records, analysis, end })
}

#[derive(Default)]
struct Decoder {
    chunks: Vec<Chunk>,
    records: Vec<Record>,
    analysis: Analysis,
    bad: Option<(Lsn, String)>,
}

impl Decoder {
    fn take_chunk(&mut self, chunk: Chunk) -> bool {
        for group in &chunk.groups {
            let body = &chunk.payload[group.body.clone()];
            if let Err(e) = self.take_group(body, group.body.start, group.span) {
                self.bad = Some((group.span.start, e));
                return false;
            }
        }
        self.chunks.push(chunk);
        true
    }

    fn take_group(&mut self, body: &[u8], at: usize, span: Span) -> Result<(), String> {
        let (header, ops) = decode(body).map_err(|e| e.to_string())?;
        self.analysis.begin_group(&header, span.start);
        let mine = self.records.len();
        for op in ops {
            let op = op.map_err(|e| e.to_string())?;
            if op.is_note() {
                self.analysis.note(&header, span.start, &op);
            }
            let Some(page) = op.page() else { continue };
            let known = self.records[mine..].iter().position(|r| r.page == page.0);
            let index = known.map_or(self.records.len(), |i| mine + i);
            if known.is_none() {
                let (chunk, at) = (self.chunks.len() as u32, at as u32);
                let len = body.len() as u32;
                self.records.push(Record { end: span.end, page: page.0, chunk, at, len });
            }
            if matches!(op, Op::Init { .. }) {
                self.records[index].len |= MAKES;
            }
        }
        self.analysis.end_group(&header);
        Ok(())
    }
}

/// A counting sort: keeps the order within a page.
fn sort_by_page(records: &mut Vec<Record>) {
    let Some(most) = records.iter().map(|r| r.page).max() else { return };
    if most as usize > records.len().saturating_mul(16) + (1 << 20) {
        // Few changes spread over a huge file: counting every page would cost more.
        records.sort_by_key(|r| r.page);
        return;
    }
    let mut starts = vec![0u32; most as usize + 2];
    for record in records.iter() {
        starts[record.page as usize + 1] += 1;
    }
    for page in 1..starts.len() {
        starts[page] += starts[page - 1];
    }
    let mut sorted = records.clone();
    for record in records.iter() {
        let at = &mut starts[record.page as usize];
        sorted[*at as usize] = *record;
        *at += 1;
    }
    *records = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_keeps_the_order_within_a_page() {
        let mut random = fastrand::Rng::with_seed(5);
        for most in [10u32, 3_000_000] {
            let mut records: Vec<Record> = (0..5_000)
                .map(|at| Record { end: Lsn(1), page: random.u32(0..most), chunk: 0, at, len: 1 })
                .collect();
            let mut expected = records.clone();
            expected.sort_by_key(|r| r.page);
            sort_by_page(&mut records);
            let pairs = |r: &[Record]| r.iter().map(|r| (r.page, r.at)).collect::<Vec<_>>();
            assert_eq!(pairs(&records), pairs(&expected));
        }
    }
}
