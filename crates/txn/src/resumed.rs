//! What recovery finds of transactions that the log shows no end of, and what becomes of it: those
//! that committed are completed and losers are taken back, both in the background, in steps, while
//! the database is open. Their rows stay theirs until then. A rollback that fails, because the disk
//! is full or a page cannot be read, leaves a loser too.
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_base::{PageNo, TreeId, TxnId};
use weir_btree::{Tree, TreeError};
use weir_change::FlipsBuf;
use weir_page::{Flags, Stamp};

use crate::back::step_back;
use crate::entry::{Undo, UndoEntry};
use crate::error::TxnError;
use crate::kept;
use crate::past::Found;
use crate::prepared_note::no_longer_prepared;
use crate::run::Writer;
use crate::todo::Todo;
use crate::txn::{Isolation, Txn};

/// Finds a tree by its number, also one that an open transaction has made or dropped; `None` when
/// it does not exist.
pub type TreeOf = dyn Fn(TreeId) -> Result<Option<Tree>, TxnError> + Send + Sync;

/// The tree that a row of this tree names, if rows there name trees: the row as it was may name
/// one that [`TreeOf`] does not find any more.
pub type NamedBy = dyn Fn(TreeId, &[u8]) -> Option<Tree> + Send + Sync;

/// A row: marks, writer, bytes in the leaf.
type Version = Option<(Flags, Stamp, Vec<u8>)>;

/// Changes of rows; references to undo; trees that rows have named.
type Changes = (Vec<Found>, Vec<Undo>, Vec<Tree>);

/// How far a transaction without an end had come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It has committed: what that left is to be done.
    Committed,
    /// It is prepared, and waits to be told.
    Prepared {
        /// Under this name.
        xid: Vec<u8>,
        /// What it has locked besides the rows that it has changed, as `kept.rs` writes it.
        held: Vec<u8>,
    },
    /// It is to be taken back.
    Loser,
}

/// A transaction without an end.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// Its number. The registry knows it already, and where its records begin.
    pub id: TxnId,
    /// How far it had come.
    pub fate: Fate,
    /// What takes it back, oldest first.
    pub undo: Vec<UndoEntry>,
    /// What its commit leaves to do.
    pub todo: Vec<Todo>,
}

/// How long who opens the database waits for the thread that is at the losers as well: longer than
/// for its turn only when that one waits itself.
const TURN: Duration = Duration::from_millis(50);

impl Writer {
    /// Takes over a transaction that recovery has found. Returns a prepared one; the others are
    /// left to [`Writer::tidy`].
    ///
    /// # Errors
    /// [`TxnError`] when its rows cannot be read.
    pub fn resume(&self, found: Unfinished) -> Result<Option<Txn>, TxnError> {
        let Some(past) = self.registry().find(found.id) else { return Err(TxnError::Over) };
        let pieces = found.undo.iter().filter_map(|entry| match entry {
            UndoEntry::Stored(piece) => Some(*piece),
            _ => None,
        });
        let pieces: Vec<_> = pieces.collect();
        let (changes, refs, named) = self.changes(&found.undo)?;
        past.move_out(self.shelf(), &pieces, pieces.iter().map(|p| p.last_seq).max().unwrap_or(0));
        past.rebuild(&changes);
        let mut work = past.work.lock();
        // What pieces hold is not known without reading it all.
        let drops = |todo: &Todo| matches!(todo, Todo::Tree { .. } | Todo::Stored(_));
        work.drops_tree = !pieces.is_empty() || found.todo.iter().any(drops);
        work.undo_bytes = found.undo.iter().map(UndoEntry::bytes).sum();
        self.registry().weigh(&past, work.undo_bytes);
        pieces.into_iter().for_each(|piece| work.pieces.push(piece));
        (work.undo, work.todo) = (refs.into(), found.todo);
        if found.fate == Fate::Committed {
            drop(work);
            self.registry().commit(&past, None);
            return Ok(None);
        }
        let _ = self.locks().register(found.id);
        work.trees = named.into();
        // TXN-11
        changes.iter().try_for_each(|change| work.know(change.tree, &|id| self.find_tree(id)))?;
        work.changed_more = !work.pieces.is_empty();
        let prepared = match found.fate {
            Fate::Prepared { xid, held } => {
                for (tree, place, kind) in kept::read(self.env(), &held)? {
                    self.locks().give_back(found.id, tree, place.as_place(), kind);
                }
                (work.xid, work.held) = (Some(xid.into()), held);
                true
            }
            _ => false,
        };
        if work.is_clean() && !prepared {
            // Nothing of it would be carried forward: it must not hold the log until its turn.
            self.registry().unpin(&past);
        }
        let is_last = work.frees_tree();
        drop(work);
        let txn = Txn::resumed(past, Isolation::ReadCommitted);
        if prepared {
            return Ok(Some(txn));
        }
        self.add_loser(txn, is_last);
        Ok(None)
    }

