//! The scan's harvest: the log's payload in memory, and which pages each group changes.
use std::ops::ControlFlow;

use weir_base::{DbId, Lsn};
use weir_change::{DecodeError, Op, decode};
use weir_device::Volume;
use weir_redo::{Chunk, RedoError, ScanEnd, ScanOptions, Span, scan_chunks};

use crate::analysis::Analysis;
use crate::chains::{Chains, Place};
use crate::roll::{Roll, Said};
use crate::{Phase, Progress};

/// What was read of the log.
pub struct Collected {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) chains: Chains,
    /// Who was under way.
    pub analysis: Analysis,
    /// Where the log ends.
    pub end: ScanEnd,
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
    let Ok(Decoder { chunks, chains, roll, bad }) = decoded else {
        // A panic aborts the process before anybody could see this.
        return Err(RedoError::Halted { cause: "the decoding thread has gone".into() });
    };
    let analysis = match bad {
        None => Decoder::analyse(roll, &chunks),
        Some(bad) => Err(bad),
    };
    let analysis = analysis.map_err(|(lsn, what)| RedoError::Damaged {
        file: format!("the log at position {lsn}"),
        offset: 0,
        what,
        advice: "it was written by another version, or by a faulty program; restore a backup",
    })?;
    Ok(Collected { chunks, chains, analysis, end })
}

#[derive(Default)]
struct Decoder {
    chunks: Vec<Chunk>,
    chains: Chains,
    roll: Roll,
    bad: Option<(Lsn, String)>,
}

impl Decoder {
    fn take_chunk(&mut self, chunk: Chunk) -> bool {
        let number = self.chunks.len() as u32;
        for group in chunk.groups() {
            let (at, len) = (group.frame.start as u32, group.frame.len() as u32);
            let place = Place { chunk: number, at, len };
            if let Err(e) = self.take_group(&chunk.payload()[group.body], place, group.span) {
                self.bad = Some((group.span.start, e.to_string()));
                return false;
            }
        }
        self.chunks.push(chunk);
        true
    }

    fn take_group(&mut self, body: &[u8], place: Place, span: Span) -> Result<(), DecodeError> {
        let (header, ops) = decode(body)?;
        let mut said = Said::default();
        for op in ops {
            let op = op?;
            if let Some(page) = op.page() {
                self.chains.add(page, span, place, op.makes_page());
            }
            if let Op::Init { tree, .. } = op {
                self.roll.tree(tree);
            }
            said.take(&op);
        }
        self.roll.take(&header, place, said);
        Ok(())
    }

    /// What the transactions without an end have left.
    fn analyse(roll: Roll, chunks: &[Chunk]) -> Result<Analysis, (Lsn, String)> {
        let mut analysis = Analysis::default();
        (analysis.next_txn, analysis.next_tree) = (roll.next_txn, roll.next_tree);
        for place in roll.into_places() {
            for (span, body) in place.groups(chunks) {
                analysis.take(span.start, body).map_err(|e| (span.start, e.to_string()))?;
            }
        }
        Ok(analysis)
    }
}
