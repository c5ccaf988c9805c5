//! Tables by name: made, dropped, renamed, emptied, given indexes.
use std::ffi::{c_int, c_void};

use ::weir_table::{EntryBuf, IndexSpec, Redefinition};

use crate::borrow::{list, shared, show, weir_bytes, weir_visit};
use crate::db::weir_db;
use crate::fate::{Failure, found, run, weir_code, wrong};
use crate::table::{told, weir_entry};
use crate::txn::wait;

/// An index to be made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_index {
    /// Its name, unique in the table.
    pub name: weir_bytes,
    /// Whether two rows may not have the same key.
    pub unique: bool,
    /// Bytes of the caller's that say how its keys are made.
    pub definition: weir_bytes,
}

impl weir_index {
    /// # Safety
    /// The contract of `borrow`.
    unsafe fn spec(&self) -> Result<IndexSpec, Failure> {
        // SAFETY: the caller's.
        let (name, definition) = unsafe { (self.name.text()?, self.definition.slice()) };
        let (name, definition) = (name.to_string(), definition.to_vec());
        Ok(IndexSpec { name, unique: self.unique, definition })
    }
}

/// Makes a table of rows and keys that the caller encodes. `definition` is the caller's. Durable
/// when it returns, as all here. WEIR_EXISTS: there is one of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_create(
    db: *const weir_db,
    name: weir_bytes,
    definition: weir_bytes,
    indexes: *const weir_index,
    count: usize,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name, definition) = unsafe { (shared(db)?, name.text()?, definition.slice()) };
        // SAFETY: the contract of `borrow`.
        let specs = unsafe { list(indexes, count).iter().map(|index| index.spec()) };
        let specs = specs.collect::<Result<Vec<_>, _>>()?;
        if db.tables.create_raw(name, definition, &specs)? {
            return Ok(weir_code::WEIR_OK);
        }
        let message = format!("there is a table '{name}' already");
        Err(Failure { code: weir_code::WEIR_EXISTS, message })
    })
}

/// Drops a table, when all who write to it have ended. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_drop(db: *const weir_db, name: weir_bytes) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (shared(db)?, name.text()?) };
        Ok(found(db.tables.drop_table(name)?))
    })
}

/// Gives a table another name. WEIR_NOTHING: there is none; WEIR_EXISTS: there is one of the new
/// name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_rename(
    db: *const weir_db,
    from: weir_bytes,
    to: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, from, to) = unsafe { (shared(db)?, from.text()?, to.text()?) };
        Ok(found(db.tables.rename(from, to)?))
    })
}

/// Another name for an index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_new_name {
    /// The one it has.
    pub from: weir_bytes,
    /// The one it gets.
    pub to: weir_bytes,
}

/// What a table is to have as its definition. Its rows and trees stay as they are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_redefinition {
    /// Its name, before anything is renamed.
    pub table: weir_bytes,
    /// The caller's bytes.
    pub definition: weir_bytes,
    /// Indexes that get another name.
    pub renamed: *const weir_new_name,
    /// How many.
    pub renamed_count: usize,
}

/// Calls with the redefinitions as the tables want them.
///
/// # Safety
/// The contract of `borrow`.
unsafe fn with_redefinitions<R>(
    first: *const weir_redefinition,
    count: usize,
    call: impl FnOnce(&[Redefinition<'_>]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // SAFETY: the caller's.
    let given = unsafe { list(first, count) };
    let names = given.iter().map(|new| {
        // SAFETY: the caller's.
        let renamed = unsafe { list(new.renamed, new.renamed_count) };
        // SAFETY: the caller's.
        renamed.iter().map(|name| unsafe { Ok((name.from.text()?, name.to.text()?)) }).collect()
    });
    let names: Vec<Vec<(&str, &str)>> = names.collect::<Result<_, Failure>>()?;
    let all = given.iter().zip(&names).map(|(new, renamed)| {
        // SAFETY: the caller's.
        let (table, definition) = unsafe { (new.table.text()?, new.definition.slice()) };
        Ok(Redefinition { table, definition, renamed })
    });
    call(&all.collect::<Result<Vec<_>, Failure>>()?)
}

/// Gives tables other definitions, all at once, without waiting for who writes to them. Handles
/// stay good and show what they have known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_redefine(
    db: *const weir_db,
    tables: *const weir_redefinition,
    count: usize,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? };
        // SAFETY: the contract of `borrow`.
        unsafe { with_redefinitions(tables, count, |all| Ok(db.tables.redefine(all)?))? };
        Ok(weir_code::WEIR_OK)
    })
}

