//! The scan's harvest: the log's payload in memory, and which pages each group changes. Where it is
//! known what a stretch holds, it is not read.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use weir_base::{DbId, Lsn, TxnId};
use weir_change::{DecodeError, decode};
use weir_device::Volume;
use weir_redo::{
    Chunk, Reader, RedoError, ScanEnd, ScanOptions, Span, chunks_as_far_as_they_go, scan_chunks,
};

use crate::analysis::Analysis;
use crate::chains::{Chains, Place};
use crate::contents::{Stretch, followed};
use crate::indexer::Indexer;
use crate::progress::{Phase, Progress};
use crate::roll::{Roll, Said};
use crate::stretches::Stretches;
use crate::unreadable::unreadable;

/// What was read of the log.
pub struct Collected {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) chains: Chains,
    /// What was not read.
    pub(crate) stretches: Option<Stretches>,
    /// The transactions under way.
    pub analysis: Analysis,
    /// Where the log ends.
    pub end: ScanEnd,
    /// To go on following the log.
    pub indexer: Indexer,
    /// Bytes of log that were read.
    pub read_bytes: u64,
}

/// What reading came to.
pub enum Read {
    /// All is in memory that must be.
    InMemory(Box<Collected>),
    /// There is more than that; see [`crate::Windows`].
    TooLarge,
}

