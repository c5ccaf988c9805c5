//! To which table a tree belongs: for people that read of trees.
use std::collections::HashMap;

use crate::catalog::{Tables, number};
use crate::error::Error;

impl Tables {
    /// The trees of all tables by their names: the table, and the index if it is one's.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Damaged`].
    pub fn tree_owners(&self) -> Result<HashMap<String, (String, Option<String>)>, Error> {
        let mut tables = Vec::new();
        self.each(b'n', |name, id| {
            tables.push((String::from_utf8_lossy(name).into_owned(), number(id)?));
            Ok(())
        })?;
        let mut owners = HashMap::new();
        for (table, id) in tables {
            // Gone since: so are its trees.
            let Some(info) = self.shared.load(id)? else { continue };
            let mut trees = info.tree_names().into_iter();
            owners.extend(trees.next().map(|tree| (tree, (table.clone(), None))));
            let indexes = trees.zip(&info.indexes);
            owners.extend(
                indexes.map(|(tree, index)| (tree, (table.clone(), Some(index.name.clone())))),
            );
        }
        Ok(owners)
    }
}
