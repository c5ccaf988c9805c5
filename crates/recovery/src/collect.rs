//! The scan's harvest: the log's payload in memory, and which pages each group changes.
use std::ops::ControlFlow;

use weir_base::{DbId, Lsn};
use weir_change::{Op, decode};
use weir_device::Volume;
use weir_redo::{Chunk, RedoError, ScanEnd, ScanOptions, Span, scan_chunks};

use crate::analysis::Analysis;
use crate::chains::{Body, Chains};
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
        for group in chunk.groups() {
            let body = &chunk.payload()[group.body.clone()];
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
        let chunk = self.chunks.len() as u32;
        let place = Body { chunk, at: at as u32, len: body.len() as u32 };
        let mut said = Said::default();
        for op in ops {
            let op = op.map_err(|e| e.to_string())?;
            if let Some(page) = op.page() {
                self.chains.add(page, span, place, op.makes_page());
            }
            if let Op::Init { tree, .. } = op {
                self.roll.tree(tree);
            }
            said.take(&op);
        }
        self.roll.take(&header, span.start, place, said);
        Ok(())
    }

    /// What the transactions without an end have left.
    fn analyse(roll: Roll, chunks: &[Chunk]) -> Result<Analysis, (Lsn, String)> {
        let mut analysis = Analysis::default();
        (analysis.next_txn, analysis.next_tree) = (roll.next_txn, roll.next_tree);
        for (start, body) in roll.into_groups() {
            analysis.take(start, body.of(chunks)).map_err(|e| (start, e.to_string()))?;
        }
        Ok(analysis)
    }
}
