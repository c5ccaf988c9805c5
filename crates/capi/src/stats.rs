//! What an open database says of itself: numbers with their meaning, a text, locks.
use std::ffi::c_void;

use weir::{Metric, MetricKind};

use crate::borrow::{put, shared, show, weir_bytes, weir_visit};
use crate::db::weir_db;
use crate::outcome::{run, weir_code};

/// A number and what it means. All bytes stay until the visit is over.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_metric {
    /// As Prometheus wants names, with the unit at its end: weir_checkpoint_age_bytes.
    pub name: weir_bytes,
    /// In what it is counted; seconds and bytes are never scaled.
    pub unit: weir_bytes,
    /// What it tells.
    pub help: weir_bytes,
    /// Whether it only grows while the database is open.
    pub is_counter: bool,
    /// Its value now. May be infinite: no limit.
    pub value: f64,
}

/// Is shown a number. It must not unwind, and what it is shown is gone when it returns.
pub type weir_visit_metric =
    Option<unsafe extern "C" fn(context: *mut c_void, metric: *const weir_metric)>;

/// A lock that a transaction holds or waits for. All bytes stay until the visit is over.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_seen_lock {
    /// The transaction's number (weir_txn_number).
    pub owner: u64,
    /// The table, or the name of a tree that belongs to none.
    pub table: weir_bytes,
    /// The index, if it is one's entries that are locked.
    pub index: weir_bytes,
    /// The key, or the first of a range.
    pub key: weir_bytes,
    /// The first key behind a range, if it has an end.
    pub to: weir_bytes,
    /// Whether it is a range.
    pub is_range: bool,
    /// Whether the range has an end.
    pub has_to: bool,
    /// Whether others may share it.
    pub is_shared: bool,
    /// Whether it is only waited for.
    pub is_waiting: bool,
}

/// Is shown a lock. It must not unwind, and what it is shown is gone when it returns.
pub type weir_visit_lock =
    Option<unsafe extern "C" fn(context: *mut c_void, lock: *const weir_seen_lock)>;

/// Everything that is measured, in one order: the text of SHOW ENGINE STATUS.
fn text(db: &weir::Db) -> String {
    let stats = db.stats();
    let mut text = match &stats.halted {
        None => "state: running\n".to_string(),
        Some(why) => format!("state: halted: {why}\n"),
    };
    text += &format!("device: {}\n", stats.device_description);
    db.visit_metrics(&mut |metric, value| {
        let name = metric.name.trim_start_matches("weir_");
        text += &format!("{name}: {value} ({})\n", metric.help);
    });
    text
}

/// What the calling thread has asked of engines since it began; only grows.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct weir_thread_counts {
    /// Pages read from disk.
    pub pages_read: u64,
    /// Microseconds that the thread waited for them.
    pub read_micros: u64,
    /// Older versions of rows that were looked up.
    pub versions_read: u64,
    /// Places at which rows that cannot be read were passed over (weir_options.force_recovery).
    pub passed_over: u64,
}

/// Sets `out` to the calling thread's counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_thread_counts_now(out: *mut weir_thread_counts) -> weir_code {
    run(|| {
        let now = weir::ThreadCounts::of_this_thread();
        let counts = weir_thread_counts {
            pages_read: now.pages_read,
            read_micros: now.read_micros,
            versions_read: now.versions_read,
            passed_over: now.passed_over,
        };
        // SAFETY: the contract of `borrow`.
        unsafe { put(out, counts)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Shows all numbers there are: the same ones in the same order, each time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_metrics(
    db: *const weir_db,
    visit: weir_visit_metric,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? };
        let Some(visit) = visit else { return Ok(weir_code::WEIR_OK) };
        db.db.visit_metrics(&mut |metric: Metric, value| {
            let shown = weir_metric {
                name: weir_bytes::of(metric.name.as_bytes()),
                unit: weir_bytes::of(metric.unit.as_bytes()),
                help: weir_bytes::of(metric.help.as_bytes()),
                is_counter: metric.kind == MetricKind::Counter,
                value,
            };
            // SAFETY: the caller of the interface has given a function of this kind.
            unsafe { visit(context, &raw const shown) };
        });
        Ok(weir_code::WEIR_OK)
    })
}

/// Shows a text for a person, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stats_text(
    db: *const weir_db,
    visit: weir_visit,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let text = text(&unsafe { shared(db)? }.db);
        // SAFETY: the contract of `borrow`.
        unsafe { show(visit, context, text.as_bytes()) };
        Ok(weir_code::WEIR_OK)
    })
}

/// Shows the explicit locks and those that wait. A row that a transaction has written is its own
/// without one, until another waits for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_locks(
    db: *const weir_db,
    visit: weir_visit_lock,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? };
        let (locks, owners) = (db.db.locks()?, db.tables.tree_owners()?);
        let Some(visit) = visit else { return Ok(weir_code::WEIR_OK) };
        for lock in &locks {
            let (table, index) = match owners.get(&lock.tree) {
                Some((table, index)) => (table.as_str(), index.as_deref().unwrap_or_default()),
                None => (lock.tree.as_str(), ""),
            };
            let shown = weir_seen_lock {
                owner: lock.owner.0,
                table: weir_bytes::of(table.as_bytes()),
                index: weir_bytes::of(index.as_bytes()),
                key: weir_bytes::of(&lock.key),
                to: weir_bytes::of(lock.to.as_deref().unwrap_or_default()),
                is_range: lock.is_range,
                has_to: lock.to.is_some(),
                is_shared: lock.is_shared,
                is_waiting: lock.is_waiting,
            };
            // SAFETY: the caller of the interface has given a function of this kind.
            unsafe { visit(context, &raw const shown) };
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// The version of the engine, as bytes that stay.
#[unsafe(no_mangle)]
pub extern "C" fn weir_version() -> weir_bytes {
    weir_bytes::of(env!("CARGO_PKG_VERSION").as_bytes())
}
