//! Walking a tree.
use weir::TxnCursor;

use crate::borrow::{alone, give, put, shared, taken, weir_bytes};
use crate::outcome::{Failure, found, run, weir_code, wrong};
use crate::tree::weir_tree;
use crate::txn::{Inner, weir_lock, weir_txn};

/// A position in a tree among the rows that a transaction sees, which alone moves it. After a move
/// that failed it stands on no row, and the next one the same way tries again.
pub struct weir_cursor {
    cursor: TxnCursor,
}

/// Makes a cursor that stands nowhere yet; `lock` is a weir_lock. It sees keys from `from` on and,
/// if `to` is not NULL, below `to`. It is given back before its transaction ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_open(
    tree: *const weir_tree,
    txn: *const weir_txn,
    lock: u32,
    from: weir_bytes,
    to: *const weir_bytes,
    out: *mut *mut weir_cursor,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (tree, inner) = unsafe { (&shared(tree)?.tree, shared(txn)?.inner_to_wait()?) };
        // SAFETY: the contract of `borrow`.
        let (from, to) = unsafe { (from.given()?, to.as_ref().map(|to| to.given()).transpose()?) };
        let mut cursor = match lock {
            l if l == weir_lock::WEIR_LOCK_NONE as u32 => inner.txn.cursor(tree),
            l if l == weir_lock::WEIR_LOCK_SHARE as u32 => inner.txn.cursor_for_share(tree),
            l if l == weir_lock::WEIR_LOCK_UPDATE as u32 => inner.txn.cursor_for_update(tree),
            other => return Err(wrong(format!("{other} is no weir_lock"))),
        };
        cursor.set_bounds(from, to);
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_cursor { cursor })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives a cursor back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_close(cursor: *mut weir_cursor) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(cursor) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// Passes over rows that others have locked, instead of waiting.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_skip_locked(cursor: *mut weir_cursor) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { alone(cursor)? }.cursor.skip_locked();
        Ok(weir_code::WEIR_OK)
    })
}

/// Says that about so many rows will be asked for after each move to a key or an end; 0: that is
/// not known, as at first. The cursor shows more nevertheless; but it reads at once what is not in
/// memory of the pages that hold so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_expect_rows(cursor: *mut weir_cursor, rows: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { alone(cursor)? }.cursor.expect_rows(rows);
        Ok(weir_code::WEIR_OK)
    })
}

/// # Safety
/// The contract of `borrow`.
unsafe fn go(
    cursor: *mut weir_cursor,
    txn: *const weir_txn,
    how: impl FnOnce(&mut TxnCursor, &mut Inner) -> Result<bool, Failure>,
) -> weir_code {
    run(|| {
        // SAFETY: the caller's.
        let (cursor, inner) = unsafe { (alone(cursor)?, shared(txn)?.inner_to_wait()?) };
        how(&mut cursor.cursor, inner).map(found)
    })
}

/// Moves to the first row whose key is not below `key`. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_seek(
    cursor: *mut weir_cursor,
    txn: *const weir_txn,
    key: weir_bytes,
) -> weir_code {
    // SAFETY: the contract of `borrow`.
    unsafe { go(cursor, txn, |cursor, txn| Ok(cursor.seek(&mut txn.txn, key.given()?)?)) }
}

/// Moves to the last row whose key is below `key`. WEIR_NOTHING: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_seek_before(
    cursor: *mut weir_cursor,
    txn: *const weir_txn,
    key: weir_bytes,
) -> weir_code {
    // SAFETY: the contract of `borrow`.
    unsafe { go(cursor, txn, |cursor, txn| Ok(cursor.seek_before(&mut txn.txn, key.given()?)?)) }
}

/// Moves to the first row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_first(
    cursor: *mut weir_cursor,
    txn: *const weir_txn,
) -> weir_code {
    // SAFETY: the contract of `borrow`.
    unsafe { go(cursor, txn, |cursor, txn| Ok(cursor.seek_first(&mut txn.txn)?)) }
}

/// Moves to the last row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_last(
    cursor: *mut weir_cursor,
    txn: *const weir_txn,
) -> weir_code {
    // SAFETY: the contract of `borrow`.
    unsafe { go(cursor, txn, |cursor, txn| Ok(cursor.seek_last(&mut txn.txn)?)) }
}

/// Moves to the next row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_next(
    cursor: *mut weir_cursor,
    txn: *const weir_txn,
) -> weir_code {
    // SAFETY: the contract of `borrow`.
    unsafe { go(cursor, txn, |cursor, txn| Ok(cursor.next(&mut txn.txn)?)) }
}

/// Moves to the row before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_prev(
    cursor: *mut weir_cursor,
    txn: *const weir_txn,
) -> weir_code {
    // SAFETY: the contract of `borrow`.
    unsafe { go(cursor, txn, |cursor, txn| Ok(cursor.prev(&mut txn.txn)?)) }
}

/// The row stood on; empty when on none. Good until the cursor moves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_cursor_row(
    cursor: *mut weir_cursor,
    key: *mut weir_bytes,
    value: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let cursor = &unsafe { alone(cursor)? }.cursor;
        // SAFETY: the contract of `borrow`.
        unsafe {
            put(key, weir_bytes::of(cursor.key()))?;
            put(value, weir_bytes::of(cursor.value()))?;
        }
        Ok(weir_code::WEIR_OK)
    })
}
