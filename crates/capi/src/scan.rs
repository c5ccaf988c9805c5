//! Walking a table's rows or an index.
use ::weir_table::{Direction, KeyRange, Lock, RawScan};

use crate::borrow::{alone, give, put, shared, taken, weir_bytes};
use crate::outcome::{Failure, run, weir_code, wrong};
use crate::table::{place, weir_table};
use crate::txn::{weir_lock, weir_txn};

/// A walk over rows or entries, in one direction.
pub struct weir_scan {
    scan: RawScan,
}

/// Where a walk is to go, and how.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_range {
    /// The place of an index, or WEIR_ROWS.
    pub index: i32,
    /// Keys from this on.
    pub from: weir_bytes,
    /// Keys below this, if `has_to`; else anything, and not looked at.
    pub to: weir_bytes,
    /// Whether there is an upper bound.
    pub has_to: bool,
    /// From the greatest key down.
    pub down: bool,
    /// Passes over what others have locked.
    pub skip_locked: bool,
    /// A weir_lock. From WEIR_REPEATABLE_READ on, with a lock no other transaction adds to the
    /// range walked over.
    pub lock: u32,
}

impl weir_range {
    /// # Safety
    /// The contract of `borrow`; of `to` only if there is an upper bound.
    unsafe fn keys(&self) -> Result<KeyRange, Failure> {
        // SAFETY: the caller's.
        let (from, to) = unsafe { (self.from.given()?, self.has_to.then(|| self.to.given())) };
        let to = to.transpose()?;
        Ok(KeyRange { from: from.to_vec(), to: to.map(<[u8]>::to_vec) })
    }
}

/// What a walk stands on. Good until it moves.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_found {
    /// The key in the tree: to go on behind it, begin a walk with it and a zero byte after it.
    pub tree_key: weir_bytes,
    /// The primary key.
    pub primary_key: weir_bytes,
    /// The row, or with `front` its first bytes; of an index, nothing.
    pub row: weir_bytes,
    /// The index key; of the rows, the primary key.
    pub index_key: weir_bytes,
    /// Of an index, what its entry carries.
    pub payload: weir_bytes,
    /// It is not locked, only shown as it was committed last: see weir_scan_semi_consistent.
    pub unlocked: bool,
    /// The row has more bytes: see weir_scan_fronts.
    pub front: bool,
}

/// The lock that a weir_lock stands for.
pub(crate) fn lock_of(code: u32) -> Result<Lock, Failure> {
    match code {
        l if l == weir_lock::WEIR_LOCK_NONE as u32 => Ok(Lock::Plain),
        l if l == weir_lock::WEIR_LOCK_SHARE as u32 => Ok(Lock::Share),
        l if l == weir_lock::WEIR_LOCK_UPDATE as u32 => Ok(Lock::Update),
        other => Err(wrong(format!("{other} is no weir_lock"))),
    }
}

/// Begins a walk. It is given back before its transaction ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_scan_open(
    table: *const weir_table,
    txn: *const weir_txn,
    range: *const weir_range,
    out: *mut *mut weir_scan,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, txn, range) = unsafe { (shared(table)?, shared(txn)?, shared(range)?) };
        // SAFETY: the contract of `borrow`.
        let keys = unsafe { range.keys()? };
        let direction = if range.down { Direction::Down } else { Direction::Up };
        let lock = lock_of(range.lock)?;
        // SAFETY: the contract of `borrow`.
        let inner = unsafe {
            if lock == Lock::Plain { txn.inner_to_read()? } else { txn.inner_to_wait()? }
        };
        let index = place(range.index)?;
        let mut scan = table.table.scan_with(&mut inner.txn, index, keys, direction, lock)?;
        if range.skip_locked {
            scan.skip_locked();
        }
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_scan { scan })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives a walk back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_scan_close(scan: *mut weir_scan) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(scan) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// Moves on. WEIR_NOTHING: there is nothing more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_scan_next(
    scan: *mut weir_scan,
    txn: *const weir_txn,
    found: *mut weir_found,
) -> weir_code {
    // SAFETY: as the caller's.
    run(|| unsafe { step(scan, txn, found, RawScan::next) })
}

