//! `decide` on inputs worked by hand, and on random inputs.
use proptest::prelude::*;
use weir_base::Lsn;
use weir_checkpoint::{AgeHistogram, Limits, State, TickView, Verdict, decide};
use weir_pool::Room;

const MIB: u64 = 1 << 20;
const LIMITS: Limits = Limits { age_bytes: 100 * MIB, recovery_age_bytes: None };

/// 100 pages in each MiB of the last `mib` of a log that ends at 1000 MiB.
fn list(mib: u64) -> AgeHistogram {
    let counts = vec![100; mib as usize];
    AgeHistogram { bucket_bytes: MIB, first: Lsn((1000 - mib) * MIB), counts }
}

fn seen(dirty: &AgeHistogram) -> TickView<'_> {
    TickView {
        now_micros: 5_000_000,
        log_end: Lsn(1000 * MIB),
        oldest_dirty: dirty.first.min(Lsn(1000 * MIB)),
        dirty,
        pages_in_flight: 0,
        oldest_in_flight: None,
        pages_completed: 0,
        pages_freed: 0,
        backlogged_micros: 0,
        batch_micros: 0,
        batches_pages_max: 512,
        dirty_pages: dirty.pages(),
        frames_total: 100_000,
        frames_free: 50_000,
        frames_taken: 0,
        tail_dirty_fraction: 0.0,
        commits: 0,
        log_bytes_written: 0,
        log_writes: 0,
        admission_waiters: 0,
        processors_busy: 0.0,
        page_bytes: 8192,
        room: None,
    }
}

/// Rates per second at which the counters of successive ticks grow.
#[derive(Clone, Copy, Default)]
struct Pace {
    redo_mib: f64,
    pages: f64,
    freed: f64,
    frames: f64,
    commits: f64,
    backlogged: f64,
}

/// `ticks` ticks of 100 ms over the same list; the log moves on, and the list with it.
fn after(state: &mut State, ticks: u64, pace: Pace, shape: &TickView<'_>) -> Verdict {
    let mut verdict = None;
    for tick in 0..=ticks {
        let seconds = tick as f64 / 10.0;
        let moved = (pace.redo_mib * seconds * MIB as f64) as u64;
        let mut dirty = shape.dirty.clone();
        dirty.first = dirty.first.advanced(moved);
        let now = TickView {
            now_micros: shape.now_micros + tick * 100_000,
            log_end: shape.log_end.advanced(moved),
            oldest_dirty: shape.oldest_dirty.advanced(moved),
            dirty: &dirty,
            pages_completed: (pace.pages * seconds) as u64,
            pages_freed: (pace.freed * seconds) as u64,
            frames_taken: (pace.frames * seconds) as u64,
            commits: (pace.commits * seconds) as u64,
            backlogged_micros: (pace.backlogged * seconds * 1e6) as u64,
            ..shape.clone()
        };
        verdict = Some(decide(state, &now, &LIMITS));
    }
    verdict.expect("at least one tick")
}

/// After an age at its limit: what room there was has been used.
fn settled() -> State {
    let (mut state, dirty) = (State::new(), list(99));
    decide(&mut state, &seen(&dirty), &LIMITS);
    state
}

fn near(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() <= 0.03 * expected, "{what}: {value}, not {expected}");
}

#[test]
fn an_even_list_is_written_at_its_density_times_the_redo_rate() {
    let dirty = list(90);
    // 9,000 pages over 90 MiB. A* comes to 97 MiB less 0.3 s of the redo rate, as far as five
    // seconds have taught it: 96.5. The youngest bucket is 1 MiB old: 9,000 pages within 95.5 MiB
    // at 2 MiB/s are 188.5 pages/s, and the writer did just that.
    let pace = Pace { redo_mib: 2.0, pages: 188.5, commits: 1000.0, ..Pace::default() };
    let verdict = after(&mut settled(), 50, pace, &seen(&dirty));
    near(verdict.deadline_pages_per_second, 188.5, "deadline pages/s");
    near(verdict.age_target_bytes as f64, 96.5 * MIB as f64, "A*");
    assert_eq!(verdict.free_pages_per_second, 0.0);
    assert_eq!(verdict.idle_pages_per_second, 0.0);
    assert_eq!(verdict.pages_per_second, verdict.deadline_pages_per_second);
}

