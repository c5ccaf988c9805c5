//! Threads that write, and readers whose snapshots grow so old that what they see has left memory.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir::{Background, Config, Db, Durability, Isolation, SimVolume, Tree, Txn, TxnOptions, Wait};

const ACCOUNTS: u32 = 400;
const EACH: i64 = 1_000;

fn config() -> Config {
    Config {
        pool_bytes: 8 << 20,
        log_bytes: 2 << 20,
        page_size: 4096,
        background: Background::Threads,
        versions_max_bytes: Some(32 << 10),
        ..Config::default()
    }
}

fn amount(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes[..8].try_into().expect("an amount"))
}

/// As long as some random padding makes it, now and then on pages of its own.
fn padded(amount: i64, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = amount.to_le_bytes().to_vec();
    bytes.resize(if random.u8(0..40) == 0 { 6_000 } else { 8 + random.usize(0..100) }, 1);
    bytes
}

/// Moves money between two accounts; an account without any is removed.
fn transfer(db: &Db, tree: &Tree, random: &mut fastrand::Rng) -> Result<(), weir::Error> {
    let lock_wait = Wait::Until(Duration::from_secs(20));
    let mut txn = db.begin(TxnOptions { isolation: Isolation::ReadCommitted, lock_wait });
    let (from, to) = (random.u32(0..ACCOUNTS), random.u32(0..ACCOUNTS));
    let share = random.i64(1..400);
    for (account, change) in [(from.min(to), share), (from.max(to), -share)] {
        let key = account.to_be_bytes();
        let mut bytes = Vec::new();
        let is_there = txn.get_for_update(tree, &key, &mut bytes)?;
        let before = if is_there { amount(&bytes) } else { 0 };
        if before + change == 0 {
            txn.delete(tree, &key)?;
        } else {
            txn.put(tree, &key, &padded(before + change, random))?;
        }
    }
    if random.u8(0..10) == 0 { txn.rollback() } else { txn.commit().map(|_| ()) }
}

/// Rows and money, by a scan and row by row.
fn sums(reader: &mut Txn, tree: &Tree) -> (u64, i64, i64) {
    let (mut rows, mut sum) = (0, 0);
    let mut cursor = reader.cursor(tree);
    let mut on = cursor.seek_first(reader).expect("a scan");
    while on {
        (rows, sum) = (rows + 1, sum + amount(cursor.value()));
        on = cursor.next(reader).expect("a scan");
    }
    let one = |n: u32| reader.get(tree, &n.to_be_bytes()).expect("a read");
    let single = (0..ACCOUNTS).filter_map(one).map(|bytes| amount(&bytes)).sum();
    (rows, sum, single)
}

fn reads(db: &Db, tree: &Tree, stop: &AtomicBool, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Relaxed) {
        let mut reader = db.begin(TxnOptions::default());
        reader.get(tree, &[]).expect("its snapshot is taken");
        let first = sums(&mut reader, tree);
        assert_eq!((first.1, first.2), (EACH * i64::from(ACCOUNTS), EACH * i64::from(ACCOUNTS)));
        let until = Instant::now() + Duration::from_millis(random.u64(5..700));
        while Instant::now() < until && !stop.load(Relaxed) {
            assert_eq!(sums(&mut reader, tree), first, "what it saw at first");
        }
        reader.rollback().expect("ended");
    }
}

#[test]
fn money_is_neither_made_nor_lost_in_any_snapshot() {
    let volume = Arc::new(SimVolume::new(3));
    let db = Db::open_on(volume.clone(), config()).expect("a new database");
    let tree = db.create_tree("accounts").expect("a tree");
    for n in 0..ACCOUNTS {
        tree.put(&n.to_be_bytes(), &EACH.to_le_bytes(), Durability::Lazy).expect("put");
    }
    let (stop, archived) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (db, tree, stop) = (&db, &tree, &stop);
        for seed in 0..2 {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !stop.load(Relaxed) {
                    match transfer(db, tree, &mut random) {
                        Ok(()) => {}
                        Err(e) if e.is_retryable() => {}
                        Err(e) => panic!("{e}"),
                    }
                }
            });
            scope.spawn(move || reads(db, tree, stop, seed + 7));
        }
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
            archived.fetch_max(db.stats().archived_versions, Relaxed);
        }
        stop.store(true, Relaxed);
    });
    assert!(archived.load(Relaxed) > 0, "nothing has left memory: the test shows nothing");
    db.close().expect("closed");
    let db = Db::open_on(volume, config()).expect("opened again");
    let report = db.check(&mut |_, _| {}).expect("checked");
    assert_eq!(report.problems, Vec::<String>::new());
    let tree = db.tree("accounts").expect("read").expect("the tree");
    let mut reader = db.begin(TxnOptions::default());
    assert_eq!(sums(&mut reader, &tree).1, EACH * i64::from(ACCOUNTS));
}

