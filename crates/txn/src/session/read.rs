//! Reading one row as a view shows it.
use weir_base::TxnId;
use weir_btree::{Tree, TreeError};

use crate::context::Context;
use crate::versions::see::{Extent, ReadOutcome, Reader, Retries, View};

impl Context {
    /// Reads a row as a view shows it into `out`, emptied first. `false`: it shows none.
    ///
    /// # Errors
    /// [`TreeError`].
    #[inline]
    pub fn read(
        &self,
        tree: &Tree,
        key: &[u8],
        own: Option<TxnId>,
        view: View,
        out: &mut Vec<u8>,
    ) -> Result<bool, TreeError> {
        Ok(self.read_extent(tree, key, own, view, false, out)? == Extent::Whole)
    }

    /// As [`Context::read`], of a long value only its front, if that is `enough`.
    ///
    /// # Errors
    /// [`TreeError`].
    #[inline]
    pub fn read_extent(
        &self,
        tree: &Tree,
        key: &[u8],
        own: Option<TxnId>,
        view: View,
        enough: bool,
        out: &mut Vec<u8>,
    ) -> Result<Extent, TreeError> {
        let reader = Reader::new(self.registry(), own, view);
        let mut tries_left = 8;
        let mut retries = Retries::default();
        loop {
            let Some((head, token)) = tree.look(key, out)? else {
                out.clear();
                return Ok(Extent::Nothing);
            };
            let seen = if reader.sees_at_once(head.stamp) {
                if head.flags.deleted { ReadOutcome::Nothing } else { ReadOutcome::Row(head.flags) }
            } else {
                reader.see(tree.id(), key, head, out, tree.leaf_state(token))?
            };
            match seen {
                ReadOutcome::Row(flags) if !flags.overflow => return Ok(Extent::Whole),
                ReadOutcome::Row(_) if enough => {
                    tree.fetch_front(out)?;
                    return Ok(Extent::Front);
                }
                ReadOutcome::Row(_) => {
                    if tree.fetch(out)? {
                        return Ok(Extent::Whole);
                    }
                    // Freed since: the row names another one now, or the page is damaged.
                    tries_left -= 1;
                    if tries_left == 0 {
                        let now = tree.get(key, out)?.filter(|row| !row.flags.deleted);
                        return Ok(now.map_or(Extent::Nothing, |_| Extent::Whole));
                    }
                }
                ReadOutcome::Nothing => {
                    out.clear();
                    return Ok(Extent::Nothing);
                }
                ReadOutcome::Again => retries.again(tree)?,
            }
        }
    }
}
