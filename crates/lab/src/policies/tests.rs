//! Each expected value is worked out from the formula by hand; the working stands beside it.
use super::*;
use weir::lab::{AgeHistogram, TickView};
use weir_base::Lsn;

/// The oldest dirty page in all of these.
const OLDEST: u64 = 1_000_000;

/// A dirty list by 100,000 bytes of log from `OLDEST` on.
fn list(counts: &[u32]) -> AgeHistogram {
    AgeHistogram { bucket_bytes: 100_000, first: Lsn(OLDEST), counts: counts.to_vec() }
}

/// A log of 1,000,000 bytes with pages of 1,000; 999 frames, so that 10 dirty pages are 1 %.
fn seen(list: &AgeHistogram, seconds: f64, age: u64, dirty_pages: u64) -> TickView<'_> {
    TickView {
        now_micros: (seconds * 1e6) as u64,
        log_end: Lsn(OLDEST + age),
        oldest_dirty: Lsn(OLDEST),
        dirty: list,
        pages_in_flight: 0,
        oldest_in_flight: None,
        pages_completed: 0,
        pages_freed: 0,
        backlogged_micros: 0,
        batch_micros: 0,
        batches_pages_max: 512,
        dirty_pages,
        frames_total: 999,
        frames_free: 500,
        frames_taken: 0,
        tail_dirty_fraction: 0.0,
        // A commit for each byte of redo: never idle unless the log stands still.
        commits: age,
        log_bytes_written: 0,
        log_writes: 0,
        admission_waiters: 0,
        processors_busy: 0.0,
        page_bytes: 1000,
        room: None,
    }
}

fn look<'a>(seen: &'a TickView<'a>, wrote: u64) -> Look<'a> {
    Look { seen, log_bytes: 1_000_000, wrote }
}

fn knobs(kind: Kind) -> Knobs {
    let knobs = Knobs { pool_instances: 1, threads: 2, ..Knobs::defaults(kind) };
    knobs.with_capacity(100, 250)
}

#[test]
fn limits_of_each_version() {
    // 900,000; less (4 (10 + 2) + 8) pages of 1,000 = 844,000; less a tenth.
    let classic = Limits::classic(1_000_000, 1000, 2);
    assert_eq!((classic.capacity, classic.max_age), (900_000, 759_600));
    assert_eq!((classic.async_age, classic.sync_age), (664_650, 712_125));
    // Seed 4: "about 3.24 GB" of 4.
    let seed_4 = Limits::classic(4 << 30, 16_384, 0);
    assert_eq!(seed_4.max_age, 3_478_215_722);
    // Seed 0: 16.61 GiB of 20; 7/8 of 0.95 of it are 16.625 GiB.
    let seed_0 = Limits::mysql_8(20 << 30);
    assert_eq!((seed_0.max_age, seed_0.async_age), (20_401_094_656, 17_850_957_824));
    // 997,952 less a tenth rounded down, less 48 pages, less a tenth rounded down.
    let mariadb = Limits::mariadb(1_000_000, 1000);
    assert_eq!((mariadb.capacity, mariadb.max_age), (898_157, 765_142));
    assert_eq!(mariadb.async_age, 765_142 - 95_642);
    // 30 files of 1,000,000 less their heads less a tenth of a file = 29,838,560; 0.95 of it are
    // 28,346,632; margin 4 pages for each of 2 threads and a twentieth: 8,000 + 1,417,331.
    let redo = Limits::redo_capacity(32_000_000, 1000, 2);
    assert_eq!(redo.margin, 1_425_331);
    assert_eq!(redo.max_age, 28_346_632 - 1_425_331);
    assert_eq!(redo.async_age, 28_346_632 - 3_543_329 - 1_425_331);
    assert_eq!(redo.sync_age, 28_346_632 - 1_771_664 - 1_425_331);
}

/// Of the second look, before rates have been averaged: the first one only takes the time.
fn mysql_8_at(knobs: &Knobs, age: u64, dirty: u64) -> Orders {
    let list = list(&[9]);
    let mut state = Mysql8State::default();
    assert_eq!(mysql_8(knobs, &mut state, &look(&seen(&list, 0.0, 1, dirty), 0)).pages, 0);
    mysql_8(knobs, &mut state, &look(&seen(&list, 1.0, age, dirty), 0))
}

