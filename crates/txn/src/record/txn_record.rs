//! What one transaction did: for each row it changed, what was there before. The same list rolls
//! the transaction back, is logged again before the checkpoint passes it, and gives readers older
//! versions.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use smallvec::SmallVec;
use weir_base::lock::Mutex;
use weir_base::{Lsn, TreeId, TxnId, rank};
use weir_btree::{Row, TreeError};
use weir_change::Stored;
use weir_page::{Flags, Stamp};

use crate::record::entry::{Undo, UndoEntry};
use crate::record::purge_task::PurgeTask;
use crate::record::stored::{UndoCache, UndoSegment};
use crate::record::work::Work;

/// About how many things that commits left are done in a step: it is not admitted, and the log's
/// own upkeep, or the thread that happens to commit, waits for it.
pub(crate) const PURGE_TASKS_MAX: usize = 1024;

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Under way.
    Open,
    /// Committed under this number.
    Committed(u64),
    /// Rolled back; no transaction that began after this number can have seen it.
    Aborted(u64),
}

/// A transaction as others see it.
pub struct TxnRecord {
    id: TxnId,
    /// 0 while open; then its number times two, plus one if it was rolled back.
    end: AtomicU64,
    /// What recovery needs of it begins here in the log; 0: it needs nothing. As the registry
    /// knows, here to be asked at each change.
    first: AtomicU64,
    /// It drops a tree, or has stored what it leaves to do.
    heavy: AtomicBool,
    /// So many things were left to do when it committed.
    tasks: AtomicUsize,
    /// What logging it again takes, in bytes of log, as the registry's sums have it.
    pub(crate) weight: AtomicU64,
    /// What it takes now, of what memory holds: changed with `work` held, read without.
    undo_bytes: AtomicU64,
    rows: Mutex<rank::TransactionVersions, Rows>,
    /// Held while its owner writes or something is written in its name.
    pub(crate) work: Mutex<rank::TransactionWork, Work>,
}

/// A change as recovery found it, with the whole row from before.
pub(crate) struct RecoveredChange {
    pub(crate) seq: u32,
    pub(crate) tree: TreeId,
    pub(crate) key: Vec<u8>,
    pub(crate) before: Option<(Flags, Stamp, Vec<u8>)>,
}

#[derive(Default)]
struct Rows {
    /// So many changes are stored, or were.
    stored: u32,
    /// Where, by the greatest number of a change in each.
    segments: Vec<Stored>,
    /// Where they are read.
    undo_cache: Option<Arc<UndoCache>>,
    /// By number, from that behind `stored`.
    /// Most transactions are small, and there may be millions of them: one change of a short row
    /// lies here, where a look at the transaction finds it.
    entries: SmallVec<[Entry; 1]>,
    bytes: SmallVec<[u8; 144]>,
}

struct Entry {
    tree: TreeId,
    at: usize,
    key_len: u32,
    value_len: u32,
    before: BeforeHead,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BeforeHead {
    Absent,
    Row {
        flags: Flags,
        stamp: Stamp,
    },
    /// Moved to the entry of the change that came after (see `prune`).
    Moved,
}

/// What a row was before a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// There was none.
    Absent,
    /// These marks, by this writer; the bytes are where the caller asked for them.
    Row {
        /// Marks.
        flags: Flags,
        /// Its writer.
        stamp: Stamp,
    },
    /// It is to be found with a later change: look at the row again.
    Moved,
    /// Nothing is known under that number: the row did not exist before.
    Unknown,
}

