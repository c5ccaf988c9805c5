//! The names of trees, from what could be saved of the catalog.
use std::collections::{BTreeMap, BTreeSet};

use weir::on_disk::{CATALOG_TREE, catalog_entry};
use weir_base::{PageNo, TreeId};

use crate::error::SalvageError;
use crate::save::Destination;

/// What the catalog says: names and root pages.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) trees: BTreeMap<TreeId, (String, PageNo)>,
    /// Names that may be older.
    strays: BTreeMap<TreeId, (String, PageNo)>,
}

impl Destination for &mut Catalog {
    fn name(&mut self, tree: TreeId) -> Option<(String, bool)> {
        (tree == CATALOG_TREE).then(|| (String::new(), false))
    }

    fn begin(&mut self, _name: &str) -> Result<(), SalvageError> {
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8], is_stray: bool) -> Result<(), SalvageError> {
        if let Some((tree, root)) = catalog_entry(value) {
            let to = if is_stray { &mut self.strays } else { &mut self.trees };
            to.insert(tree, (String::from_utf8_lossy(key).into_owned(), root));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), SalvageError> {
        Ok(())
    }
}

/// Which name each tree gets.
pub(crate) struct Names {
    catalog: Catalog,
    /// All names that there are.
    taken: BTreeSet<String>,
    /// Every name could be read, so that a tree without one has none.
    is_complete: bool,
    /// Trees that transactions had made and not done with.
    losers: BTreeSet<TreeId>,
}

impl Names {
    /// An older name is believed where the catalog has no newer one, and no other tree has it.
    pub(crate) fn new(mut catalog: Catalog, is_complete: bool, losers: BTreeSet<TreeId>) -> Names {
        let mut taken: BTreeSet<String> =
            catalog.trees.values().map(|(name, _)| name.clone()).collect();
        if !is_complete {
            for (tree, (name, root)) in std::mem::take(&mut catalog.strays) {
                if !catalog.trees.contains_key(&tree) && taken.insert(name.clone()) {
                    catalog.trees.insert(tree, (name, root));
                }
            }
        }
        Names { catalog, taken, is_complete, losers }
    }

    /// The tree's name, and whether it is one that it did not have; `None`: it is left out.
    pub(crate) fn of(&mut self, tree: TreeId) -> Option<(String, bool)> {
        if let Some((name, _)) = self.catalog.trees.get(&tree) {
            return Some((name.clone(), false));
        }
        // Tree 0 is no tree: what has no owner any more.
        if self.is_complete || tree.0 == 0 || self.losers.contains(&tree) {
            return None;
        }
        let mut name = format!("tree-{tree}");
        while !self.taken.insert(name.clone()) {
            name.push('\'');
        }
        Some((name, true))
    }

    /// Every tree that has a name, and its root.
    pub(crate) fn roots(&self) -> BTreeMap<TreeId, PageNo> {
        self.catalog.trees.iter().map(|(&tree, &(_, root))| (tree, root)).collect()
    }
}
