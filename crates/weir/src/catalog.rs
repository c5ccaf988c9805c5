//! The catalog: a tree of names. A tree's entry and its root page come and go together.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_base::{TreeId, TxnId};
use weir_btree::{Cursor, Env, Tree as RawTree, TreeError};
use weir_pool::PageCodec;
use weir_txn::{Intent, Kind, Savepoint, Txn, TxnError, UndoEntry, View};

use crate::catalog_entries::{MALFORMED, codec_in, decode, encode, entry, for_each_entry};
use crate::engine::Engine;
use crate::error::Error;
use crate::places::CATALOG_ROOT;

const NAME_BYTES_MAX: usize = 255;

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::Name(format!(
            "a tree's name has 1 to {NAME_BYTES_MAX} bytes; this one has {}",
            name.len()
        )));
    }
    Ok(())
}

/// All trees that a catalog names, also those whose name's removal is not over: each once.
fn trees(catalog: &RawTree) -> Result<Vec<(String, RawTree)>, TreeError> {
    let mut cursor = Cursor::with_marked(catalog.clone());
    let (mut trees, mut known) = (Vec::new(), BTreeSet::new());
    let mut value = Vec::new();
    let mut found = cursor.seek_first()?;
    while found {
        let name = String::from_utf8_lossy(cursor.key()).into_owned();
        let head = cursor.inline(&mut value);
        // A mark that was put back holds no bytes any more.
        let is_empty = head.is_some_and(|head| head.flags.deleted) && value.is_empty();
        if head.is_some() && !is_empty {
            let (id, root) = decode(&value).ok_or_else(|| TreeError::Damaged {
                tree: catalog.id(),
                page: CATALOG_ROOT,
                what: MALFORMED.into(),
            })?;
            // Its old name and its new one, while it is being renamed.
            if known.insert(id) {
                trees.push((name, RawTree::at(catalog.env().clone(), id, root)));
            }
        }
        found = cursor.next()?;
    }
    Ok(trees)
}

/// Finds a tree by its number.
pub(crate) fn tree_by_id(catalog: &RawTree, id: TreeId) -> Result<Option<RawTree>, TxnError> {
    if id == catalog.id() {
        return Ok(Some(catalog.clone()));
    }
    let trees = trees(catalog)?;
    Ok(trees.into_iter().map(|(_, tree)| tree).find(|tree| tree.id() == id))
}

/// The tree that an entry of the catalog names, also one that has been replaced.
pub(crate) fn named_by(env: &Arc<Env>, value: &[u8]) -> Option<RawTree> {
    decode(value).map(|(id, root)| RawTree::at(env.clone(), id, root))
}

impl Engine {
    /// The tree of this name as committed now, or by `own`.
    pub(crate) fn find_tree(
        &self,
        name: &str,
        own: Option<TxnId>,
    ) -> Result<Option<RawTree>, Error> {
        let value = self.find_entry(name, own)?;
        value.map(|value| self.tree_of_entry(&value)).transpose()
    }

    /// The value of a name's entry, as committed now or by `own`.
    fn find_entry(&self, name: &str, own: Option<TxnId>) -> Result<Option<Vec<u8>>, Error> {
        self.check_here()?;
        check_name(name)?;
        let mut value = Vec::new();
        let found =
            self.context.read(&self.catalog, name.as_bytes(), own, View::Latest, &mut value)?;
        Ok(found.then_some(value))
    }

    /// The tree that an entry of the catalog speaks of.
    pub(crate) fn tree_of_entry(&self, value: &[u8]) -> Result<RawTree, Error> {
        let (id, root) = entry(value)?;
        Ok(RawTree::at(self.env.clone(), id, root))
    }