impl TxnRecord {
    pub(crate) fn new(id: TxnId) -> Self {
        TxnRecord {
            id,
            end: AtomicU64::new(0),
            first: AtomicU64::new(0),
            heavy: AtomicBool::new(false),
            tasks: AtomicUsize::new(0),
            weight: AtomicU64::new(0),
            undo_bytes: AtomicU64::new(0),
            rows: Mutex::new(Rows::default()),
            work: Mutex::new(Work::default()),
        }
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// How far it is.
    #[inline]
    #[must_use]
    pub fn state(&self) -> State {
        match self.end.load(Ordering::Acquire) {
            0 => State::Open,
            end if end & 1 == 0 => State::Committed(end >> 1),
            end => State::Aborted(end >> 1),
        }
    }

    /// The number that it ended with; `None` while it is open.
    pub(crate) fn number(&self) -> Option<u64> {
        match self.state() {
            State::Open => None,
            State::Committed(number) | State::Aborted(number) => Some(number),
        }
    }

    pub(crate) fn set_end(&self, number: u64, committed: bool) {
        self.end.store(number << 1 | u64::from(!committed), Ordering::Release);
    }

    /// Whether it drops a tree or has stored what it leaves to do: known when it commits.
    pub(crate) fn is_heavy(&self) -> bool {
        self.heavy.load(Ordering::Relaxed)
    }

    /// Whether completing it may take long: a commit does not do that in passing.
    pub(crate) fn takes_long(&self) -> bool {
        self.is_heavy() || self.tasks() > PURGE_TASKS_MAX
    }

    /// How much its commit left to do.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Relaxed)
    }

    pub(crate) fn set_left(&self, is_heavy: bool, tasks: usize) {
        self.heavy.store(is_heavy, Ordering::Relaxed);
        self.tasks.store(tasks, Ordering::Relaxed);
    }

    /// Where the first record lies that recovery needs of it.
    pub(crate) fn first(&self) -> Option<Lsn> {
        Some(Lsn(self.first.load(Ordering::Acquire))).filter(|first| *first != Lsn::ZERO)
    }

    pub(crate) fn set_first(&self, first: Option<Lsn>) {
        self.first.store(first.unwrap_or(Lsn::ZERO).0, Ordering::Release);
    }

    /// How many rows it has changed, each as often as it did.
    #[must_use]
    pub fn changes(&self) -> u32 {
        self.rows.lock().changes()
    }

    /// The changes up to this one are stored, not in memory.
    pub(crate) fn stored_changes(&self) -> u32 {
        self.rows.lock().stored
    }

    /// All changes up to `stored`, and no others, are in segments, to which these are added, or
    /// have been rolled back.
    pub(crate) fn move_out(&self, undo_cache: &Arc<UndoCache>, segments: &[Stored], stored: u32) {
        let mut rows = self.rows.lock();
        rows.stored = stored;
        rows.segments.extend(segments.iter().filter(|segment| segment.last_seq > 0));
        rows.entries.clear();
        rows.bytes = SmallVec::new();
        rows.undo_cache = Some(undo_cache.clone());
    }

    /// Remembers what a row is before the next change. Called before the change can be seen.
    pub(crate) fn push(&self, tree: TreeId, key: &[u8], row: Option<Row<'_>>) {
        let mut rows = self.rows.lock();
        let at = rows.bytes.len();
        rows.bytes.extend_from_slice(key);
        let (before, value_len) = match row {
            None => (BeforeHead::Absent, 0),
            Some(Row { stamp, flags, value }) => {
                rows.bytes.extend_from_slice(value);
                (BeforeHead::Row { flags, stamp }, value.len() as u32)
            }
        };
        let key_len = key.len() as u32;
        rows.entries.push(Entry { tree, at, key_len, value_len, before });
    }

    /// Remembers changes that recovery has found, by number in ascending order.
    pub(crate) fn rebuild(&self, changes: &[RecoveredChange]) {
        for RecoveredChange { seq, tree, key, before } in changes {
            // What lies between was rolled back before the crash: no transaction has met it.
            self.rows.lock().skip_to(*seq);
            while self.changes() + 1 < *seq {
                self.push(*tree, &[], None);
                self.kill(self.changes());
            }
            let row = before.as_ref().map(|(flags, stamp, value)| Row {
                stamp: *stamp,
                flags: *flags,
                value,
            });
            self.push(*tree, key, row);
        }
    }

