//! What becomes of a row that a change meets, decided under its leaf's latch; and what a user's
//! function makes of the row before that, without a latch.
use weir_base::TxnId;
use weir_btree::{Action, Row, Tree, TreeError, Value};
use weir_page::Flags;
use weir_pool::PageToken;

use crate::context::Context;
use crate::locks::Kind;
use crate::planted::PlantedBug;

/// What was found under the leaf's latch.
pub(crate) enum Verdict {
    Nothing,
    Changed,
    Duplicate,
    Conflict,
    Locked(Option<TxnId>),
    Long,
    Again,
}

/// What a change asks for under the leaf's latch.
#[derive(Clone, Copy)]
pub(crate) enum Request<'a> {
    Put(Value<'a>),
    Insert(Value<'a>),
    Edit(Edited<'a>),
    Delete,
}

/// What a user's function has made of a row before the leaf is latched. `None`: it was not called,
/// since there was no row, or another transaction had it.
pub(crate) type Edited<'a> = Option<(Row<'a>, Made<'a>)>;

/// What a user's function has made.
#[derive(Clone, Copy)]
pub(crate) enum Made<'a> {
    /// The row stays as it is.
    Nothing,
    /// The new value is too long for the leaf, or the old one was.
    Long,
    /// The new value.
    Value(&'a [u8]),
    /// The new front of a value whose chain stays, behind the chain's head.
    Front(&'a [u8]),
}

/// The bytes of a row before and after a user's function has made one from the other; kept by the
/// transaction, so that they are not allocated for each row.
#[derive(Default)]
pub(crate) struct EditBuffers {
    old: Vec<u8>,
    new: Vec<u8>,
}

/// The row that a change meets, and the transaction that meets it.
pub(crate) struct Meeting<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) own: TxnId,
    /// The snapshot behind which a commit conflicts, where the level asks for that.
    pub(crate) conflict_point: Option<u64>,
    pub(crate) tree: &'a Tree,
    pub(crate) key: &'a [u8],
}

impl Meeting<'_> {
    /// Lets the user's function make the new value from the row as it is now, without a latch.
    /// Returns what it has made, from which row, and the state of the leaf that has it.
    pub(crate) fn edit<'b>(
        &self,
        edit: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool,
        buffers: &'b mut EditBuffers,
    ) -> Result<(Edited<'b>, Option<PageToken>), TreeError> {
        let EditBuffers { old, new } = buffers;
        let Some((head, token)) = self.tree.look(self.key, old)? else {
            return Ok((None, None));
        };
        let row = Row { stamp: head.stamp, flags: head.flags, value: old };
        if row.flags.deleted || self.obstacle(Some(row), Kind::Exclusive).is_some() {
            return Ok((None, None));
        }
        if row.flags.overflow {
            return Ok((Some((row, Made::Long)), Some(token)));
        }
        new.clear();
        let made = match edit(row.value, new) {
            false => Made::Nothing,
            true if new.len() > self.tree.max_inline_value(self.key.len()) => Made::Long,
            true => Made::Value(new),
        };
        Ok((Some((row, made)), Some(token)))
    }

    /// As [`Meeting::edit`], of a row that this transaction knows to be `old`.
    pub(crate) fn replace<'b>(
        &self,
        old: &[u8],
        new: &[u8],
        buffers: &'b mut EditBuffers,
    ) -> Result<(Edited<'b>, Option<PageToken>), TreeError> {
        let Some((head, token)) = self.tree.look(self.key, &mut buffers.old)? else {
            return Ok((None, None));
        };
        let row = Row { stamp: head.stamp, flags: head.flags, value: &buffers.old };
        if row.flags.deleted || self.obstacle(Some(row), Kind::Exclusive).is_some() {
            return Ok((None, None));
        }
        let front = match row.flags.overflow {
            true => self.tree.with_front(self.key, row.value, old, new),
            false => None,
        };
        let Some(front) = front else { return Ok((Some((row, Made::Long)), Some(token))) };
        // Only now: most of what is long is replaced whole, and its chain need not be read.
        if !self.tree.is_long(row.value, old)? {
            return Ok((Some((row, Made::Long)), Some(token)));
        }
        buffers.new = front;
        Ok((Some((row, Made::Front(&buffers.new))), Some(token)))
    }

    /// Why the row must not be changed by this transaction now.
    fn obstacle(&self, row: Option<Row<'_>>, kind: Kind) -> Option<Verdict> {
        let (cx, own) = (self.cx, self.own);
        let writer = row.map(|r| r.stamp.writer);
        // TXN-1
        if let Some(writer) = writer.filter(|&id| id != own && cx.registry().is_open(id)) {
            return Some(Verdict::Locked(Some(writer)));
        }
        // What it has written is its own, whatever locks were asked for there meanwhile.
        if writer != Some(own)
            && !cx.has(PlantedBug::LocksNotAsked)
            && cx.locks().blocks(own, self.tree.id(), self.key, kind)
        {
            return Some(Verdict::Locked(None));
        }
        let at = self.conflict_point?;
        row.is_some_and(|row| cx.registry().is_newer(row.stamp, at)).then_some(Verdict::Conflict)
    }

    /// What to do with a row, seen under its leaf's latch.
    pub(crate) fn decide<'b>(
        &self,
        row: Option<Row<'_>>,
        request: Request<'b>,
    ) -> (Verdict, Action<'b>) {
        let live = row.filter(|row| !row.flags.deleted);
        // A duplicate is only looked at.
        let is_duplicate = live.is_some() && matches!(request, Request::Insert(_));
        let kind = if is_duplicate { Kind::Share } else { Kind::Exclusive };
        if let Some(obstacle) = self.obstacle(row, kind) {
            return (obstacle, Action::Nothing);
        }
        match (request, live) {
            (Request::Insert(_), Some(_)) => (Verdict::Duplicate, Action::Nothing),
            (Request::Put(value) | Request::Insert(value), _) => {
                (Verdict::Changed, Action::Put(value))
            }
            (Request::Delete, Some(_)) => (Verdict::Changed, Action::Mark),
            (Request::Delete | Request::Edit(_), None) => (Verdict::Nothing, Action::Nothing),
            // The row has changed since, or was another transaction's and is free now.
            (Request::Edit(edited), Some(row)) if edited.is_none_or(|(old, _)| old != row) => {
                (Verdict::Again, Action::Nothing)
            }
            (Request::Edit(edited), Some(_)) => match edited.map(|(_, made)| made) {
                Some(Made::Value(bytes)) => {
                    (Verdict::Changed, Action::Put(Value { bytes, flags: Flags::NONE }))
                }
                Some(Made::Front(bytes)) => {
                    (Verdict::Changed, Action::Put(Value { bytes, flags: Flags::OVERFLOW }))
                }
                Some(Made::Long) => (Verdict::Long, Action::Nothing),
                Some(Made::Nothing) | None => (Verdict::Changed, Action::Nothing),
            },
        }
    }
}
