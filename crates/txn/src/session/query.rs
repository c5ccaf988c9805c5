//! Reads of single rows by a transaction's isolation level.
use weir_btree::Tree;

use crate::context::Context;
use crate::error::TxnError;
use crate::locks::Kind;
use crate::planted::PlantedBug;
use crate::session::txn::{Isolation, Txn};
use crate::versions::see::{Extent, View};

impl Txn {
    /// What it sees of single rows.
    pub fn view(&mut self, cx: &Context) -> View {
        match self.isolation {
            Isolation::ReadUncommitted => View::Dirty,
            Isolation::ReadCommitted => View::Latest,
            _ => {
                let too_new = u64::from(cx.has(PlantedBug::SnapshotTooNew));
                self.snapshot(cx).map_or(View::Latest, |s| View::At(s.number() + too_new))
            }
        }
    }

    /// Reads a row by the isolation level into `out`, emptied first. `false`: it sees none.
    ///
    /// # Errors
    /// [`TxnError`]; at SERIALIZABLE as [`Txn::get_locked`].
    pub fn get(
        &mut self,
        cx: &Context,
        tree: &Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, TxnError> {
        self.check()?;
        if self.isolation == Isolation::Serializable {
            return self.get_locked(cx, tree, key, Kind::Share, out);
        }
        let view = self.view(cx);
        Ok(cx.read(tree, key, self.id(), view, out)?)
    }

    /// As [`Txn::get`], of a long value only its front: what of it lies beside its key.
    ///
    /// # Errors
    /// As [`Txn::get`].
    pub fn get_front(
        &mut self,
        cx: &Context,
        tree: &Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Extent, TxnError> {
        if self.isolation == Isolation::Serializable {
            let found = self.get(cx, tree, key, out)?;
            return Ok(if found { Extent::Whole } else { Extent::Nothing });
        }
        self.check()?;
        let view = self.view(cx);
        Ok(cx.read_extent(tree, key, self.id(), view, true, out)?)
    }
}
