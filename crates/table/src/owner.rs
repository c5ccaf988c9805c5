//! To which table a tree belongs: for people that read of trees.
use std::collections::HashMap;

use crate::catalog::{Tables, number};
use crate::descriptor::IndexInfo;
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
            let mut own = |tree: u64, index: Option<&IndexInfo>| {
                let of = (table.clone(), index.map(|index| index.name.clone()));
                owners.insert(info.tree_name(tree), of);
            };
            own(info.tree, None);
            let mut indexes: Vec<&IndexInfo> = info.indexes.iter().collect();
            if let Some(rewriting) = &info.rewriting {
                own(rewriting.log, None);
                own(rewriting.rows, None);
                indexes.extend(&rewriting.indexes);
            }
            for index in indexes {
                index.trees().for_each(|tree| own(tree, Some(index)));
            }
        }
        Ok(owners)
    }
}
