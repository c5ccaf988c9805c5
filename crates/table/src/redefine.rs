//! New definitions for tables whose trees stay as they are: what the caller keeps there of columns,
//! of names, of references from table to table.
use weir::{Durability, PageCodec, Txn};

use crate::catalog::{Tables, ask_codec, building, check_name, name_key, number};
use crate::descriptor::TableInfo;
use crate::error::Error;
use crate::shared::key_of;

/// What a table is to have as its definition.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redefinition<'a> {
    /// Its name, before anything is renamed.
    pub table: &'a str,
    /// The caller's bytes.
    pub definition: &'a [u8],
    /// Indexes that get another name: from, to.
    pub renamed: &'a [(&'a str, &'a str)],
    /// The caller's bytes that say how rows lie ([`TableInfo::layouts`]); `None`: they stay.
    pub layouts: Option<&'a [u8]>,
    /// What its trees are to ask for, as [`Tables::set_codec`] has it; `None`: they go on with what
    /// they ask for.
    pub codec: Option<Option<PageCodec>>,
}

/// What a table is that gets another name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rename {
    /// A table as any other: its handles stay good, and a snapshot shows by the new name what it
    /// has shown by the old one.
    Whole,
    /// One that was filled under the old name, where no transaction was to read it.
    Filled,
}

