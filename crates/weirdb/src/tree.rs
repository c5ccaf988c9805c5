//! A tree's handle.
use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::shared::Shared;

/// An ordered map of byte strings. Cloning gives another handle of the same. What its own methods
/// do is done in a transaction for each call: they read what is committed now, and what they change
/// is committed when they return, as durably as the database's
/// [`Config`](crate::Config::durability) says.
#[derive(Clone)]
pub struct Tree {
    pub(crate) db: Arc<Shared>,
    pub(crate) raw: weir::Tree,
    name: Arc<str>,
}

impl Tree {
    pub(crate) fn new(db: Arc<Shared>, raw: weir::Tree, name: &str) -> Self {
        Tree { db, raw, name: name.into() }
    }

    /// Its name, when this handle was made.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// # Errors
    /// [`Error::InvalidInput`] when it is of another database.
    pub(crate) fn check_of(&self, db: &Arc<Shared>) -> Result<(), Error> {
        if Arc::ptr_eq(&self.db, db) {
            return Ok(());
        }
        Err(Error::InvalidInput("the tree is of another database than the transaction".into()))
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("name", &self.name).finish_non_exhaustive()
    }
}
