//! The vocabulary of redo: what a group of changes can say. How it says it in bytes is in `code`.
use weir_base::{PageNo, TreeId, TxnId};
use weir_page::{Flags, Kind, Stamp};

use crate::flips::Flips;
use crate::patches::Patches;

/// What a group's body says before its operations.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Header {
    /// The transaction that the group belongs to; rows it writes carry this writer. `None`:
    /// structure only.
    pub txn: Option<TxnId>,
    /// The transaction is committed with this group.
    pub commits: bool,
    /// Nothing is left to do for the transaction after this group: its rollback is complete, or
    /// what its commit left.
    pub ended: bool,
    /// The group carries undo, so a scan for them must look inside.
    pub undo: bool,
}

impl Header {
    /// The writer of rows that name none of their own.
    #[must_use]
    pub fn writer(self) -> TxnId {
        self.txn.unwrap_or(TxnId::NONE)
    }
}

/// A row as it was before a change, for rolling the change back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before<'a> {
    /// There was none: remove it.
    Absent,
    /// The whole row.
    Row {
        /// Its marks.
        flags: Flags,
        /// Its writer.
        stamp: Stamp,
        /// Its value as it lay in the leaf.
        bytes: &'a [u8],
    },
}

/// Notes of undo that a transaction has stored in a chain of overflow pages, so that neither memory
/// nor log need hold them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The chain's first page.
    pub first: PageNo,
    /// The chain's own number.
    pub mark: u64,
    /// How many bytes of notes it holds.
    pub len: u32,
    /// So many of its notes of undo, from the first on, still count.
    pub entries: u32,
    /// So many of its notes of work for after the commit, from the first on, still count.
    pub tasks: u32,
    /// The greatest number of a change in it; 0 when it holds none.
    pub last_seq: u32,
}

