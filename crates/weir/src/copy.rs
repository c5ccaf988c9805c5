//! A copy of the whole database as one snapshot sees it, made while all transactions go on. Nothing
//! of the files is copied: rows are read and loaded into a new database, which is as dense as it
//! gets and owes nothing to the pages, the log and the versions of the old one.
use std::path::Path;
use std::sync::Arc;

use weir_crypt::Encryption;
use weir_device::{FileVolume, Volume};
use weir_pool::PageCodec;
use weir_txn::{Isolation, Snapshot};

use crate::catalog_entries::codec_in;
use crate::config::{Config, Create, StoreKind};
use crate::create::{abandon_copy, check_directory, finish_copy};
use crate::db::Db;
use crate::error::Error;
use crate::tree::Tree;
use crate::txn::Txn;
use crate::txn_options::TxnOptions;

/// What a copy holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Copied {
    /// Trees.
    pub trees: u64,
    /// Rows of all of them.
    pub rows: u64,
}

/// What a copy is to be otherwise than what is copied.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// `None`: the store of the database that is copied.
    pub store: Option<StoreKind>,
    /// With which keys it is encrypted. `None`: those of the database that is copied, if that is.
    pub encryption: Option<Encryption>,
    /// It is not encrypted, though the database that is copied is.
    pub is_plain: bool,
}

impl Db {
    /// Copies what `txn` sees of others, without its own changes ([`Txn::take_snapshot`]), into a
    /// new database in `dir`: whole and closed when this returns. A transaction that holds no
    /// snapshot gets one of now for all of it. Prepared transactions are not in it. The trees are
    /// those that the snapshot sees; the pages of one that was dropped since are kept for it.
    ///
    /// # Errors
    /// When there is something in `dir`, or one of the databases fails; nothing is left in `dir`
    /// then. What a crash leaves of a copy cannot be opened.
    pub fn copy_to(&self, txn: &mut Txn, dir: &Path) -> Result<Copied, Error> {
        self.copy_to_as(txn, dir, &CopyOptions::default())
    }

    /// As [`Db::copy_to`], into a database that keeps its pages in another store, is encrypted, or
    /// is not any more: the way from one to the other.
    ///
    /// # Errors
    /// As [`Db::copy_to`].
    pub fn copy_to_as(
        &self,
        txn: &mut Txn,
        dir: &Path,
        options: &CopyOptions,
    ) -> Result<Copied, Error> {
        self.engine.check_not_forced()?;
        self.engine.check_here()?;
        check_directory(dir, Create::Copy)?;
        let failed = |e| Error::io("opening the copy's directory", e);
        let volume = FileVolume::open(dir).map_err(failed)?;
        self.copy_onto(&txn.snapshot_seen(), Arc::new(volume), options)
    }

    fn copy_onto(
        &self,
        snapshot: &Snapshot,
        volume: Arc<dyn Volume>,
        options: &CopyOptions,
    ) -> Result<Copied, Error> {
        let stats = self.stats();
        let own = self.engine.crypt.as_ref().map(|crypt| crypt.encryption().clone());
        let own = own.filter(|_| !options.is_plain);
        let config = Config {
            store: Some(options.store.unwrap_or(self.engine.store_kind)),
            encryption: options.encryption.clone().or(own),
            page_size: stats.page_size,
            log_bytes: stats.log_capacity_bytes,
            pool_bytes: COPY_POOL_BYTES,
            ..Config::default()
        };
        // With no number of its own, it sees only changes that are committed.
        make_filled_on(volume, config, |copy| self.copy_trees(&mut self.begin_at(snapshot)?, copy))
    }

    /// Makes a database in `dir`, which must hold nothing, and has `fill` put into it what it is to
    /// hold: it is whole and closed when this returns. Not part of the interface.
    ///
    /// # Errors
    /// When there is something in `dir`, or `fill` or the database fails; nothing is left in `dir`
    /// then. What a crash leaves of it cannot be opened.
    #[doc(hidden)]
    pub fn make_filled<R, E: From<Error>>(
        dir: &Path,
        config: Config,
        fill: impl FnOnce(&Db) -> Result<R, E>,
    ) -> Result<R, E> {
        check_directory(dir, Create::Copy)?;
        let failed = |e| Error::io("opening the new database's directory", e);
        let volume = FileVolume::open(dir).map_err(failed)?;
        make_filled_on(Arc::new(volume), config, fill)
    }