/// Reads the log from `from` to its end and keeps it in memory, but for stretches of which
/// `contents` say what they hold. `held_bytes`: how much of the log there may be in memory, all
/// stretches included, as they are read in the end.
///
/// # Errors
/// [`RedoError`]: damage, missing files, device errors; also [`RedoError::Damaged`] for groups that
/// cannot be decoded.
pub fn collect(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
    contents: Vec<Stretch>,
    held_bytes: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Read, RedoError> {
    let mut tell = |done: u64| progress(Progress { phase: Phase::Scan, done, of: 0 });
    let until = from.advanced(held_bytes);
    let contents = followed(contents, from);
    if contents.last().is_some_and(|last| last.end > until) {
        return Ok(Read::TooLarge);
    }
    if !contents.is_empty()
        && let Ok(read) = Begun::with(volume, db, from, &contents)
            .and_then(|begun| begun.read_to_end(volume, db, (from, until), &mut tell))
    {
        return Ok(read);
    }
    // Also where the contents were no good: what is wrong with the log, only the whole of it tells.
    Begun::at(from).read_to_end(volume, db, (from, until), &mut tell)
}

/// Reads a log that may be damaged from `from` as far as it can be read, and keeps it in memory:
/// what is not the whole log, for a database that is only looked at. Also returns what stopped it,
/// if anything did.
pub fn collect_to_damage(
    volume: &dyn Volume,
    db: DbId,
    from: Lsn,
) -> (Collected, Option<RedoError>) {
    let mut decoder = Decoder::default();
    let (end, read) = chunks_as_far_as_they_go(volume, db, from, |chunk| {
        if decoder.bad.is_none() {
            decoder.take_chunk(chunk);
        }
    });
    let Decoder { chunks, chains, roll, bad } = decoder;
    let (end, mut stopped) = match bad {
        // The groups before it are taken in.
        Some((lsn, what)) => (lsn, Some(unreadable(lsn, &what))),
        None => (end, read.err()),
    };
    let analysis = analyse(roll, &chunks, None).unwrap_or_else(|e| {
        stopped.get_or_insert(e);
        Analysis::default()
    });
    let mut collected = Collected::nothing(from);
    collected.end = ScanEnd::stopped(from, end);
    collected.read_bytes = end.bytes_since(from);
    (Collected { chunks, chains, analysis, ..collected }, stopped)
}

impl Collected {
    /// Nothing of a log that ends, or may, at `at`.
    #[must_use]
    pub fn nothing(at: Lsn) -> Collected {
        Collected {
            chunks: Vec::new(),
            chains: Chains::default(),
            stretches: None,
            analysis: Analysis::default(),
            end: ScanEnd::stopped(at, at),
            indexer: Indexer::resume(at, at, 0, &[], Default::default()),
            read_bytes: 0,
        }
    }
}

/// What is known before the end of the log is read.
struct Begun {
    decoder: Decoder,
    stretches: Option<Stretches>,
    indexer: Indexer,
    /// Where to read on.
    at: Lsn,
    read_bytes: u64,
}

impl Begun {
    /// Nothing is.
    fn at(from: Lsn) -> Begun {
        let indexer = Indexer::resume(from, from, 0, &[], Default::default());
        Begun { decoder: Decoder::default(), stretches: None, indexer, at: from, read_bytes: 0 }
    }

    /// What the contents say, and what lies before the first of them.
    fn with(
        volume: &dyn Volume,
        db: DbId,
        from: Lsn,
        contents: &[Stretch],
    ) -> Result<Begun, RedoError> {
        let (Some(first), Some(last)) = (contents.first(), contents.last()) else {
            return Ok(Begun::at(from));
        };
        let reader = Reader::open(volume, db, from)?;
        let mut decoder = Decoder::default();
        let head_end = reader.chunks(from, first.start, |chunk| {
            // What it cannot decode it keeps.
            decoder.take_chunk(std::mem::take(chunk));
            Ok(())
        })?;
        if head_end != first.start {
            return Err(unreadable(from, "what was written down of it begins inside a group"));
        }
        for (number, stretch) in (0..).zip(contents) {
            decoder.take_stretch(stretch, number);
        }
        let stretches = Stretches::new(reader, contents);
        // Each carries on the digest of the one before: if the last one is of this log, all are.
        stretches.read(contents.len() - 1)?;
        let (next_txn, next_tree) = (decoder.roll.next_txn, decoder.roll.next_tree);
        let open = decoder.roll.all();
        let indexer = Indexer::resume(last.end, from, last.digest, &open, (next_txn, next_tree));
        let read_bytes = first.start.bytes_since(from) + last.end.bytes_since(last.start);
        Ok(Begun { decoder, stretches: Some(stretches), indexer, at: last.end, read_bytes })
    }

    fn read_to_end(
        self,
        volume: &dyn Volume,
        db: DbId,
        (from, until): (Lsn, Lsn),
        tell: &mut dyn FnMut(u64),
    ) -> Result<Read, RedoError> {
        let Begun { decoder, stretches, indexer, at, read_bytes } = self;
        let (end, decoder) = decode_to_end(volume, db, (at, until), decoder, tell);
        let mut end = end?;
        let Decoder { chunks, chains, roll, bad } = decoder?;
        if !end.complete && bad.is_none() {
            return Ok(Read::TooLarge);
        }
        let analysis = match bad {
            None => analyse(roll, &chunks, stretches.as_ref()),
            Some((lsn, what)) => Err(unreadable(lsn, &what)),
        }?;
        let read_bytes = read_bytes + end.end.bytes_since(at);
        // The log is needed from there on.
        end.from = from;
        let collected = Collected { chunks, chains, stretches, analysis, end, indexer, read_bytes };
        Ok(Read::InMemory(Box::new(collected)))
    }
}

/// Scans the log from `at` on, but not far behind `until`.
fn decode_to_end(
    volume: &dyn Volume,
    db: DbId,
    (at, until): (Lsn, Lsn),
    mut decoder: Decoder,
    tell: &mut dyn FnMut(u64),
) -> (Result<ScanEnd, RedoError>, Result<Decoder, RedoError>) {
    let options = ScanOptions { read_ahead: true, progress: Some(tell) };
    // Checksums and de-framing here, decoding in a thread beside: each takes about as long.
    let (to_decoder, chunks_read) = std::sync::mpsc::channel::<Chunk>();
    let (end, decoded) = std::thread::scope(|scope| {
        let decoding = scope.spawn(move || {
            for chunk in chunks_read {
                if !decoder.take_chunk(chunk) {
                    break;
                }
            }
            decoder
        });
        let end = scan_chunks(volume, db, at, options, |chunk| {
            let is_too_much = chunk.lsn_at(chunk.payload().len()) > until;
            // The decoder takes no more when it has found something that it cannot read.
            match to_decoder.send(chunk) {
                Ok(()) if !is_too_much => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        });
        drop(to_decoder);
        (end, decoding.join())
    });
    // A panic aborts the process before any thread could see this.
    let gone = |_| RedoError::Halted { cause: "the decoding thread has gone".into() };
    (end, decoded.map_err(gone))
}

/// So many stretches are read for those without an end in any case.
const STRETCHES_FEW: usize = 8;

/// What the transactions without an end have left.
fn analyse(
    roll: Roll,
    chunks: &[Chunk],
    stretches: Option<&Stretches>,
) -> Result<Analysis, RedoError> {
    let mut analysis = Analysis::default();
    (analysis.next_txn, analysis.next_tree) = (roll.next_txn, roll.next_tree);
    // Each one's groups lie in the head, then in stretches, then in the tail. Each stretch is gone
    // through once, for all transactions of which it says something.
    let mut in_stretches: BTreeMap<usize, BTreeSet<TxnId>> = BTreeMap::new();
    let mut behind: Vec<Place> = Vec::new();
    let mut last = None;
    let mut is_behind = false;
    for (txn, place) in roll.into_places() {
        is_behind &= last.replace(txn) == Some(txn);
        match place.as_stretch() {
            Some((number, _)) => {
                in_stretches.entry(number).or_default().insert(txn);
                is_behind = true;
            }
            None if is_behind => behind.push(place),
            None => analysis.take_place(place, chunks)?,
        }
    }
    let Some(stretches) = stretches else { return Ok(analysis) };
    if in_stretches.len() > STRETCHES_FEW.max(stretches.len() / 4) {
        // All of them read at once, in order and with several threads, is quicker.
        return Err(unreadable(Lsn::ZERO, "most of it is wanted"));
    }
    for (number, txns) in in_stretches {
        for (span, body) in stretches.read(number)?.chunks.iter().flat_map(Chunk::bodies) {
            let bad = |e: DecodeError| unreadable(span.start, &e.to_string());
            let (header, _) = decode(body).map_err(bad)?;
            if header.txn.is_some_and(|txn| txns.contains(&txn)) {
                analysis.take(span.start, body).map_err(bad)?;
            }
        }
    }
    behind.into_iter().try_for_each(|place| analysis.take_place(place, chunks))?;
    Ok(analysis)
}

impl Analysis {
    fn take_place(&mut self, place: Place, chunks: &[Chunk]) -> Result<(), RedoError> {
        for (span, body) in place.groups(chunks) {
            self.take(span.start, body).map_err(|e| unreadable(span.start, &e.to_string()))?;
        }
        Ok(())
    }
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
                break;
            }
        }
        // Also with a group that is none: chains name those before it.
        self.chunks.push(chunk);
        self.bad.is_none()
    }

    fn take_group(&mut self, body: &[u8], place: Place, span: Span) -> Result<(), DecodeError> {
        let (header, ops) = decode(body)?;
        let mut said = Said::default();
        for op in ops {
            let op = op?;
            if let Some(page) = op.page() {
                self.chains.add(page, span, place, op.makes_page());
            }
            self.roll.take_op(&op);
            said.take(&op);
        }
        self.roll.take(&header, place, said);
        Ok(())
    }

    /// Takes in a stretch that is not read.
    fn take_stretch(&mut self, stretch: &Stretch, number: u32) {
        let span = Span { start: stretch.start, end: stretch.end };
        for (index, changed) in (0..).zip(&stretch.pages) {
            let place = Place::page_of_stretch(number, index);
            self.chains.add(changed.page, span, place, changed.makes);
        }
        self.roll.take_stretch(stretch, Place::stretch(number));
    }
}