/// One change of one page, or what rolls it back. Rows are named by their whole key. Rows that are
/// changed get the group's transaction as their writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op<'a> {
    /// The page becomes an empty one of this kind. Nothing of its old content matters.
    Init {
        /// The page.
        page: PageNo,
        /// What it is used for.
        kind: Kind,
        /// Height above the leaves.
        level: u8,
        /// The tree that it belongs to.
        tree: TreeId,
    },
    /// The row under this key is this one from now on, whether or not there was one.
    Insert {
        /// The page.
        page: PageNo,
        /// The row's key.
        key: &'a [u8],
        /// The number of the change within the transaction.
        seq: u32,
        /// Its marks.
        flags: Flags,
        /// Its value as it lies in the leaf.
        value: &'a [u8],
    },
    /// A range of a row's value is replaced.
    Update {
        /// The page.
        page: PageNo,
        /// The row's key.
        key: &'a [u8],
        /// The number of the change within the transaction.
        seq: u32,
        /// Where the range begins in the value, in bytes.
        offset: usize,
        /// Its length in bytes.
        removed: usize,
        /// What comes in its place.
        bytes: &'a [u8],
    },
    /// Bits of a row's value are flipped, and it gets other marks. Flipped once more they are as
    /// before: this says how to roll it back, too. Recovery collects these beside `Undo`.
    Flip {
        /// The page.
        page: PageNo,
        /// The tree.
        tree: TreeId,
        /// The row's key.
        key: &'a [u8],
        /// The number of the change within the transaction.
        seq: u32,
        /// Its marks.
        flags: Flags,
        /// Its marks before.
        old_flags: Flags,
        /// Its writer.
        stamp: Stamp,
        /// Which bits.
        flips: Flips<'a>,
    },
    /// Bytes of a row's value are replaced by as many others, and its marks. Without undo.
    Patch {
        /// The page.
        page: PageNo,
        /// The row's key.
        key: &'a [u8],
        /// The number of the change within the transaction.
        seq: u32,
        /// Its marks.
        flags: Flags,
        /// Where, and by what.
        patches: Patches<'a>,
    },
    /// A row gets this stamp: a rollback puts back whose row it was.
    Restamp {
        /// The page.
        page: PageNo,
        /// The row's key.
        key: &'a [u8],
        /// Its writer.
        stamp: Stamp,
    },
    /// A row leaves its page for good.
    Remove {
        /// The page.
        page: PageNo,
        /// The row's key.
        key: &'a [u8],
    },
    /// An inner node gets a separator and the child that begins there.
    InsertChild {
        /// The page.
        page: PageNo,
        /// The separator.
        key: &'a [u8],
        /// The child.
        child: PageNo,
    },
    /// An inner node loses this separator and the child that begins there.
    RemoveChild {
        /// The page.
        page: PageNo,
        /// The separator, exactly.
        key: &'a [u8],
    },
    /// The page's link changes: an inner node's leftmost child, an overflow page's successor.
    SetLink {
        /// The page.
        page: PageNo,
        /// The new link.
        link: PageNo,
    },
    /// Entries move in, all before or all after the page's own.
    Load {
        /// The page.
        page: PageNo,
        /// The entries, as `weir_page::Node::dump` writes them.
        rows: &'a [u8],
    },
    /// Entries from this key on leave the page: what stays of a split node.
    TruncateFrom {
        /// The page.
        page: PageNo,
        /// The first key that leaves.
        key: &'a [u8],
    },
    /// A whole overflow page.
    OverflowData {
        /// The page.
        page: PageNo,
        /// The next one of the value, or `PageNo::NONE`.
        next: PageNo,
        /// The page's share of the value.
        bytes: &'a [u8],
    },
    /// Bits of a space map change; bit 0 is the lowest of the first byte behind the header.
    MapSet {
        /// The page.
        page: PageNo,
        /// The first bit.
        first_bit: u32,
        /// How many.
        count: u32,
        /// What they become.
        value: bool,
    },
    /// Bytes of a page that is no node change.
    WriteAt {
        /// The page.
        page: PageNo,
        /// Byte offset within the page, behind the header.
        offset: usize,
        /// The new bytes.
        bytes: &'a [u8],
    },
    /// How to roll back what this transaction's change `seq` did to a row. Changes no page;
    /// recovery collects these.
    Undo {
        /// The tree.
        tree: TreeId,
        /// The row's key.
        key: &'a [u8],
        /// The number of the change within the transaction.
        seq: u32,
        /// The row as it was.
        before: Before<'a>,
    },
    /// Pages that this transaction took and that nothing names unless it commits. Changes no page.
    UndoPages {
        /// The first of them.
        first: PageNo,
        /// How many.
        count: u32,
    },
    /// A tree that this transaction has made and that no name leads to unless it commits. Changes
    /// no page.
    UndoTree {
        /// The tree.
        tree: TreeId,
        /// Its root.
        root: PageNo,
    },
    /// The transaction's next notes of undo lie in these pages, which are its own. Counts as many
    /// notes as they hold, and one more for the pages. Changes no page.
    UndoStored(Stored),
    /// The transaction is prepared under this name: neither rolled back nor committed before its
    /// coordinator says so; under an empty name, it is so no more, and is being rolled back.
    /// Changes no page.
    Prepared {
        /// The name that the outside has given it.
        xid: &'a [u8],
        /// What it has locked besides the rows that it has changed, as `weir-txn` writes it.
        held: &'a [u8],
    },
    /// The transaction's last `entries` notes of undo have been rolled back. Changes no page.
    Undone {
        /// How many.
        entries: u32,
    },
    /// All the transaction's notes of undo before this one count no more: they are written again
    /// behind it, so that the log before may go. Changes no page.
    UndoReset,
    /// Work that is left to do when the group's transaction has committed. Changes no page.
    Purge(Purge<'a>),
}