impl Tables {
    /// The names of all tables, in order, with what is known of them.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Damaged`].
    pub fn definitions(&self) -> Result<Vec<(String, TableInfo)>, Error> {
        let mut all = Vec::new();
        self.each(b'n', |name, id| {
            if let Some(info) = self.shared.load(number(id)?)? {
                all.push((String::from_utf8_lossy(name).into_owned(), info));
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Gives tables other definitions, all in one transaction, durable when it returns. Handles
    /// stay good and show what they have known: neither rows nor trees are another's now, so
    /// writers are not waited for (TABLE-3 guards what they must know).
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::NoIndex`], [`Error::IndexExists`], [`Error::Definition`],
    /// [`Error::Store`]; nothing was changed.
    pub fn redefine(&self, tables: &[Redefinition<'_>]) -> Result<(), Error> {
        let mut txn = self.begin();
        tables.iter().try_for_each(|table| self.redefine_in(&mut txn, table))?;
        txn.commit_durably(Durability::Synced)?;
        Ok(())
    }

    /// As [`Tables::redefine`], where rows that a snapshot from before shows may be none of the new
    /// definition: all that write to the tables are waited for, and handles and snapshots from
    /// before get [`Error::Changed`].
    ///
    /// # Errors
    /// As [`Tables::redefine`]; [`Error::Definition`] while an index of a table is being built.
    pub fn redefine_anew(&self, tables: &[Redefinition<'_>]) -> Result<(), Error> {
        let mut txn = self.begin();
        let mut ids = Vec::with_capacity(tables.len());
        for new in tables {
            let info = self.lock_table(&mut txn, new.table)?;
            let mut info = info.ok_or_else(|| Error::NoTable(new.table.to_string()))?;
            if info.is_being_built() {
                return Err(building());
            }
            new.bring_into(&mut info)?;
            ask_codec(&mut txn, &info, new.codec)?;
            info.version += 1;
            info.since = info.version;
            info.indexes.iter_mut().for_each(|index| index.since = info.version);
            self.shared.store(&mut txn, &info)?;
            ids.push(info.id);
        }
        ids.iter().for_each(|&id| self.shared.altering(id));
        txn.commit_durably(Durability::Synced)?;
        ids.iter().for_each(|&id| self.shared.altered(id));
        Ok(())
    }

    /// As [`Tables::rename`], and gives tables (this one perhaps, by its old name) other
    /// definitions in the same transaction: those that speak of it by name.
    ///
    /// [`Rename::Filled`] is for a table that was filled under its old name, in many transactions,
    /// to take another one's place: a snapshot from before would show a part of it, and gets
    /// [`Error::Changed`]. So are the handles that there are. Its writers are waited for.
    ///
    /// # Errors
    /// Of both; nothing was changed.
    pub fn rename_with(
        &self,
        from: &str,
        to: &str,
        tables: &[Redefinition<'_>],
        kind: Rename,
    ) -> Result<bool, Error> {
        check_name(to)?;
        let mut txn = self.begin();
        let (catalog, mut id) = (&self.shared.catalog, Vec::new());
        if !txn.get_for_update(catalog, &name_key(from), &mut id)? {
            return Ok(false);
        }
        let (id, id_bytes) = (number(&id)?, id);
        // The version's row before the descriptors'; nothing waits for it of a table as any other.
        if kind == Rename::Filled {
            let _ = self.lock_id(&mut txn, id)?;
        }
        tables.iter().try_for_each(|table| self.redefine_in(&mut txn, table))?;
        self.move_name(&mut txn, from, to, &id_bytes)?;
        match kind {
            Rename::Whole => txn.commit_durably(Durability::Synced)?,
            Rename::Filled => self.renew(txn, id)?,
        }
        Ok(true)
    }

    /// A table that was filled under its own name is complete: a snapshot from before, which would
    /// show it without its rows, gets [`Error::Changed`], and so are handles. A caller that
    /// writes to it is waited for. `false`: there is no such table.
    ///
    /// # Errors
    /// [`Error::Store`]; nothing was changed.
    pub fn filled(&self, table: &str) -> Result<bool, Error> {
        let mut txn = self.begin();
        let Some(info) = self.lock_table(&mut txn, table)? else { return Ok(false) };
        self.renew(txn, info.id)?;
        Ok(true)
    }

    /// Commits, with a version of the table in which all its trees are new to those before.
    fn renew(&self, mut txn: Txn, id: u64) -> Result<(), Error> {
        let mut info = self.lock_id(&mut txn, id)?.ok_or(Error::Changed)?;
        info.version += 1;
        info.since = info.version;
        info.indexes.iter_mut().for_each(|index| index.since = info.version);
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(id);
        Ok(())
    }

    /// Gives a table another name, to be dropped by it later, when all that write to it or have
    /// read it with locks have ended. Its handles get [`Error::Changed`] from then on, so that
    /// a transaction that drops it waits for no transaction that does not know the new name.
    /// `false`: there is none of the old name.
    ///
    /// # Errors
    /// As [`Tables::rename`]; nothing was changed.
    pub fn set_aside(&self, from: &str, to: &str) -> Result<bool, Error> {
        check_name(to)?;
        let mut txn = self.begin();
        let Some(mut info) = self.lock_table(&mut txn, from)? else { return Ok(false) };
        self.move_name(&mut txn, from, to, &info.id.to_le_bytes())?;
        info.version += 1;
        self.shared.store(&mut txn, &info)?;
        self.shared.altering(info.id);
        txn.commit_durably(Durability::Synced)?;
        self.shared.altered(info.id);
        Ok(true)
    }

    fn move_name(&self, txn: &mut Txn, from: &str, to: &str, id: &[u8]) -> Result<(), Error> {
        let catalog = &self.shared.catalog;
        txn.delete(catalog, &name_key(from))?;
        match txn.insert(catalog, &name_key(to), id) {
            Err(weir::Error::Duplicate) => Err(Error::TableExists(to.to_string())),
            done => Ok(done?),
        }
    }

    fn redefine_in(&self, txn: &mut Txn, new: &Redefinition<'_>) -> Result<(), Error> {
        let (catalog, mut value) = (&self.shared.catalog, Vec::new());
        if !txn.get_for_update(catalog, &name_key(new.table), &mut value)? {
            return Err(Error::NoTable(new.table.to_string()));
        }
        let key = key_of(b'd', number(&value)?);
        if !txn.get_for_update(catalog, &key, &mut value)? {
            return Err(Error::NoTable(new.table.to_string()));
        }
        let mut info = TableInfo::decode(&value)?;
        new.bring_into(&mut info)?;
        ask_codec(txn, &info, new.codec)?;
        Ok(txn.put(catalog, &key, &info.encode())?)
    }
}

impl Redefinition<'_> {
    pub(crate) fn bring_into(&self, info: &mut TableInfo) -> Result<(), Error> {
        info.definition = self.definition.to_vec();
        if let Some(layouts) = self.layouts {
            info.layouts = layouts.to_vec();
        }
        rename_indexes(info, self.renamed)
    }
}

/// All at once: two indexes may change their names with each other.
pub(crate) fn rename_indexes(info: &mut TableInfo, renamed: &[(&str, &str)]) -> Result<(), Error> {
    let places = renamed
        .iter()
        .map(|(from, _)| info.index(from).ok_or_else(|| Error::NoIndex((*from).to_string())));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    for (at, (_, to)) in places.into_iter().zip(renamed) {
        check_name(to)?;
        info.indexes[at].name = (*to).to_string();
    }
    for (at, index) in info.indexes.iter().enumerate() {
        if info.index(&index.name) != Some(at) {
            return Err(Error::IndexExists(index.name.clone()));
        }
    }
    Ok(())
}
