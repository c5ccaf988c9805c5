//! What the log has: changes for pages, sorted by page, and which transactions were under way. From
//! the checkpoint on where that is known; behind damage in the middle from the next place on at
//! which a group is known to begin.
use std::ops::ControlFlow;

use weir::Sorter;
use weir_base::{Lsn, PageNo, TxnId};
use weir_change::{Header, Op, decode};
use weir_recovery::Analysis;
use weir_redo::{FileSurvey, RedoError, Span, scan_as_far_as_it_goes, survey};

use crate::error::SalvageError;
use crate::pages::boundaries;
use crate::report::Phase;
use crate::source::Source;

/// Behind so much damage in the log nothing more of it is read.
const GAPS_MAX: usize = 16;
/// So many places are tried behind damage, as group starts.
const PLACES_TRIED: usize = 64;
/// Before the first payload byte of a block.
const BLOCK_HEADER: u64 = 12;

/// What was read of the log.
pub(crate) struct LogRead {
    /// Changes by page and position.
    pub(crate) changes: Sorter,
    pub(crate) analysis: Analysis,
    /// Where it ends, if any of it was read.
    pub(crate) end: Option<Lsn>,
    /// All that pages may lack has been read.
    pub(crate) is_whole: bool,
    /// It is known that reading began where it had to.
    pub(crate) is_begin_sure: bool,
    /// Positions that were not read, from and to.
    pub(crate) gaps: Vec<(Lsn, Lsn)>,
}

/// Reads what there is.
pub(crate) fn read(
    source: &mut Source,
    changes: Sorter,
    progress: &mut dyn FnMut(Phase, u64, u64),
) -> Result<LogRead, SalvageError> {
    let files = leave_out_unreadable(source);
    let analysis = Analysis::default();
    let (end, is_whole, is_begin_sure, gaps) = (None, false, true, Vec::new());
    let log = LogRead { changes, analysis, end, is_whole, is_begin_sure, gaps };
    let mut reading = Reading { source, log, failed: None };
    let Some(from) = reading.start(&files, progress) else {
        let is_closed = reading.source.control.is_some_and(|control| control.clean);
        reading.log.is_whole = is_closed;
        reading.remark(match is_closed {
            true => "there is no log that can be read; the database was closed in order, so that \
                     its pages have all"
                .into(),
            false => "there is no log that can be read: what pages did not have is lost".into(),
        });
        return Ok(reading.log);
    };
    reading.run(from, progress)?;
    Ok(reading.log)
}

/// Files of the log without a header that can be believed would keep the others from being read.
fn leave_out_unreadable(source: &mut Source) -> Vec<FileSurvey> {
    let files = match survey(&*source.volume, Some(source.db)) {
        Ok(files) => files,
        Err(e) => {
            source.remarks.push(format!("the log cannot be looked at: {e}"));
            return Vec::new();
        }
    };
    for file in &files {
        if let Some(problem) = &file.problem {
            source.remarks.push(format!("'{}': {problem}", file.file));
            if file.header.is_none() {
                // In the layer above the files only.
                let _ = source.volume.remove(&file.file);
            }
        }
    }
    files.into_iter().filter(|file| file.header.is_some()).collect()
}

struct Reading<'s> {
    source: &'s mut Source,
    log: LogRead,
    failed: Option<SalvageError>,
}

