//! Rows of a table and their index entries.
use std::ffi::c_void;

use ::weir_table::{Entry, EntryBuf, Error, KeyRange, RawTable, RowImage};
use smallvec::SmallVec;
use weir::Extent;

use crate::borrow::{alone, give, list, put, shared, show, taken, weir_bytes, weir_visit};
use crate::catalog::{show_definition, weir_visit_definition};
use crate::db::weir_db;
use crate::indexes::{goes_on, make_entry, weir_go_on, weir_make_entry};
use crate::outcome::{Done, Failure, found, run, weir_code, wrong};
use crate::txn::{weir_lock, weir_txn};

/// A table, good until its definition changes. One thread at a time uses it.
pub struct weir_table {
    pub(crate) table: RawTable,
    row: Vec<u8>,
}

/// What an index keeps of a row. Keys compare as bytes; none may be the beginning of another.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_entry {
    /// The index key.
    pub key: weir_bytes,
    /// What else a covering read needs.
    pub payload: weir_bytes,
    /// Whether a column of the key is NULL: then it equals no other key.
    pub has_null: bool,
}

/// A row with its index entries.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_row {
    /// The primary key.
    pub key: weir_bytes,
    /// The row.
    pub row: weir_bytes,
    /// One entry for each index, in the table's order, those being built included.
    pub entries: *const weir_entry,
    /// How many.
    pub entry_count: usize,
}

/// The rows, not an index.
pub const WEIR_ROWS: i32 = -1;

impl weir_row {
    /// # Safety
    /// The contract of `borrow`.
    pub(crate) unsafe fn entries<'a>(&self) -> Result<SmallVec<[Entry<'a>; 4]>, Failure> {
        // SAFETY: the caller's.
        let entries = unsafe { list(self.entries, self.entry_count)? };
        let entry = |entry: &weir_entry| {
            // SAFETY: the caller's.
            let (key, payload) = unsafe { (entry.key.given()?, entry.payload.given()?) };
            Ok(Entry { key, payload, has_null: entry.has_null })
        };
        entries.iter().map(entry).collect()
    }

    /// # Safety
    /// The contract of `borrow`.
    pub(crate) unsafe fn image<'a>(
        &self,
        entries: &'a [Entry<'a>],
    ) -> Result<RowImage<'a>, Failure> {
        // SAFETY: the caller's.
        let (key, row) = unsafe { (self.key.given()?, self.row.given()?) };
        Ok(RowImage { key, row, entries })
    }
}

/// The place of an index.
pub(crate) fn place(index: i32) -> Result<Option<usize>, Failure> {
    match index {
        WEIR_ROWS => Ok(None),
        at => usize::try_from(at).map(Some).map_err(|_| wrong(format!("there is no index {at}"))),
    }
}

/// Opens a table. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_open(
    db: *const weir_db,
    name: weir_bytes,
    out: *mut *mut weir_table,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, name) = unsafe { (shared(db)?, name.text()?) };
        let table = db.tables.open_raw(name)?;
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_table { table, row: Vec::new() })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Another handle of the same table, for another thread. No caller may be using this one meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_clone(
    table: *const weir_table,
    out: *mut *mut weir_table,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let table = unsafe { shared(table)? }.table.clone();
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_table { table, row: Vec::new() })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives a table's handle back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_close(table: *mut weir_table) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(table) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// The version of its definition and the caller's bytes in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_definition(
    table: *const weir_table,
    version: *mut u64,
    definition: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let info = unsafe { shared(table)? }.table.info();
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(version, info.version)?;
            put(definition, weir_bytes::of(&info.definition))?;
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// Shows its indexes with their definitions, in order, those being built included: the first is
/// index 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_indexes(
    table: *const weir_table,
    visit: weir_visit_definition,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        for index in &unsafe { shared(table)? }.table.info().indexes {
            // SAFETY: the contract of `borrow`.
            unsafe { show_definition(visit, context, &index.name, &index.definition) };
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// Says where a duplicate was, and passes the outcome on.
///
/// # Safety
/// The contract of `borrow`.
pub(crate) unsafe fn stored(done: Result<(), Error>, duplicate: *mut i32) -> Done {
    if let Err(Error::Duplicate { index }) = &done {
        let at = index.map_or(WEIR_ROWS, |at| i32::try_from(at).unwrap_or(WEIR_ROWS));
        // SAFETY: the caller's.
        unsafe { put(duplicate, at)? };
    }
    done?;
    Ok(weir_code::WEIR_OK)
}

/// Inserts a row and its entries: all, or nothing. On WEIR_DUPLICATE, `duplicate` says which index
/// has the key already, or WEIR_ROWS for the primary key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_insert(
    table: *const weir_table,
    txn: *const weir_txn,
    row: *const weir_row,
    duplicate: *mut i32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, row, inner) =
            unsafe { (shared(table)?, shared(row)?, shared(txn)?.inner_to_wait()?) };
        // SAFETY: the contract of `borrow`.
        unsafe {
            let entries = row.entries()?;
            stored(table.table.insert(&mut inner.txn, row.image(&entries)?), duplicate)
        }
    })
}

