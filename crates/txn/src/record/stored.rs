//! Undo that neither memory nor log holds: what a large transaction must remember is moved, a few
//! megabytes at a time, into chains of overflow pages, as the very notes that the log would carry.
//! There the pool, the log and the doublewrite area look after it as after any long value, once;
//! the log names each chain in a note of its own, which is all that has to be logged again.
//!
//! A transaction's notes of undo are a stack: the segments stored, oldest first, and above them
//! what memory still holds. Rolling back goes down through both. What is left to be done after the
//! commit lies in the segments too, never above the undo of the change that it belongs to.
use std::sync::Arc;

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_btree::{ChainHead, Env, TreeError};
use weir_change::{Header, Op, Stored, decode};

use crate::record::entry::UndoEntry;
use crate::record::purge_task::{NOTE_BYTES, PurgeTask};

/// A segment's notes take about so many bytes: few enough that its pages are freed in one group,
/// and that a reader that needs one row of it need not read megabytes.
const SEGMENT_BYTES: usize = 128 << 10;

/// The segments that a transaction has stored and not rolled back, oldest first.
#[derive(Default)]
pub(crate) struct UndoSegments {
    all: Vec<Stored>,
    entries: usize,
    tasks: usize,
}

impl UndoSegments {
    pub(crate) fn push(&mut self, segment: Stored) {
        self.entries += segment.entries as usize;
        self.tasks += segment.tasks as usize;
        self.all.push(segment);
    }

    /// Notes of undo in all of them.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Notes of work for after the commit in all of them.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes of log that naming all of them takes.
    pub(crate) fn named_bytes(&self) -> u64 {
        self.all.len() as u64 * NOTE_BYTES
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stored> {
        self.all.iter()
    }

    pub(crate) fn last(&self) -> Option<Stored> {
        self.all.last().copied()
    }

    /// The newest note of undo has been rolled back.
    pub(crate) fn entry_undone(&mut self) {
        if let Some(segment) = self.all.last_mut() {
            segment.entries -= 1;
            self.entries -= 1;
        }
    }

    /// The newest segment, of which nothing counts any more, has been freed.
    pub(crate) fn pop(&mut self) {
        if let Some(segment) = self.all.pop() {
            self.entries -= segment.entries as usize;
            self.tasks -= segment.tasks as usize;
        }
    }

    /// Forgets work for after the commit behind the first `count`.
    pub(crate) fn truncate_tasks(&mut self, count: usize) {
        for segment in self.all.iter_mut().rev() {
            let less = self.tasks.saturating_sub(count).min(segment.tasks as usize);
            segment.tasks -= less as u32;
            self.tasks -= less;
        }
    }

    /// As what the commit leaves to do.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = PurgeTask> {
        std::mem::take(self).all.into_iter().map(PurgeTask::Stored)
    }
}

/// A segment in the making: its bytes, and what to know of it.
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: u32,
    pub(crate) tasks: u32,
    /// The greatest number of a change in it; 0 when it holds none.
    pub(crate) last_seq: u32,
}

/// What is left to do after commits, as segments to store.
pub(crate) fn bodies_of(tasks: &[PurgeTask]) -> Vec<Body> {
    let mut bodies = vec![Body::new()];
    tasks.iter().for_each(|task| add(&mut bodies, &Op::Purge(task.to_purge())).tasks += 1);
    bodies
}

/// Adds a note to the last of the segments, or to a new one.
pub(crate) fn add<'b>(bodies: &'b mut Vec<Body>, op: &Op<'_>) -> &'b mut Body {
    if bodies.last().is_none_or(|body| body.bytes.len() >= SEGMENT_BYTES) {
        bodies.push(Body::new());
    }
    let at = bodies.len() - 1;
    let body = &mut bodies[at];
    op.encode(&mut body.bytes);
    body
}

impl Body {
    fn new() -> Self {
        let mut bytes = Vec::new();
        Header::default().encode(&mut bytes);
        Body { bytes, entries: 0, tasks: 0, last_seq: 0 }
    }
}

/// A segment as it was read.
pub(crate) struct UndoSegment {
    /// Notes of undo that count, oldest first.
    pub(crate) undo: Vec<UndoEntry>,
    /// Work for after the commit that counts, in order.
    pub(crate) tasks: Vec<PurgeTask>,
    /// The numbers of the changes among `undo`, ascending, and where they are.
    by_seq: Vec<(u32, usize)>,
}