#[test]
fn room_is_used_before_pages_are_written() {
    let rate = |mib, pages, state: &mut State| {
        let dirty = list(mib);
        let pace = Pace { redo_mib: 2.0, pages, commits: 1000.0, ..Pace::default() };
        after(state, 20, pace, &seen(&dirty)).deadline_pages_per_second
    };
    // 4,000 pages within 95.4 MiB at 2 MiB/s are 84 pages/s.
    let unknown = rate(40, 0.0, &mut State::new());
    assert!(unknown >= 84.0, "no page was ever written on this disk: {unknown}");
    let again = rate(40, 5.0, &mut settled());
    assert!(again < 20.0, "after a pause there is room again: {again}");
    let rates = [40, 60, 80, 96].map(|mib| rate(mib, 5.0, &mut State::new()));
    assert!(rates[1] < 20.0 && rates[3] > 190.0 && rates.is_sorted(), "{rates:?}");
}

#[test]
fn overdue_pages_are_written_even_if_no_redo_comes() {
    // Age 99.5 of 100 MiB, A* = 97: the first three buckets are overdue.
    let mut dirty = list(99);
    dirty.first = dirty.first.back(MIB / 2);
    let verdict = after(&mut State::new(), 5, Pace::default(), &seen(&dirty));
    assert!(verdict.deadline_pages_per_second >= 150.0, "{verdict:?}");
    let admitted = verdict.admission_bytes_per_second.expect("limited");
    near(admitted, 0.5 * MIB as f64 / 0.25, "half a MiB is left, approached in 0.25 s");
}

/// What the cleaner was granted and did not need to write is no debt of the sweeper's: it would be
/// paid with pages written too early, for as long as frames are wanted.
#[test]
fn pages_written_for_their_frames_count_apart_from_those_swept() {
    let dirty = list(90);
    let shape = TickView { tail_dirty_fraction: 0.5, ..seen(&dirty) };
    for freed in [0.0, 100.0, 200.0] {
        // As in the even list above, and frames are taken at twice the rate of pages granted.
        let pace = Pace {
            redo_mib: 2.0,
            pages: 188.5 + freed,
            freed,
            frames: 400.0,
            commits: 1000.0,
            ..Pace::default()
        };
        let verdict = after(&mut settled(), 100, pace, &shape);
        near(verdict.free_pages_per_second, 200.0, "granted to the cleaner");
        near(verdict.deadline_pages_per_second, 188.5, &format!("swept beside {freed}/s freed"));
    }
}

/// A log that wraps several times a second is looked at every few milliseconds; were as much held
/// in reserve as between ticks of 50 ms, it could not be used up faster than once a second.
#[test]
fn short_ticks_need_less_of_a_reserve() {
    // (length of a tick in milliseconds, part of the usual reserves)
    for (millis, part) in [(180, 1.0), (50, 1.0), (25, 0.5), (5, 0.1), (1, 0.1)] {
        let dirty = list(90);
        let (mut state, shape) = (State::new(), seen(&dirty));
        let mut verdict = None;
        for tick in 0..2_000 / millis {
            // 100 MiB of redo a second.
            let moved = tick * millis * MIB / 10;
            let mut dirty = dirty.clone();
            dirty.first = dirty.first.advanced(moved);
            let now = TickView {
                now_micros: shape.now_micros + tick * millis * 1000,
                log_end: shape.log_end.advanced(moved),
                oldest_dirty: shape.oldest_dirty.advanced(moved),
                dirty: &dirty,
                commits: tick + 1,
                ..shape.clone()
            };
            verdict = Some(decide(&mut state, &now, &LIMITS));
        }
        let verdict = verdict.expect("ticks");
        let admitted = verdict.admission_bytes_per_second.expect("limited");
        near(admitted, 10.0 * MIB as f64 / (0.25 * part), &format!("ticks of {millis} ms"));
        let reserve = (100.0 - 97.0 + 0.3 * part * 100.0 * 0.45).min(25.0);
        let target = 100.0 - reserve;
        let shown = verdict.age_target_bytes as f64 / MIB as f64;
        assert!((shown - target).abs() < 4.0, "ticks of {millis} ms: A* {shown}, not {target}");
    }
}

#[test]
fn nothing_is_admitted_at_the_limit_and_anything_with_a_clean_pool() {
    let dirty = list(100);
    let at = decide(&mut State::new(), &seen(&dirty), &LIMITS);
    assert_eq!(at.admission_bytes_per_second, Some(0.0));
    let clean = AgeHistogram::new(Lsn(1000 * MIB), MIB);
    let idle = decide(&mut State::new(), &seen(&clean), &LIMITS);
    assert_eq!(idle.admission_bytes_per_second, None);
    assert_eq!(idle.pages_per_second, 0.0);
}