    /// Forgets changes behind the first `count`: they were not made.
    pub(crate) fn truncate(&self, count: u32) {
        let mut rows = self.rows.lock();
        let count = count.saturating_sub(rows.stored) as usize;
        if let Some(entry) = rows.entries.get(count) {
            let at = entry.at;
            rows.entries.truncate(count);
            rows.bytes.truncate(at);
        }
    }

    /// What the row was before change `seq`; its bytes go into `value`, emptied first.
    ///
    /// # Errors
    /// [`TreeError`] when it is stored and cannot be read.
    pub fn before(&self, seq: u32, value: &mut Vec<u8>) -> Result<Version, TreeError> {
        let rows = self.rows.lock();
        if (1..=rows.stored).contains(&seq) {
            drop(rows);
            return self.stored_before(seq, value);
        }
        let Some(entry) = rows.get(seq) else { return Ok(Version::Unknown) };
        Ok(match entry.before {
            BeforeHead::Absent => Version::Absent,
            BeforeHead::Moved => Version::Moved,
            BeforeHead::Row { flags, stamp } => {
                value.clear();
                value.extend_from_slice(rows.value(entry));
                Version::Row { flags, stamp }
            }
        })
    }

    fn stored_before(&self, seq: u32, value: &mut Vec<u8>) -> Result<Version, TreeError> {
        let Some(segment) = self.segment_of(seq)? else { return Ok(Version::Moved) };
        Ok(match segment.of(seq) {
            Some(UndoEntry::Row { before: None, .. }) => Version::Absent,
            Some(UndoEntry::Row { before: Some((flags, stamp, bytes)), .. }) => {
                value.clear();
                value.extend_from_slice(bytes);
                Version::Row { flags: *flags, stamp: *stamp }
            }
            // Rolled back before it was stored.
            _ => Version::Moved,
        })
    }

    /// The segment with change `seq`; `None` when it has been freed. Read without the mutex: a
    /// writer takes it under a leaf's latch.
    fn segment_of(&self, seq: u32) -> Result<Option<Arc<UndoSegment>>, TreeError> {
        let (stored, undo_cache) = {
            let rows = self.rows.lock();
            let at = rows.segments.partition_point(|segment| segment.last_seq < seq);
            let (Some(&stored), Some(undo_cache)) = (rows.segments.get(at), &rows.undo_cache)
            else {
                return Ok(None);
            };
            (stored, undo_cache.clone())
        };
        undo_cache.get(&stored)
    }

    /// The row's writer before change `seq`, if there was one.
    ///
    /// # Errors
    /// [`TreeError`] when it is stored and cannot be read.
    pub fn stamp_before(&self, seq: u32) -> Result<Option<Stamp>, TreeError> {
        let rows = self.rows.lock();
        if (1..=rows.stored).contains(&seq) {
            drop(rows);
            let version = self.stored_before(seq, &mut Vec::new())?;
            return Ok(match version {
                Version::Row { stamp, .. } => Some(stamp),
                _ => None,
            });
        }
        Ok(rows.stamp_before(seq))
    }

    /// As [`TxnRecord::stamp_before`], of changes that are in memory.
    pub(crate) fn stamp_in_memory(&self, seq: u32) -> Option<Stamp> {
        self.rows.lock().stamp_before(seq)
    }

    /// Change `seq`, as what rolls it back.
    pub(crate) fn entry(&self, seq: u32) -> Option<UndoEntry> {
        let rows = self.rows.lock();
        let entry = rows.get(seq)?;
        let key = rows.key(entry).to_vec();
        let before = match entry.before {
            BeforeHead::Row { flags, stamp } => Some((flags, stamp, rows.value(entry).to_vec())),
            _ => None,
        };
        Some(UndoEntry::Row { tree: entry.tree, key, seq, before })
    }

    /// One thing to roll back, with what that needs, as recovery would find it.
    pub(crate) fn undo_entry(&self, undo: Undo) -> Option<UndoEntry> {
        match undo {
            Undo::Row(seq) => self.entry(seq),
            Undo::Tree { tree, root } => Some(UndoEntry::Tree { tree, root }),
            Undo::Pages { first, count, notes } => Some(UndoEntry::Pages { first, count, notes }),
        }
    }

