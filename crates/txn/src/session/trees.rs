//! Making and dropping trees, as a part of a transaction.
use weir_base::{TreeId, TxnId};
use weir_btree::Tree;
use weir_change::{Group, Header, Op};

use crate::context::Context;
use crate::error::TxnError;
use crate::planted::PlantedBug;
use crate::record::entry::Undo;
use crate::record::purge_task::PurgeTask;
use crate::session::txn::Txn;

impl Txn {
    /// Makes an empty tree, which is freed again if the transaction is rolled back. The caller
    /// writes down its number and root in a row of the same transaction.
    ///
    /// # Errors
    /// [`TxnError`]; nothing was made.
    pub fn make_tree(&mut self, cx: &Context, id: TreeId) -> Result<Tree, TxnError> {
        let record = self.start(cx)?;
        self.reserve_log(cx, &record, 4096)?;
        self.pin(cx, &record);
        let mut work = record.work.lock();
        let made = new_tree(cx, record.id(), id);
        match &made {
            Ok(tree) => {
                work.undo.push(Undo::Tree { tree: id, root: tree.root() });
                record.add_undo_bytes(16);
            }
            Err(_) => self.unpin_if_clean(cx, &record, &work),
        }
        made
    }

    /// Frees a tree's pages once the transaction has committed and no snapshot from before is held.
    /// The caller has removed the row that names it, in the same transaction. Waits for all that
    /// have changed or locked rows of the tree, and keeps others from that.
    ///
    /// # Errors
    /// As [`Txn::get_locked`]; the tree is not dropped, and may be locked.
    pub fn drop_tree(&mut self, cx: &Context, tree: &Tree) -> Result<(), TxnError> {
        let record = self.start(cx)?;
        if !cx.has(PlantedBug::DropNotLocked) {
            self.lock_tree(cx, &record, tree)?;
        }
        self.drop_own_tree(cx, tree)
    }

    /// As [`Txn::drop_tree`], of a tree that no other transaction ever locks or changes: not even
    /// one is waited for of which recovery does not know what it has changed.
    ///
    /// # Errors
    /// [`TxnError::Ended`]
    pub(crate) fn drop_own_tree(&mut self, cx: &Context, tree: &Tree) -> Result<(), TxnError> {
        let record = self.start(cx)?;
        if cx.has(PlantedBug::DroppedTreeNotFreed) {
            return Ok(());
        }
        let task = PurgeTask::Tree { tree: tree.id(), root: tree.root() };
        record.push_task(&mut record.work.lock(), task);
        Ok(())
    }
}

/// Makes an empty tree in the name of `own`, and says in the log how to roll that back.
fn new_tree(cx: &Context, own: TxnId, id: TreeId) -> Result<Tree, TxnError> {
    let env = cx.env();
    let claimed = env.space.claim(1)?;
    let root = claimed[0];
    let mut group = Group::begin(Header { txn: Some(own), undo: true, ..Header::default() });
    if let Err(e) = Tree::create(env, &mut group, id, root) {
        // The root's latch goes first: a thread that makes a map waits for one with the bits held.
        drop(group);
        env.space.unclaim(&claimed);
        return Err(e.into());
    }
    group.note(&Op::UndoTree { tree: id, root });
    group.commit(env.pool.log())?;
    Ok(Tree::at(env.clone(), id, root))
}