/// All writers wait at the limit, nearly all pages were changed lately, and no work ever waited for
/// this disk: what was written last must not be all that is written next.
#[test]
fn writers_that_wait_have_a_disk_pushed_that_nothing_has_waited_for() {
    let mut dirty = list(99);
    dirty.counts.iter_mut().take(70).for_each(|pages| *pages = 0);
    dirty.counts[0] = 2;
    let mut state = settled();
    let fast = Pace { redo_mib: 50.0, pages: 5000.0, commits: 100.0, ..Pace::default() };
    after(&mut state, 20, fast, &seen(&dirty));
    let now_micros = seen(&dirty).now_micros + 3_000_000;
    let waiting = TickView { now_micros, admission_waiters: 4, ..seen(&dirty) };
    let slow = Pace { redo_mib: 0.01, pages: 12.0, commits: 10.0, ..Pace::default() };
    let verdict = after(&mut state, 30, slow, &waiting);
    assert!(verdict.deadline_pages_per_second > 4000.0, "{verdict:?}");
}

/// A load makes five times the redo of the work that comes after it. Page writes beside that work
/// would be waited for by all that commit, so that it makes still less redo, for minutes.
#[test]
fn work_after_a_load_is_no_pause_where_many_commits_wait() {
    let after_a_load = |commits: u64, log_writes: u64| {
        let (mut state, list) = (State::new(), list(60));
        let mut now = seen(&list);
        let mut idle: f64 = 0.0;
        for tick in 0..400 {
            let (is_load, mut dirty) = (tick < 100, list.clone());
            let bytes = if is_load { 5 * MIB } else { MIB };
            dirty.first = Lsn(now.oldest_dirty.0 + bytes);
            now = TickView {
                now_micros: now.now_micros + 100_000,
                log_end: now.log_end.advanced(bytes),
                oldest_dirty: now.oldest_dirty.advanced(bytes),
                dirty: &list,
                // That the disk takes 2,000 pages a second is seen in the load.
                pages_completed: now.pages_completed + if is_load { 200 } else { 5 },
                backlogged_micros: now.backlogged_micros + if is_load { 100_000 } else { 0 },
                commits: now.commits + if is_load { 1 } else { commits },
                log_writes: now.log_writes + if is_load { 5 } else { log_writes },
                ..now
            };
            let verdict = decide(&mut state, &TickView { dirty: &dirty, ..now.clone() }, &LIMITS);
            idle = if is_load { 0.0 } else { idle.max(verdict.idle_pages_per_second) };
        }
        idle
    };
    assert!(after_a_load(60, 60) > 500.0, "one client: {}", after_a_load(60, 60));
    assert_eq!(after_a_load(600, 60), 0.0);
}

#[test]
fn an_idle_second_starts_draining_and_a_commit_ends_it() {
    let dirty = list(20);
    let mut state = State::new();
    let busy = Pace { redo_mib: 1.0, pages: 20.0, commits: 100.0, ..Pace::default() };
    assert_eq!(after(&mut state, 20, busy, &seen(&dirty)).idle_pages_per_second, 0.0);
    let mut later = seen(&dirty);
    later.now_micros += 60_000_000;
    let idle = after(&mut State::new(), 20, Pace::default(), &later);
    assert!(idle.idle_pages_per_second > 100.0, "{idle:?}");
    assert!(idle.in_flight_max <= 8);
}

#[test]
fn free_frames_are_kept_ahead_of_the_demand_only_where_victims_are_dirty() {
    let dirty = list(50);
    let pace = Pace { redo_mib: 1.0, frames: 1000.0, commits: 10.0, ..Pace::default() };
    let mut shape = seen(&dirty);
    shape.frames_free = 0;
    let clean = after(&mut State::new(), 20, pace, &shape);
    assert_eq!(clean.free_pages_per_second, 0.0);
    shape.tail_dirty_fraction = 0.5;
    let half = after(&mut State::new(), 20, pace, &shape);
    // F* = 1.5 * 1000/s * 0.1 s = 150 frames: (1000 + 150 / 0.5 s) / 2.
    assert_eq!(half.free_frames_target, 150);
    near(half.free_pages_per_second, 650.0, "free pages/s");
}