/// As weir_table_rename, and gives tables (this one perhaps, by its old name) other definitions at
/// once with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_rename_with(
    db: *const weir_db,
    from: weir_bytes,
    to: weir_bytes,
    tables: *const weir_redefinition,
    count: usize,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, from, to) = unsafe { (shared(db)?, from.text()?, to.text()?) };
        // SAFETY: the contract of `borrow`.
        let done = unsafe {
            with_redefinitions(tables, count, |all| Ok(db.tables.rename_with(from, to, all)?))?
        };
        Ok(found(done))
    })
}

/// Is shown a table, or an index, by its name and definition. It must not unwind, and what it is
/// shown is gone when it returns.
pub type weir_visit_definition =
    Option<unsafe extern "C" fn(context: *mut c_void, name: weir_bytes, definition: weir_bytes)>;

/// Shows all tables with their definitions, in the order of their names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_definitions(
    db: *const weir_db,
    visit: weir_visit_definition,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        for (name, definition) in unsafe { shared(db)? }.tables.definitions()? {
            // SAFETY: the contract of `borrow`.
            unsafe { show_definition(visit, context, &name, &definition) };
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// # Safety
/// The contract of `borrow`.
pub(crate) unsafe fn show_definition(
    visit: weir_visit_definition,
    context: *mut c_void,
    name: &str,
    definition: &[u8],
) {
    if let Some(visit) = visit {
        // SAFETY: the caller of the interface has given a function of this kind.
        unsafe { visit(context, weir_bytes::of(name.as_bytes()), weir_bytes::of(definition)) };
    }
}

/// Removes all rows, when all who write to the table have ended. Handles have to be opened again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_truncate(db: *const weir_db, name: weir_bytes) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (shared(db)?, name.text()?) };
        Ok(found(db.tables.truncate(name)?))
    })
}

/// Shows the names of all tables, in order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_names(
    db: *const weir_db,
    visit: weir_visit,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        for name in unsafe { shared(db)? }.tables.names()? {
            // SAFETY: the contract of `borrow`.
            unsafe { show(visit, context, name.as_bytes()) };
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// Makes the entry of a row in an index: fills `entry` with bytes that stay until its next call and
/// returns 0, or something else to stop. It must not unwind.
pub type weir_make_entry = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        index: usize,
        key: weir_bytes,
        row: weir_bytes,
        entry: *mut weir_entry,
    ) -> c_int,
>;

/// Asks the caller for an entry.
///
/// # Safety
/// The contract of `borrow`, for what the function fills in too.
pub(crate) unsafe fn make_entry(
    make: weir_make_entry,
    context: *mut c_void,
    index: usize,
    key: &[u8],
    row: &[u8],
    entry: &mut EntryBuf,
) -> Result<(), weir_table::Error> {
    let stopped = || weir_table::Error::Input("the making of an entry was stopped".into());
    let make = make.ok_or_else(stopped)?;
    let none = weir_bytes::of(&[]);
    let mut made = weir_entry { key: none, payload: none, has_null: false };
    // SAFETY: the caller's.
    unsafe {
        if make(context, index, weir_bytes::of(key), weir_bytes::of(row), &raw mut made) != 0 {
            return Err(stopped());
        }
        entry.key.extend_from_slice(made.key.slice());
        entry.payload.extend_from_slice(made.payload.slice());
    }
    entry.has_null = made.has_null;
    Ok(())
}

