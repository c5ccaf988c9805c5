//! Bugs planted on purpose, for the simulator alone: it is worth something only if it finds them.

/// Which.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PlantedBug {
    /// None.
    #[default]
    Nothing,
    /// The checkpoint does not learn of the first record that rolling a transaction back needs.
    PinForgotten,
    /// What is logged again lacks the newest note of undo.
    RelogShort,
    /// Going back forgets one row.
    RowNotRestored,
    /// The commit's group does not say what is left to do.
    PurgeNotNoted,
    /// A snapshot sees the commit after it.
    SnapshotTooNew,
    /// A write does not look whether others have locked the row.
    LocksNotAsked,
    /// A cursor locks none of the ranges that it passes.
    RangesNotLocked,
    /// A prepared transaction does not say what is left to do when it commits.
    PreparedShort,
    /// Of a prepared transaction's locks, only the rows that it has changed are its own after a
    /// restart.
    PreparedForgetsLocks,
    /// A commit that drops a tree leaves its pages in use.
    DroppedTreeNotFreed,
    /// Dropping a tree does not wait for transactions that use it.
    DropNotLocked,
    /// An index that is being built comes into use before its entries are there.
    IndexTooEarly,
    /// Versions for old snapshots are forgotten, not archived.
    VersionsNotArchived,
    /// A transaction is forgotten as it commits though an old snapshot wants what it remembers.
    ForgottenTooSoon,
    /// The checkpoint does not wait for pages that have pending redo.
    PendingForgotten,
    /// What is written down of a stretch of the log lacks a part in which a page was changed.
    ContentsLackPart,
    /// It lacks which transactions were under way.
    ContentsLackOpen,
    /// It lacks which transactions have ended.
    ContentsLackEnded,
    /// Of a log that is larger than memory, the checkpoint passes what transactions without an end
    /// need.
    WindowsForgetOpen,
    /// The checkpoint passes changes of pages that were in an earlier window and not written.
    WindowNotWritten,
    /// A page that is not in use gives up its place before the checkpoint has passed what freed it.
    GivenUpTooSoon,
    /// The blocks of a free page go back before the checkpoint has passed what freed it.
    PunchedTooSoon,
    /// A page whose blocks went back is handed out without room for it.
    HolesHandedOut,
    /// A scrub believes what lies on disk, whatever the page is in memory.
    ScrubAsksNoPool,
    /// A backup lacks pages that were freed since its checkpoint.
    BackupWithoutFreed,
    /// What writers have changed last is not brought into rows that were written anew.
    RewriteWithoutRest,
    /// The columns of a table are changed in one commit, and how its rows lie in the next.
    ColumnsBeforeLayouts,
}