#[test]
fn mysql_8_by_age_and_dirty_pages() {
    // Asynchronous point 831,250, synchronous 890,625, low-water mark 95,000. D = max(1, 1/3).
    let base = knobs(Kind::Mysql8);
    let eight = Knobs { pool_instances: 8, ..base.clone() };
    let narrow = base.clone().with_capacity(100, 199);
    let percona = Knobs { high_checkpoint: true, ..base.clone() };
    let rows = [
        // INT(250/100) 50^1.5 / 7.5 = 94.28; (94 + 0 + 1) / 3 = 31; and one for the instance.
        (&base, 415_625, 50, 32),
        // The same, and one more for each of eight instances.
        (&eight, 415_625, 50, 39),
        // INT(199/100) = 1: 47.14; (47 + 1) / 3 = 16, and one.
        (&narrow, 415_625, 50, 17),
        // 2 x 50^2.5 / 700.5 = 50.47; (50 + 1) / 3 = 17, and one.
        (&percona, 415_625, 50, 18),
        // Below the low-water mark; 5 % dirty pages are below theirs; (0 + 0 + 1) / 3, and one.
        (&base, 94_999, 50, 1),
        // 50 % dirty: 5000 / 91 = 54.9; (54 + 1) / 3 = 18, and one.
        (&base, 94_999, 500, 19),
        // INT(18 / 8) + 1 for each of eight instances.
        (&eight, 94_999, 500, 24),
        // 105 % of the asynchronous point: 2 x 105^1.5 / 7.5 = 286.9; (286 + 1) / 3 = 95, and one.
        (&base, 872_813, 50, 96),
    ];
    for (knobs, age, dirty, pages) in rows {
        let orders = mysql_8_at(knobs, age, dirty);
        assert_eq!(orders.pages, pages, "age {age}, {dirty} dirty, {knobs:?}");
        assert_eq!((orders.again_micros, orders.before), (1_000_000, Lsn::MAX));
        assert_eq!(orders.writers_wait_at, 950_000);
    }
    // Cm = C = 20,000: 105^1.5 / 7.5 = 143.46, so 28,600 of it; (28,600 + 1) / 3 = 9,533, and one.
    let wide = base.with_capacity(20_000, 20_000);
    assert_eq!(mysql_8_at(&wide, 872_813, 50).pages, 9_534);
}

#[test]
fn mysql_8_beyond_the_synchronous_point() {
    // Age 900,000: pages first modified before 9,375 behind the oldest, 9 x 9,375/100,000 rounded
    // up = 1, but at least C; again at once.
    let orders = mysql_8_at(&knobs(Kind::Mysql8), 900_000, 50);
    assert_eq!((orders.pages, orders.again_micros), (100, 0));
    assert_eq!(orders.before, Lsn(OLDEST + 9_375));
    // Without any commit since: C times idle_flush_pct.
    let idle = mysql_8_at(&knobs(Kind::Mysql8), 1, 50);
    assert_eq!(idle.pages, 100);
}

#[test]
fn mysql_8_averages_over_thirty_looks() {
    let list = list(&[90, 60]);
    let (knobs, mut state) = (knobs(Kind::Mysql8), Mysql8State::default());
    // 3,000 bytes and 60 pages a second; the age stays below the low-water mark.
    for second in 0..30u64 {
        let seen = seen(&list, second as f64, 1 + 3_000 * second, 50);
        let orders = mysql_8(&knobs, &mut state, &look(&seen, if second == 0 { 0 } else { 60 }));
        assert_eq!(orders.pages, u64::from(second > 0), "nothing averaged yet in second {second}");
    }
    // 30 x 60 pages in 30 s: (60 + 0) / 2 = 30. Redo: (3,000 + 0) / 2 = 1,500 a second, so 4,500
    // ahead: 90 x 4,501/100,000 rounded up = 5, a third 1. (0 + 30 + 1) / 3 = 10, and one.
    let seen = seen(&list, 30.0, 1 + 90_000, 50);
    assert_eq!(mysql_8(&knobs, &mut state, &look(&seen, 60)).pages, 11);
}

#[test]
fn mysql_5_6_rounds_the_age_and_writes_nothing_before_it_knows_a_rate() {
    let list = list(&[9]);
    let base = knobs(Kind::Mysql56);
    // Asynchronous point 664,650.
    let rows = [
        // f = 50: INT(250/100) 50^1.5/7.5 = 94; (94 + 0) / 2.
        (332_325, 50, 47),
        // f = INT(50.85) = 50 still.
        (338_000, 50, 47),
        // f = 51: 2 x 364.2 / 7.5 = 97.1.
        (338_980, 50, 48),
        // Below the low-water mark of 90,000.
        (89_999, 50, 0),
        // 80 % dirty, beyond 75: 100 %.
        (89_999, 800, 50),
    ];
    for (age, dirty, pages) in rows {
        let mut state = Mysql56State::default();
        mysql_5_6(&base, &mut state, &look(&seen(&list, 0.0, 1, dirty), 0));
        let orders = mysql_5_6(&base, &mut state, &look(&seen(&list, 1.0, age, dirty), 0));
        assert_eq!(orders.pages, pages, "age {age}, {dirty} dirty");
        assert_eq!(orders.before, Lsn(OLDEST), "the mean rate of redo is 0: nothing is older");
    }
}

