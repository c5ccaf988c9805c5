//! Running writes: one row as one group of the log, or a batch under a transaction of its own.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use weir_base::{Lsn, TreeId, TxnId};
use weir_btree::{Action, ChainEvent, ChainHead, Change, Env, Row, Tree, TreeError, Value};
use weir_change::{Group, Header, Op};
use weir_page::Flags;

use crate::active::Active;
use crate::cleanup::{Todo, finish};
use crate::error::TxnError;
use crate::undo::{UndoEntry, roll_back};

/// One change of a batch.
#[derive(Clone, Debug)]
pub enum BatchOp {
    /// Insert the row or replace its value.
    Put(Vec<u8>),
    /// Remove the row if it is there.
    Delete,
}

/// Changes that become lasting together or not at all. A later change of a key replaces an earlier
/// one.
#[derive(Clone, Default)]
pub struct Batch {
    trees: BTreeMap<TreeId, Tree>,
    ops: BTreeMap<(TreeId, Vec<u8>), BatchOp>,
}

impl Batch {
    /// Adds a change.
    pub fn add(&mut self, tree: &Tree, key: &[u8], op: BatchOp) {
        self.trees.entry(tree.id()).or_insert_with(|| tree.clone());
        self.ops.insert((tree.id(), key.to_vec()), op);
    }

    /// Keys changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.trees.clear();
    }
}

/// Waits until `bytes` of redo may be written.
pub type Admission = dyn Fn(u64) -> Result<(), TreeError> + Send + Sync;

/// As [`Admission`], but waits a few milliseconds at most, and says whether it admits.
pub type TryAdmission = dyn Fn(u64) -> Result<bool, TreeError> + Send + Sync;

/// Runs writes.
pub struct Writer {
    env: Arc<Env>,
    active: Arc<Active>,
    admission: Box<Admission>,
    try_admission: Option<Box<TryAdmission>>,
}

/// What a row change takes in the log besides key and value: record, headers, and its share of a
/// cut leaf.
const ROW_BYTES: u64 = 256;

impl Writer {
    /// A writer over these trees.
    #[must_use]
    pub fn new(env: Arc<Env>, active: Arc<Active>, admission: Box<Admission>) -> Self {
        Writer { env, active, admission, try_admission: None }
    }

    /// Gives open transactions a way to wait for admission in small steps. Needed wherever several
    /// threads write: a transaction that waits holds the checkpoint, and must look now and then
    /// whether it is what everybody waits for (TXN-4).
    #[must_use]
    pub fn with_try_admission(self, try_admission: Box<TryAdmission>) -> Self {
        Writer { try_admission: Some(try_admission), ..self }
    }

    /// Which transactions are under way.
    #[must_use]
    pub fn active(&self) -> &Arc<Active> {
        &self.active
    }

    /// Waits until `bytes` of redo may be written.
    ///
    /// # Errors
    /// [`TreeError::Stopped`] when the engine has halted.
    pub fn admit(&self, bytes: u64) -> Result<(), TreeError> {
        (self.admission)(bytes)
    }

    /// Inserts a row or replaces its value. Returns the end of its log: durable once the log is
    /// durable up to there.
    ///
    /// # Errors
    /// [`TxnError`]; the row is as it was.
    pub fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<Lsn, TxnError> {
        if value.len() > tree.max_inline_value() {
            let mut batch = Batch::default();
            batch.add(tree, key, BatchOp::Put(value.to_vec()));
            return self.write(&batch);
        }
        self.one(tree, key, value.len(), &mut |_| {
            Action::Put(Value { bytes: value, flags: Flags::NONE })
        })
        .map(|end| end.unwrap_or_else(|| self.env.pool.log().end()))
    }

    /// Removes a row. `None`: it was not there.
    ///
    /// # Errors
    /// [`TxnError`]; the row is as it was.
    pub fn delete(&self, tree: &Tree, key: &[u8]) -> Result<Option<Lsn>, TxnError> {
        let mut was_there = false;
        let end = self.one(tree, key, 0, &mut |row| match row {
            Some(row) if !row.flags.deleted => {
                was_there = true;
                Action::Remove
            }
            _ => {
                was_there = false;
                Action::Nothing
            }
        })?;
        Ok(end.filter(|_| was_there))
    }