/// Turns one row, as this transaction has read it with a lock, into another: all, or nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_update(
    table: *const weir_table,
    txn: *const weir_txn,
    old: *const weir_row,
    new: *const weir_row,
    duplicate: *mut i32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        // SAFETY: the contract of `borrow`.
        unsafe {
            let (old, new) = (shared(old)?, shared(new)?);
            let (was, is) = (old.entries()?, new.entries()?);
            let (was, is) = (old.image(&was)?, new.image(&is)?);
            stored(table.table.update(&mut inner.txn, was, is), duplicate)
        }
    })
}

/// Removes a row, whose bytes are not looked at, and its entries: all, or nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_delete(
    table: *const weir_table,
    txn: *const weir_txn,
    old: *const weir_row,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, old, inner) =
            unsafe { (shared(table)?, shared(old)?, shared(txn)?.inner_to_wait()?) };
        // SAFETY: the contract of `borrow`.
        let (key, entries) = unsafe { (old.key.given()?, old.entries()?) };
        table.table.delete(&mut inner.txn, RowImage { key, row: &[], entries: &entries })?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Reads a row by its primary key; `lock` is a weir_lock. With a lock the key is locked whether or
/// not there is a row, and the row is the one committed last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_get(
    table: *mut weir_table,
    txn: *const weir_txn,
    key: weir_bytes,
    lock: u32,
    row: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (handle, txn, key) = unsafe { (alone(table)?, shared(txn)?, key.given()?) };
        let (table, out) = (&handle.table, &mut handle.row);
        // SAFETY: the contract of `borrow`.
        let there = match lock {
            l if l == weir_lock::WEIR_LOCK_NONE as u32 => {
                // SAFETY: the contract of `borrow`.
                table.get(&mut unsafe { txn.inner_to_read()? }.txn, key, out)?
            }
            l if l == weir_lock::WEIR_LOCK_SHARE as u32 => {
                // SAFETY: the contract of `borrow`.
                table.get_for_share(&mut unsafe { txn.inner_to_wait()? }.txn, key, out)?
            }
            l if l == weir_lock::WEIR_LOCK_UPDATE as u32 => {
                // SAFETY: the contract of `borrow`.
                table.get_for_update(&mut unsafe { txn.inner_to_wait()? }.txn, key, out)?
            }
            other => return Err(wrong(format!("{other} is no weir_lock"))),
        };
        // SAFETY: the contract of `borrow`.
        unsafe { put(row, weir_bytes::of(out))? };
        Ok(found(there))
    })
}

