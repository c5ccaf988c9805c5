//! The scan's harvest: the log's payload in memory, and which page each group changes.
use std::ops::ControlFlow;

use weir_base::{DbId, Lsn};
use weir_change::{Op, decode};
use weir_device::Volume;
use weir_redo::{Chunk, RedoError, ScanEnd, ScanOptions, Span, scan_chunks};

use crate::analysis::Analysis;
use crate::{Phase, Progress};

/// A group's change of one page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) page: u32,
    pub(crate) chunk: u32,
    pub(crate) group: u32,
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
        self.chunks[record.chunk as usize].groups[record.group as usize].span
    }

    pub(crate) fn body(&self, record: &Record) -> &[u8] {
        let chunk = &self.chunks[record.chunk as usize];
        &chunk.payload[chunk.groups[record.group as usize].body.clone()]
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
    let mut chunks = Vec::new();
    let mut records = Vec::new();
    let mut analysis = Analysis::default();
    let mut bad: Option<(Lsn, String)> = None;
    let mut tell = |done: u64| progress(Progress { phase: Phase::Scan, done, of: 0 });
    let options = ScanOptions { read_ahead: true, progress: Some(&mut tell) };
    let end = scan_chunks(volume, db, from, options, |chunk| {
        let number = chunks.len() as u32;
        for (group, (span, body)) in chunk.bodies().enumerate() {
            if let Err(e) =
                take_group(body, span, number, group as u32, &mut analysis, &mut records)
            {
                bad = Some((span.start, e));
                return ControlFlow::Break(());
            }
        }
        chunks.push(chunk);
        ControlFlow::Continue(())
    })?;
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

fn take_group(
    body: &[u8],
    span: Span,
    chunk: u32,
    group: u32,
    analysis: &mut Analysis,
    records: &mut Vec<Record>,
) -> Result<(), String> {
    let (header, ops) = decode(body).map_err(|e| e.to_string())?;
    analysis.begin_group(&header, span.start);
    let mine = records.len();
    for op in ops {
        let op = op.map_err(|e| e.to_string())?;
        match op.page() {
            Some(page) => {
                if !records[mine..].iter().any(|r| r.page == page.0) {
                    records.push(Record { page: page.0, chunk, group });
                }
                if matches!(op, Op::Init { .. }) {
                    analysis.note(&header, span.start, &op);
                }
            }
            None => analysis.note(&header, span.start, &op),
        }
    }
    analysis.end_group(&header);
    Ok(())
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
    let mut sorted = vec![Record { page: 0, chunk: 0, group: 0 }; records.len()];
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
                .map(|group| Record { page: random.u32(0..most), chunk: 0, group })
                .collect();
            let mut expected = records.clone();
            expected.sort_by_key(|r| r.page);
            sort_by_page(&mut records);
            let pairs = |r: &[Record]| r.iter().map(|r| (r.page, r.group)).collect::<Vec<_>>();
            assert_eq!(pairs(&records), pairs(&expected));
        }
    }
}
