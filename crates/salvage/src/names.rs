//! The names of trees, from what could be saved of the catalog.
use std::collections::{BTreeMap, BTreeSet};

use weir::PageCodec;
use weir::on_disk::{CATALOG_TREE, catalog_codec, catalog_entry};
use weir_base::{PageNo, TreeId};

use crate::error::SalvageError;
use crate::save::{Destination, Target};

/// What the catalog says of a tree.
pub(crate) struct Entry {
    name: String,
    root: PageNo,
    codec: Option<PageCodec>,
}

/// All that the catalog says.
#[derive(Default)]
pub(crate) struct Catalog {
    trees: BTreeMap<TreeId, Entry>,
    /// What may be older.
    strays: BTreeMap<TreeId, Entry>,
}

impl Destination for &mut Catalog {
    fn target(&mut self, tree: TreeId) -> Option<Target> {
        (tree == CATALOG_TREE).then(Target::default)
    }

    fn begin(&mut self, _target: &Target) -> Result<(), SalvageError> {
        Ok(())
    }

    fn put(&mut self, key: &[u8], value: &[u8], is_stray: bool) -> Result<(), SalvageError> {
        if let Some((tree, root)) = catalog_entry(value) {
            let to = if is_stray { &mut self.strays } else { &mut self.trees };
            let (name, codec) = (String::from_utf8_lossy(key).into_owned(), catalog_codec(value));
            to.insert(tree, Entry { name, root, codec });
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
            catalog.trees.values().map(|entry| entry.name.clone()).collect();
        if !is_complete {
            for (tree, entry) in std::mem::take(&mut catalog.strays) {
                if !catalog.trees.contains_key(&tree) && taken.insert(entry.name.clone()) {
                    catalog.trees.insert(tree, entry);
                }
            }
        }
        Names { catalog, taken, is_complete, losers }
    }

    /// As what the tree is saved; `None`: it is left out.
    pub(crate) fn of(&mut self, tree: TreeId) -> Option<Target> {
        if let Some(Entry { name, codec, .. }) = self.catalog.trees.get(&tree) {
            return Some(Target { name: name.clone(), is_renamed: false, codec: *codec });
        }
        // Tree 0 is no tree: what has no owner any more.
        if self.is_complete || tree.0 == 0 || self.losers.contains(&tree) {
            return None;
        }
        let mut name = format!("tree-{tree}");
        while !self.taken.insert(name.clone()) {
            name.push('\'');
        }
        Some(Target { name, is_renamed: true, codec: None })
    }

    /// Every tree that has a name, and its root.
    pub(crate) fn roots(&self) -> BTreeMap<TreeId, PageNo> {
        self.catalog.trees.iter().map(|(&tree, entry)| (tree, entry.root)).collect()
    }
}