/// Adds an index to a table while others write to it: they are told WEIR_CHANGED, open the table
/// again and give its entries from then on. WEIR_EXISTS: there is one of this name; WEIR_DUPLICATE:
/// two rows have one key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_add_index(
    db: *const weir_db,
    table: weir_bytes,
    index: *const weir_index,
    make: weir_make_entry,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table, spec) = unsafe { (shared(db)?, table.text()?, shared(index)?.spec()?) };
        let added = db.tables.add_index_raw(table, &spec, &mut |key, row, entry| {
            // SAFETY: the contract of `borrow`.
            unsafe { make_entry(make, context, 0, key, row, entry) }
        })?;
        if added {
            return Ok(weir_code::WEIR_OK);
        }
        let message = format!("there is an index '{}' already", spec.name);
        Err(Failure { code: weir_code::WEIR_EXISTS, message })
    })
}

/// Drops an index, when all who write to the table have ended. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_drop_index(
    db: *const weir_db,
    table: weir_bytes,
    index: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table, index) = unsafe { (shared(db)?, table.text()?, index.text()?) };
        if index.is_empty() {
            return Err(wrong("an index has a name"));
        }
        Ok(found(db.tables.drop_index(table, index)?))
    })
}

/// Makes indexes that are empty and out of use, when all who write to the table have ended: whoever
/// writes to it from then on is told WEIR_CHANGED, opens it again and gives their entries.
/// weir_table_fill_indexes and weir_table_finish_indexes come next, or weir_table_abandon_indexes;
/// the next opening drops what was not finished. WEIR_EXISTS: there is one of such a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_announce_indexes(
    db: *const weir_db,
    table: weir_bytes,
    indexes: *const weir_index,
    count: usize,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table) = unsafe { (shared(db)?, table.text()?) };
        // SAFETY: the contract of `borrow`.
        let specs = unsafe { list(indexes, count).iter().map(|index| index.spec()) };
        db.tables.announce_indexes(table, &specs.collect::<Result<Vec<_>, _>>()?)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives the announced indexes their entries, while others write to the table. `make` is told the
/// place in the list of them, and so is `duplicate` on WEIR_DUPLICATE: the row that `make` was
/// asked for last has another one's key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_fill_indexes(
    db: *const weir_db,
    table: weir_bytes,
    make: weir_make_entry,
    context: *mut c_void,
    duplicate: *mut i32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table) = unsafe { (shared(db)?, table.text()?) };
        let filled = db.tables.fill_indexes(table, &mut |nth, key, row, entry| {
            // SAFETY: the contract of `borrow`.
            unsafe { make_entry(make, context, nth, key, row, entry) }
        });
        // SAFETY: the contract of `borrow`.
        unsafe { told(filled, duplicate) }
    })
}

/// Brings all indexes that were filled into use, drops others by name and gives the table another
/// definition, all at once. WEIR_DUPLICATE: whoever wrote meanwhile has met one; `duplicate` is the
/// place in the list of those that were announced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_finish_indexes(
    db: *const weir_db,
    table: weir_bytes,
    definition: weir_bytes,
    drop: *const weir_bytes,
    count: usize,
    duplicate: *mut i32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table, definition) = unsafe { (shared(db)?, table.text()?, definition.slice()) };
        // SAFETY: the contract of `borrow`.
        let names = unsafe { list(drop, count).iter().map(|name| name.text()) };
        let names = names.collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the contract of `borrow`.
        unsafe { told(db.tables.finish_indexes(table, definition, &names), duplicate) }
    })
}

/// Drops the indexes that were announced and not finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_abandon_indexes(
    db: *const weir_db,
    table: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table) = unsafe { (shared(db)?, table.text()?) };
        db.tables.abandon_indexes(table)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Drops the indexes whose building a crash has cut short and that the opening had to leave, since
/// a transaction that is prepared had written to their table: for when those are decided. It waits
/// so long for each that is not, and then leaves them, too. Not while an index is being built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_drop_unfinished_indexes(
    db: *const weir_db,
    wait_ms: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.tables.drop_unfinished(wait(wait_ms))?;
        Ok(weir_code::WEIR_OK)
    })
}
