//! Changing one row: wait for the transaction that has it, decide under its leaf's latch, write in
//! place.
use std::sync::Arc;

use weir_base::TxnId;
use weir_btree::{Action, ChainHead, Change, Tree, TreeError, Value, Written};
use weir_change::Header;
use weir_page::Flags;
use weir_pool::PageToken;

use crate::context::{Context, ROW_BYTES};
use crate::error::TxnError;
use crate::locks::Kind;
use crate::record::entry::Undo;
use crate::record::purge_task::PurgeTask;
use crate::record::txn_record::TxnRecord;
use crate::record::work::Work;
use crate::session::decide::{Meeting, Request, Verdict};
use crate::session::txn::{Isolation, Txn};

/// How often one that finds a row taken gives the processor away before it queues: most rows are
/// free again in a microsecond, and going to sleep and being woken costs ten.
const YIELDS_BEFORE_QUEUE: u32 = 32;

/// And how often where others queue already: many that run for one row take each other's time.
pub(crate) const YIELDS_BESIDE_QUEUE: u32 = 4;

/// How often a user's function makes a row's new value before the row is locked for it: others
/// change the row faster than the function ends.
const EDITS_BEFORE_LOCK: u32 = 4;

/// What to do with a row.
pub enum Intent<'a> {
    /// Insert it or replace its value.
    Put(&'a [u8]),
    /// Insert it; it must not be there.
    Insert(&'a [u8]),
    /// Put a new value where the transaction, which has the row's lock, knows the old one: what
    /// they have in common on overflow pages is not written again.
    Replace {
        /// What is there.
        old: &'a [u8],
        /// What is to be.
        new: &'a [u8],
    },
    /// Make its value from the old one, if it is there: the function gets the old bytes and an
    /// empty buffer, and says whether to write what it has left there. It is called without a
    /// latch or mutex held, so it may read and write through other transactions; it is called
    /// again when the row has changed meanwhile.
    Edit(&'a mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool),
    /// Remove it if it is there.
    Delete,
}

/// About how many bytes of log a change takes.
fn log_bytes(intent: &Intent<'_>, tree: &Tree, key: &[u8]) -> u64 {
    let bytes = match intent {
        Intent::Put(value) | Intent::Insert(value) => value.len(),
        _ => tree.max_inline_value(key.len()),
    };
    ROW_BYTES + 2 * (bytes + key.len()) as u64
}

enum Tried {
    Done(bool),
    /// Another transaction has the row, or a lock on it.
    Locked(Option<TxnId>),
    /// The old value lies on overflow pages, or the new one must: it has to be fetched first.
    Long,
    /// The row has changed since the new value was made from the old one.
    Again,
}

/// A change of a row that is in its leaf and in the log.
pub(crate) struct Done<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) key: &'a [u8],
    pub(crate) seq: u32,
    /// The chain that the row named before.
    pub(crate) replaced: Option<ChainHead>,
    pub(crate) is_delete: bool,
}

impl Txn {
    /// Changes one row. Returns whether there was something to do: for `Edit` and `Delete`, whether
    /// the row was there.
    ///
    /// # Errors
    /// [`TxnError`]; the row is as it was. After a deadlock the transaction has been rolled back.
    pub fn change(
        &mut self,
        cx: &Context,
        tree: &Tree,
        key: &[u8],
        intent: Intent<'_>,
    ) -> Result<bool, TxnError> {
        tree.check_key(key)?;
        let inline = tree.max_inline_value(key.len());
        let is_long = match &intent {
            Intent::Put(value) | Intent::Insert(value) => value.len() > inline,
            _ => false,
        };
        // What a user's function does, and how long a snapshot takes, must not hold the log.
        let is_quick = !is_long
            && matches!(intent, Intent::Put(_) | Intent::Insert(_) | Intent::Delete)
            && self.isolation != Isolation::Snapshot;
        if self.record.is_none() && is_quick {
            let record = self.start_pinned(cx, log_bytes(&intent, tree, key))?;
            return self.change_row(cx, &record, tree, key, intent, true);
        }
        let record = self.start(cx)?;
        self.store_if_large(cx, &record)?;
        if !is_long {
            return self.change_row(cx, &record, tree, key, intent, false);
        }
        let keep = record.work.lock().depth();
        self.savepoint_at.set(keep);
        let changed = self.change_row(cx, &record, tree, key, intent, false);
        if changed.is_err() && !self.ended {
            // The chain belongs to no transaction: without this, a commit would leak it.
            self.roll_back_partly(cx, &record, keep)?;
        }
        changed
    }

