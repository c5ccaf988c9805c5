//! A copy of the whole database as one snapshot sees it, made while everybody goes on. Nothing of
//! the files is copied: rows are read and loaded into a new database, which is as dense as it gets
//! and owes nothing to the pages, the log and the versions of the old one.
use std::path::Path;

use weir_txn::{Isolation, Snapshot};

use crate::config::{Config, Create};
use crate::db::Db;
use crate::error::Error;
use crate::tree::Tree;
use crate::txn::{Txn, TxnOptions};

/// What a copy holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Copied {
    /// Trees.
    pub trees: u64,
    /// Rows of all of them.
    pub rows: u64,
}

impl Db {
    /// Copies what `txn` sees without its own changes ([`Txn::take_snapshot`]) into a new database
    /// in `dir`: whole and closed when this returns. Prepared transactions are not in it. The trees
    /// are those that the snapshot sees; the pages of one that was dropped since are kept for it.
    ///
    /// # Errors
    /// When there is something in `dir`, or one of the databases fails; what is in `dir` then is
    /// not to be used.
    pub fn copy_to(&self, txn: &mut Txn, dir: &Path) -> Result<Copied, Error> {
        let stats = self.stats();
        let config = Config {
            create: Create::Always,
            page_size: stats.page_size,
            log_bytes: stats.log_capacity_bytes,
            pool_bytes: COPY_POOL_BYTES,
            ..Config::default()
        };
        let copy = Db::open(dir, config)?;
        let copied = self.copy_trees(txn, &copy);
        let closed = copy.close();
        let copied = copied?;
        closed?;
        Ok(copied)
    }

    fn copy_trees(&self, txn: &mut Txn, copy: &Db) -> Result<Copied, Error> {
        let mut copied = Copied::default();
        for (name, tree) in self.trees_seen_by(txn)? {
            let into = copy.open_tree(&name)?;
            let mut cursor = txn.cursor(&tree);
            let mut on = cursor.seek_first(txn)?;
            let mut failed = None;
            let rows = std::iter::from_fn(|| {
                if !on {
                    return None;
                }
                let row = (cursor.key().to_vec(), cursor.value().to_vec());
                on = cursor.next(txn).unwrap_or_else(|error| {
                    failed = Some(error);
                    false
                });
                Some(row)
            });
            let loaded = into.bulk_load(rows)?;
            if let Some(error) = failed {
                return Err(error);
            }
            copied.rows += loaded;
            copied.trees += 1;
        }
        Ok(copied)
    }

    fn trees_seen_by(&self, txn: &mut Txn) -> Result<Vec<(String, Tree)>, Error> {
        let tree = |raw| Tree { engine: self.engine.clone(), raw };
        let catalog = tree(self.engine.catalog.clone());
        let mut cursor = txn.cursor(&catalog);
        let mut seen = Vec::new();
        let mut on = cursor.seek_first(txn)?;
        while on {
            let name = String::from_utf8_lossy(cursor.key()).into_owned();
            seen.push((name, tree(self.engine.tree_of_entry(cursor.value())?)));
            on = cursor.next(txn)?;
        }
        Ok(seen)
    }

    /// A transaction for [`Db::copy_to`] that reads from a snapshot.
    #[must_use]
    pub fn begin_at(&self, snapshot: &Snapshot) -> Txn {
        let isolation = Isolation::RepeatableRead;
        let mut txn = self.begin(TxnOptions { isolation, ..TxnOptions::default() });
        txn.share(snapshot);
        txn
    }
}

/// Memory for the copy's pages: they are written once and not looked at again.
const COPY_POOL_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_redo::Durability;

    #[test]
    fn a_copy_holds_what_was_committed_when_the_snapshot_was_taken() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(&dir.path().join("a"), Config::default()).expect("opened");
        let (one, two) = (db.open_tree("one").expect("made"), db.open_tree("two").expect("made"));
        for number in 0..3000u32 {
            one.put(&number.to_be_bytes(), &vec![7; number as usize], Durability::Lazy)
                .expect("put");
        }
        two.put(b"k", b"old", Durability::Lazy).expect("put");
        let mut open = db.begin(TxnOptions::default());
        open.put(&one, b"open", b"not committed").expect("put");
        let snapshot = db.snapshot();
        two.put(b"k", b"new", Durability::Lazy).expect("put");
        one.delete(&5u32.to_be_bytes(), Durability::Lazy).expect("deleted");
        let late = db.create_tree("late").expect("made");
        late.put(b"k", b"not seen", Durability::Lazy).expect("put");
        assert!(db.drop_tree("two").expect("dropped"));
        let at = dir.path().join("b");
        let mut txn = db.begin_at(&snapshot);
        let copied = db.copy_to(&mut txn, &at).expect("copied");
        assert_eq!(copied, Copied { trees: 2, rows: 3001 });
        assert!(db.copy_to(&mut txn, &at).is_err(), "there is one already");
        open.rollback().expect("taken back");

        let copy = Db::open(&at, Config::default()).expect("opened");
        assert!(copy.check(&mut |_, _| ()).expect("checked").problems.is_empty());
        let (one, two) = (copy.open_tree("one").expect("there"), copy.open_tree("two"));
        let two = two.expect("there");
        assert_eq!(two.get(b"k").expect("read").as_deref(), Some(&b"old"[..]));
        assert_eq!(one.get(b"open").expect("read"), None);
        assert_eq!(copy.tree_names().expect("read"), ["one", "two"]);
        let five = one.get(&5u32.to_be_bytes()).expect("read");
        assert_eq!(five.map(|value| value.len()), Some(5));
        copy.close().expect("closed");
        db.close().expect("closed");
    }
}