    /// Bytes of log that writing its undo and purge tasks again takes, of what memory holds.
    pub(crate) fn undo_bytes(&self) -> u64 {
        self.undo_bytes.load(Ordering::Relaxed)
    }

    /// It takes so much from now on.
    pub(crate) fn set_undo_bytes(&self, bytes: u64) {
        self.undo_bytes.store(bytes, Ordering::Relaxed);
    }

    /// It takes so much more.
    pub(crate) fn add_undo_bytes(&self, more: u64) {
        self.set_undo_bytes(self.undo_bytes() + more);
    }

    /// It takes so much less.
    pub(crate) fn sub_undo_bytes(&self, less: u64) {
        self.set_undo_bytes(self.undo_bytes().saturating_sub(less));
    }

    /// Adds a thing to do after the commit to its work, which the caller holds.
    pub(crate) fn push_task(&self, work: &mut Work, task: PurgeTask) {
        self.add_undo_bytes(task.bytes());
        work.push_task(task);
    }

    /// About how many bytes of log it takes to write change `seq` again.
    pub(crate) fn undo_bytes_of(&self, seq: u32) -> u64 {
        let rows = self.rows.lock();
        rows.get(seq).map_or(0, |entry| 32 + u64::from(entry.key_len + entry.value_len))
    }

    /// Moves what `older` remembers of its change `from` into this one's change `to`: no snapshot
    /// needs the version between. `false`: there is nothing to move.
    pub(crate) fn take_from(&self, to: u32, older: &TxnRecord, from: u32) -> bool {
        let mut moved = Vec::new();
        let head = if std::ptr::eq(self, older) {
            take(&mut self.rows.lock(), from, &mut moved)
        } else {
            take(&mut older.rows.lock(), from, &mut moved)
        };
        let Some(head) = head else { return false };
        let mut rows = self.rows.lock();
        let rows = &mut *rows;
        let Some(at) = rows.index(to) else { return false };
        let Some(entry) = rows.entries.get_mut(at) else { return false };
        // Key and value lie together.
        let key = rows.bytes[entry.at..entry.at + entry.key_len as usize].to_vec();
        let room = (entry.key_len + entry.value_len) as usize;
        if key.len() + moved.len() > room {
            entry.at = rows.bytes.len();
            rows.bytes.resize(entry.at + key.len() + moved.len(), 0);
        }
        entry.value_len = moved.len() as u32;
        entry.before = head;
        rows.bytes[entry.at..entry.at + key.len()].copy_from_slice(&key);
        let value_at = entry.at + key.len();
        rows.bytes[value_at..value_at + moved.len()].copy_from_slice(&moved);
        true
    }

    /// Change `seq` has been rolled back, and its transaction goes on: a reader that has met it
    /// looks at the row again.
    pub(crate) fn kill(&self, seq: u32) {
        take(&mut self.rows.lock(), seq, &mut Vec::new());
    }

    /// Whether all it remembers has been moved to later changes.
    pub(crate) fn is_hollow(&self) -> bool {
        let rows = self.rows.lock();
        rows.segments.is_empty()
            && rows.entries.iter().all(|entry| entry.before == BeforeHead::Moved)
    }

    /// Bytes of memory that its versions take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let rows = self.rows.lock();
        let entries = rows.entries.capacity() * size_of::<Entry>()
            + rows.segments.capacity() * size_of::<Stored>();
        (size_of::<TxnRecord>() + entries + rows.bytes.capacity()) as u64
    }

    /// Gives back memory that it does not use: it changes nothing any more.
    pub(crate) fn shrink(&self) {
        // One after the other: the work's lock comes before that of the versions.
        *self.work.lock() = Work::default();
        let mut rows = self.rows.lock();
        let rows = &mut *rows;
        if rows.entries.capacity() > 2 * rows.entries.len().max(1) {
            rows.entries.shrink_to_fit();
        }
        if rows.bytes.capacity() > 2 * rows.bytes.len() {
            rows.bytes.shrink_to_fit();
        }
    }
}