/// As weir_table_get without a lock, of a row that does not lie whole beside its key only the first
/// bytes: then it puts true into `front`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_get_front(
    table: *mut weir_table,
    txn: *const weir_txn,
    key: weir_bytes,
    row: *mut weir_bytes,
    front: *mut bool,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (handle, txn, key) = unsafe { (alone(table)?, shared(txn)?, key.given()?) };
        // SAFETY: the contract of `borrow`.
        let txn = &mut unsafe { txn.inner_to_read()? }.txn;
        let extent = handle.table.get_front(txn, key, &mut handle.row)?;
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(row, weir_bytes::of(&handle.row))?;
            put(front, extent == Extent::Front)?;
        }
        Ok(found(extent != Extent::Nothing))
    })
}

/// Locks a key without NULLs of a unique index, whether or not there is a row, and reads the
/// primary key of its row as committed last. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_find_for_update(
    table: *mut weir_table,
    txn: *const weir_txn,
    index: usize,
    key: weir_bytes,
    primary_key: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (handle, inner, key) =
            unsafe { (alone(table)?, shared(txn)?.inner_to_wait()?, key.given()?) };
        let primary = handle.table.find_for_update(&mut inner.txn, index, key)?;
        let Some(primary) = primary else { return Ok(weir_code::WEIR_NOTHING) };
        handle.row = primary;
        // SAFETY: the contract of `borrow`.
        unsafe { put(primary_key, weir_bytes::of(&handle.row))? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Releases the locks of the table's rows and entries, not of ranges, that a transaction has come
/// to hold between two marks (weir_txn_lock_mark): of what it has read for a change and does not
/// want after all. For the levels below WEIR_REPEATABLE_READ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_release_locks(
    table: *const weir_table,
    txn: *const weir_txn,
    from: usize,
    to: usize,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner()) };
        table.table.release_between(&inner.txn, from..to);
        Ok(weir_code::WEIR_OK)
    })
}

/// Sees to it that the table's definition stays what this handle knows until the transaction ends,
/// and waits for a transaction that is changing it, as whatever changes rows or numbers does: for a
/// caller that must not wait then. WEIR_CHANGED: open the table anew.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_lock_definition(
    table: *const weir_table,
    txn: *const weir_txn,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        table.table.lock_definition(&mut inner.txn)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Takes `count` auto-increment numbers in a row, none above `max`. No caller ever gets them again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_take_numbers(
    table: *const weir_table,
    txn: *const weir_txn,
    count: u64,
    max: u64,
    first: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        let taken = table.table.take_numbers(&mut inner.txn, count, max)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put(first, taken)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Sees to it that all auto-increment numbers from now on are above `used`. `max` is the greatest
/// that the column can hold: the fewer are left, the smaller are the gaps that a crash leaves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_pass_number(
    table: *const weir_table,
    txn: *const weir_txn,
    used: u64,
    max: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        table.table.pass_number(&mut inner.txn, used, max)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// The auto-increment number that would be given out next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_next_number(
    table: *const weir_table,
    next: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let number = unsafe { shared(table)? }.table.next_number()?;
        // SAFETY: the contract of `borrow`.
        unsafe { put(next, number)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Goes on with `next`, also if it is lower: for a table that holds no number from there on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_reset_numbers(
    table: *const weir_table,
    next: u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(table)? }.table.reset_numbers(next)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// A primary key for a row that has none of its own: 8 bytes, put to `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_take_row_id(
    table: *const weir_table,
    txn: *const weir_txn,
    out: *mut u8,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        let id = table.table.take_row_id(&mut inner.txn)?;
        // SAFETY: the contract of `borrow`: eight bytes can be written.
        unsafe { put(out.cast::<[u8; 8]>(), id)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// How good an estimate is.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_estimate_kind {
    /// Counted.
    WEIR_EXACT = 0,
    /// From a sample (weir_table_analyze).
    WEIR_SAMPLED = 1,
    /// From two looks down the tree.
    WEIR_DIVED = 2,
}

/// About how many rows (WEIR_ROWS) or entries of an index lie from `from` on and, if `to` is not
/// NULL, below `to`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_estimate(
    table: *const weir_table,
    index: i32,
    from: weir_bytes,
    to: *const weir_bytes,
    rows: *mut u64,
    kind: *mut u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, from, to) = unsafe { (shared(table)?, from.given()?, to.as_ref()) };
        // SAFETY: the contract of `borrow`.
        let to = to.map(|to| unsafe { to.given() }).transpose()?.map(<[u8]>::to_vec);
        let range = KeyRange { from: from.to_vec(), to };
        let estimate = table.table.estimate(place(index)?, &range)?;
        let how = match estimate {
            ::weir_table::Estimate::Exact(_) => weir_estimate_kind::WEIR_EXACT,
            ::weir_table::Estimate::Sampled(_) => weir_estimate_kind::WEIR_SAMPLED,
            ::weir_table::Estimate::Dived(_) => weir_estimate_kind::WEIR_DIVED,
        };
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(rows, estimate.rows())?;
            put(kind, how as u32)?;
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// About how many pages a tree has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_size {
    /// Pages with rows or entries.
    pub leaf_pages: u64,
    /// Pages above them.
    pub inner_pages: u64,
    /// Pages of values that do not fit beside their key.
    pub value_pages: u64,
}

