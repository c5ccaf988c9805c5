//! Tables as streams of bytes: out of one database, into another.
use std::ffi::c_void;

use ::weir_table::{ExportHead, Exported, verify_export};

use crate::backup::{weir_sink, weir_source};
use crate::borrow::{place, put, shared, weir_bytes};
use crate::catalog::waiting;
use crate::db::weir_db;
use crate::indexes::{goes_on, weir_go_on};
use crate::outcome::{Done, run, weir_code};
use crate::table::weir_table;

/// What an exported table holds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_exported {
    /// Rows.
    pub rows: u64,
    /// Bytes of the stream.
    pub bytes: u64,
}

/// # Safety
/// The contract of `borrow`.
unsafe fn put_done(out: *mut weir_exported, done: Exported) -> Done {
    let Exported { rows, bytes } = done;
    if place(out).is_ok() {
        // SAFETY: the caller's.
        unsafe { put(out, weir_exported { rows, bytes })? };
    }
    Ok(weir_code::WEIR_OK)
}

/// Writes a table as it is committed now to `sink`: its rows, the entries of its indexes, and what
/// it is, each part with a checksum. `heading`: bytes of the caller's, which come back when it is
/// read. What is not committed, be it prepared, is not in it. `go_on` is asked for each entry.
/// WEIR_CHANGED: the handle is older than the definition. Where it fails, what was written is no
/// table. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_export(
    table: *const weir_table,
    heading: weir_bytes,
    sink: weir_sink,
    go_on: weir_go_on,
    context: *mut c_void,
    out: *mut weir_exported,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, heading) = unsafe { (shared(table)?, heading.given()?) };
        let mut sink = sink.given()?;
        // SAFETY: the contract of `borrow`.
        let mut go_on = || unsafe { goes_on(go_on, context) };
        let done = table.table.export(heading, &mut sink, &mut go_on)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put_done(out, done) }
    })
}

/// Is shown what an exported table says of itself: the heading that it got, its definition, and how
/// its rows lie (weir_redefinition). It must not unwind, and what it is shown is gone when it
/// returns.
pub type weir_visit_export = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        heading: weir_bytes,
        definition: weir_bytes,
        layouts: weir_bytes,
    ),
>;

/// Reads an exported table to its end, and verifies all of it; then shows what it says of itself.
/// `go_on` is asked for each entry. WEIR_DAMAGED: it is not what was written, or not all of that;
/// WEIR_INPUT: it is none, or of a later version. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_export_verify(
    source: weir_source,
    visit: weir_visit_export,
    go_on: weir_go_on,
    context: *mut c_void,
    out: *mut weir_exported,
) -> weir_code {
    run(|| {
        let mut source = source.given()?;
        // SAFETY: the contract of `borrow`.
        let mut go_on = || unsafe { goes_on(go_on, context) };
        let (head, done) = verify_export(&mut source, &mut go_on)?;
        let ExportHead { heading, definition, layouts, .. } = &head;
        if let Some(visit) = visit {
            let [heading, definition, layouts] =
                [heading, definition, layouts].map(|bytes| weir_bytes::of(bytes));
            // SAFETY: the caller of the interface has given a function of this kind.
            unsafe { visit(context, heading, definition, layouts) };
        }
        // SAFETY: the contract of `borrow`.
        unsafe { put_done(out, done) }
    })
}

/// Puts the rows of an exported table in the place of a table's own, when all that write to it have
/// ended; its numbers go on where the other's were, and its rows lie as the other's did. Its
/// definition stays: the caller knows that both are made alike; that their indexes have the same
/// names is looked at. Handles have to be opened again, and older snapshots get WEIR_CHANGED. Codes
/// as weir_export_verify; where it fails, nothing was changed. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_import(
    db: *const weir_db,
    table: weir_bytes,
    source: weir_source,
    go_on: weir_go_on,
    context: *mut c_void,
    lock_wait_millis: u64,
    out: *mut weir_exported,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, table) = unsafe { (shared(db)?, table.text()?) };
        let mut source = source.given()?;
        // SAFETY: the contract of `borrow`.
        let mut go_on = || unsafe { goes_on(go_on, context) };
        let tables = waiting(db, lock_wait_millis);
        let done = tables.import(table, &mut source, &mut go_on)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put_done(out, done) }
    })
}
