//! Tables by name: made, dropped, renamed, emptied.
use std::ffi::c_void;

use ::weir::PageCodec;
use ::weir_table::{IndexSpec, Redefinition, Rename, Tables};

use crate::borrow::{list, shared, show, weir_bytes, weir_visit};
use crate::db::weir_db;
use crate::outcome::{Failure, found, run, weir_code};
use crate::tree::codec_named;
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
    /// Whether it keeps several entries of a row, or none; then it is not unique. A row still has
    /// one weir_entry, with no key, in whose payload they lie (weir_words_entries).
    pub several: bool,
}

impl weir_index {
    /// # Safety
    /// The contract of `borrow`.
    pub(crate) unsafe fn spec(&self) -> Result<IndexSpec, Failure> {
        // SAFETY: the caller's.
        let (name, definition) = unsafe { (self.name.text()?, self.definition.given()?) };
        let (name, definition) = (name.to_string(), definition.to_vec());
        Ok(IndexSpec { name, unique: self.unique, several: self.several, definition })
    }
}

/// # Safety
/// The contract of `borrow`.
pub(crate) unsafe fn specs(
    first: *const weir_index,
    count: usize,
) -> Result<Vec<IndexSpec>, Failure> {
    // SAFETY: the caller's.
    unsafe { list(first, count)?.iter().map(|index| index.spec()).collect() }
}

/// The tables, for a change that waits so long for transactions that write to one.
pub(crate) fn waiting(db: &weir_db, lock_wait_millis: u64) -> Tables {
    db.tables.with_lock_wait(wait(lock_wait_millis))
}

/// Makes a table of rows and keys that the caller encodes. `definition` is the caller's. Durable
/// when it returns, as all here. `codec`: how its pages are packed, as `weir_tree_set_codec` has
/// it, in one transaction with the table. WEIR_EXISTS: there is one of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_create(
    db: *const weir_db,
    name: weir_bytes,
    definition: weir_bytes,
    indexes: *const weir_index,
    count: usize,
    codec: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name, definition) = unsafe { (shared(db)?, name.text()?, definition.given()?) };
        // SAFETY: the contract of `borrow`.
        let codec = codec_named(unsafe { codec.text()? })?;
        // SAFETY: the contract of `borrow`.
        let specs = unsafe { specs(indexes, count)? };
        if db.tables.create_raw_with(name, definition, &specs, codec)? {
            return Ok(weir_code::WEIR_OK);
        }
        let message = format!("there is a table '{name}' already");
        Err(Failure { code: weir_code::WEIR_EXISTS, message })
    })
}

/// Has pages of a table and of its indexes, also of later ones, packed by another codec from their
/// next write on, as `weir_tree_set_codec` has it. WEIR_NOTHING: there is no such table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_set_codec(
    db: *const weir_db,
    name: weir_bytes,
    codec: weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name, codec) = unsafe { (shared(db)?, name.text()?, codec.text()?) };
        Ok(found(db.tables.set_codec(name, codec_named(codec)?)?))
    })
}

/// Drops a table, when all that write to it have ended. Each of them is waited for at most
/// `lock_wait_millis`, here and in all that have this argument: WEIR_LOCK_TIMEOUT, and 0 is
/// WEIR_WOULD_WAIT at once; nothing was changed then. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_drop(
    db: *const weir_db,
    name: weir_bytes,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (shared(db)?, name.text()?) };
        Ok(found(waiting(db, lock_wait_millis).drop_table(name)?))
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

/// Gives a table another name, to be dropped by it later, when all that write to it or have read it
/// with locks have ended. Handles have to be opened again, so that dropping it waits for no
/// transaction that does not know the new name. WEIR_NOTHING, WEIR_EXISTS: as weir_table_rename.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_set_aside(
    db: *const weir_db,
    from: weir_bytes,
    to: weir_bytes,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, from, to) = unsafe { (shared(db)?, from.text()?, to.text()?) };
        Ok(found(waiting(db, lock_wait_millis).set_aside(from, to)?))
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
    /// The caller's bytes that say how rows lie that were written under earlier definitions; with
    /// the data NULL they stay as they are. They go when the rows do.
    pub layouts: weir_bytes,
    /// How its pages are to be packed, as `weir_tree_set_codec` has it; with the data NULL as they
    /// are.
    pub codec: weir_bytes,
}

/// The codec that trees are to ask for from now on, as a weir_redefinition names it; `None`: what
/// they ask for already.
///
/// # Safety
/// The contract of `borrow`.
pub(crate) unsafe fn new_codec(name: weir_bytes) -> Result<Option<Option<PageCodec>>, Failure> {
    // SAFETY: the caller's.
    let name = (!name.data.is_null()).then(|| unsafe { name.text() });
    name.transpose()?.map(codec_named).transpose()
}