    /// Leaves a transaction to [`Writer::tidy`].
    pub(crate) fn add_loser(&self, txn: Txn, is_last: bool) {
        let mut losers = self.losers.lock();
        if is_last {
            losers.push_back(txn)
        } else {
            losers.push_front(txn)
        }
        self.losers_left.fetch_add(1, Ordering::SeqCst);
    }

    /// The changes of rows among `undo`, whole; references to all that is not stored; and the trees
    /// that rows named before.
    fn changes(&self, undo: &[UndoEntry]) -> Result<Changes, TxnError> {
        let (mut changes, mut refs, mut named) = (Vec::new(), Vec::new(), Vec::<Tree>::new());
        // Newest first, so that a change that says only what differs finds the row after it.
        let mut rows: HashMap<(TreeId, &[u8]), Version> = HashMap::new();
        for entry in undo.iter().rev() {
            let (tree, key, seq, before) = match entry {
                UndoEntry::Tree { tree, root } => {
                    refs.push(Undo::Tree { tree: *tree, root: *root });
                    continue;
                }
                UndoEntry::Pages { first, count, notes } => {
                    refs.push(Undo::Pages { first: *first, count: *count, notes: *notes });
                    continue;
                }
                UndoEntry::Stored(_) => continue,
                UndoEntry::Row { tree, key, seq, before } => (*tree, key, *seq, before.clone()),
                UndoEntry::Flip { tree, key, seq, flags, stamp, flips } => {
                    let after = match rows.get(&(*tree, key.as_slice())) {
                        Some(row) => row.clone(),
                        None => self.read_row(*tree, key, &named)?,
                    };
                    // There is none in a tree that it has dropped.
                    let before = match after {
                        Some((_, _, value)) => {
                            Some((*flags, *stamp, flipped(*tree, value, flips)?))
                        }
                        None => None,
                    };
                    (*tree, key, *seq, before)
                }
            };
            refs.push(Undo::Row(seq));
            // A tree is dropped after all else that is done there: it is known in time.
            let bytes = before.as_ref().map(|(_, _, bytes)| bytes);
            named.extend(bytes.and_then(|bytes| self.named_by(tree, bytes)));
            rows.insert((tree, key), before.clone());
            changes.push(Found { seq, tree, key: key.clone(), before });
        }
        changes.reverse();
        refs.reverse();
        Ok((changes, refs, named))
    }

    fn read_row(&self, id: TreeId, key: &[u8], named: &[Tree]) -> Result<Version, TxnError> {
        let named = named.iter().find(|tree| tree.id() == id).cloned();
        let tree = if named.is_some() { named } else { self.find_tree(id)? };
        let Some(tree) = tree else { return Ok(None) };
        let mut value = Vec::new();
        Ok(tree.get_inline(key, &mut value)?.map(|head| (head.flags, head.stamp, value)))
    }