/// About how many pages the tree of the rows (WEIR_ROWS) or of an index has: exact for a small one,
/// but for long values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_size(
    table: *const weir_table,
    index: i32,
    size: *mut weir_size,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let found = unsafe { shared(table)? }.table.size(place(index)?)?;
        let (leaf_pages, inner_pages) = (found.leaf_pages, found.inner_pages);
        let found = weir_size { leaf_pages, inner_pages, value_pages: found.value_pages };
        // SAFETY: the contract of `borrow`.
        unsafe { put(size, found)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// The key in the tree of the rows (WEIR_ROWS) or of an index that lies about `nth` of `of` equal
/// distances into it; of an index, the primary key may follow the index key. WEIR_NOTHING: there is
/// none there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_key_at(
    table: *mut weir_table,
    index: i32,
    nth: u32,
    of: u32,
    key: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let handle = unsafe { alone(table)? };
        let Some(found) = handle.table.key_at(place(index)?, nth, of)? else {
            return Ok(weir_code::WEIR_NOTHING);
        };
        handle.row = found;
        // SAFETY: the contract of `borrow`.
        unsafe { put(key, weir_bytes::of(&handle.row))? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Samples all trees of the table by walking them once. Puts out the number of rows met.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_analyze(table: *const weir_table, rows: *mut u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let met = unsafe { shared(table)? }.table.analyze()?;
        // SAFETY: the contract of `borrow`.
        unsafe { put(rows, met)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Counts the rows that the transaction sees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_count(
    table: *const weir_table,
    txn: *const weir_txn,
    rows: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        let count = table.table.count(&mut inner.txn)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put(rows, count)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Compares all indexes with the rows, as the transaction sees them. Each problem is shown, up to a
/// hundred; WEIR_DAMAGED if there was one. `go_on` is asked at each row and entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_check(
    table: *const weir_table,
    txn: *const weir_txn,
    make: weir_make_entry,
    visit: weir_visit,
    go_on: weir_go_on,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, inner) = unsafe { (shared(table)?, shared(txn)?.inner_to_wait()?) };
        let mut make = |index: usize, key: &[u8], row: &[u8], entry: &mut EntryBuf| {
            // SAFETY: the contract of `borrow`.
            unsafe { make_entry(make, context, index, key, row, entry) }
        };
        // SAFETY: the contract of `borrow`.
        let mut ask = || unsafe { goes_on(go_on, context) };
        let report = table.table.check(&mut inner.txn, &mut make, &mut ask)?;
        for problem in &report.problems {
            // SAFETY: the contract of `borrow`.
            unsafe { show(visit, context, problem.as_bytes()) };
        }
        match report.problems.first() {
            None => Ok(weir_code::WEIR_OK),
            Some(first) => Err(Failure { code: weir_code::WEIR_DAMAGED, message: first.clone() }),
        }
    })
}
