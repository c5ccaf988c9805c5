//! Indexes of a table that is there: added, in one call or in steps, and dropped.
use std::ffi::{c_int, c_void};

use ::weir_table::{EntryBuf, Redefinition};

use crate::borrow::{list, shared, weir_bytes};
use crate::catalog::{
    new_codec, specs, waiting, weir_index, weir_redefinition, with_redefinitions,
};
use crate::db::weir_db;
use crate::outcome::{Failure, found, run, weir_code, wrong};
use crate::table::{stored, weir_entry};
use crate::txn::wait;

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

/// Is asked again and again whether to go on; `false` ends the call with WEIR_INTERRUPTED. NULL: it
/// goes on. It must not unwind.
pub type weir_go_on = Option<unsafe extern "C" fn(context: *mut c_void) -> bool>;

/// # Safety
/// The contract of `borrow`.
pub(crate) unsafe fn goes_on(ask: weir_go_on, context: *mut c_void) -> bool {
    // SAFETY: the caller's.
    ask.is_none_or(|ask| unsafe { ask(context) })
}

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
        fill_entry(&made, entry).map_err(not_made)
    }
}

/// Takes over what the caller has made.
///
/// # Safety
/// The contract of `borrow`, for what `made` holds.
pub(crate) unsafe fn fill_entry(made: &weir_entry, entry: &mut EntryBuf) -> Result<(), Failure> {
    // SAFETY: the caller's.
    unsafe {
        entry.key.extend_from_slice(made.key.given()?);
        entry.payload.extend_from_slice(made.payload.given()?);
    }
    entry.has_null = made.has_null;
    Ok(())
}

/// What a caller has made and that cannot be, as the table has it.
pub(crate) fn not_made(found: Failure) -> weir_table::Error {
    weir_table::Error::Input(found.message)
}

/// Adds an index to a table while others write to it: they get WEIR_CHANGED, open the table
/// again and give its entries from then on. WEIR_EXISTS: there is one of this name; WEIR_DUPLICATE:
/// two rows have one key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_add_index(
    db: *const weir_db,
    table: weir_bytes,
    index: *const weir_index,
    make: weir_make_entry,
    context: *mut c_void,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table, spec) = unsafe { (shared(db)?, table.text()?, shared(index)?.spec()?) };
        let added =
            waiting(db, lock_wait_millis).add_index_raw(table, &spec, &mut |key, row, entry| {
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

/// Drops an index, when all that write to the table have ended; not while one of the table is being
/// built (weir_table_finish_indexes can drop others then). WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_drop_index(
    db: *const weir_db,
    table: weir_bytes,
    index: weir_bytes,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table, index) = unsafe { (shared(db)?, table.text()?, index.text()?) };
        if index.is_empty() {
            return Err(wrong("an index has a name"));
        }
        Ok(found(waiting(db, lock_wait_millis).drop_index(table, index)?))
    })
}

/// Makes indexes that are empty and out of use, when all that write to the table have ended: a
/// caller that writes to it from then on gets WEIR_CHANGED, opens it again and gives their entries.
/// weir_table_fill_indexes and weir_table_finish_indexes come next, or weir_table_abandon_indexes;
/// the next opening drops what was not finished. `codec`: how their pages are to be packed, as a
/// weir_redefinition has it. WEIR_EXISTS: there is one of such a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_announce_indexes(
    db: *const weir_db,
    table: weir_bytes,
    indexes: *const weir_index,
    count: usize,
    codec: weir_bytes,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table, specs) = unsafe { (shared(db)?, table.text()?, specs(indexes, count)?) };
        // SAFETY: the contract of `borrow`.
        let codec = unsafe { new_codec(codec)? };
        waiting(db, lock_wait_millis).announce_indexes(table, &specs, codec)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives the announced indexes their entries, while others write to the table. `make` gets the
/// place in the list of them, and so is `duplicate` on WEIR_DUPLICATE: the row that `make` was
/// asked for last has another one's key. `go_on` is asked for each row. Called again it brings in
/// what writers have changed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_fill_indexes(
    db: *const weir_db,
    table: weir_bytes,
    make: weir_make_entry,
    go_on: weir_go_on,
    context: *mut c_void,
    duplicate: *mut i32,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table) = unsafe { (shared(db)?, table.text()?) };
        let tables = waiting(db, lock_wait_millis);
        let mut make = |nth: usize, key: &[u8], row: &[u8], entry: &mut EntryBuf| {
            // SAFETY: the contract of `borrow`.
            unsafe { make_entry(make, context, nth, key, row, entry) }
        };
        // SAFETY: the contract of `borrow`.
        let filled =
            tables.fill_indexes(table, &mut make, &mut || unsafe { goes_on(go_on, context) });
        // SAFETY: the contract of `borrow`.
        unsafe { stored(filled, duplicate) }
    })
}

/// Brings all indexes that were filled into use, drops others by name and gives the table another
/// definition, all at once; of several tables, the parts of one, all of them or none.
/// WEIR_DUPLICATE: a writer has met one meanwhile; `duplicate` is the place in the list of those
/// that were announced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_finish_indexes(
    db: *const weir_db,
    tables: *const weir_redefinition,
    tables_count: usize,
    drop: *const weir_bytes,
    drop_count: usize,
    duplicate: *mut i32,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? };
        // SAFETY: the contract of `borrow`.
        let names = unsafe { list(drop, drop_count)?.iter().map(|name| name.text()) };
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let finish = |all: &[Redefinition<'_>]| {
            Ok(waiting(db, lock_wait_millis).finish_indexes_of(all, &names))
        };
        // SAFETY: the contract of `borrow`.
        unsafe { stored(with_redefinitions(tables, tables_count, finish)?, duplicate) }
    })
}

/// Drops the indexes that were announced and not finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_abandon_indexes(
    db: *const weir_db,
    table: weir_bytes,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table) = unsafe { (shared(db)?, table.text()?) };
        waiting(db, lock_wait_millis).abandon_indexes(table)?;
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
