//! What an open database says of itself: numbers by name, and a text.
use std::ffi::{c_char, c_void};

use weir::StatsSnapshot;

use crate::borrow::{shared, show, weir_bytes, weir_visit};
use crate::db::weir_db;
use crate::fate::{run, weir_code};

/// Is shown a number by its name, a C string that stays until the database is closed.
pub type weir_visit_number =
    Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, value: u64)>;

/// Names and numbers, in the order in which they are shown. The units are in the names.
fn numbers(s: &StatsSnapshot) -> Vec<(&'static std::ffi::CStr, u64)> {
    #[rustfmt::skip]
    let numbers = vec![
        (c"commits", s.commits),
        (c"checkpoint_age_bytes", s.checkpoint_age_bytes),
        (c"checkpoint_age_limit_bytes", s.checkpoint_age_limit_bytes),
        (c"checkpoint_age_max_bytes", s.checkpoint_age_max_bytes),
        (c"log_capacity_bytes", s.log_capacity_bytes),
        (c"log_end", s.log_end),
        (c"log_durable", s.log_durable),
        (c"checkpoint", s.checkpoint),
        (c"log_writes", s.log_writes),
        (c"log_bytes_written", s.log_bytes_written),
        (c"log_syncs", s.log_syncs),
        (c"pages_dirty", s.dirty_pages),
        (c"pages_allocated", s.pages_allocated),
        (c"page_bytes", s.page_size as u64),
        (c"pool_frames", s.pool_frames),
        (c"pool_frames_free", s.pool_frames_free),
        (c"page_reads", s.page_reads),
        (c"page_evictions", s.page_evictions),
        (c"page_writes_deadline", s.page_writes.deadline),
        (c"page_writes_free_frames", s.page_writes.free_frames),
        (c"page_writes_idle", s.page_writes.idle),
        (c"page_writes_shutdown", s.page_writes.shutdown),
        (c"free_frame_waits", s.free_frame_waits),
        (c"admission_waits", s.admission_waits),
        (c"admission_wait_micros", s.admission_wait_micros),
        (c"transactions_open", s.open_transactions),
        (c"transactions_in_history", s.history_transactions),
        (c"snapshots", s.snapshots),
        (c"snapshot_oldest_commits_back", s.oldest_snapshot_commits),
        (c"locks_held", s.locks.held),
        (c"locks_ranges", s.locks.ranges),
        (c"locks_waiting", s.locks.waiting),
        (c"lock_waits", s.locks.waits),
        (c"lock_wait_micros", s.locks.wait_micros),
        (c"lock_deadlocks", s.locks.deadlocks),
        (c"lock_timeouts", s.locks.timeouts),
        (c"lock_interrupts", s.locks.kills),
        (c"device_reads", s.device.reads),
        (c"device_bytes_read", s.device.bytes_read),
        (c"device_writes", s.device.writes),
        (c"device_bytes_written", s.device.bytes_written),
        (c"device_syncs", s.device.syncs),
    ];
    numbers
}

fn text(s: &StatsSnapshot) -> String {
    let mut text = match &s.halted {
        None => "state: running\n".to_string(),
        Some(why) => format!("state: halted: {why}\n"),
    };
    text += &format!("device: {}\n", s.device_description);
    let rate = s.admission_bytes_per_second;
    let rate = rate.map_or("without limit".into(), |rate| format!("{rate:.0} bytes/s"));
    text += &format!("redo admitted: {rate}\n");
    text += &format!("pages written for the deadline: {:.1} /s\n", s.deadline_pages_per_second);
    text += &format!("device capacity: {:.1} pages/s\n", s.capacity_pages_per_second);
    for (name, value) in numbers(s) {
        text += &format!("{}: {value}\n", name.to_string_lossy());
    }
    text
}

/// Shows all numbers there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_stats(
    db: *const weir_db,
    visit: weir_visit_number,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let stats = unsafe { shared(db)? }.db.stats();
        if let Some(visit) = visit {
            for (name, value) in numbers(&stats) {
                // SAFETY: the caller of the interface has given a function of this kind.
                unsafe { visit(context, name.as_ptr(), value) };
            }
        }
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
        let text = text(&unsafe { shared(db)? }.db.stats());
        // SAFETY: the contract of `borrow`.
        unsafe { show(visit, context, text.as_bytes()) };
        Ok(weir_code::WEIR_OK)
    })
}

/// The version of the engine, as bytes that stay.
#[unsafe(no_mangle)]
pub extern "C" fn weir_version() -> weir_bytes {
    weir_bytes::of(env!("CARGO_PKG_VERSION").as_bytes())
}