/// An archive that a crash has left is freed in the background of the next opening, which makes
/// archives of its own, and trees.
#[test]
fn archives_of_an_opening_that_crashed_are_not_mistaken_for_later_trees() {
    let mut volume = SimVolume::new(5);
    for round in 0..3u32 {
        let config = Config { background: Background::Manual, ..config() };
        let db = Db::open_on(Arc::new(volume.clone()), config).expect("opened");
        let tree = db.create_tree(&format!("t{round}")).expect("a tree");
        let mut held = Vec::new();
        for age in 0..3 {
            held.push(db.snapshot());
            for n in 0..4_000u32 {
                let mut txn = db.begin(TxnOptions::default());
                txn.put(&tree, &(n % 50).to_be_bytes(), &[age; 60]).expect("a row");
                let _ = txn.commit().expect("committed");
            }
            db.step().expect("a step");
        }
        assert!(db.stats().archived_versions > 0, "nothing has left memory");
        // The first archives are dropped, the others are there when the disk crashes.
        held.remove(0);
        for _ in 0..20 {
            db.step().expect("a step");
        }
        for older in 0..=round {
            let tree = db.tree(&format!("t{older}")).expect("read").expect("the tree");
            tree.put(b"last", b"", Durability::Synced).expect("not dropped");
        }
        volume = volume.crash(u64::from(round));
    }
    let db = Db::open_on(Arc::new(volume), config()).expect("opened");
    let report = db.check(&mut |_, _| {}).expect("checked");
    assert_eq!(report.problems, Vec::<String>::new());
}

/// After each step that frees pages of an archive that a crash has left comes another crash. No
/// page is lost or freed twice, and none of the steps is long.
#[test]
fn a_large_archive_is_freed_in_steps_with_a_crash_after_each() {
    let mut volume = SimVolume::new(7);
    let config = || Config { background: Background::Manual, ..config() };
    let open = |volume: &SimVolume| Db::open_on(Arc::new(volume.clone()), config()).expect("open");
    let db = open(&volume);
    let tree = db.create_tree("t").expect("a tree");
    let put = |tree: &Tree, n: u32, mark: u8, durability| {
        tree.put(&n.to_be_bytes(), &[mark; 800], durability).expect("a row");
    };
    (0..4_000u32).for_each(|n| put(&tree, n, 1, Durability::Lazy));
    let rows_only = db.stats().pages_allocated;
    let snapshot = db.snapshot();
    (0..4_000u32).for_each(|n| put(&tree, n, 2, Durability::Lazy));
    (0..40).for_each(|_| db.step().expect("a step"));
    assert!(db.stats().archived_versions > 2_500, "next to nothing has left memory");
    put(&tree, 0, 3, Durability::Synced);
    volume = volume.crash(7);
    drop((db, tree, snapshot));
    let (mut steps, mut pages) = (0, Vec::new());
    loop {
        let db = open(&volume);
        pages.push(db.stats().pages_allocated);
        if db.stats().losers == 0 {
            let report = db.check(&mut |_, _| {}).expect("checked");
            assert_eq!((report.problems, report.pages_held), (Vec::<String>::new(), 0));
            break;
        }
        steps += 1;
        assert!(steps < 50, "it does not get on: {pages:?}");
        db.step().expect("a step");
        // Now and then what the step did is in the log, now and then not.
        let durability = if steps % 4 == 0 { Durability::Lazy } else { Durability::Synced };
        put(&db.tree("t").expect("read").expect("the tree"), 0, 4, durability);
        volume = volume.crash(steps);
    }
    assert!(pages.windows(2).all(|two| two[0] <= two[1] + 512), "{pages:?}");
    let freed = pages.first().zip(pages.last()).map(|(first, last)| first - last);
    assert!(steps >= 4 && freed >= Some(800), "{pages:?}, {rows_only} of rows");
}
