//! A table gets the rows of an exported one ([`crate::export`]), in the place of those it has.
//!
//! They are loaded into new trees, which the table's entry in the catalog names meanwhile, as those
//! of rows that are written anew; one transaction puts them in the place of the old ones. So what
//! fails leaves the table as it was, and what a crash leaves is dropped by the next opening.
use std::collections::BTreeSet;
use std::io::Read;

use weir::{Durability, Load};

use crate::build::{GoOn, ask};
use crate::catalog::Tables;
use crate::error::Error;
use crate::export::{ExportHead, Exported, Reader};
use crate::raw::Build;

impl Tables {
    /// Puts the rows of an exported table in the place of a table's own, when all that write to it
    /// have ended; its auto-increment goes on where the other's was, and its rows lie as the
    /// other's did. The caller knows that both tables are made alike; that their indexes have the
    /// same names is looked at. Transactions with older snapshots get [`Error::Changed`]. `go_on`
    /// is asked for each entry.
    ///
    /// # Errors
    /// [`Error::NoTable`]; [`Error::Definition`] where the indexes are others, or one is being
    /// built; those of [`crate::verify_export`]. Nothing was changed.
    pub fn import(
        &self,
        table: &str,
        source: &mut dyn Read,
        go_on: &mut GoOn<'_>,
    ) -> Result<Exported, Error> {
        let (mut reader, head) = Reader::begin(source)?;
        let own = self.open_raw(table)?;
        let names = |indexes: &mut dyn Iterator<Item = &String>| -> BTreeSet<String> {
            indexes.cloned().collect()
        };
        let theirs = names(&mut head.indexes.iter().map(|index| &index.name));
        if theirs != names(&mut own.info().indexes.iter().map(|index| &index.name)) {
            let words = "the exported table has other indexes than the one it is imported into";
            return Err(Error::Definition(words.into()));
        }
        drop(own);
        self.announce_rewrite(table, &head.indexes, None)?;
        let filled = self.fill_import(table, &mut reader, go_on);
        let done = filled.and_then(|()| self.finish_import(table, &head));
        match done {
            Ok(()) => Ok(reader.exported()),
            Err(e) => {
                // What it meets is dropped by the next opening.
                let _ = self.abandon_indexes(table);
                Err(e)
            }
        }
    }

    fn fill_import(
        &self,
        table: &str,
        reader: &mut Reader<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        let table = self.open_raw(table)?;
        // Its rows are not read: no version is kept for that.
        *table.state.build.lock() = Build::None;
        let rewriting = table.info.rewriting.as_ref().ok_or(Error::Changed)?;
        let places = [rewriting.rows].into_iter();
        let places = places.chain(rewriting.indexes.iter().map(|index| index.tree));
        let mut trees = Vec::new();
        for tree in places {
            let tree = self.shared.db.tree(&table.info.tree_name(tree))?;
            trees.push(tree.ok_or(Error::Changed)?);
        }
        let mut load: Option<(usize, Load)> = None;
        while let Some((tree, key, value)) = reader.next()? {
            ask(go_on)?;
            if load.as_ref().is_none_or(|&(of, _)| of != tree) {
                if let Some((_, full)) = load.take() {
                    full.finish(Durability::Lazy)?;
                }
                load = Some((tree, trees[tree].load()?));
            }
            if let Some((_, load)) = &mut load {
                load.push(key, value)?;
            }
        }
        if let Some((_, full)) = load {
            // Durable with the transaction that gives the table its trees, which comes later.
            full.finish(Durability::Lazy)?;
        }
        Ok(())
    }

    fn finish_import(&self, table: &str, head: &ExportHead) -> Result<(), Error> {
        let mut txn = self.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        let state = self.shared.state(info.id);
        let (db, catalog) = (&self.shared.db, &self.shared.catalog);
        // Only up: that it goes on too high does no harm, if it comes to nothing else.
        state.row_ids.pass(db, catalog, head.next_row_id.saturating_sub(1), u64::MAX)?;
        self.exchange(&mut txn, &mut info)?;
        info.layouts.clone_from(&head.layouts);
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(info.id);
        state.numbers.reset(txn, catalog, head.next_number)?;
        self.shared.altered(info.id);
        Ok(())
    }
}
