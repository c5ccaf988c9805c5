//! The catalog: a tree of names. A tree's entry and its root page come and go together.
use std::sync::atomic::Ordering;

use weir_base::{PageNo, TreeId};
use weir_btree::{Action, Change, Cursor, Tree as RawTree, Value};
use weir_change::{Cleanup, Group, Header, Op};
use weir_page::Flags;
use weir_txn::{Todo, TxnError, UndoEntry, finish, roll_back};

use crate::engine::Engine;
use crate::error::Error;

const NAME_BYTES_MAX: usize = 255;

fn encode(id: TreeId, root: PageNo) -> [u8; 8] {
    let mut out = [0; 8];
    out[..4].copy_from_slice(&id.0.to_le_bytes());
    out[4..].copy_from_slice(&root.0.to_le_bytes());
    out
}

fn decode(value: &[u8]) -> Option<(TreeId, PageNo)> {
    let (id, root) = (value.get(..4)?, value.get(4..8)?);
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
    Some((TreeId(number(id)?), PageNo(number(root)?)))
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::Name(format!(
            "a tree's name has 1 to {NAME_BYTES_MAX} bytes; this one has {}",
            name.len()
        )));
    }
    Ok(())
}

impl Engine {
    fn entry(&self, value: &[u8]) -> Result<(TreeId, PageNo), Error> {
        decode(value).ok_or_else(|| Error::Damaged("an entry of the catalog is malformed".into()))
    }

    pub(crate) fn find_tree(&self, name: &str) -> Result<Option<RawTree>, Error> {
        check_name(name)?;
        let mut value = Vec::new();
        match self.catalog.get(name.as_bytes(), &mut value)? {
            Some(head) if !head.flags.deleted => {
                let (id, root) = self.entry(&value)?;
                Ok(Some(RawTree::at(self.env.clone(), id, root)))
            }
            _ => Ok(None),
        }
    }

    /// All trees: name, number, root.
    pub(crate) fn trees(&self) -> Result<Vec<(String, RawTree)>, Error> {
        let mut cursor = Cursor::new(self.catalog.clone());
        let mut trees = Vec::new();
        let mut found = cursor.seek_first()?;
        while found {
            let name = String::from_utf8_lossy(cursor.key()).into_owned();
            if let Some(value) = cursor.value()? {
                let (id, root) = self.entry(value)?;
                trees.push((name, RawTree::at(self.env.clone(), id, root)));
            }
            found = cursor.next()?;
        }
        Ok(trees)
    }

    /// Finds a tree by its number.
    pub(crate) fn tree_by_id(&self, id: TreeId) -> Result<Option<RawTree>, TxnError> {
        if id == self.catalog.id() {
            return Ok(Some(self.catalog.clone()));
        }
        let trees = self.trees().map_err(|e| {
            TxnError::Tree(weir_btree::TreeError::Stopped(format!("reading the catalog: {e}")))
        })?;
        Ok(trees.into_iter().map(|(_, tree)| tree).find(|tree| tree.id() == id))
    }

    /// Makes a tree: its page first, under a transaction that its entry commits.
    pub(crate) fn make_tree(&self, name: &str) -> Result<RawTree, Error> {
        self.check_open()?;
        let _naming = self.naming.lock();
        if self.find_tree(name)?.is_some() {
            return Err(Error::Name(format!("there is a tree named '{name}' already")));
        }
        self.writer.admit(4096)?;
        let id = TreeId(self.next_tree.fetch_add(1, Ordering::SeqCst));
        let txn = self.registry.open().id();
        self.registry.pin(txn, self.log.end());
        let made = self.try_make_tree(name, id, txn);
        self.registry.end(txn);
        let (tree, end) = made.map_err(|e| self.failed(e))?;
        self.commit(end, weir_redo::Durability::Synced)?;
        Ok(tree)
    }

    fn try_make_tree(
        &self,
        name: &str,
        id: TreeId,
        txn: weir_base::TxnId,
    ) -> Result<(RawTree, weir_base::Lsn), Error> {
        let header = Header { txn: Some(txn), ..Header::default() };
        let claimed = self.space.claim(1)?;
        let root = claimed[0];
        let mut group = Group::begin(Header { undo: true, ..header });
        if let Err(e) = RawTree::create(&self.env, &mut group, id, root) {
            self.space.unclaim(&claimed);
            return Err(e.into());
        }
        group.note(&Op::UndoPages { first: root, count: 1 });
        group.commit(&self.log)?;
        let entry = encode(id, root);
        let change = Change::single(Header { commits: true, ..header });
        let value = Value { bytes: &entry, flags: Flags::NONE };
        let written = self.catalog.write(name.as_bytes(), &change, &mut |_| Action::Put(value));
        match written {
            Ok(written) => {
                let end = written.span.map_or(self.log.end(), |span| span.end);
                Ok((RawTree::at(self.env.clone(), id, root), end))
            }
            Err(e) => {
                let mut undo = vec![UndoEntry::Pages { first: root, count: 1, notes: 1 }];
                // Not waiting: it holds the log that it would wait for.
                roll_back(&self.env, txn, &mut undo, &|_| Ok(None), &mut |_| Ok(()))?;
                Err(e.into())
            }
        }
    }

    /// Takes a tree's name away, durably, then frees its pages. `false`: there was none.
    pub(crate) fn unmake_tree(&self, name: &str) -> Result<bool, Error> {
        self.check_open()?;
        let _naming = self.naming.lock();
        let Some(tree) = self.find_tree(name)? else { return Ok(false) };
        self.writer.admit(4096)?;
        self.writer.dropping(tree.id());
        let txn = self.registry.open().id();
        self.registry.pin(txn, self.log.end());
        let header = Header { txn: Some(txn), commits: true, ..Header::default() };
        let cleanup = Cleanup::Tree { tree: tree.id(), root: tree.root() };
        let change = Change::single(header).leaving(cleanup);
        let written = self.catalog.write(name.as_bytes(), &change, &mut |_| Action::Remove);
        let freed = written.map_err(Error::from).and_then(|written| {
            if let Some(span) = written.span {
                self.commit(span.end, weir_redo::Durability::Synced)?;
            }
            let todo = [Todo::Tree { tree: tree.id(), root: tree.root() }];
            let mut admit = |bytes| {
                // The pages freed so far need no second look: what is left is found from the root,
                // by the record that this repeats.
                self.carry_drop(txn, &tree)?;
                self.writer.admit(bytes)
            };
            Ok(finish(&self.env, txn, &todo, &|_| Ok(None), &mut admit)?)
        });
        self.registry.end(txn);
        freed.map_err(|e| self.failed(e))?;
        Ok(true)
    }

    /// Repeats the record of a drop under way at the log's end when it lies far back.
    fn carry_drop(
        &self,
        txn: weir_base::TxnId,
        tree: &RawTree,
    ) -> Result<(), weir_btree::TreeError> {
        let from = self.registry.first_of(txn);
        if from.is_none_or(|f| self.log.end().bytes_since(f) <= self.log.limit_bytes() / 4) {
            return Ok(());
        }
        let start = self.log.end();
        let mut group = Group::begin(Header { txn: Some(txn), commits: true, ..Header::default() });
        group.note(&Op::Cleanup(Cleanup::Tree { tree: tree.id(), root: tree.root() }));
        group.commit(&self.log)?;
        self.registry.pin(txn, start);
        Ok(())
    }
}
