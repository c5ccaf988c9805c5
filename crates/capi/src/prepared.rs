//! Two-phase commit.
use std::ffi::c_void;

use weir::PreparedTxn;

use crate::borrow::{alone, give, place, put, shared, show, taken, weir_bytes, weir_visit};
use crate::db::{durability, weir_db};
use crate::outcome::{found, run, weir_code, wrong};
use crate::txn::weir_txn;

/// A prepared transaction in the hand of a caller that decides it. Its end may come from another
/// thread than the one that has prepared it.
pub struct weir_prepared_txn {
    held: PreparedTxn,
}

/// Prepares it under a name of 1 to 255 bytes: durable when this returns, it survives a restart
/// with its changes, until weir_commit_prepared or weir_rollback_prepared. The handle is gone; if
/// this failed, so is what it did.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_prepare(txn: *mut weir_txn, xid: weir_bytes) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (txn, xid) = unsafe { (taken(txn), xid.given()) };
        let txn = txn.ok_or_else(|| wrong("a handle is NULL"))?;
        txn.into_inner().prepare(xid?)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// As weir_txn_prepare, and puts it out, for a caller that decides it within this process: no other
/// caller can meanwhile. What it has locked besides the rows that it has changed is free after a
/// restart: what weir_prepared shows then is decided before others read or write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_prepare_owned(
    txn: *mut weir_txn,
    xid: weir_bytes,
    out: *mut *mut weir_prepared_txn,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (txn, xid) = unsafe { (taken(txn), xid.given()) };
        let txn = txn.ok_or_else(|| wrong("a handle is NULL"))?;
        place(out)?;
        let held = txn.into_inner().prepare_owned(xid?)?;
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_prepared_txn { held })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// As weir_txn_prepare_owned, and does not wait: it is durably prepared once weir_wait has returned
/// for the `position` that is put out. Until then nothing may rely on that, another log that says
/// that it is committed least of all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_begin_prepare_owned(
    txn: *mut weir_txn,
    xid: weir_bytes,
    out: *mut *mut weir_prepared_txn,
    position: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (txn, xid) = unsafe { (taken(txn), xid.given()) };
        let txn = txn.ok_or_else(|| wrong("a handle is NULL"))?;
        place(out).and_then(|()| place(position))?;
        let (held, commit) = txn.into_inner().begin_prepare_owned(xid?)?;
        // SAFETY: the contract of `borrow`.
        unsafe { put(position, commit.end().map_or(0, |end| end.0))? };
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_prepared_txn { held })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Commits it; others see its changes when this returns. The handle stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_prepared_txn_commit(
    held: *mut weir_prepared_txn,
    durability: u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { alone(held)? }.held.commit(self::durability(durability)?)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Rolls it back. The handle stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_prepared_txn_rollback(held: *mut weir_prepared_txn) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { alone(held)? }.held.rollback()?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives it out of hand. Undecided, it stays prepared, and is decided by its name. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_prepared_txn_free(held: *mut weir_prepared_txn) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        drop(unsafe { taken(held) });
        Ok(weir_code::WEIR_OK)
    })
}

/// Shows the names of all prepared transactions, those that a handle is open to as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_prepared(
    db: *const weir_db,
    visit: weir_visit,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        for xid in unsafe { shared(db)? }.db.prepared() {
            // SAFETY: the contract of `borrow`.
            unsafe { show(visit, context, &xid) };
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// Commits a prepared transaction; `durability` is a weir_durability. WEIR_NOTHING: there is none
/// of that name, or a handle is open to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_commit_prepared(
    db: *const weir_db,
    xid: weir_bytes,
    durability: u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, xid) = unsafe { (shared(db)?, xid.given()?) };
        Ok(found(db.db.commit_prepared(xid, self::durability(durability)?)?))
    })
}

/// Rolls a prepared transaction back. WEIR_NOTHING: there is none of that name, or a handle is open
/// to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_rollback_prepared(db: *const weir_db, xid: weir_bytes) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (db, xid) = unsafe { (shared(db)?, xid.given()?) };
        Ok(found(db.db.rollback_prepared(xid)?))
    })
}
