//! Spatial indexes: a rectangle around a row's geometry as entries of an index, and windows.
use std::ffi::c_void;

use ::weir_table::{Direction, KeyRange, Lock, RawScan, RawTable, put_entry};
use weir_spatial::{Mbr, Plan, Relation, entries, estimated};

use crate::borrow::{alone, give, place as place_of, put, shared, taken, weir_bytes};
use crate::indexes::{goes_on, weir_go_on};
use crate::outcome::{Failure, run, weir_code, wrong};
use crate::scan::lock_of;
use crate::table::weir_table;
use crate::txn::weir_txn;

/// A rectangle with sides along the axes, the smallest around a geometry. One whose least
/// coordinate is greater than its greatest, or not a number, has no points.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_mbr {
    /// The least first coordinate.
    pub x_min: f64,
    /// The greatest first coordinate.
    pub x_max: f64,
    /// The least second coordinate.
    pub y_min: f64,
    /// The greatest second coordinate.
    pub y_max: f64,
}

/// How a row's rectangle has to lie to a window.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_relation {
    /// It has a point in common with the window.
    WEIR_INTERSECTS = 0,
    /// It lies in the window, borders included.
    WEIR_WITHIN = 1,
    /// The window lies in it, borders included.
    WEIR_CONTAINS = 2,
    /// It has no point in common with the window.
    WEIR_DISJOINT = 3,
    /// It is the window.
    WEIR_EQUAL = 4,
}

/// As many bytes as weir_mbr_entries may need.
pub const WEIR_MBR_ENTRIES_BYTES: usize = 256;

impl weir_mbr {
    fn mbr(&self) -> Option<Mbr> {
        Mbr::new([self.x_min, self.y_min], [self.x_max, self.y_max])
    }
}

/// Writes the payload of a row's entry in a spatial index, an index of several entries
/// (weir_index): to `room`, which has WEIR_MBR_ENTRIES_BYTES bytes; `used` gets how many it takes.
/// A rectangle without points has no entries: no bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_mbr_entries(
    mbr: *const weir_mbr,
    room: *mut u8,
    used: *mut usize,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let mbr = unsafe { shared(mbr)? }.mbr();
        place_of(room)?;
        let mut all = Vec::with_capacity(WEIR_MBR_ENTRIES_BYTES);
        if let Some(mbr) = mbr {
            entries(&mbr, |key, payload| put_entry(&mut all, key, payload));
        }
        // SAFETY: the caller of the interface says that there is so much room, which is more than
        // four entries take; see the test below.
        unsafe {
            room.copy_from_nonoverlapping(all.as_ptr(), all.len().min(WEIR_MBR_ENTRIES_BYTES));
            put(used, all.len())?;
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// What is looked for in a spatial index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_window {
    /// The place of the index.
    pub index: usize,
    /// The window; one without points finds nothing.
    pub mbr: weir_mbr,
    /// A weir_relation.
    pub relation: u32,
    /// A weir_lock, for the entries that are read. From WEIR_REPEATABLE_READ on, with a lock no
    /// other transaction adds a row that the window would have found.
    pub lock: u32,
    /// Passes over what others have locked.
    pub skip_locked: bool,
    /// Is asked for each entry.
    pub go_on: weir_go_on,
    /// Its.
    pub context: *mut c_void,
}

impl weir_window {
    fn relation(&self) -> Result<Relation, Failure> {
        match self.relation {
            r if r == weir_relation::WEIR_INTERSECTS as u32 => Ok(Relation::Intersects),
            r if r == weir_relation::WEIR_WITHIN as u32 => Ok(Relation::Within),
            r if r == weir_relation::WEIR_CONTAINS as u32 => Ok(Relation::Contains),
            r if r == weir_relation::WEIR_DISJOINT as u32 => Ok(Relation::Disjoint),
            r if r == weir_relation::WEIR_EQUAL as u32 => Ok(Relation::Equal),
            other => Err(wrong(format!("{other} is no weir_relation"))),
        }
    }

    /// `None`: it finds nothing.
    fn plan(&self) -> Result<Option<Plan>, Failure> {
        let relation = self.relation()?;
        Ok(self.mbr.mbr().map(|mbr| Plan::new(mbr, relation)))
    }
}

/// A walk over what a window finds, in no order that means anything.
pub struct weir_windowed {
    what: weir_window,
    plan: Option<Plan>,
    lock: Lock,
    /// The range that is read, or is the next to be.
    range: usize,
    /// One for all ranges: at READ COMMITTED it has the snapshot of the whole walk.
    scan: Option<RawScan>,
    /// It walks in the range.
    is_in_range: bool,
    /// The primary key of the row found last.
    found: Vec<u8>,
}