impl Reading<'_> {
    fn remark(&mut self, text: String) {
        self.source.remarks.push(text);
    }

    /// Where reading begins. Without a checkpoint: with the first group that is known to begin in
    /// the oldest file from which the log goes on to its end, since a file is not used again before
    /// the checkpoint has passed it.
    fn start(
        &mut self,
        files: &[FileSurvey],
        progress: &mut dyn FnMut(Phase, u64, u64),
    ) -> Option<Lsn> {
        if let Some(control) = self.source.control {
            return (!files.is_empty()).then_some(control.checkpoint);
        }
        let mut headers: Vec<_> = files.iter().filter_map(|file| file.header).collect();
        headers.sort_by_key(|header| header.sequence);
        let mut oldest = headers.pop()?;
        while let Some(before) = headers.pop()
            && before.sequence + 1 == oldest.sequence
            && before.start.0 + before.bytes == oldest.start.0
        {
            oldest = before;
        }
        let first = oldest.start.0 + BLOCK_HEADER;
        if oldest.sequence == 1 {
            return Some(Lsn(first));
        }
        self.log.is_begin_sure = false;
        let store = &*self.source.store;
        let tell = &mut |done, of| progress(Phase::Log, done, of);
        let known = boundaries(store, Lsn(first), 1, tell).first().copied();
        let text = match known {
            Some(lsn) => format!(
                "the checkpoint is not known: the log is applied from position {lsn} on, the first \
                 at which a group is known to begin; whether pages lack changes from before is not \
                 known"
            ),
            None => "the checkpoint is not known, nor where a group of the log begins".into(),
        };
        self.remark(text);
        known
    }

    fn run(
        &mut self,
        from: Lsn,
        progress: &mut dyn FnMut(Phase, u64, u64),
    ) -> Result<(), SalvageError> {
        let (mut end, mut read) = self.scan(from, progress)?;
        while let Err(e) = &read
            && self.log.gaps.len() < GAPS_MAX
        {
            let text = format!("the log can be read up to position {end} only: {e}");
            self.remark(text);
            let Some((next, came, then)) = self.go_on(end, progress)? else {
                self.log.gaps.push((end, Lsn(u64::MAX)));
                break;
            };
            self.log.gaps.push((end, next));
            self.remark(format!("it goes on at position {next}"));
            (end, read) = (came, then);
        }
        self.log.end = Some(end);
        let knows = self.source.control.map_or(Lsn::ZERO, |c| c.checkpoint.max(c.synced));
        let is_short = read.is_ok() && end < knows;
        if is_short {
            self.remark(format!(
                "the log ends at position {end}, but was durable up to {knows}: it was cut short, \
                 or is older"
            ));
        }
        // After an orderly closing nothing of it is needed.
        let is_closed = self.source.control.is_some_and(|control| control.clean);
        self.log.is_whole = (self.log.gaps.is_empty() && !is_short) || is_closed;
        Ok(())
    }

    /// The next place behind `end` from which groups can be read.
    #[allow(clippy::type_complexity)]
    fn go_on(
        &mut self,
        end: Lsn,
        progress: &mut dyn FnMut(Phase, u64, u64),
    ) -> Result<Option<(Lsn, Lsn, Result<(), RedoError>)>, SalvageError> {
        let tell = &mut |done, of| progress(Phase::Log, done, of);
        let places = boundaries(&*self.source.store, Lsn(end.0 + 1), PLACES_TRIED, tell);
        for place in places {
            let (came, read) = self.scan(place, progress)?;
            if came > place {
                return Ok(Some((place, came, read)));
            }
        }
        Ok(None)
    }

    /// Reads groups from `from` on; how far it came, and what it met there.
    fn scan(
        &mut self,
        from: Lsn,
        progress: &mut dyn FnMut(Phase, u64, u64),
    ) -> Result<(Lsn, Result<(), RedoError>), SalvageError> {
        let volume = self.source.volume.clone();
        let mut last = from;
        let mut bad = None;
        let (_, read) = scan_as_far_as_it_goes(&*volume, self.source.db, from, |span, body| {
            match self.take(span, body) {
                Ok(true) => {
                    last = span.end;
                    progress(Phase::Log, span.end.bytes_since(from), 0);
                    ControlFlow::Continue(())
                }
                Ok(false) => {
                    bad = Some(span.start);
                    ControlFlow::Break(())
                }
                Err(e) => {
                    self.failed = Some(e);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        let unreadable = |lsn| RedoError::Missing { lsn, what: "a group there cannot be read" };
        Ok((last, bad.map_or(read, |at| Err(unreadable(at)))))
    }

    /// `false`: the group cannot be read.
    fn take(&mut self, span: Span, body: &[u8]) -> Result<bool, SalvageError> {
        let Ok((header, ops)) = decode(body) else { return Ok(false) };
        let Ok(ops) = ops.collect::<Result<Vec<Op<'_>>, _>>() else { return Ok(false) };
        for (index, op) in (0u32..).zip(&ops) {
            if let Some(page) = op.page() {
                let (key, value) = encode(page, span.end, index, header.writer(), op);
                self.log.changes.push(&key, &value)?;
            }
        }
        Ok(self.log.analysis.take(span.start, body).is_ok())
    }
}

/// A change as an entry to sort: page, position and place in its group, then a group's body of it.
fn encode(page: PageNo, end: Lsn, index: u32, writer: TxnId, op: &Op<'_>) -> ([u8; 16], Vec<u8>) {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&page.0.to_be_bytes());
    key[4..12].copy_from_slice(&end.0.to_be_bytes());
    key[12..].copy_from_slice(&index.to_be_bytes());
    let txn = (writer != TxnId::NONE).then_some(writer);
    let mut body = Vec::new();
    Header { txn, ..Header::default() }.encode(&mut body);
    op.encode(&mut body);
    (key, body)
}

/// Page and position of an entry of [`LogRead::changes`].
pub(crate) fn place_of(key: &[u8]) -> Option<(PageNo, Lsn)> {
    let (page, rest) = key.split_first_chunk()?;
    let end = rest.first_chunk()?;
    Some((PageNo(u32::from_be_bytes(*page)), Lsn(u64::from_be_bytes(*end))))
}