    /// `admitted`: the first try has been.
    fn change_row(
        &mut self,
        cx: &Context,
        record: &Arc<TxnRecord>,
        tree: &Tree,
        key: &[u8],
        intent: Intent<'_>,
        mut admitted: bool,
    ) -> Result<bool, TxnError> {
        let long = match &intent {
            Intent::Put(value) | Intent::Insert(value)
                if value.len() > tree.max_inline_value(key.len()) =>
            {
                Some(self.write_long(cx, record, tree, key, value)?)
            }
            _ => None,
        };
        let mut intent = match (intent, &long) {
            (Intent::Put(_), Some(head)) => Intent::Put(head),
            (Intent::Insert(_), Some(head)) => Intent::Insert(head),
            (Intent::Put(bytes), None) => Intent::Put(bytes),
            (Intent::Insert(bytes), None) => Intent::Insert(bytes),
            (Intent::Replace { old, new }, _) => Intent::Replace { old, new },
            (Intent::Edit(edit), _) => Intent::Edit(edit),
            (Intent::Delete, _) => Intent::Delete,
        };
        let flags = if long.is_some() { Flags::OVERFLOW } else { Flags::NONE };
        let bytes = log_bytes(&intent, tree, key);
        let mut yields_left = YIELDS_BEFORE_QUEUE;
        let mut again = 0;
        let mut locks_reads = self.isolation == Isolation::Serializable;
        loop {
            if !std::mem::take(&mut admitted) {
                self.reserve_log(cx, record, bytes)?;
            }
            let before = record.changes();
            if before >= cx.changes_max {
                return Err(TxnError::no_more_changes(cx.changes_max));
            }
            let tried = self.try_change(cx, record, tree, key, &mut intent, flags);
            let is_read = matches!(tried, Ok(Tried::Done(_)) | Err(TxnError::Duplicate));
            if locks_reads && is_read && record.changes() == before {
                // It changes nothing, and tells what is there: that must stay so.
                self.lock(cx, record, tree, key, Kind::Share, None)?;
                locks_reads = false;
                continue;
            }
            match tried? {
                Tried::Done(did) => return Ok(did),
                Tried::Locked(writer) => {
                    if !self.yields(cx, record, tree, key, writer, &mut yields_left) {
                        self.lock(cx, record, tree, key, Kind::Exclusive, writer)?;
                        // What it has met there if not the row is one that passed: soon gone.
                        yields_left = YIELDS_BEFORE_QUEUE;
                    }
                }
                Tried::Long => match intent {
                    Intent::Replace { new, .. } => {
                        return self.change(cx, tree, key, Intent::Put(new));
                    }
                    mut intent => return self.edit_long(cx, tree, key, &mut intent),
                },
                Tried::Again => {
                    again += 1;
                    if again == EDITS_BEFORE_LOCK {
                        self.lock(cx, record, tree, key, Kind::Exclusive, None)?;
                    }
                }
            }
        }
    }