/// Calls with the redefinitions as the tables want them.
///
/// # Safety
/// The contract of `borrow`.
pub(crate) unsafe fn with_redefinitions<R>(
    first: *const weir_redefinition,
    count: usize,
    call: impl FnOnce(&[Redefinition<'_>]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // SAFETY: the caller's.
    let given = unsafe { list(first, count)? };
    let names = given.iter().map(|new| {
        // SAFETY: the caller's.
        let renamed = unsafe { list(new.renamed, new.renamed_count)? };
        // SAFETY: the caller's.
        renamed.iter().map(|name| unsafe { Ok((name.from.text()?, name.to.text()?)) }).collect()
    });
    let names: Vec<Vec<(&str, &str)>> = names.collect::<Result<_, Failure>>()?;
    let all = given.iter().zip(&names).map(|(new, renamed)| {
        // SAFETY: the caller's.
        let (table, definition) = unsafe { (new.table.text()?, new.definition.given()?) };
        // SAFETY: the caller's.
        let layouts = unsafe { new.layouts.given()? };
        let layouts = (!new.layouts.data.is_null()).then_some(layouts);
        // SAFETY: the caller's.
        let codec = unsafe { new_codec(new.codec)? };
        Ok(Redefinition { table, definition, renamed, layouts, codec })
    });
    call(&all.collect::<Result<Vec<_>, Failure>>()?)
}

/// Gives tables other definitions, all at once, without waiting for transactions that write to
/// them. Handles stay good and show what they have known.
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

/// As weir_table_redefine, where a snapshot from before may show rows that are none of the new
/// definition: all that write to the tables are waited for, and handles and snapshots from before
/// get WEIR_CHANGED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_redefine_anew(
    db: *const weir_db,
    tables: *const weir_redefinition,
    count: usize,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? };
        let anew = |all: &[Redefinition<'_>]| Ok(waiting(db, lock_wait_millis).redefine_anew(all)?);
        // SAFETY: the contract of `borrow`.
        unsafe { with_redefinitions(tables, count, anew)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// As weir_table_rename, and gives tables (this one perhaps, by its old name) other definitions at
/// once with it. `filled`: it was filled under its old name, in many transactions, to take another
/// table's place: snapshots from before, and handles, get WEIR_CHANGED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_rename_with(
    db: *const weir_db,
    from: weir_bytes,
    to: weir_bytes,
    tables: *const weir_redefinition,
    count: usize,
    filled: bool,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, from, to) = unsafe { (shared(db)?, from.text()?, to.text()?) };
        let kind = if filled { Rename::Filled } else { Rename::Whole };
        // SAFETY: the contract of `borrow`.
        let done = unsafe {
            with_redefinitions(tables, count, |all| {
                Ok(db.tables.rename_with(from, to, all, kind)?)
            })?
        };
        Ok(found(done))
    })
}

/// A table that was filled under its own name is complete: snapshots from before, which would show
/// it without its rows, and handles get WEIR_CHANGED. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_filled(
    db: *const weir_db,
    name: weir_bytes,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (shared(db)?, name.text()?) };
        Ok(found(waiting(db, lock_wait_millis).filled(name)?))
    })
}

/// Is shown a table by its name and definition, and how its rows lie (weir_redefinition). It must
/// not unwind, and what it is shown is gone when it returns.
pub type weir_visit_table = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        name: weir_bytes,
        definition: weir_bytes,
        layouts: weir_bytes,
    ),
>;

/// Is shown an index by its name and definition. It must not unwind, and what it is
/// shown is gone when it returns.
pub type weir_visit_definition =
    Option<unsafe extern "C" fn(context: *mut c_void, name: weir_bytes, definition: weir_bytes)>;

/// Shows all tables with their definitions, in the order of their names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_definitions(
    db: *const weir_db,
    visit: weir_visit_table,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        for (name, info) in unsafe { shared(db)? }.tables.definitions()? {
            let name = weir_bytes::of(name.as_bytes());
            let (definition, layouts) =
                (weir_bytes::of(&info.definition), weir_bytes::of(&info.layouts));
            if let Some(visit) = visit {
                // SAFETY: the caller of the interface has given a function of this kind.
                unsafe { visit(context, name, definition, layouts) };
            }
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

/// Removes all rows, when all that write to the table have ended. Handles have to be opened again.
/// Auto-increment begins anew, with `next_number`; 0: it goes on where it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_truncate(
    db: *const weir_db,
    name: weir_bytes,
    next_number: u64,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (shared(db)?, name.text()?) };
        let tables = waiting(db, lock_wait_millis);
        Ok(found(match next_number {
            0 => tables.truncate(name)?,
            next => tables.begin_anew(name, next)?,
        }))
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
