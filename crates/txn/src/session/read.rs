//! Reading one row as a view shows it.
use weir_base::TxnId;
use weir_btree::{Tree, TreeError};

use crate::context::Context;
use crate::versions::see::{Looks, Reader, Seen, View};

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
        let reader = Reader::new(self.registry(), own, view);
        let mut patience = 8;
        let mut looks = Looks::default();
        loop {
            let Some((head, token)) = tree.look(key, out)? else {
                out.clear();
                return Ok(false);
            };
            let seen = if reader.sees_at_once(head.stamp) {
                if head.flags.deleted { Seen::Nothing } else { Seen::Row(head.flags) }
            } else {
                reader.see(tree.id(), key, head, out, &mut || self.env().pool.is_still(token))?
            };
            match seen {
                Seen::Row(flags) if !flags.overflow => return Ok(true),
                Seen::Row(_) => {
                    if tree.fetch(out)? {
                        return Ok(true);
                    }
                    // Freed since: the row names another one now, or the page is damaged.
                    patience -= 1;
                    if patience == 0 {
                        return Ok(tree.get(key, out)?.is_some_and(|row| !row.flags.deleted));
                    }
                }
                Seen::Nothing => {
                    out.clear();
                    return Ok(false);
                }
                Seen::Again => looks.again(tree)?,
            }
        }
    }
}