impl UndoSegment {
    /// What rolls change `seq` back.
    pub(crate) fn of(&self, seq: u32) -> Option<&UndoEntry> {
        let at = self.by_seq.binary_search_by_key(&seq, |&(seq, _)| seq).ok()?;
        self.undo.get(self.by_seq[at].1)
    }
}

/// Reads a segment; `None` when its pages have been freed.
///
/// # Errors
/// [`TreeError`] when they are damaged or cannot be read.
pub(crate) fn read(env: &Env, stored: &Stored) -> Result<Option<UndoSegment>, TreeError> {
    let (chains, mut bytes) = (env.chains(), Vec::new());
    if !chains.fetch(&chain_of(stored), &mut bytes)? {
        return Ok(None);
    }
    let damaged = || chains.damaged(stored.first, "stored undo cannot be read");
    let (_, ops) = decode(&bytes).map_err(|_| damaged())?;
    let mut segment = UndoSegment { undo: Vec::new(), tasks: Vec::new(), by_seq: Vec::new() };
    for op in ops {
        match op.map_err(|_| damaged())? {
            Op::Purge(purge) => segment.tasks.push(PurgeTask::from_purge(&purge)),
            op => segment.undo.push(UndoEntry::from_op(&op).ok_or_else(damaged)?),
        }
    }
    let enough = segment.undo.len() >= stored.entries as usize;
    if !enough || segment.tasks.len() < stored.tasks as usize {
        return Err(damaged());
    }
    segment.undo.truncate(stored.entries as usize);
    segment.tasks.truncate(stored.tasks as usize);
    let numbered = segment.undo.iter().enumerate();
    segment.by_seq = numbered.filter_map(|(at, entry)| Some((entry.seq()?, at))).collect();
    Ok(Some(segment))
}

/// Where readers find segments: those read last stay in memory. One for all transactions, so that
/// many large ones take no more memory than one; and several segments, so that readers at different
/// places do not read a whole segment for each row.
pub(crate) struct UndoCache {
    env: Arc<Env>,
    /// By their marks, the one used last behind all others.
    segments: Mutex<rank::UndoCache, Vec<(u64, Arc<UndoSegment>)>>,
}

/// With [`SEGMENT_BYTES`], 2 MiB of notes.
const CACHE_SEGMENTS: usize = 16;

impl UndoCache {
    pub(crate) fn new(env: Arc<Env>) -> Self {
        UndoCache { env, segments: Mutex::default() }
    }

    /// As [`read`].
    pub(crate) fn get(&self, stored: &Stored) -> Result<Option<Arc<UndoSegment>>, TreeError> {
        if let Some(segment) = self.find(stored.mark) {
            return Ok(Some(segment));
        }
        // No thread waits while the device is asked.
        let segment = read(&self.env, stored)?.map(Arc::new);
        if let Some(segment) = &segment {
            drop(self.keep(stored.mark, segment.clone()));
        }
        Ok(segment)
    }

    fn find(&self, mark: u64) -> Option<Arc<UndoSegment>> {
        let mut segments = self.segments.lock();
        let at = segments.iter().position(|(known, _)| *known == mark)?;
        segments[at..].rotate_left(1);
        segments.last().map(|(_, segment)| segment.clone())
    }

    /// Gives one that has no place any more: letting it go takes longer than others should wait.
    fn keep(&self, mark: u64, segment: Arc<UndoSegment>) -> Option<(u64, Arc<UndoSegment>)> {
        let mut segments = self.segments.lock();
        let same = segments.iter().position(|(known, _)| *known == mark);
        let gone = same.or((segments.len() >= CACHE_SEGMENTS).then_some(0));
        let gone = gone.map(|at| segments.remove(at));
        segments.push((mark, segment));
        gone
    }
}

/// What to say when a segment is gone that should be there.
pub(crate) fn missing(env: &Env, stored: &Stored) -> TreeError {
    env.chains().damaged(stored.first, "the undo that a transaction has stored here is gone")
}

/// The head of a segment's chain.
pub(crate) fn chain_of(stored: &Stored) -> ChainHead {
    ChainHead { len: u64::from(stored.len), first: stored.first, mark: stored.mark }
}

/// Frees the pages of a segment of which all has been rolled back, and says so in the same group.
pub(crate) fn free(env: &Env, stored: &Stored, header: Header) -> Result<(), TreeError> {
    env.chains().free_short(stored.first, stored.mark, header, &Op::Undone { entries: 1 })
}
