//! Walking a tree in key order.
use std::ops::ControlFlow;

use weir_txn::{ReadView, RowCursor, Snapshot, View};

use crate::error::Error;
use crate::tree::Tree;

/// A position in a tree. It stays sound while others change the tree: rows that are there all along
/// are met exactly once, in order. Each row is seen as committed when the cursor comes to it, or as
/// a snapshot shows it ([`Tree::cursor_at`]).
pub struct Cursor {
    raw: RowCursor,
    tree: Tree,
    /// Whose rows it shows; `None`: those committed when it comes to them.
    at: Option<Snapshot>,
}

impl Cursor {
    pub(crate) fn new(tree: Tree, at: Option<Snapshot>) -> Self {
        Cursor { raw: RowCursor::new(tree.raw.clone()), tree, at }
    }

    /// Says that only rows from `from` on and below `to` (`None`: to the end) will be asked for.
    /// The cursor shows others nevertheless; but a long walk, which reads pages before it comes to
    /// them, reads none that has only others.
    pub fn expect_range(&mut self, from: &[u8], to: Option<&[u8]>) {
        self.raw.expect_range(from, to);
    }

    /// Says that about so many rows will be asked for after each seek, in the direction of the
    /// moves that follow it; 0: that is not known, as at first. The cursor shows more nevertheless;
    /// but it reads at once what is not in memory of the pages that hold so many, and nothing
    /// behind them.
    pub fn expect_rows(&mut self, rows: u64) {
        self.raw.expect_rows(rows);
    }

    /// Moves to the first row whose key is not below `key`. `false`: there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Io`], [`Error::Closed`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.raw.seek(look(&self.tree, self.at.as_ref())?, key)?)
    }

    /// Moves to the last row whose key is below `key`. `false`: there is none.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn seek_before(&mut self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.raw.seek_before(look(&self.tree, self.at.as_ref())?, key)?)
    }

    /// Moves to the first row.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn seek_first(&mut self) -> Result<bool, Error> {
        Ok(self.raw.seek_first(look(&self.tree, self.at.as_ref())?)?)
    }

    /// Moves to the last row.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn seek_last(&mut self) -> Result<bool, Error> {
        Ok(self.raw.seek_last(look(&self.tree, self.at.as_ref())?)?)
    }

    /// Moves to the next row. `false`: there is none, or the cursor stood on none.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    #[allow(clippy::should_implement_trait)] // Rows are borrowed from the cursor: no Iterator.
    pub fn next(&mut self) -> Result<bool, Error> {
        Ok(self.raw.next(look(&self.tree, self.at.as_ref())?)?)
    }

    /// Moves to the row before. `false`: there is none, or the cursor stood on none.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn prev(&mut self) -> Result<bool, Error> {
        Ok(self.raw.prev(look(&self.tree, self.at.as_ref())?)?)
    }

    /// Shows `visit` key and value of the row stood on and of those behind it, in order, until it
    /// breaks off (then the cursor stands on that row) or there are no more (then on none). The
    /// quickest way through many rows: nothing of them is copied one by one. Rows that lie in one
    /// page are seen as committed when the cursor comes to the first of them.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use weir::{Config, Db, Durability};
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(&dir.path().join("db"), Config::default())?;
    /// # let tree = db.open_tree("birds")?;
    /// # tree.put(b"finch", b"seeds", Durability::Lazy)?;
    /// # tree.put(b"heron", b"fish", Durability::Lazy)?;
    /// let mut cursor = tree.cursor();
    /// let (mut bytes, mut rows) = (0, 0);
    /// if cursor.seek(b"f")? {
    ///     cursor.visit(|key, value| {
    ///         (bytes, rows) = (bytes + key.len() + value.len(), rows + 1);
    ///         if rows < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    ///     })?;
    /// }
    /// assert_eq!((bytes, rows), (19, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn visit(
        &mut self,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        Ok(self.raw.visit(look(&self.tree, self.at.as_ref())?, visit)?)
    }

    /// The key of the row stood on; empty when on none.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.raw.key()
    }

    /// Key and value of the row stood on; both empty when on none.
    #[must_use]
    pub fn row(&self) -> (&[u8], &[u8]) {
        (self.raw.key(), self.raw.value())
    }

    /// The value of the row stood on; empty when on none.
    ///
    /// # Errors
    /// None any more; kept so that callers need not change.
    pub fn value(&mut self) -> Result<&[u8], Error> {
        Ok(self.raw.value())
    }
}

fn look<'t>(tree: &'t Tree, at: Option<&Snapshot>) -> Result<ReadView<'t>, Error> {
    tree.engine.check_here()?;
    let view = at.map_or(View::Latest, |snapshot| View::At(snapshot.number()));
    Ok(ReadView::new(&tree.engine.context, None, view))
}