#[test]
fn mysql_5_6_goes_as_far_as_its_mean_rate_and_age_factor_say() {
    let list = list(&[9]);
    let (knobs, mut state) = (knobs(Kind::Mysql56), Mysql56State::default());
    for second in 0..30u64 {
        let seen = seen(&list, second as f64, 3_000 * second + 1, 50);
        mysql_5_6(&knobs, &mut state, &look(&seen, 0));
    }
    // (90,000 / 30 + 0) / 2 = 1,500 a second. Asked for 0 pages before, so the factor is 0.
    let orders = mysql_5_6(&knobs, &mut state, &look(&seen(&list, 30.0, 90_001, 50), 0));
    assert_eq!(orders.before, Lsn(OLDEST + 1_500));
    // f = INT(90,001 x 100 / 664,650) = 13: 2 x 46.87 / 7.5 = 12; (12 + 0) / 2 = 6.
    assert_eq!(orders.pages, 6);
    // 2 were written for those 6: the factor is 6 / (2 + 1) = 2.
    let orders = mysql_5_6(&knobs, &mut state, &look(&seen(&list, 31.0, 93_001, 50), 2));
    assert_eq!(orders.before, Lsn(OLDEST + 3 * 1_500));
}

#[test]
fn mariadb_sleeps_then_c_is_the_set_point() {
    let list = list(&[9]);
    let knobs = knobs(Kind::Mariadb105);
    let mut state = MariadbState::default();
    let at = |state: &mut MariadbState, seconds: f64, age: u64| {
        mariadb_10_5(&knobs, state, &look(&seen(&list, seconds, age, 50), 0))
    };
    // A tenth of the capacity of 898,157.
    assert_eq!(at(&mut state, 0.0, 89_815).pages, 0);
    // The first time: C, or all dirty pages if fewer.
    assert_eq!(at(&mut state, 1.0, 89_816).pages, 50);
    // (100 + 0 + 1) / 3, whatever the age.
    assert_eq!(at(&mut state, 2.0, 200_000).pages, 33);
    assert_eq!(at(&mut state, 3.0, 669_500).pages, 33);
    // Beyond the asynchronous point Cm a second, up to that point.
    let orders = at(&mut state, 4.0, 669_501);
    assert_eq!((orders.pages, orders.again_micros), (250, 1_000_000));
    assert_eq!(orders.before, Lsn(OLDEST + 1));
    // Beyond the greatest age: the same without sleep.
    let orders = at(&mut state, 5.0, 765_143);
    assert_eq!((orders.pages, orders.again_micros), (250, 0));
    assert_eq!(orders.writers_wait_at, 765_142);
}

#[test]
fn furious_does_little_and_then_everything() {
    let list = list(&[1000]);
    let knobs = knobs(Kind::Furious);
    let mut state = MasterState::default();
    let at = |state: &mut MasterState, seconds: f64, age: u64, dirty: u64| {
        furious(&knobs, state, &look(&seen(&list, seconds, age, dirty), 0))
    };
    assert_eq!(at(&mut state, 0.0, 500_000, 500).pages, 0);
    assert_eq!(at(&mut state, 1.0, 500_000, 500).pages, 0, "not every second");
    assert_eq!(at(&mut state, 2.0, 500_000, 950).pages, 100, "95 % dirty of at most 90 %");
    assert_eq!(at(&mut state, 2.0, 500_000, 950).pages, 100, "and on without sleep");
    assert_eq!(at(&mut state, 10.0, 500_000, 500).pages, 10, "every ten seconds a tenth of C");
    assert_eq!(at(&mut state, 20.0, 500_000, 720).pages, 100, "or C beyond 70 %");
    // Asynchronous point 664,650: bring the oldest forward by what is beyond it.
    let orders = at(&mut state, 21.0, 674_650, 500);
    assert_eq!((orders.pages, orders.stop_writers), (100, false));
    assert_eq!(orders.before, Lsn(OLDEST + 10_000));
    // Synchronous point 712,125: by twice of what is beyond it, and all wait.
    let orders = at(&mut state, 22.0, 722_125, 500);
    assert_eq!((orders.pages, orders.stop_writers), (200, true));
    assert_eq!(orders.before, Lsn(OLDEST + 20_000));
}