    /// A step of the background work that may take long: takes back about `rows` changes of a
    /// loser, or frees as many pages of a tree that it has made, or completes one transaction.
    /// `false`: there is nothing to do, or the engine quits.
    ///
    /// # Errors
    /// [`TxnError`]; the next call goes on, or the next opening.
    pub fn tidy(&self, rows: usize) -> Result<bool, TxnError> {
        if self.has_quit() {
            return Ok(false);
        }
        let taken_back = self.tidy_loser(&mut self.losers.lock(), rows);
        if matches!(taken_back, Ok(true)) {
            return taken_back;
        }
        // One that cannot be taken back now (its page is damaged, the disk is full) holds nobody
        // up: what is freed here may be what it waits for.
        let did = self.purge(1) > 0 || self.archive()?;
        if did { Ok(true) } else { taken_back }
    }

    /// As [`Writer::tidy`], for who opens the database: only of losers whose rows others may meet.
    /// Those come first. `false`: there is none, or another thread is long at one.
    ///
    /// # Errors
    /// As [`Writer::tidy`].
    pub fn tidy_first(&self, rows: usize) -> Result<bool, TxnError> {
        let Some(mut losers) = self.losers.try_lock_for(TURN) else { return Ok(false) };
        let past = losers.front().and_then(Txn::past);
        if past.is_none_or(|past| past.work.lock().frees_tree()) {
            return Ok(false);
        }
        self.tidy_loser(&mut losers, rows)
    }

    /// `false`: there is no loser. One that fails goes behind the others, as does one of which only
    /// a tree is left to free: for that nobody waits.
    fn tidy_loser(&self, losers: &mut VecDeque<Txn>, rows: usize) -> Result<bool, TxnError> {
        let Some(txn) = losers.front_mut() else { return Ok(false) };
        match self.take_back_some(txn, rows) {
            Ok(true) => {
                losers.pop_front();
                self.losers_left.fetch_sub(1, Ordering::SeqCst);
            }
            Ok(false) => {
                if txn.past().is_some_and(|past| past.work.lock().frees_tree()) {
                    losers.rotate_left(1);
                }
            }
            Err(e) => {
                losers.rotate_left(1);
                return Err(e);
            }
        }
        Ok(true)
    }

    /// Whether the whole loser has been taken back now.
    fn take_back_some(&self, txn: &mut Txn, rows: usize) -> Result<bool, TxnError> {
        if let Some(past) = txn.past().cloned() {
            no_longer_prepared(self.env(), &past)?;
            let (mut did, mut read) = (0, None);
            while did < rows {
                match step_back(self, &past, 0, false, &mut read)? {
                    0 => break,
                    more => did += more,
                }
                if self.has_quit() {
                    return Ok(false);
                }
            }
            if past.work.lock().depth() > 0 {
                return Ok(false);
            }
        }
        txn.take_all_back(self)?;
        Ok(true)
    }

    /// How many transactions recovery, or a rollback that failed, has left to be taken back.
    #[must_use]
    pub fn losers(&self) -> usize {
        self.losers_left.load(Ordering::SeqCst)
    }

    /// Whether [`Writer::tidy`] has something to do, or is at it in some thread.
    #[must_use]
    pub fn is_untidy(&self) -> bool {
        // In this order: what is not in the list any more is being completed, or done.
        self.losers() > 0 || self.registry().has_purgeable() || self.is_completing()
    }

    /// Whether some thread is at what an ended transaction has left to do.
    #[must_use]
    pub fn is_completing(&self) -> bool {
        self.completing.load(Ordering::SeqCst) > 0
    }
}

fn flipped(tree: TreeId, mut value: Vec<u8>, flips: &FlipsBuf) -> Result<Vec<u8>, TxnError> {
    if flips.flip(&mut value) {
        return Ok(value);
    }
    let what = "a row is shorter than what the log has to take it back".to_owned();
    Err(TreeError::Damaged { tree, page: PageNo::NONE, what }.into())
}