impl Rows {
    /// The next change is number `seq`; needs no memory for those before it while there are none.
    fn skip_to(&mut self, seq: u32) {
        if self.entries.is_empty() {
            self.stored = self.stored.max(seq - 1);
        }
    }

    fn changes(&self) -> u32 {
        self.stored + self.entries.len() as u32
    }

    /// Where in `entries` change `seq` is, if it is not stored.
    fn index(&self, seq: u32) -> Option<usize> {
        Some(seq.checked_sub(self.stored)?.checked_sub(1)? as usize)
    }

    fn get(&self, seq: u32) -> Option<&Entry> {
        self.entries.get(self.index(seq)?)
    }

    fn stamp_before(&self, seq: u32) -> Option<Stamp> {
        match self.get(seq)?.before {
            BeforeHead::Row { stamp, .. } => Some(stamp),
            _ => None,
        }
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at..entry.at + entry.key_len as usize]
    }

    fn value(&self, entry: &Entry) -> &[u8] {
        let at = entry.at + entry.key_len as usize;
        &self.bytes[at..at + entry.value_len as usize]
    }
}

/// Takes a version out of `rows`; its bytes go into `value`.
fn take(rows: &mut Rows, seq: u32, value: &mut Vec<u8>) -> Option<BeforeHead> {
    let at = rows.index(seq)?;
    let entry = rows.entries.get(at)?;
    if entry.before == BeforeHead::Moved {
        return None;
    }
    value.extend_from_slice(rows.value(entry));
    let entry = &mut rows.entries[at];
    entry.value_len = 0;
    Some(std::mem::replace(&mut entry.before, BeforeHead::Moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(record: &TxnRecord, seq: u32, value: &mut Vec<u8>) -> Version {
        record.before(seq, value).expect("in memory")
    }

    fn row(writer: u64, value: &[u8]) -> Row<'_> {
        let stamp = Stamp { writer: TxnId(writer), seq: 1 };
        Row { stamp, flags: Flags::NONE, value }
    }

    #[test]
    fn versions_are_found_by_number_and_move_to_later_changes() {
        let (first, second) = (TxnRecord::new(TxnId(7)), TxnRecord::new(TxnId(8)));
        first.push(TreeId(2), b"k", Some(row(3, b"oldest")));
        second.push(TreeId(2), b"k", Some(row(7, b"old")));
        second.push(TreeId(2), b"l", None);
        let mut value = Vec::new();
        assert!(matches!(before(&second, 1, &mut value), Version::Row { .. }));
        assert_eq!(value, b"old");
        assert_eq!(before(&second, 2, &mut value), Version::Absent);
        assert_eq!(before(&second, 3, &mut value), Version::Unknown);
        assert_eq!(before(&second, 0, &mut value), Version::Unknown);
        assert!(second.take_from(1, &first, 1));
        assert!(!second.take_from(1, &first, 1), "it is gone");
        assert_eq!(before(&first, 1, &mut value), Version::Moved);
        assert!(first.is_hollow() && !second.is_hollow());
        assert!(matches!(before(&second, 1, &mut value), Version::Row { .. }));
        assert_eq!(value, b"oldest");
        assert_eq!(second.stamp_in_memory(1).map(|s| s.writer), Some(TxnId(3)));
        let entry = second.entry(1);
        assert!(matches!(entry, Some(UndoEntry::Row { key, .. }) if key == b"k"));
    }

    #[test]
    fn changes_that_were_not_made_are_forgotten() {
        let record = TxnRecord::new(TxnId(7));
        record.push(TreeId(2), b"k", None);
        record.push(TreeId(2), b"l", Some(row(3, b"old")));
        record.truncate(1);
        record.truncate(1);
        assert_eq!(record.changes(), 1);
        assert_eq!(record.state(), State::Open);
        record.set_end(5, true);
        assert_eq!(record.state(), State::Committed(5));
        record.set_end(6, false);
        assert_eq!(record.state(), State::Aborted(6));
    }
}