    /// The names of all trees as committed now, in order.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        self.check_here()?;
        let mut names = Vec::new();
        self.for_each_entry(|name, _| names.push(String::from_utf8_lossy(name).into_owned()))?;
        Ok(names)
    }

    /// Goes through the entries as committed now, in the order of names: name and value.
    fn for_each_entry(&self, visit: impl FnMut(&[u8], &[u8])) -> Result<(), TxnError> {
        for_each_entry(&self.context, &self.catalog, visit)
    }

    /// All trees, also those that open transactions have made or dropped: name and tree.
    pub(crate) fn trees(&self) -> Result<Vec<(String, RawTree)>, Error> {
        Ok(trees(&self.catalog)?)
    }

    /// Makes a tree and its name, in a transaction.
    pub(crate) fn make_tree(
        &self,
        txn: &mut Txn,
        name: &str,
        codec: Option<PageCodec>,
    ) -> Result<RawTree, Error> {
        check_name(name)?;
        self.check_writable()?;
        let id = TreeId(self.next_tree.fetch_add(1, Ordering::SeqCst));
        let before = txn.savepoint();
        let made = txn.make_tree(&self.context, id).and_then(|tree| {
            let entry = encode(id, tree.root(), codec);
            txn.change(&self.context, &self.catalog, name.as_bytes(), Intent::Insert(&entry))?;
            Ok(tree)
        });
        let made = made.map_err(|e| self.not_made(txn, before, name, e))?;
        if codec.is_some() {
            // Its pages may be written before it commits. Rolled back, it is freed, and the store
            // forgets it then.
            self.pool.store().set_codec(id, codec);
        }
        Ok(made)
    }

    /// The codec that a tree asks for, as committed now or by `own`; `None`: there is no such tree.
    pub(crate) fn codec_of(
        &self,
        name: &str,
        own: Option<TxnId>,
    ) -> Result<Option<Option<PageCodec>>, Error> {
        Ok(self.find_entry(name, own)?.map(|value| codec_in(&value)))
    }

    /// Has a tree ask for another codec, in a transaction: the store is to know when that commits.
    /// `false`: there is no such tree.
    pub(crate) fn ask_codec(
        &self,
        txn: &mut Txn,
        name: &str,
        codec: Option<PageCodec>,
    ) -> Result<bool, Error> {
        let Some(value) = self.lock_entry(txn, name)? else { return Ok(false) };
        let (id, root) = entry(&value)?;
        self.change_entry(txn, name, Intent::Put(&encode(id, root, codec)))?;
        Ok(true)
    }

    /// Tells the store what the trees of these names ask for, as `own` sees them: before `own`
    /// commits, while it still has their entries locked, so that of two transactions the later one
    /// is the later one here, too. A part of `own` may have been rolled back: what is in the
    /// catalog counts, and a name that is not there any more is passed over.
    pub(crate) fn tell_codecs_of(&self, names: &[String], own: Option<TxnId>) {
        for name in names {
            let value = self.find_entry(name, own).ok().flatten();
            if let Some((value, (id, _))) = value.and_then(|v| decode(&v).map(|found| (v, found))) {
                self.pool.store().set_codec(id, codec_in(&value));
            }
        }
    }

    /// The names of the trees that a prepared transaction, which recovery has found, may have made
    /// or changed: for [`Engine::tell_codecs_of`].
    pub(crate) fn names_changed(&self, undo: &[UndoEntry]) -> Vec<String> {
        let mut names = Vec::new();
        for entry in undo {
            match entry {
                UndoEntry::Row { tree, key, .. } | UndoEntry::Flip { tree, key, .. }
                    if *tree == self.catalog.id() =>
                {
                    names.push(String::from_utf8_lossy(key).into_owned());
                }
                // What a large one has stored is not read for this: any tree may be its.
                UndoEntry::Stored(_) => return self.names_at_all(),
                _ => {}
            }
        }
        names
    }

    /// The names of all entries, also of those that open transactions have made.
    fn names_at_all(&self) -> Vec<String> {
        let (mut names, mut cursor) = (Vec::new(), Cursor::with_marked(self.catalog.clone()));
        let mut found = cursor.seek_first();
        while let Ok(true) = found {
            names.push(String::from_utf8_lossy(cursor.key()).into_owned());
            found = cursor.next();
        }
        names
    }

    /// Tells the store what trees ask for. What cannot be read is left as the store chooses: it is
    /// reported where it is needed.
    pub(crate) fn tell_codecs(&self) {
        let _ = self.for_each_entry(|_, value| {
            if let (Some((id, _)), Some(codec)) = (decode(value), codec_in(value)) {
                self.pool.store().set_codec(id, Some(codec));
            }
        });
    }

    /// Rolls back what was done for a tree that has not come to be, or was not dropped.
    fn not_made(&self, txn: &mut Txn, before: Savepoint, name: &str, e: TxnError) -> Error {
        if !txn.has_ended()
            && let Err(then) = txn.rollback_to(&self.context, before)
        {
            return self.failed(then.into());
        }
        match e {
            TxnError::Duplicate => Error::Name(format!("there is a tree named '{name}' already")),
            e => self.failed(e.into()),
        }
    }

    /// Takes a tree's name away, in a transaction whose commit frees its pages. `false`: there was
    /// none.
    pub(crate) fn unmake_tree(&self, txn: &mut Txn, name: &str) -> Result<bool, Error> {
        let before = txn.savepoint();
        let Some((tree, _)) = self.take_name(txn, name)? else { return Ok(false) };
        let dropped = txn.drop_tree(&self.context, &tree);
        dropped.map_err(|e| self.not_made(txn, before, name, e))?;
        Ok(true)
    }

    /// Gives a tree another name, in a transaction. `false`: there was none.
    pub(crate) fn rename_tree(&self, txn: &mut Txn, from: &str, to: &str) -> Result<bool, Error> {
        check_name(to)?;
        let before = txn.savepoint();
        let Some((tree, codec)) = self.take_name(txn, from)? else { return Ok(false) };
        let entry = encode(tree.id(), tree.root(), codec);
        let named = txn.change(&self.context, &self.catalog, to.as_bytes(), Intent::Insert(&entry));
        named.map_err(|e| self.not_made(txn, before, to, e))?;
        Ok(true)
    }

    fn take_name(
        &self,
        txn: &mut Txn,
        name: &str,
    ) -> Result<Option<(RawTree, Option<PageCodec>)>, Error> {
        let Some(value) = self.lock_entry(txn, name)? else { return Ok(None) };
        let tree = self.tree_of_entry(&value)?;
        self.change_entry(txn, name, Intent::Delete)?;
        Ok(Some((tree, codec_in(&value))))
    }

    /// Locks a name's entry, to change it, and gives its value. `None`: there is no such tree.
    fn lock_entry(&self, txn: &mut Txn, name: &str) -> Result<Option<Vec<u8>>, Error> {
        check_name(name)?;
        self.check_writable()?;
        let mut value = Vec::new();
        let (key, kind) = (name.as_bytes(), Kind::Exclusive);
        let found = txn.get_locked(&self.context, &self.catalog, key, kind, &mut value);
        Ok(found.map_err(|e| self.failed(e.into()))?.then_some(value))
    }

    fn change_entry(&self, txn: &mut Txn, name: &str, intent: Intent<'_>) -> Result<(), Error> {
        let changed = txn.change(&self.context, &self.catalog, name.as_bytes(), intent);
        changed.map(|_| ()).map_err(|e| self.failed(e.into()))
    }
}