    /// One row, one group: a transaction that needs no undo.
    fn one<'a>(
        &self,
        tree: &Tree,
        key: &[u8],
        value_len: usize,
        decide: &mut dyn FnMut(Option<Row<'_>>) -> Action<'a>,
    ) -> Result<Option<Lsn>, TxnError> {
        loop {
            self.admit(ROW_BYTES + (key.len() + value_len) as u64)?;
            let id = self.active.number();
            let header = Header { txn: Some(id), commits: true, ..Header::default() };
            let mut locked_by = None;
            let mut opened = false;
            let log = self.env.pool.log();
            let written = tree.write(key, &Change::single(header), &mut |row| {
                locked_by = row.map(|r| r.stamp.writer).filter(|&w| self.active.is_open(w));
                if locked_by.is_some() {
                    return Action::Nothing;
                }
                if row.is_some_and(|r| r.flags.overflow) && !opened {
                    // Before the group that names the chain is in the log: no checkpoint may pass
                    // it until the chain is freed.
                    self.active.reopen(id, log.end());
                    opened = true;
                }
                decide(row)
            });
            let replaced = written.as_ref().ok().and_then(|written| written.replaced);
            match replaced {
                // The commit stands. What it leaves is done now, or at the next opening.
                Some(chain) => {
                    let (first, mark) = (chain.first, chain.mark);
                    self.settle(id, &[Todo::Chain { first, mark, tree: tree.id() }], &|_| Ok(None));
                }
                None if opened => self.active.end(id),
                None => {}
            }
            let written = written?;
            if let Some(writer) = locked_by {
                let _ = self.active.wait_end(writer, Duration::from_millis(10));
                continue;
            }
            return Ok(written.span.map(|span| span.end));
        }
    }

    /// Applies a batch. Returns the end of its log.
    ///
    /// # Errors
    /// [`TxnError`]; all rows are as they were.
    pub fn write(&self, batch: &Batch) -> Result<Lsn, TxnError> {
        self.transact(&|id| Ok(batch.trees.get(&id).cloned()), |open| open.run(batch))
    }

    /// Fills an empty tree from entries in ascending key order. Returns their number and the end of
    /// the log: either all of them are lasting then, or none.
    ///
    /// # Errors
    /// [`TxnError`]; the tree is empty as before.
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        entries: impl Iterator<Item = (K, V)>,
    ) -> Result<(u64, Lsn), TxnError> {
        let mut count = 0;
        let end = self.transact(&|_| Ok(Some(tree.clone())), |open| {
            let header = open.header();
            let last = Header { commits: true, ..header };
            count = tree.bulk_load(entries, header, last, &mut |event| open.hear(event))?;
            Ok(self.env.pool.log().end())
        })?;
        Ok((count, end))
    }

    /// Runs `work` as a transaction: commits have happened inside it when it returns; if it fails
    /// all is taken back.
    fn transact(
        &self,
        tree_of: &dyn Fn(TreeId) -> Result<Option<Tree>, TxnError>,
        work: impl FnOnce(&mut OpenTxn<'_>) -> Result<Lsn, TxnError>,
    ) -> Result<Lsn, TxnError> {
        let id = self.active.open(self.env.pool.log().end());
        let (undo, todo) = (Vec::new(), Vec::new());
        let mut open = OpenTxn { writer: self, id, seq: 0, undo, undo_bytes: 0, todo };
        match work(&mut open) {
            Ok(end) => {
                self.settle(id, &open.todo, tree_of);
                Ok(end)
            }
            Err(first) => {
                let mut undo = std::mem::take(&mut open.undo);
                // Not admitted (TXN-4): it holds the checkpoint that admission would wait for. What
                // it adds to the log is bounded by the undo that a transaction may have.
                let undone = roll_back(&self.env, id, &mut undo, tree_of, &mut |_| Ok(()));
                if let Err(then) = undone {
                    // Rows stay locked: nobody may build on changes that will be taken back.
                    return Err(TxnError::RollbackFailed {
                        first: first.into(),
                        then: then.into(),
                    });
                }
                self.active.end(id);
                Err(first)
            }
        }
    }

    /// Does what the commit of `id` left to do, and ends it. The commit stands whatever becomes of
    /// that: an engine that has halted does it at the next opening, and pages that damage keeps
    /// from being freed stay in use.
    fn settle(
        &self,
        id: TxnId,
        todo: &[Todo],
        tree_of: &dyn Fn(TreeId) -> Result<Option<Tree>, TxnError>,
    ) {
        if !todo.is_empty() {
            // Not admitted, as a rollback.
            let _ = finish(&self.env, id, todo, tree_of, &mut |_| Ok(()));
        }
        self.active.end(id);
    }
}

/// A transaction under way.
struct OpenTxn<'w> {
    writer: &'w Writer,
    id: TxnId,
    seq: u32,
    undo: Vec<UndoEntry>,
    undo_bytes: u64,
    todo: Vec<Todo>,
}

