//! Columns that come, go and move while the rows stay as they are ([`crate::layouts`]).
use weir::{Durability, PlantedBug};

use crate::catalog::{Tables, building};
use crate::error::Error;
use crate::layout::{Layout, rest_columns};
use crate::layouts::{LAYOUTS_MAX, LaidColumn, Layouts};
use crate::row::RowColumn;
use crate::schema::{Column, Schema};
use crate::value::Value;

/// A change of a table's columns. Places are counted from 0, among the columns as the changes
/// before have left them.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnChange {
    /// A column comes.
    Add {
        /// What it is.
        column: Column,
        /// What it has in the rows that there are.
        value: Value,
        /// Its place.
        at: usize,
    },
    /// The column of this name goes. No key has it.
    Drop(String),
    /// The column of this name gets another place.
    Move(String, usize),
}

impl Tables {
    /// Changes the columns of a table without a look at its rows: one transaction, which waits for
    /// all that write to the table. A row is read as one of the new definition whenever it was
    /// written; a snapshot from before sees the new columns, too.
    ///
    /// # Errors
    /// [`Error::NoTable`]; [`Error::Definition`] when a column is not there, is there already or is
    /// of a key, a value does not fit, an index is being built, or the table's rows have been left
    /// as they are 64 times: then they have to be written anew. [`Error::Store`],
    /// [`Error::Damaged`]. Nothing was changed.
    pub fn change_columns(&self, table: &str, changes: &[ColumnChange]) -> Result<(), Error> {
        let mut txn = self.begin();
        let info = self.lock_table(&mut txn, table)?;
        let mut info = info.ok_or_else(|| Error::NoTable(table.to_string()))?;
        if info.is_being_built() {
            return Err(building());
        }
        let mut layout = Layout::of(&info)?;
        let mut layouts = layout.take_layouts();
        // A column of the primary key has no number: it does not lie in the row.
        let numbers = layout.rest().iter().zip(layouts.now()).map(|(&at, laid)| (at, laid.id));
        let numbers: Vec<_> = numbers.collect();
        let number = |at| numbers.iter().find(|(place, _)| *place == at).map(|(_, id)| *id);
        let columns = std::mem::take(&mut layout.schema.columns).into_iter().enumerate();
        let mut changed = Changed {
            columns: columns.map(|(at, column)| (column, number(at))).collect(),
            next: layouts.next_id(),
            layouts: &mut layouts,
        };
        changes.iter().try_for_each(|change| changed.apply(change, &layout.schema))?;
        let (columns, ids): (Vec<_>, Vec<_>) = changed.columns.into_iter().unzip();
        let schema = Schema { columns, ..layout.schema };
        schema.check()?;
        let is = |&at: &usize| {
            let column = &schema.columns[at];
            let is = RowColumn { kind: column.kind, nullable: column.nullable };
            LaidColumn { id: ids[at].unwrap_or_default(), is }
        };
        let rest = rest_columns(&schema, &schema.resolve(&schema.primary)?);
        let now: Vec<LaidColumn> = rest.iter().map(is).collect();
        if now != layouts.now() {
            if layouts.all.len() > LAYOUTS_MAX {
                let words = "its columns have changed too often for the rows to stay as they are";
                return Err(Error::Definition(words.into()));
            }
            layouts.all.push(now);
        }
        info.definition = schema.encode();
        if self.shared.db.has_planted(PlantedBug::ColumnsBeforeLayouts) {
            self.shared.store(&mut txn, &info)?;
            txn.commit_durably(Durability::Synced)?;
            txn = self.begin();
        }
        if layouts.all.len() > 1 {
            info.layouts = layouts.encode();
        }
        info.version += 1;
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        Ok(())
    }
}

struct Changed<'l> {
    columns: Vec<(Column, Option<u64>)>,
    next: u64,
    layouts: &'l mut Layouts,
}

impl Changed<'_> {
    fn place(&self, name: &str) -> Result<usize, Error> {
        let at = self.columns.iter().position(|(column, _)| column.name == name);
        at.ok_or_else(|| Error::Definition(format!("there is no column '{name}'")))
    }

    fn apply(&mut self, change: &ColumnChange, schema: &Schema) -> Result<(), Error> {
        match change {
            ColumnChange::Add { column, value, at } => {
                let name = &column.name;
                let fits = if value.is_null() { column.nullable } else { value.fits(column.kind) };
                if !fits || *at > self.columns.len() || self.place(name).is_ok() {
                    let words = "is there already, or has no place or no value for older rows";
                    return Err(Error::Definition(format!("column '{name}' {words}")));
                }
                self.columns.insert(*at, (column.clone(), Some(self.next)));
                self.layouts.defaults.push((self.next, value.clone()));
                self.next += 1;
            }
            ColumnChange::Drop(name) => {
                let at = self.place(name)?;
                let indexes = schema.indexes.iter().flat_map(|index| &index.parts);
                if schema.primary.iter().chain(indexes).any(|part| part.column == *name)
                    || schema.auto_increment.as_ref() == Some(name)
                {
                    return Err(Error::Definition(format!("column '{name}' is of a key")));
                }
                let (_, id) = self.columns.remove(at);
                // It was added by the same changes, or older rows have it to be skipped.
                if !self.layouts.all.iter().flatten().any(|column| Some(column.id) == id) {
                    self.layouts.defaults.retain(|(other, _)| Some(*other) != id);
                }
            }
            ColumnChange::Move(name, to) => {
                let column = self.columns.remove(self.place(name)?);
                if *to > self.columns.len() {
                    return Err(Error::Definition(format!("column '{name}' has no place there")));
                }
                self.columns.insert(*to, column);
            }
        }
        Ok(())
    }
}