#[test]
fn a_disk_too_slow_for_both_causes_leaves_a_quarter_to_the_less_urgent() {
    // 400 pages/s are all that the disk does while work waits.
    let dirty = list(96);
    let pace = Pace {
        redo_mib: 10.0,
        pages: 400.0,
        freed: 100.0,
        frames: 5000.0,
        commits: 10.0,
        backlogged: 1.0,
    };
    let mut shape = seen(&dirty);
    shape.tail_dirty_fraction = 1.0;
    for frames_free in [1, 90_000] {
        shape.frames_free = frames_free;
        let verdict = after(&mut State::new(), 40, pace, &shape);
        near(verdict.capacity_pages_per_second, 400.0, "capacity");
        near(verdict.pages_per_second, 400.0, "total");
        let (urgent, other) = if frames_free == 1 {
            (verdict.free_pages_per_second, verdict.deadline_pages_per_second)
        } else {
            (verdict.deadline_pages_per_second, verdict.free_pages_per_second)
        };
        near(urgent, 300.0, "urgent");
        near(other, 100.0, "other");
    }
}

#[test]
fn a_recovery_target_pulls_the_age_down_gently() {
    let dirty = list(90);
    let pace = Pace { redo_mib: 2.0, pages: 185.0, commits: 1000.0, ..Pace::default() };
    let mut state = State::new();
    let before = after(&mut state, 50, pace, &seen(&dirty));
    let mut later = seen(&dirty);
    later.now_micros += 5_000_000;
    later.log_end = later.log_end.advanced(10 * MIB);
    let limits = Limits { recovery_age_bytes: Some(30 * MIB), ..LIMITS };
    let goal = decide(&mut state, &later, &limits);
    assert!(goal.age_target_bytes > 80 * MIB, "no jump: {goal:?}");
    let pages = goal.pages_per_second;
    assert!(pages < 3.0 * before.pages_per_second, "no storm: {pages}");
}

#[test]
fn the_same_inputs_give_the_same_verdict() {
    let dirty = list(90);
    let pace = Pace { redo_mib: 2.0, pages: 185.0, commits: 1000.0, ..Pace::default() };
    let one = after(&mut State::new(), 30, pace, &seen(&dirty));
    assert_eq!(one, after(&mut State::new(), 30, pace, &seen(&dirty)));
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..1u64 << 20, 0..1u64 << 40, any::<u64>()]
}

prop_compose! {
    fn any_list()(
        bucket_bytes in any_number(),
        first in any_number(),
        counts in prop::collection::vec(prop_oneof![Just(0), Just(u32::MAX), 0u32..1000], 0..40),
    ) -> AgeHistogram {
        AgeHistogram { bucket_bytes, first: Lsn(first), counts }
    }
}

prop_compose! {
    fn any_seen()(numbers in prop::collection::vec(any_number(), 17), step in 0u64..2_000_000,
        fraction in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), -1.0..2.0])
        -> (u64, TickView<'static>) {
        static EMPTY: AgeHistogram =
            AgeHistogram { bucket_bytes: 1, first: Lsn::ZERO, counts: Vec::new() };
        (step, TickView {
            now_micros: numbers[0], log_end: Lsn(numbers[1]), oldest_dirty: Lsn(numbers[2]),
            dirty: &EMPTY, pages_in_flight: numbers[3], oldest_in_flight: None,
            pages_completed: numbers[4], pages_freed: numbers[4] / 2,
            backlogged_micros: numbers[5], batch_micros: numbers[15],
            batches_pages_max: numbers[16], dirty_pages: numbers[6], frames_total: numbers[7],
            frames_free: numbers[8], frames_taken: numbers[9], tail_dirty_fraction: fraction,
            commits: numbers[10], log_bytes_written: numbers[11], log_writes: numbers[12],
            admission_waiters: numbers[13], page_bytes: numbers[14],
            processors_busy: 0.0,
            room: (step % 2 == 0)
                .then_some(Room { dirty_pages: numbers[6], most_pages: numbers[7] }),
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_input_makes_a_verdict_wild(
        ticks in prop::collection::vec((any_seen(), any_list()), 1..30),
        age in any_number(),
        recovery in prop::option::of(any_number()),
        ordered in any::<bool>(),
    ) {
        let limits = Limits { age_bytes: age, recovery_age_bytes: recovery };
        let mut state = State::new();
        let mut now_micros = 0;
        for ((step, seen), list) in &ticks {
            now_micros += step;
            let mut seen = TickView { dirty: list, ..seen.clone() };
            if ordered {
                seen.now_micros = now_micros;
            }
            let verdict = decide(&mut state, &seen, &limits);
            let rates = [
                verdict.deadline_pages_per_second,
                verdict.free_pages_per_second,
                verdict.idle_pages_per_second,
                verdict.pages_per_second,
                verdict.capacity_pages_per_second,
                verdict.admission_bytes_per_second.unwrap_or(0.0),
            ];
            let fine = rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
            prop_assert!(fine, "{:?}", verdict);
            prop_assert!(verdict.in_flight_max > 0);
        }
    }
}
