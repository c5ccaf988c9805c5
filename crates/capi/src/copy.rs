//! Filling a new table that is not known elsewhere.
use std::ffi::c_void;

use ::weir_table::Copy;

use crate::borrow::{alone, give, put, shared, taken, weir_bytes};
use crate::indexes::{goes_on, weir_go_on};
use crate::outcome::{run, weir_code, wrong};
use crate::table::{stored, weir_row, weir_table};
use crate::txn::weir_txn;

/// A table that is being filled.
pub struct weir_copy {
    copy: Option<Copy>,
    twice: Vec<u8>,
}

/// Begins to fill a table, which must be empty and which no other caller reads or writes until
/// weir_copy_finish, not by another handle either. Rows are loaded as they come, entries of indexes
/// at the end. Given back, unfinished, it leaves a part of the rows, for the caller to drop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_copy_begin(
    table: *const weir_table,
    out: *mut *mut weir_copy,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let table = unsafe { shared(table)? };
        let copy = Some(table.table.copy()?);
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_copy { copy, twice: Vec::new() })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Adds a row. One that does not come in the order of the primary keys is inserted by the
/// transaction, and so is every one behind it. On WEIR_DUPLICATE, of the primary key, `duplicate`
/// is WEIR_ROWS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_copy_row(
    copy: *mut weir_copy,
    txn: *const weir_txn,
    row: *const weir_row,
    duplicate: *mut i32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (copy, row, inner) =
            unsafe { (alone(copy)?, shared(row)?, shared(txn)?.inner_to_wait()?) };
        let copy = copy.copy.as_mut().ok_or_else(|| wrong("this copy is finished"))?;
        // SAFETY: the contract of `borrow`.
        unsafe {
            let entries = row.entries()?;
            stored(copy.push(&mut inner.txn, row.image(&entries)?), duplicate)
        }
    })
}

/// Ends it: the table has all rows and entries, as durably as what is committed durably later. On
/// WEIR_DUPLICATE, `duplicate` is the index in which two rows have the same key, and `primary_key`
/// is one's, good until weir_copy_close. `go_on` is asked for each entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_copy_finish(
    copy: *mut weir_copy,
    go_on: weir_go_on,
    context: *mut c_void,
    duplicate: *mut i32,
    primary_key: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let whole = unsafe { alone(copy)? };
        let copy = whole.copy.take().ok_or_else(|| wrong("this copy is finished"))?;
        // SAFETY: the contract of `borrow`.
        let done = copy.finish(&mut || unsafe { goes_on(go_on, context) }, &mut whole.twice);
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(primary_key, weir_bytes::of(&whole.twice))?;
            stored(done, duplicate)
        }
    })
}

/// Gives it back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_copy_close(copy: *mut weir_copy) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(copy) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}
