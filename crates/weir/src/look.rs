//! Which transaction holds which locks, for people.
use weir_base::{Listener, TreeId, TxnId};
use weir_txn::{Kind, Place};

use crate::db::Db;
use crate::error::Error;

/// A lock that a transaction holds or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenLock {
    /// The transaction's number.
    pub owner: TxnId,
    /// The tree's name; none if it was dropped meanwhile.
    pub tree: String,
    /// The key, or the first of a range.
    pub key: Vec<u8>,
    /// Whether it is a range.
    pub is_range: bool,
    /// The first key behind the range; `None`: it has no end.
    pub to: Option<Vec<u8>>,
    /// Whether others may share it.
    pub is_shared: bool,
    /// Whether it is only waited for.
    pub is_waiting: bool,
}

impl Db {
    /// Tells `listener` from now on when the engine halts and when a page is lost, at once where
    /// the engine has halted already. The listener is called by the thread that meets what is
    /// wrong: it must neither wait nor call the database. `false`: there is one already.
    pub fn on_notice(&self, listener: Box<Listener>) -> bool {
        self.engine.pool.health().listen(listener)
    }

    /// The explicit locks, each as it was at some moment of the call. A row that a transaction has
    /// written is its own without one, until another waits for it.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`] when the trees' names cannot be read.
    pub fn locks(&self) -> Result<Vec<SeenLock>, Error> {
        self.engine.check_here()?;
        let mut seen: Vec<(TreeId, SeenLock)> = Vec::new();
        self.engine.context.locks().visit(&mut |lock| {
            let (key, to) = match lock.place {
                Place::Key(key) => (key, None),
                Place::Range { from, to } => (from, to),
            };
            let found = SeenLock {
                owner: lock.owner,
                tree: String::new(),
                key: key.to_vec(),
                is_range: matches!(lock.place, Place::Range { .. }),
                to: to.map(<[u8]>::to_vec),
                is_shared: lock.kind == Kind::Share,
                is_waiting: lock.is_waiting,
            };
            seen.push((lock.tree, found));
        });
        if seen.is_empty() {
            return Ok(Vec::new());
        }
        let trees = self.engine.trees()?;
        let name = |id: TreeId| trees.iter().find(|(_, tree)| tree.id() == id);
        let named = seen.into_iter().map(|(id, lock)| {
            let tree = name(id).map_or(String::new(), |(name, _)| name.clone());
            SeenLock { tree, ..lock }
        });
        Ok(named.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, TxnOptions};

    #[test]
    fn held_locks_are_shown_and_gone_afterwards() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path(), Config::default()).expect("opened");
        let tree = db.create_tree("birds").expect("made");
        let mut txn = db.begin(TxnOptions::default());
        let mut value = Vec::new();
        assert!(!txn.get_for_update(&tree, b"owl", &mut value).expect("looked"));
        let seen = db.locks().expect("read");
        let number = txn.number().expect("it goes on");
        let owl = seen.iter().find(|lock| lock.key == b"owl").expect("it is locked");
        assert_eq!((owl.tree.as_str(), owl.owner), ("birds", number));
        assert!(!owl.is_shared && !owl.is_waiting && !owl.is_range && owl.to.is_none());
        txn.rollback().expect("rolled back");
        assert_eq!(db.locks().expect("read"), []);
        db.close().expect("closed");
    }
}
