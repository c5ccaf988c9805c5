//! SIM-4: bugs planted on purpose: a simulation that does not find them is worth nothing.
use weir_sim::{Planted, Scenario};

/// Seeds until the bug is found.
fn seeds_needed(planted: Planted, budget: u64) -> Option<u64> {
    (0..budget).find(|&seed| {
        // A page that is not what the log expects may also stop a debug assertion.
        let ran = std::panic::catch_unwind(|| Scenario::random(seed, planted).run().is_err());
        ran.unwrap_or(true)
    })
}

fn is_found(planted: Planted, budget: u64) {
    let needed = seeds_needed(planted, budget);
    assert!(needed.is_some(), "{planted:?} was not found by {budget} seeds");
}

#[test]
fn pages_ahead_of_the_log_are_found() {
    // The 186th seed finds it: the log is seldom behind the oldest pages, which are written first.
    is_found(Planted::SkipLogGate, 600);
}

#[test]
fn torn_pages_are_found() {
    is_found(Planted::TornPages, 200);
}

#[test]
fn a_device_that_does_not_sync_pages_is_found() {
    is_found(Planted::PagesNotSynced, 60);
}

#[test]
fn a_device_that_does_not_sync_the_log_is_found() {
    is_found(Planted::LogNotSynced, 30);
}

#[test]
fn a_device_that_does_not_sync_the_doublewrite_area_is_found() {
    is_found(Planted::DoubleWriteNotSynced, 200);
}

#[test]
fn a_device_that_tears_what_it_promised_to_write_whole_is_found() {
    is_found(Planted::AtomicWritesTear, 200);
}

#[test]
fn a_scrub_that_does_not_ask_the_pool_is_found() {
    is_found(Planted::Txn(weir::PlantedBug::ScrubAsksNoPool), 60);
}

#[test]
fn blocks_that_go_back_too_soon_are_found() {
    is_found(Planted::Txn(weir::PlantedBug::PunchedTooSoon), 400);
}

#[test]
fn a_hole_that_is_handed_out_without_room_is_found() {
    is_found(Planted::Txn(weir::PlantedBug::HolesHandedOut), 60);
}

#[test]
fn a_page_that_gives_up_its_place_too_soon_is_found() {
    is_found(Planted::Txn(weir::PlantedBug::GivenUpTooSoon), 400);
}
