//! Changing one row: its leaf is latched, and is a value from then on ([`LatchedRow`]), which
//! shows the row to its caller and then writes what the caller has decided.
use weir_base::PageNo;
use weir_change::{Before, Difference, Group, Header, Op, Purge, Shape};
use weir_page::{Flags, Node, Stamp};
use weir_pool::{Exclusive, PageToken};
use weir_redo::Span;

use crate::descend::DescentTarget;
use crate::error::TreeError;
use crate::overflow::ChainHead;
use crate::split::Room;
use crate::tree::Tree;

/// The row that is there before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its writer.
    pub stamp: Stamp,
    /// Its marks.
    pub flags: Flags,
    /// Its bytes in the leaf: the value, or the head of its overflow chain.
    pub value: &'a [u8],
}

/// A row's new content.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// Bytes for the leaf: the value, or the head of its overflow chain.
    pub bytes: &'a [u8],
    /// The row's marks.
    pub flags: Flags,
}

/// What to do with a row.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    /// Leave it.
    Nothing,
    /// Insert it or replace its content.
    Put(Value<'a>),
    /// Mark it deleted, keeping its bytes.
    Mark,
    /// Remove it.
    Remove,
}

/// How a change is logged.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    header: Header,
    seq: u32,
    mode: Mode,
    purge: Option<Purge<'a>>,
    stamp: Option<Stamp>,
    undone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Single,
    Undoable,
    Restoring,
}

impl<'a> Change<'a> {
    /// A change that is a transaction by itself: its group commits it. A chain that it replaces is
    /// noted for freeing in the same group.
    #[must_use]
    pub fn single(header: Header) -> Self {
        Change { header, seq: 0, mode: Mode::Single, purge: None, stamp: None, undone: false }
    }

    /// The `seq`-th change of a transaction that may still be rolled back: its group says how.
    #[must_use]
    pub fn undoable(header: Header, seq: u32) -> Self {
        Change { header, seq, mode: Mode::Undoable, purge: None, stamp: None, undone: false }
    }

    /// A change that rolls another one back, or tidies up: never rolled back itself.
    #[must_use]
    pub fn restoring(header: Header) -> Self {
        Change { header, seq: 0, mode: Mode::Restoring, purge: None, stamp: None, undone: false }
    }

    /// Says in the same group that the newest change not rolled back yet is rolled back by this
    /// one: from then on the row may be another transaction's.
    #[must_use]
    pub fn undone(self) -> Self {
        Change { undone: true, ..self }
    }

    /// The row gets this stamp instead of the transaction's own: whose it was before.
    #[must_use]
    pub fn stamped(self, stamp: Stamp) -> Self {
        Change { stamp: Some(stamp), ..self }
    }

    /// Names what remains to be done once this change is committed.
    #[must_use]
    pub fn leaving(self, purge: Purge<'a>) -> Self {
        Change { purge: Some(purge), ..self }
    }
}

/// What a change did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// The stretch of log that describes it; `None` when nothing was changed.
    pub span: Option<Span>,
    /// The overflow chain that no row names any more.
    pub replaced: Option<ChainHead>,
}

/// The leaf of one key, latched: it shows the row, then writes what becomes of it. Dropped instead,
/// it leaves the row as it is.
pub struct LatchedRow<'t> {
    tree: &'t Tree,
    key: &'t [u8],
    pub(crate) leaf: Exclusive<'t>,
    /// The row's place in the leaf, or where it would be.
    found: Result<usize, usize>,
}

/// What [`LatchedRow::apply`] did. The latch is released; what is left to do may wait for the
/// device.
#[must_use = "the tree makes room, or joins thin leaves, by `Tree::settle`"]
pub struct Applied(Outcome);

enum Outcome {
    Done {
        written: Written,
        is_thin: bool,
    },
    /// The leaf is full.
    Full {
        value_len: usize,
    },
}

impl Tree {
    /// Latches the leaf that has the row at `key`, or would have it.
    ///
    /// # Errors
    /// [`TreeError`].
    #[inline]
    pub fn latch_row<'t>(&'t self, key: &'t [u8]) -> Result<LatchedRow<'t>, TreeError> {
        self.check_key(key)?;
        // Memory is ahead of a halted log for good: a second change might build on half of the
        // first, and find a page free that it holds itself (BTREE-7).
        self.env.pool.log().check()?;
        loop {
            let Some(arrived) = self.try_descend(DescentTarget::Key(key), 0)? else { continue };
            arrived.node.touch();
            let Some(leaf) = arrived.node.upgrade() else { continue };
            return Ok(LatchedRow::of(self, key, leaf));
        }
    }

