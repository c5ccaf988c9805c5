//! What a store must offer to be judged.

use crate::record::{Key, Level, Lock};
use std::fmt;
use std::ops::Range;

/// Why a session was refused something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another transaction is in the way (or was, for as long as the store waits). The operation
    /// did nothing and may be asked again; locks that it took on the way may stay.
    WouldWait,
    /// Chosen to end a deadlock. The transaction can only be rolled back, or has been.
    Deadlock,
    /// Another transaction has changed what this one's snapshot shows. It can only be rolled back.
    Conflict,
    /// An insert met a row. The transaction goes on.
    Duplicate,
    /// Anything else; the transaction can only be rolled back, and it is unknown how a commit
    /// ended.
    Failed(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::WouldWait => "would wait",
            Refused::Deadlock => "deadlock",
            Refused::Conflict => "write conflict",
            Refused::Duplicate => "duplicate key",
            Refused::Failed(why) => why,
        })
    }
}

/// One connection to a store: a transaction after the other. Values are numbers that the store
/// keeps as they are.
pub trait Session {
    /// Begins a transaction.
    fn begin(&mut self, level: Level) -> Result<(), Refused>;
    /// The row under `key`; `None`: there is none.
    fn get(&mut self, key: Key, lock: Lock) -> Result<Option<u64>, Refused>;
    /// All rows of a range.
    fn scan(&mut self, keys: Range<Key>, lock: Lock) -> Result<Vec<(Key, u64)>, Refused>;
    /// Writes a row, whether there was one or not.
    fn put(&mut self, key: Key, value: u64) -> Result<(), Refused>;
    /// Writes a row where there is none.
    fn insert(&mut self, key: Key, value: u64) -> Result<(), Refused>;
    /// Removes a row; false: there was none.
    fn delete(&mut self, key: Key) -> Result<bool, Refused>;
    /// Sets the savepoint, in place of the one before.
    fn savepoint(&mut self) -> Result<(), Refused>;
    /// Rolls back what was written since the savepoint, which stays.
    fn back_to_savepoint(&mut self) -> Result<(), Refused>;
    /// Ends the transaction for good.
    fn commit(&mut self) -> Result<(), Refused>;
    /// Ends the transaction without a trace; nothing, if the store has done so already.
    fn rollback(&mut self);
}