impl weir_windowed {
    /// `false`: there is nothing more.
    fn next(&mut self, table: &RawTable, txn: &mut weir::Txn) -> Result<bool, Failure> {
        let Some(plan) = &self.plan else { return Ok(false) };
        loop {
            if !self.is_in_range {
                let Some((from, to)) = plan.ranges().nth(self.range) else { return Ok(false) };
                // Without locks one walk goes on from range to range: of the many small ones most
                // are empty, and the next entry shows how many can be passed over. With locks,
                // only what lies in a range is to be locked.
                let last = plan.ranges().last().map(|(_, to)| to);
                let to = if self.lock == Lock::Plain { last } else { Some(to) };
                let keys = KeyRange { from: from.to_vec(), to: to.map(<[u8]>::to_vec) };
                match &mut self.scan {
                    Some(scan) => scan.set_range(keys),
                    none => {
                        let index = Some(self.what.index);
                        let mut scan =
                            table.scan_with(txn, index, keys, Direction::Up, self.lock)?;
                        if self.what.skip_locked {
                            scan.skip_locked();
                        }
                        *none = Some(scan);
                    }
                }
                self.is_in_range = true;
            }
            let Some(scan) = &mut self.scan else { return Ok(false) };
            // SAFETY: the caller of the interface has given a function of this kind.
            if !unsafe { goes_on(self.what.go_on, self.what.context) } {
                let message = "the search was stopped".into();
                return Err(Failure { code: weir_code::WEIR_INTERRUPTED, message });
            }
            if !scan.next(txn)? {
                self.is_in_range = false;
                if self.lock == Lock::Plain {
                    self.range = plan.ranges().len();
                } else {
                    self.range += 1;
                }
                continue;
            }
            let key = scan.index_key()?;
            let at = plan.range_of(key).unwrap_or(plan.ranges().len());
            let from = plan.ranges().nth(at).map(|(from, _)| from);
            self.range = at;
            if from.is_none_or(|from| key < from) {
                self.is_in_range = false;
                continue;
            }
            let reports = plan.reports(key, scan.payload()?).ok_or_else(|| {
                let message = "an entry of a spatial index is malformed".into();
                Failure { code: weir_code::WEIR_DAMAGED, message }
            })?;
            if reports {
                self.found.clear();
                self.found.extend_from_slice(scan.primary_key()?);
                return Ok(true);
            }
        }
    }
}

/// Begins a walk over the rows that a window finds by a spatial index (weir_mbr_entries). It is
/// given back before its transaction ends. WEIR_INPUT: the relation or the lock is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_window_open(
    what: *const weir_window,
    out: *mut *mut weir_windowed,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let what = *unsafe { shared(what)? };
        let (plan, lock) = (what.plan()?, lock_of(what.lock)?);
        let found = Vec::new();
        let (scan, is_in_range) = (None, false);
        let walk = weir_windowed { what, plan, lock, range: 0, scan, is_in_range, found };
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, walk)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives a walk back. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_window_close(walk: *mut weir_windowed) {
    // SAFETY: the contract of `borrow`.
    run(|| Ok(unsafe { taken(walk) }.map_or(weir_code::WEIR_NOTHING, |_| weir_code::WEIR_OK)));
}

/// Finds the next row: its primary key, good until the next call. Each row is found once.
/// WEIR_NOTHING: there is nothing more. The table and the transaction are the same at each call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_window_next(
    walk: *mut weir_windowed,
    table: *const weir_table,
    txn: *const weir_txn,
    primary_key: *mut weir_bytes,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (walk, table, txn) = unsafe { (alone(walk)?, shared(table)?, shared(txn)?) };
        // SAFETY: the contract of `borrow`.
        let inner = unsafe {
            if walk.lock == Lock::Plain { txn.inner_to_read()? } else { txn.inner_to_wait()? }
        };
        if !walk.next(&table.table, &mut inner.txn)? {
            return Ok(weir_code::WEIR_NOTHING);
        }
        // SAFETY: the contract of `borrow`.
        unsafe { put(primary_key, weir_bytes::of(&walk.found))? };
        Ok(weir_code::WEIR_OK)
    })
}

/// About how many entries of a spatial index a window would read: rows, some of them more than
/// once, and some that do not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_window_estimate(
    table: *const weir_table,
    what: *const weir_window,
    rows: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (table, what) = unsafe { (shared(table)?, shared(what)?) };
        let relation = what.relation()?;
        let mut all = 0.0;
        if let Some(mbr) = what.mbr.mbr() {
            for (from, to, share) in estimated(&mbr, relation) {
                let range = KeyRange { from: from.to_vec(), to: Some(to.to_vec()) };
                all += share * table.table.estimate(Some(what.index), &range)?.rows() as f64;
            }
        }
        // SAFETY: the contract of `borrow`.
        unsafe { put(rows, all.ceil() as u64)? };
        Ok(weir_code::WEIR_OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_all_entries_of_a_rectangle() {
        // It lies in four cells, of which each is kept with the rectangle.
        let mbr = weir_mbr { x_min: -1.0, x_max: 1.0, y_min: -1.0, y_max: 1.0 };
        let (mut room, mut used) = ([0u8; WEIR_MBR_ENTRIES_BYTES], 0);
        // SAFETY: there is so much room.
        let code = unsafe { weir_mbr_entries(&raw const mbr, room.as_mut_ptr(), &raw mut used) };
        assert_eq!(code, weir_code::WEIR_OK);
        assert_eq!(used, 4 * (1 + weir_spatial::KEY_BYTES + 1 + 32));
        let nothing = weir_mbr { x_min: 1.0, x_max: -1.0, ..mbr };
        // SAFETY: as above.
        let code =
            unsafe { weir_mbr_entries(&raw const nothing, room.as_mut_ptr(), &raw mut used) };
        assert_eq!((code, used), (weir_code::WEIR_OK, 0));
    }
}
