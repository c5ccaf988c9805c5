//! Rows of a table that is there, written anew while others write.
use std::ffi::{c_int, c_void};

use ::weir_table::{EntryBuf, Redefinition, RowBuf};

use crate::borrow::{list, shared, weir_bytes};
use crate::catalog::{
    new_codec, specs, waiting, weir_index, weir_redefinition, with_redefinitions,
};
use crate::db::weir_db;
use crate::indexes::{fill_entry, goes_on, not_made, weir_go_on};
use crate::outcome::{run, weir_code};
use crate::table::{stored, weir_row};

/// Makes a row of the new table, with an entry for each of its indexes: fills `made` with bytes
/// that stay until its next call and returns 0, or something else to stop. `table`: the place of
/// the table among those that are written anew together. It makes the same of the same row whenever
/// it is asked, and must not unwind.
pub type weir_make_row = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        table: usize,
        key: weir_bytes,
        row: weir_bytes,
        made: *mut weir_row,
    ) -> c_int,
>;

/// Asks the caller for a row.
///
/// # Safety
/// The contract of `borrow`, for what the function fills in too.
unsafe fn make_row(
    make: weir_make_row,
    context: *mut c_void,
    table: usize,
    key: &[u8],
    row: &[u8],
    buf: &mut RowBuf,
) -> Result<(), weir_table::Error> {
    let stopped = || weir_table::Error::Input("the making of a row was stopped".into());
    let make = make.ok_or_else(stopped)?;
    let none = weir_bytes::of(&[]);
    let mut made = weir_row { key: none, row: none, entries: std::ptr::null(), entry_count: 0 };
    // SAFETY: the caller's.
    unsafe {
        if make(context, table, weir_bytes::of(key), weir_bytes::of(row), &raw mut made) != 0 {
            return Err(stopped());
        }
        buf.key.extend_from_slice(made.key.given().map_err(not_made)?);
        buf.row.extend_from_slice(made.row.given().map_err(not_made)?);
        let entries = list(made.entries, made.entry_count).map_err(not_made)?;
        buf.entries.resize(entries.len(), EntryBuf::default());
        for (entry, made) in buf.entries.iter_mut().zip(entries) {
            fill_entry(made, entry).map_err(not_made)?;
        }
    }
    Ok(())
}

/// Begins to write a table's rows anew, when all that write to it have ended: a caller that writes
/// to it from then on gets WEIR_CHANGED and opens it again. `indexes`: all that it is to have.
/// `codec`: how the new pages are to be packed, as a weir_redefinition has it.
/// weir_table_fill_rewrite and weir_table_finish_rewrite come next, or weir_table_abandon_indexes;
/// the next opening drops what was not finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_announce_rewrite(
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
        waiting(db, lock_wait_millis).announce_rewrite(table, &specs, codec)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Makes the rows of the new table while others write to the one that there is. `in_order`: their
/// keys are in the order of the old ones. `make` gets place 0. On WEIR_DUPLICATE `make` was
/// asked last for a row that has another one's key, of the new index at `duplicate`, or WEIR_ROWS.
/// `go_on` is asked for each row. Called again it brings in what writers have changed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_fill_rewrite(
    db: *const weir_db,
    table: weir_bytes,
    in_order: bool,
    make: weir_make_row,
    go_on: weir_go_on,
    context: *mut c_void,
    duplicate: *mut i32,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table) = unsafe { (shared(db)?, table.text()?) };
        let tables = waiting(db, lock_wait_millis);
        let mut make = |nth: usize, key: &[u8], row: &[u8], made: &mut RowBuf| {
            // SAFETY: the contract of `borrow`.
            unsafe { make_row(make, context, nth, key, row, made) }
        };
        // SAFETY: the contract of `borrow`.
        let mut go_on = || unsafe { goes_on(go_on, context) };
        // SAFETY: the contract of `borrow`.
        unsafe { stored(tables.fill_rewrite(table, in_order, &mut make, &mut go_on), duplicate) }
    })
}

/// Brings in the rest and puts the rows that were written anew in the place of the old ones, with
/// another definition; of several tables, the parts of one, all of them or none. `make` gets the
/// place in the list. WEIR_DUPLICATE: as weir_table_fill_rewrite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_finish_rewrite(
    db: *const weir_db,
    tables: *const weir_redefinition,
    tables_count: usize,
    make: weir_make_row,
    context: *mut c_void,
    duplicate: *mut i32,
    lock_wait_millis: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? };
        let mut make = |nth: usize, key: &[u8], row: &[u8], made: &mut RowBuf| {
            // SAFETY: the contract of `borrow`.
            unsafe { make_row(make, context, nth, key, row, made) }
        };
        let finish = |all: &[Redefinition<'_>]| {
            Ok(waiting(db, lock_wait_millis).finish_rewrite(all, &mut make))
        };
        // SAFETY: the contract of `borrow`.
        unsafe { stored(with_redefinitions(tables, tables_count, finish)?, duplicate) }
    })
}