    /// As [`Tree::latch_row`], at the leaf in which [`Tree::look`] has found the row, if it is
    /// still in the state that `token` names: what was computed from the row meanwhile, without a
    /// latch, is computed from what is there. `None`: the leaf has changed.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn latch_row_if_still<'t>(
        &'t self,
        token: PageToken,
        key: &'t [u8],
    ) -> Result<Option<LatchedRow<'t>>, TreeError> {
        self.env.pool.log().check()?;
        let leaf = self.env.pool.exclusive_if_still(token);
        Ok(leaf.map(|leaf| LatchedRow::of(self, key, leaf)))
    }

    /// Completes what [`LatchedRow::apply`] has begun, without a latch: joins leaves that are thin,
    /// or makes room for the row. `None`: nothing was written, and the row is to be latched anew.
    ///
    /// # Errors
    /// [`TreeError`]; the row is as it was.
    #[inline]
    pub fn settle(&self, key: &[u8], applied: Applied) -> Result<Option<Written>, TreeError> {
        match applied.0 {
            Outcome::Done { written, is_thin } => {
                if is_thin {
                    // The row is gone whatever becomes of this: a neighbour that is damaged, or a
                    // device that fails, is reported to a thread that needs it. The next removal
                    // tries again.
                    let _ = self.shrink(key, 0);
                }
                Ok(Some(written))
            }
            Outcome::Full { value_len } => {
                self.make_room(key, 0, Room::Row { value_len })?;
                Ok(None)
            }
        }
    }

    /// Inserts the row at `key`, or replaces it, whatever is there.
    ///
    /// # Errors
    /// [`TreeError`]; the row is as it was.
    pub fn put(
        &self,
        key: &[u8],
        change: &Change<'_>,
        value: Value<'_>,
    ) -> Result<Written, TreeError> {
        loop {
            let applied = self.latch_row(key)?.apply(change, Action::Put(value))?;
            if let Some(written) = self.settle(key, applied)? {
                return Ok(written);
            }
        }
    }

    /// Removes the row at `key`, if there is one.
    ///
    /// # Errors
    /// [`TreeError`]; the row is as it was.
    pub fn remove(&self, key: &[u8], change: &Change<'_>) -> Result<Written, TreeError> {
        let applied = self.latch_row(key)?.apply(change, Action::Remove)?;
        Ok(self.settle(key, applied)?.unwrap_or_default())
    }
}

impl<'t> LatchedRow<'t> {
    #[inline]
    fn of(tree: &'t Tree, key: &'t [u8], leaf: Exclusive<'t>) -> Self {
        let found = leaf.node().search(key);
        LatchedRow { tree, key, leaf, found }
    }

    /// The row that is there.
    #[must_use]
    #[inline]
    pub fn row(&self) -> Option<Row<'_>> {
        self.found.ok().map(|slot| row_at(self.leaf.node(), slot))
    }

    /// Logs and applies what becomes of the row, and releases the latch.
    ///
    /// # Errors
    /// [`TreeError`]; the row is as it was.
    pub fn apply(self, change: &Change<'_>, action: Action<'_>) -> Result<Applied, TreeError> {
        let LatchedRow { tree, key, leaf, found } = self;
        let node = leaf.node();
        if let Action::Put(value) = action {
            let fits = match found {
                Ok(slot) => node.fits_value(slot, value.bytes.len()),
                Err(slot) => node.fits_row(slot, key, value.bytes.len()),
            };
            if !fits {
                return Ok(Applied(Outcome::Full { value_len: value.bytes.len() }));
            }
        }
        let row = found.ok().map(|slot| row_at(node, slot));
        let is_change = match action {
            Action::Nothing => false,
            Action::Put(_) => true,
            Action::Mark | Action::Remove => row.is_some(),
        };
        if !is_change {
            let written = Written::default();
            return Ok(Applied(Outcome::Done { written, is_thin: false }));
        }
        let stays = match action {
            Action::Put(value) if value.flags.overflow => ChainHead::decode(value.bytes),
            _ => None,
        };
        let replaced = row
            .filter(|r| r.flags.overflow && !r.flags.deleted)
            .and_then(|r| ChainHead::decode(r.value))
            .filter(|chain| stays.is_none_or(|stays| stays.mark != chain.mark));
        let (span, thin) = tree.commit_row(leaf, key, change, found, action, replaced)?;
        let is_thin = thin && matches!(action, Action::Remove);
        let written = Written { span: Some(span), replaced };
        Ok(Applied(Outcome::Done { written, is_thin }))
    }
}