impl OpenTxn<'_> {
    fn header(&self) -> Header {
        Header { txn: Some(self.id), ..Header::default() }
    }

    fn run(&mut self, batch: &Batch) -> Result<Lsn, TxnError> {
        for ((tree, key), op) in &batch.ops {
            let tree = &batch.trees[tree];
            match op {
                BatchOp::Put(value) if value.len() > tree.max_inline_value() => {
                    tree.check_key(key)?;
                    let head = self.write_chain(tree, value)?;
                    self.change(tree, key, Some((Flags::OVERFLOW, &head)))?;
                }
                BatchOp::Put(value) => self.change(tree, key, Some((Flags::NONE, value)))?,
                BatchOp::Delete => self.change(tree, key, None)?,
            }
        }
        self.make_way(ROW_BYTES)?;
        let mut group = Group::begin(Header { commits: true, ..self.header() });
        for todo in &self.todo {
            group.note(&Op::Cleanup(todo.to_cleanup()));
        }
        Ok(group.commit(self.writer.env.pool.log())?.end)
    }

    fn write_chain(&mut self, tree: &Tree, value: &[u8]) -> Result<Vec<u8>, TxnError> {
        self.seq += 1;
        let mark = ChainHead::mark(self.id, u64::from(self.seq));
        let header = self.header();
        let written = tree.write_chain(value, mark, header, &mut |event| self.hear(event));
        Ok(written?.encode())
    }

    /// Listens to a long change under way: remembers pages taken, waits before it goes on.
    fn hear(&mut self, event: ChainEvent) -> Result<(), TreeError> {
        match event {
            ChainEvent::Before(bytes) => {
                self.make_way(bytes).map_err(|e| TreeError::Stopped(e.to_string()))
            }
            ChainEvent::Used(first, count) => {
                match self.undo.last_mut() {
                    Some(UndoEntry::Pages { first: begin, count: have, notes })
                        if begin.0 + *have == first.0 =>
                    {
                        *have += count;
                        *notes += 1;
                    }
                    _ => {
                        let entry = UndoEntry::Pages { first, count, notes: 1 };
                        self.undo_bytes += entry.bytes();
                        self.undo.push(entry);
                    }
                }
                Ok(())
            }
        }
    }

    /// Puts (`Some`) or marks deleted (`None`) one row, waiting for whoever has it.
    fn change(
        &mut self,
        tree: &Tree,
        key: &[u8],
        content: Option<(Flags, &[u8])>,
    ) -> Result<(), TxnError> {
        let content_len = content.map_or(0, |(_, bytes)| bytes.len());
        loop {
            self.make_way(ROW_BYTES + (2 * content_len + 2 * key.len()) as u64)?;
            self.seq += 1;
            let change = Change::undoable(self.header(), self.seq);
            let mut locked_by = None;
            let mut before: Option<(Flags, Vec<u8>)> = None;
            let active = &self.writer.active;
            let written = tree.write(key, &change, &mut |row| {
                locked_by =
                    row.map(|r| r.stamp.writer).filter(|&w| w != self.id && active.is_open(w));
                if locked_by.is_some() {
                    return Action::Nothing;
                }
                before = row.map(|r| (r.flags, r.value.to_vec()));
                match content {
                    Some((flags, bytes)) => Action::Put(Value { bytes, flags }),
                    None if row.is_some_and(|r| !r.flags.deleted) => Action::Mark,
                    None => Action::Nothing,
                }
            })?;
            if let Some(other) = locked_by {
                let _ = self.writer.active.wait_end(other, Duration::from_millis(10));
                continue;
            }
            if written.span.is_some() {
                let entry = UndoEntry::Row { tree: tree.id(), key: key.to_vec(), before };
                self.undo_bytes += entry.bytes();
                self.undo.push(entry);
                // TXN-5: the row before its chain; no row ever names a chain being freed.
                if content.is_none() {
                    self.todo.push(Todo::Row { tree: tree.id(), key: key.to_vec() });
                }
                if let Some(chain) = written.replaced {
                    let (first, mark) = (chain.first, chain.mark);
                    self.todo.push(Todo::Chain { first, mark, tree: tree.id() });
                }
            }
            return Ok(());
        }
    }

    /// Waits for admission. Never holds the checkpoint for long while it does: what it waits for
    /// may be that the checkpoint moves on (TXN-4).
    fn make_way(&mut self, bytes: u64) -> Result<(), TxnError> {
        let max = self.writer.env.pool.log().limit_bytes() / 8;
        if self.undo_bytes > max {
            return Err(TxnError::TooLarge { undo_bytes: self.undo_bytes, max });
        }
        loop {
            self.carry_forward()?;
            let Some(try_admission) = &self.writer.try_admission else {
                return Ok(self.writer.admit(bytes)?);
            };
            if try_admission(bytes)? {
                return Ok(());
            }
        }
    }

    /// Writes this transaction's undo again at the end of the log if it begins far back, so that
    /// the log before may go.
    fn carry_forward(&mut self) -> Result<(), TxnError> {
        let log = self.writer.env.pool.log();
        let from = self.writer.active.first_of(self.id);
        if from.is_some_and(|from| log.end().bytes_since(from) > log.limit_bytes() / 4) {
            let start = log.end();
            let mut group = Group::begin(Header { undo: true, ..self.header() });
            group.note(&Op::UndoReset);
            for entry in &mut self.undo {
                group.note(&entry.to_op());
                if let UndoEntry::Pages { notes, .. } = entry {
                    *notes = 1;
                }
            }
            group.commit(log)?;
            self.writer.active.carried_forward(self.id, start);
        }
        Ok(())
    }
}