/// Work that outlives the transaction that caused it; a later one of the same subject says how far
/// it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purge<'a> {
    /// A chain of overflow pages that no row names is to be freed.
    Chain {
        /// The first page not yet freed; `PageNo::NONE` when the work is done.
        first: PageNo,
        /// The chain's own number.
        mark: u64,
    },
    /// A row that the transaction marked deleted is to be removed.
    Row {
        /// The tree.
        tree: TreeId,
        /// The row's key.
        key: &'a [u8],
    },
    /// All pages of a tree that no name leads to are to be freed.
    Tree {
        /// The tree.
        tree: TreeId,
        /// Its root.
        root: PageNo,
    },
    /// The work that these notes name is to be done, and then their pages freed.
    Stored(Stored),
}

impl<'a> Op<'a> {
    /// The page that the operation changes; `None` for notes to recovery, which change none.
    #[must_use]
    pub fn page(&self) -> Option<PageNo> {
        match *self {
            Op::Init { page, .. }
            | Op::Insert { page, .. }
            | Op::Update { page, .. }
            | Op::Patch { page, .. }
            | Op::Flip { page, .. }
            | Op::Restamp { page, .. }
            | Op::Remove { page, .. }
            | Op::InsertChild { page, .. }
            | Op::RemoveChild { page, .. }
            | Op::SetLink { page, .. }
            | Op::Load { page, .. }
            | Op::TruncateFrom { page, .. }
            | Op::OverflowData { page, .. }
            | Op::MapSet { page, .. }
            | Op::WriteAt { page, .. } => Some(page),
            Op::Undo { .. }
            | Op::UndoPages { .. }
            | Op::UndoTree { .. }
            | Op::UndoStored(_)
            | Op::Prepared { .. }
            | Op::Undone { .. }
            | Op::UndoReset
            | Op::Purge(_) => None,
        }
    }

    /// Whether it rolls a change back: what recovery keeps of a transaction until it has ended.
    #[inline]
    #[must_use]
    pub fn is_undo(&self) -> bool {
        matches!(
            self,
            Op::Undo { .. }
                | Op::Flip { .. }
                | Op::UndoPages { .. }
                | Op::UndoTree { .. }
                | Op::UndoStored(_)
        )
    }

    /// The key that says where in its page the operation works, when one does.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        match *self {
            Op::Insert { key, .. }
            | Op::Update { key, .. }
            | Op::Patch { key, .. }
            | Op::Flip { key, .. }
            | Op::Restamp { key, .. }
            | Op::Remove { key, .. }
            | Op::InsertChild { key, .. }
            | Op::RemoveChild { key, .. }
            | Op::TruncateFrom { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The key and the number of the change, of an operation that one note of undo rolls back.
    #[inline]
    pub(crate) fn change(&self) -> Option<(&'a [u8], u32)> {
        match *self {
            Op::Insert { key, seq, .. } | Op::Update { key, seq, .. } => Some((key, seq)),
            _ => None,
        }
    }

    /// Whether the operation says all that its page holds afterwards, so that the page need not be
    /// read for it.
    #[must_use]
    pub fn makes_page(&self) -> bool {
        matches!(self, Op::Init { .. })
    }

    /// The operation's name, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Op::Init { .. } => "init",
            Op::Insert { .. } => "insert",
            Op::Update { .. } => "update",
            Op::Patch { .. } => "patch",
            Op::Flip { .. } => "flip",
            Op::Restamp { .. } => "restamp",
            Op::Remove { .. } => "remove",
            Op::InsertChild { .. } => "insert child",
            Op::RemoveChild { .. } => "remove child",
            Op::SetLink { .. } => "set link",
            Op::Load { .. } => "load",
            Op::TruncateFrom { .. } => "truncate from",
            Op::OverflowData { .. } => "overflow data",
            Op::MapSet { .. } => "map set",
            Op::WriteAt { .. } => "write at",
            Op::Undo { .. } => "undo",
            Op::UndoPages { .. } => "undo pages",
            Op::UndoTree { .. } => "undo tree",
            Op::UndoStored(_) => "undo stored",
            Op::Prepared { .. } => "prepared",
            Op::Undone { .. } => "undone",
            Op::UndoReset => "undo reset",
            Op::Purge(_) => "purge",
        }
    }
}