    fn copy_trees(&self, txn: &mut Txn, copy: &Db) -> Result<Copied, Error> {
        let mut copied = Copied::default();
        for (name, tree, codec) in self.trees_seen_by(txn)? {
            let into = copy.create_tree_with(&name, codec)?;
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

    /// Each tree's name, itself, and the codec that it asks for: all as of the snapshot.
    fn trees_seen_by(
        &self,
        txn: &mut Txn,
    ) -> Result<Vec<(String, Tree, Option<PageCodec>)>, Error> {
        let tree = |raw| Tree { engine: self.engine.clone(), raw };
        let catalog = tree(self.engine.catalog.clone());
        let mut cursor = txn.cursor(&catalog);
        let mut seen = Vec::new();
        let mut on = cursor.seek_first(txn)?;
        while on {
            let name = String::from_utf8_lossy(cursor.key()).into_owned();
            let (raw, codec) =
                (self.engine.tree_of_entry(cursor.value())?, codec_in(cursor.value()));
            seen.push((name, tree(raw), codec));
            on = cursor.next(txn)?;
        }
        Ok(seen)
    }

    /// A transaction for [`Db::copy_to`] that reads from a snapshot.
    ///
    /// # Errors
    /// [`Error::Foreign`] when the snapshot is of another database.
    pub fn begin_at(&self, snapshot: &Snapshot) -> Result<Txn, Error> {
        let isolation = Isolation::RepeatableRead;
        let mut txn = self.begin(TxnOptions { isolation, ..TxnOptions::default() });
        txn.share(snapshot)?;
        Ok(txn)
    }
}

fn make_filled_on<R, E: From<Error>>(
    volume: Arc<dyn Volume>,
    config: Config,
    fill: impl FnOnce(&Db) -> Result<R, E>,
) -> Result<R, E> {
    let config = Config { create: Create::Copy, ..config };
    let made = Db::open_on(volume.clone(), config)?;
    let filled = fill(&made);
    // The volume is wanted for a moment more.
    let closed = made.engine.settle();
    match filled.and_then(|filled| closed.map(|()| filled).map_err(E::from)) {
        Ok(filled) => finish_copy(&volume).map(|()| filled).map_err(E::from),
        Err(e) => {
            // If that fails, too, it stays marked as what it is.
            let _ = abandon_copy(&volume);
            Err(e)
        }
    }
}

/// Memory for the copy's pages: they are written once and not looked at again.
const COPY_POOL_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_device::SimVolume;
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
        let mut txn = db.begin_at(&snapshot).expect("begun");
        let copied = db.copy_to(&mut txn, &at).expect("copied");
        assert_eq!(copied, Copied { trees: 2, rows: 3001 });
        assert!(db.copy_to(&mut txn, &at).is_err(), "there is one already");
        open.rollback().expect("rolled back");

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

    fn filled(dir: &Path) -> Db {
        let db = Db::open(dir, Config::default()).expect("opened");
        for name in ["one", "two"] {
            let tree = db.open_tree(name).expect("made");
            for number in 0..2000u32 {
                tree.put(&number.to_be_bytes(), &[7; 100], Durability::Lazy).expect("put");
            }
        }
        db
    }

    #[test]
    fn a_copy_is_of_one_moment_at_every_level_and_without_what_is_not_committed() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = filled(&dir.path().join("a"));
        let tree = db.open_tree("two").expect("there");
        let levels = [
            Isolation::ReadUncommitted,
            Isolation::ReadCommitted,
            Isolation::RepeatableRead,
            Isolation::Snapshot,
            Isolation::Serializable,
        ];
        for (number, isolation) in levels.into_iter().enumerate() {
            let mut txn = db.begin(TxnOptions { isolation, ..TxnOptions::default() });
            txn.put(&tree, b"own", b"not committed").expect("put");
            let mut other = db.begin(TxnOptions::default());
            other.put(&tree, b"other", b"not committed").expect("put");
            let at = dir.path().join(number.to_string());
            let copied = db.copy_to(&mut txn, &at).expect("copied");
            assert_eq!(copied, Copied { trees: 2, rows: 4000 }, "{isolation:?}");
            assert_eq!(
                txn.get(&tree, b"own").expect("read").as_deref(),
                Some(&b"not committed"[..])
            );
        }
        // Trees are copied one after the other; at no level does a later one show a later moment.
        let isolation = Isolation::ReadCommitted;
        let seen = db.begin(TxnOptions { isolation, ..TxnOptions::default() }).snapshot_seen();
        tree.put(b"late", b"not seen", Durability::Lazy).expect("put");
        let volume = SimVolume::new(1);
        let copied =
            db.copy_onto(&seen, Arc::new(volume), &CopyOptions::default()).expect("copied");
        assert_eq!(copied, Copied { trees: 2, rows: 4000 });
    }

    #[test]
    fn a_copy_that_was_cut_short_is_no_database() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = filled(&dir.path().join("a"));
        let whole = SimVolume::new(2);
        let seen = db.snapshot();
        let copied =
            db.copy_onto(&seen, Arc::new(whole.clone()), &CopyOptions::default()).expect("copied");
        let (mut refused, mut absent, mut opened) = (0, 0, 0);
        for after in 0..whole.writes_so_far() + 20 {
            let volume = SimVolume::new(3 + after);
            volume.set_crash_after(Some(after));
            let done = db.copy_onto(&seen, Arc::new(volume.clone()), &CopyOptions::default());
            let left: Arc<dyn Volume> = Arc::new(volume.crash(after));
            let config = |create| Config { create, ..Config::default() };
            match Db::open_on(left.clone(), config(Create::Never)) {
                Ok(copy) => {
                    let rows = |name| {
                        copy.tree(name)
                            .expect("read")
                            .map(|t| t.check(&mut |_| {}).expect("sound").rows)
                    };
                    assert_eq!(rows("one"), Some(2000), "of {after} writes");
                    assert_eq!(rows("two"), Some(2000), "of {after} writes");
                    opened += 1;
                }
                Err(Error::Directory(e)) if e.contains("not finished") => {
                    assert!(done.is_err(), "of {after} writes");
                    assert!(Db::open_on(left, config(Create::IfMissing)).is_err(), "{after}");
                    refused += 1;
                }
                Err(Error::Directory(_)) => absent += 1,
                Err(e) => panic!("of {after} writes: {e}"),
            }
        }
        assert!(refused > 10 && opened > 0, "{refused} {absent} {opened}");
        assert_eq!(copied.rows, 4000);
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let db = filled(&dir.path().join("a"));
        let volume = SimVolume::with_capacity(4, 66 << 20);
        let in_segments = CopyOptions { store: Some(StoreKind::Log), ..CopyOptions::default() };
        let failed = db.copy_onto(&db.snapshot(), Arc::new(volume.clone()), &in_segments);
        assert!(failed.is_err(), "{failed:?}");
        assert_eq!(volume.list().expect("listed"), Vec::<String>::new());
        volume.set_capacity(None);
        db.copy_onto(&db.snapshot(), Arc::new(volume), &CopyOptions::default()).expect("copied");
    }
}