/// From now on a row that others have locked is shown as it was committed last, instead of being
/// waited for, or not any more. Does nothing without a lock, and from WEIR_REPEATABLE_READ on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_scan_semi_consistent(
    scan: *mut weir_scan,
    semi_consistent: bool,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { alone(scan)? }.scan.set_semi_consistent(semi_consistent);
        Ok(weir_code::WEIR_OK)
    })
}

/// From now on of a row that does not lie whole beside its key only the first bytes are shown, or
/// not any more. Does nothing with a lock, or to a walk over an index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_scan_fronts(scan: *mut weir_scan, fronts: bool) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { alone(scan)? }.scan.set_fronts(fronts);
        Ok(weir_code::WEIR_OK)
    })
}

/// Shows all of the row that it stands on. WEIR_NOTHING: at WEIR_READ_UNCOMMITTED, it has gone, and
/// the next step goes on behind it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_scan_whole(
    scan: *mut weir_scan,
    txn: *const weir_txn,
    found: *mut weir_found,
) -> weir_code {
    // SAFETY: as the caller's.
    run(|| unsafe { step(scan, txn, found, RawScan::whole) })
}

/// Looks at what it stands on once more, and waits for its lock; if that is gone, moves on.
/// WEIR_NOTHING: there is nothing more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_scan_lock_current(
    scan: *mut weir_scan,
    txn: *const weir_txn,
    found: *mut weir_found,
) -> weir_code {
    // SAFETY: as the caller's.
    run(|| unsafe { step(scan, txn, found, RawScan::lock_current) })
}

/// # Safety
/// The contract of `borrow`.
unsafe fn step(
    scan: *mut weir_scan,
    txn: *const weir_txn,
    found: *mut weir_found,
    go: fn(&mut RawScan, &mut weir::Txn) -> Result<bool, ::weir_table::Error>,
) -> Result<weir_code, Failure> {
    // SAFETY: the caller's.
    let (scan, inner) = unsafe { (&mut alone(scan)?.scan, shared(txn)?.inner()) };
    if !go(scan, &mut inner.txn)? {
        return Ok(weir_code::WEIR_NOTHING);
    }
    let what = weir_found {
        tree_key: weir_bytes::of(scan.tree_key()),
        primary_key: weir_bytes::of(scan.primary_key()?),
        row: weir_bytes::of(scan.row()),
        index_key: weir_bytes::of(scan.index_key()?),
        payload: weir_bytes::of(scan.payload()?),
        unlocked: scan.is_unlocked(),
        front: scan.is_front(),
    };
    // SAFETY: the caller's.
    unsafe { put(found, what)? };
    Ok(weir_code::WEIR_OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::WEIR_ROWS;

    #[test]
    fn a_bound_that_there_is_not_is_not_looked_at() {
        let from = weir_bytes::of(b"from");
        let to = weir_bytes { data: std::ptr::without_provenance(1), len: usize::MAX };
        let (index, down, skip_locked, lock) = (WEIR_ROWS, false, false, 0);
        let range = weir_range { index, from, to, has_to: false, down, skip_locked, lock };
        let open = KeyRange { from: b"from".to_vec(), to: None };
        // SAFETY: `from` can be read, and there is no upper bound.
        assert_eq!(unsafe { range.keys() }.expect("keys"), open);
        let range = weir_range { to: weir_bytes::of(b"to"), has_to: true, ..range };
        let keys = KeyRange { from: b"from".to_vec(), to: Some(b"to".to_vec()) };
        // SAFETY: both can be read.
        assert_eq!(unsafe { range.keys() }.expect("keys"), keys);
    }
}