/// The loop of a second of an XtraDB policy, `redo` bytes after the one before.
fn xtradb_at(
    policy: fn(&Knobs, &mut XtradbState, &Look<'_>) -> Orders,
    knobs: &Knobs,
    list: &AgeHistogram,
    age: u64,
    redo: u64,
) -> Orders {
    let mut state = XtradbState::default();
    let dirty = list.pages();
    let at = |state: &mut XtradbState, seconds: f64, age: u64| {
        let mut seen = seen(list, seconds, age, dirty);
        seen.frames_total = 9_999;
        policy(knobs, state, &look(&seen, 0))
    };
    at(&mut state, 0.0, age - redo);
    at(&mut state, 1.0, age - redo);
    at(&mut state, 2.0, age)
}

#[test]
fn reflex_knows_three_steps() {
    let knobs = knobs(Kind::Reflex).with_capacity(200, 200);
    let list = list(&[500]);
    // Of 759,600: half, three quarters, seven eighths.
    let rows = [
        (379_800, 0, Lsn::MAX),
        (379_801, 20, Lsn::MAX),
        (569_700, 20, Lsn::MAX),
        (569_701, 200, Lsn::MAX),
        (664_650, 200, Lsn::MAX),
        // The user threads' part: at least a page, and only as far as a byte.
        (664_651, 1, Lsn(OLDEST + 1)),
    ];
    for (age, pages, before) in rows {
        let orders = xtradb_at(reflex, &knobs, &list, age, 100);
        assert_eq!((orders.pages, orders.before), (pages, before), "age {age}");
    }
}

#[test]
fn estimate_divides_by_the_room_that_is_left() {
    let knobs = knobs(Kind::Estimate);
    let list = list(&[2000, 0, 1000]);
    // Room: 2,000 (759,600 - 300,000) + 1,000 (759,600 - 100,000) = 1,578,800,000.
    // 3,000 x 3,000 x 10,000 / 1,578,800,000 = 57.005.
    let orders = xtradb_at(estimate, &knobs, &list, 300_000, 10_000);
    assert_eq!((orders.pages, orders.before), (57, Lsn(OLDEST + 10_000)));
    // 57 x 7 / 8 = 49.9.
    let single = Knobs { doublewrite: false, ..knobs.clone() };
    assert_eq!(xtradb_at(estimate, &single, &list, 300_000, 10_000).pages, 49);
    // Not up to a quarter.
    assert_eq!(xtradb_at(estimate, &knobs, &list, 189_900, 10_000).pages, 0);
}

#[test]
fn keep_average_subtracts_what_was_written_anyway() {
    let knobs = knobs(Kind::KeepAverage);
    let mut state = XtradbState::default();
    let at = |state: &mut XtradbState, list: &AgeHistogram, tenths: f64, age: u64, wrote: u64| {
        let mut seen = seen(list, tenths / 10.0, age, list.pages());
        seen.frames_total = 9_999;
        keep_average(&knobs, state, &look(&seen, wrote))
    };
    let full = list(&[2000, 0, 1000]);
    assert_eq!(at(&mut state, &full, 0.0, 300_000, 0).pages, 0);
    // 3,000 x 1,000 / 664,650 = 4.51, and one.
    let orders = at(&mut state, &full, 1.0, 301_000, 0);
    assert_eq!((orders.pages, orders.before), (5, Lsn(OLDEST + 1_000)));
    assert_eq!(at(&mut state, &full, 1.5, 301_000, 5).pages, 0, "not before the next tenth");
    // 7 fewer are dirty, 5 were written for this: 2 too many. 2,993 x 1,000 / 664,650 = 4.5;
    // 4 - 2, and one.
    let fewer = list(&[1993, 0, 1000]);
    assert_eq!(at(&mut state, &fewer, 2.0, 302_000, 0).pages, 3);
}

#[test]
fn names_are_read_back_and_unknown_ones_list_them() {
    for kind in Kind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        let made = setup(kind, &Knobs::defaults(kind), Neighbours::None, 1);
        assert_eq!(made.map(|make| make().policy.name()), {
            (kind != Kind::Deadline).then(|| kind.name())
        });
    }
    let error = "mysql_9".parse::<Kind>().unwrap_err();
    assert!(error.contains("mysql_5_6, mysql_8, mariadb_10_5, reflex"), "{error}");
}

/// Time that runs ten times as fast: a tenth of the sleep, and a tenth of the pages in each tick,
/// without more rounding: 32 are ordered in each of the policy's seconds, here 3, 3, 3, 3 and 4.
#[test]
fn faster_time_makes_ticks_shorter() {
    let knobs = knobs(Kind::Mysql8);
    let mut policy = setup(Kind::Mysql8, &knobs, Neighbours::None, 10).expect("a policy")().policy;
    let list = list(&[1]);
    let mut at = |seconds: f64, age: u64| {
        let orders = policy.look(&look(&seen(&list, seconds, age, 5), 0));
        (orders.pages, orders.again_micros)
    };
    assert_eq!(at(0.0, 1), (0, 100_000));
    // As in `mysql_8_by_age_and_dirty_pages`.
    let ticks = [(0.1, 0), (0.2, 1), (0.3, 2), (0.4, 3), (0.5, 4)];
    let pages = ticks.map(|(seconds, more)| at(seconds, 415_625 + more).0);
    assert_eq!(pages, [3, 3, 3, 3, 4]);
}