    fn edit_long(
        &mut self,
        cx: &Context,
        tree: &Tree,
        key: &[u8],
        intent: &mut Intent<'_>,
    ) -> Result<bool, TxnError> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        if !self.get_locked(cx, tree, key, Kind::Exclusive, &mut old)? {
            return Ok(false);
        }
        if let Intent::Edit(edit) = intent
            && edit(&old, &mut new)
        {
            self.change(cx, tree, key, Intent::Replace { old: &old, new: &new })?;
        }
        Ok(true)
    }

    fn try_change(
        &mut self,
        cx: &Context,
        record: &TxnRecord,
        tree: &Tree,
        key: &[u8],
        intent: &mut Intent<'_>,
        flags: Flags,
    ) -> Result<Tried, TxnError> {
        let conflict_point = self.conflict_point(cx);
        let meeting = Meeting { cx, own: record.id(), conflict_point, tree, key };
        let mut buffers = std::mem::take(&mut self.buffers);
        let (request, seen) = match intent {
            Intent::Put(bytes) => (Request::Put(Value { bytes, flags }), None),
            Intent::Insert(bytes) => (Request::Insert(Value { bytes, flags }), None),
            Intent::Delete => (Request::Delete, None),
            Intent::Replace { old, new } => {
                let (edited, seen) = meeting.replace(old, new, &mut buffers)?;
                (Request::Edit(edited), seen)
            }
            Intent::Edit(edit) => {
                let (edited, seen) = meeting.edit(edit, &mut buffers)?;
                (Request::Edit(edited), seen)
            }
        };
        let tried = self.try_request(record, &meeting, request, seen);
        self.buffers = buffers;
        tried
    }

    /// Makes the change if the row allows it. `seen` is the leaf from which the request was made:
    /// as long as it is in that state, the tree need not be searched again.
    fn try_request(
        &mut self,
        record: &TxnRecord,
        meeting: &Meeting<'_>,
        request: Request<'_>,
        seen: Option<PageToken>,
    ) -> Result<Tried, TxnError> {
        let &Meeting { cx, tree, key, .. } = meeting;
        self.pin(cx, record);
        let mut work = record.work.lock();
        let base = record.changes();
        let seq = base + 1;
        let header = Header { txn: Some(record.id()), ..Header::default() };
        let change = Change::undoable(header, seq);
        let (verdict, written) = match write_decided(record, meeting, request, &change, seen) {
            Ok(done) => done,
            Err(e) => {
                record.truncate(base);
                // Also a tree that is gone may be the end of a change: it must not hold the log.
                self.unpin_if_clean(cx, record, &work);
                return Err(e.into());
            }
        };
        if written.span.is_some() {
            let (replaced, is_delete) = (written.replaced, matches!(request, Request::Delete));
            note_change(&mut work, record, &Done { tree, key, seq, replaced, is_delete });
        } else {
            record.truncate(base);
            self.unpin_if_clean(cx, record, &work);
        }
        match verdict {
            Verdict::Nothing => Ok(Tried::Done(false)),
            Verdict::Changed => Ok(Tried::Done(true)),
            Verdict::Duplicate => Err(TxnError::Duplicate),
            Verdict::Conflict => Err(TxnError::Conflict),
            Verdict::Locked(writer) => Ok(Tried::Locked(writer)),
            Verdict::Long => Ok(Tried::Long),
            Verdict::Again => Ok(Tried::Again),
        }
    }
}

/// Decides on the row under its leaf's latch and writes what it becomes. `seen` is the leaf in
/// which it was last. The version before is remembered before the row changes (TXN-8); nothing but
/// that is to be undone after an error.
fn write_decided(
    record: &TxnRecord,
    meeting: &Meeting<'_>,
    request: Request<'_>,
    change: &Change<'_>,
    seen: Option<PageToken>,
) -> Result<(Verdict, Written), TreeError> {
    let &Meeting { tree, key, .. } = meeting;
    let base = record.changes();
    let mut latched = match seen {
        Some(token) => tree.latch_row_if_still(token, key)?,
        None => None,
    };
    loop {
        let leaf = match latched.take() {
            Some(leaf) => leaf,
            None => tree.latch_row(key)?,
        };
        let row = leaf.row();
        let (verdict, action) = meeting.decide(row, request);
        if matches!(action, Action::Nothing) {
            return Ok((verdict, Written::default()));
        }
        record.push(tree.id(), key, row);
        let applied = leaf.apply(change, action)?;
        if let Some(written) = tree.settle(key, applied)? {
            return Ok((verdict, written));
        }
        record.truncate(base);
    }
}

/// Notes what a change needs later.
pub(crate) fn note_change(work: &mut Work, record: &TxnRecord, done: &Done<'_>) {
    let &Done { tree, key, seq, replaced, is_delete } = done;
    work.undo.push(Undo::Row(seq));
    record.add_undo_bytes(record.undo_bytes_of(seq));
    if !work.trees.iter().any(|known| known.id() == tree.id()) {
        work.trees.push(tree.clone());
    }
    // TXN-5: the row before its chain; no row ever names a chain being freed.
    if is_delete {
        record.push_task(work, PurgeTask::Row { tree: tree.id(), key: key.to_vec() });
    }
    if let Some(chain) = replaced {
        let (first, mark) = (chain.first, chain.mark);
        record.push_task(work, PurgeTask::Chain { first, mark, tree: tree.id() });
    }
}