impl Tree {
    /// Logs and applies; returns the span and whether the leaf has become thin.
    fn commit_row(
        &self,
        leaf: Exclusive<'_>,
        key: &[u8],
        change: &Change<'_>,
        found: Result<usize, usize>,
        action: Action<'_>,
        replaced: Option<ChainHead>,
    ) -> Result<(Span, bool), TreeError> {
        let (page, seq) = (leaf.page(), change.seq);
        let undo = change.mode == Mode::Undoable;
        let mut group = Group::begin(Header { undo, ..change.header });
        if let (Mode::Single, Some(chain)) = (change.mode, replaced) {
            let (first, mark) = (chain.first, chain.mark);
            group.note(&Op::Purge(Purge::Chain { first, mark }));
        }
        if let Some(purge) = change.purge {
            group.note(&Op::Purge(purge));
        }
        if change.undone {
            group.note(&Op::Undone { entries: 1 });
        }
        let old = found.ok().map(|slot| row_at(leaf.node(), slot));
        let alike = alike(old, action, undo);
        let op = self.row_op(page, key, seq, old, action, alike.as_ref());
        if undo && !matches!(op, Op::Flip { .. }) {
            let before = old.map_or(Before::Absent, |old| Before::Row {
                flags: old.flags,
                stamp: old.stamp,
                bytes: old.value,
            });
            group.note_undo(self.id, key, seq, before, &op);
        }
        let held = group.hold(leaf);
        group.apply_at(held, &op, Some(found.unwrap_or_else(|slot| slot)));
        if let (Some(stamp), Action::Put(_)) = (change.stamp, action) {
            group.apply(held, &Op::Restamp { page, key, stamp });
        }
        let thin = self.is_thin(group.page(held).node()) && page != self.root;
        Ok((group.commit(self.env.pool.log())?, thin))
    }

    /// The operation that makes the row what it is to be.
    fn row_op<'a>(
        &self,
        page: PageNo,
        key: &'a [u8],
        seq: u32,
        old: Option<Row<'_>>,
        action: Action<'a>,
        alike: Option<&'a Alike>,
    ) -> Op<'a> {
        // A mark changes no bytes of the row.
        let (flags, bytes) = match (action, old) {
            (Action::Put(new), _) => (new.flags, new.bytes),
            (_, Some(old)) => (Flags { deleted: true, ..old.flags }, &[][..]),
            (_, None) => unreachable!("BTREE-3: nothing to do was answered before"),
        };
        match (alike, old) {
            (Some(Alike::Flips(difference)), Some(Row { stamp, flags: old_flags, .. })) => {
                let (tree, flips) = (self.id, difference.flips());
                Op::Flip { page, tree, key, seq, flags, old_flags, stamp, flips }
            }
            (Some(Alike::Patches(shape)), _) => {
                Op::Patch { page, key, seq, flags, patches: shape.of(bytes) }
            }
            _ if matches!(action, Action::Remove) => Op::Remove { page, key },
            (_, Some(old)) if old.flags == flags => {
                let (offset, removed, kept) = difference(old.value, bytes);
                let bytes = &bytes[offset..bytes.len() - kept];
                Op::Update { page, key, seq, offset, removed, bytes }
            }
            _ => Op::Insert { page, key, seq, flags, value: bytes },
        }
    }
}

fn row_at(node: Node<&[u8]>, slot: usize) -> Row<'_> {
    Row { stamp: node.stamp(slot), flags: node.flags(slot), value: node.value(slot) }
}

/// What changes of a value that stays as long and where it is.
enum Alike {
    /// It may have to be rolled back.
    Flips(Difference),
    /// It need not.
    Patches(Shape),
}

fn alike(old: Option<Row<'_>>, action: Action<'_>, undo: bool) -> Option<Alike> {
    let old = old?;
    Some(match (action, undo) {
        (Action::Mark, true) => Alike::Flips(Difference::nothing()),
        (Action::Mark, false) => Alike::Patches(Shape::nothing()),
        (Action::Put(new), _)
            if new.bytes.len() != old.value.len() || new.flags.overflow != old.flags.overflow =>
        {
            return None;
        }
        (Action::Put(new), true) => Alike::Flips(Difference::between(old.value, new.bytes)),
        (Action::Put(new), false) => Alike::Patches(Shape::between(old.value, new.bytes)),
        _ => return None,
    })
}

/// Where two values differ: the offset, how many old bytes are replaced, and how many at the end
/// stay.
fn difference(old: &[u8], new: &[u8]) -> (usize, usize, usize) {
    let same = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let front = same(old, new);
    let (old_rest, new_rest) = (&old[front..], &new[front..]);
    let back = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(x, y)| x == y).count();
    (front, old_rest.len() - back, back)
}

#[cfg(test)]
mod tests {
    use super::difference;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_difference_makes_the_new_from_the_old(old: Vec<u8>, new: Vec<u8>) {
            let (offset, removed, kept) = difference(&old, &new);
            let mut made = old[..offset].to_vec();
            made.extend_from_slice(&new[offset..new.len() - kept]);
            made.extend_from_slice(&old[offset + removed..]);
            prop_assert_eq!(made, new);
        }
    }
}
