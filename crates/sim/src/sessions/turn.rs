//! What sessions do, one after the other.
use weir::{Durability, Isolation};

use crate::op::Value;

/// A row: its tree, by the number in its name, and the number of its key.
pub type Row = (u8, u16);

/// How a transaction is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// And waited for, as durable as this.
    Durably(Durability),
    /// Without waiting: its ticket is asked now and then.
    Ticket,
}

/// One turn of one session, or of none. What names a session without a transaction, or a savepoint
/// or cursor that is not there, does nothing: any part of a list of turns is one too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Begins, if no transaction is under way.
    Begin {
        /// The session.
        session: u8,
        /// At this level.
        isolation: Isolation,
        /// Takes its snapshot at once.
        at_once: bool,
        /// Reads from the snapshot that is held, if one is.
        share: bool,
    },
    /// Reads a row.
    Get {
        /// The session.
        session: u8,
        /// Which.
        row: Row,
    },
    /// Locks a key and reads its row.
    Lock {
        /// The session.
        session: u8,
        /// Which.
        row: Row,
        /// With others that read.
        shared: bool,
    },
    /// Inserts or replaces a row.
    Put {
        /// The session.
        session: u8,
        /// Which.
        row: Row,
        /// Its new value.
        value: Value,
    },
    /// Inserts a row that must not be there.
    Insert {
        /// The session.
        session: u8,
        /// Which.
        row: Row,
        /// Its value.
        value: Value,
    },
    /// Replaces the value of a row that is there.
    Update {
        /// The session.
        session: u8,
        /// Which.
        row: Row,
        /// The new value; `None`: the old one is looked at and left.
        value: Option<Value>,
    },
    /// Removes a row.
    Delete {
        /// The session.
        session: u8,
        /// Which.
        row: Row,
    },
    /// Walks over up to `limit` rows, from a key or from the end.
    Scan {
        /// The session.
        session: u8,
        /// Where.
        tree: u8,
        /// From this key.
        from: Option<u16>,
        /// In ascending order.
        up: bool,
        /// So far.
        limit: u8,
    },
    /// Opens a cursor that stays, and places it.
    Place {
        /// The session.
        session: u8,
        /// Where.
        tree: u8,
        /// At or behind this key, or before it.
        from: Option<u16>,
        /// At or behind.
        up: bool,
    },
    /// Moves the cursor that stayed.
    Move {
        /// The session.
        session: u8,
        /// In ascending order.
        up: bool,
    },
    /// Makes a tree.
    Create {
        /// The session.
        session: u8,
        /// Which.
        tree: u8,
    },
    /// Drops a tree.
    Drop {
        /// The session.
        session: u8,
        /// Which.
        tree: u8,
    },
    /// Drops a tree, and makes another of the same name.
    Truncate {
        /// The session.
        session: u8,
        /// Which.
        tree: u8,
    },
    /// Gives a tree another name.
    Rename {
        /// The session.
        session: u8,
        /// Which.
        tree: u8,
        /// Its new name.
        to: u8,
    },
    /// Sets a savepoint.
    Savepoint {
        /// The session.
        session: u8,
    },
    /// Goes back to one of the savepoints; those set after it are gone.
    Back {
        /// The session.
        session: u8,
        /// Which, of those there are.
        which: u8,
    },
    /// Commits.
    Commit {
        /// The session.
        session: u8,
        /// How.
        how: How,
    },
    /// Prepares: from then on it is no session's.
    Prepare {
        /// The session.
        session: u8,
    },
    /// Says what becomes of a prepared transaction, if there is one.
    Decide {
        /// Which, of those there are.
        which: u8,
        /// Commits it, as durable as this; `None`: rolls it back.
        commit: Option<Durability>,
    },
    /// Rolls everything back.
    Rollback {
        /// The session.
        session: u8,
        /// By dropping the transaction.
        by_drop: bool,
    },
    /// A change outside all transactions; `None` removes. Passed over when a session has the row:
    /// it would wait.
    Single {
        /// Which.
        row: Row,
        /// Its new value.
        value: Option<Value>,
        /// How durable when it returns.
        durability: Durability,
    },
    /// Several such changes at once.
    Batch {
        /// What is changed.
        rows: Vec<(Row, Option<Value>)>,
        /// How durable when it returns.
        durability: Durability,
    },
    /// Reads a row outside all transactions.
    Look {
        /// Which.
        row: Row,
    },
    /// Walks over a tree outside all transactions.
    Walk {
        /// Where.
        tree: u8,
    },
    /// Takes a snapshot for sessions to share, if none is held; else lets go of it.
    Hold,
    /// A step of the background work.
    Step,
    /// A full checkpoint.
    Checkpoint,
    /// Time passes, in microseconds.
    Pass(u64),
    /// All sessions end (their transactions are dropped), and the database is closed and opened.
    Reopen,
}
