//! Trees made dense while others read and write them.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir::{
    Background, Batch, CompactOptions, Config, Cursor, Db, Durability, Error, SimVolume, StoreKind,
    Tree, TxnOptions,
};

use crate::support::{assert_sound, tiny};

const ROWS: u32 = 100_000;
const LEN: usize = 200;

type Model = BTreeMap<u32, Vec<u8>>;

/// Keys in random order, so that the leaves are as full as such leaves are; nine tenths of them are
/// deleted, at random.
fn thinned(db: &Db, rows: u32, len: usize) -> (Tree, Model) {
    let tree = db.create_tree("rows").expect("a tree");
    let mut random = fastrand::Rng::with_seed(3);
    let mut keys: Vec<u32> = (0..rows).collect();
    random.shuffle(&mut keys);
    let mut model = Model::new();
    let at_once = (100_000 / len).max(1);
    for keys in keys.chunks(at_once) {
        let mut batch = Batch::new();
        for &key in keys {
            let value: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            batch.put(&tree, &key.to_be_bytes(), &value);
            model.insert(key, value);
        }
        db.write(&batch, Durability::Lazy).expect("rows");
    }
    random.shuffle(&mut keys);
    for keys in keys[rows as usize / 10..].chunks(500) {
        let mut batch = Batch::new();
        for key in keys {
            batch.delete(&tree, &key.to_be_bytes());
            model.remove(key);
        }
        db.write(&batch, Durability::Lazy).expect("deleted");
    }
    db.checkpoint().expect("a checkpoint");
    (tree, model)
}

fn assert_rows(tree: &Tree, model: &Model) {
    walk(tree.cursor(), model);
}

fn walk(mut cursor: Cursor, model: &Model) {
    let mut found = cursor.seek_first().expect("a seek");
    for (key, value) in model {
        assert!(found, "row {key} is missing");
        assert_eq!(cursor.key(), key.to_be_bytes());
        assert_eq!(cursor.value().expect("a value"), &value[..]);
        found = cursor.next().expect("a step");
    }
    assert!(!found, "more rows than there are");
}

/// Puts, deletes and rolls back rows whose keys have the remainder `nth` of 4 until it is told to
/// stop; returns what must be there of those.
fn write(db: &Db, tree: &Tree, nth: u32, mut model: Model, stop: &AtomicBool) -> Model {
    let mut random = fastrand::Rng::with_seed(u64::from(nth));
    while !stop.load(Ordering::Relaxed) {
        let first = random.u32(0..ROWS / 4 - 20);
        let mut after = model.clone();
        let mut txn = db.begin(TxnOptions::default());
        let deletes = random.bool();
        for key in (first..first + random.u32(1..20)).map(|key| key * 4 + nth) {
            if deletes {
                let was = txn.delete(tree, &key.to_be_bytes()).expect("a delete");
                assert_eq!(was, after.remove(&key).is_some(), "row {key}");
            } else {
                let value = vec![random.u8(..); random.usize(0..2 * LEN)];
                txn.put(tree, &key.to_be_bytes(), &value).expect("a put");
                after.insert(key, value);
            }
        }
        if random.u8(0..3) == 0 {
            txn.rollback().expect("rolled back");
        } else {
            txn.commit_durably(Durability::Lazy).expect("committed");
            model = after;
        }
    }
    model
}

/// What no thread changes is there, once, in order, in each of many walks and in one snapshot.
fn read(db: &Db, tree: &Tree, stable: &Model, stop: &AtomicBool) {
    let snapshot = db.snapshot();
    while !stop.load(Ordering::Relaxed) {
        for is_held in [false, true] {
            let cursor = if is_held { tree.cursor_at(&snapshot) } else { Ok(tree.cursor()) };
            let mut cursor = cursor.expect("a cursor");
            let mut left = stable.iter();
            let mut found = cursor.seek_first().expect("a seek");
            while found {
                let key = u32::from_be_bytes(cursor.key().try_into().expect("a key"));
                if key % 4 > 1 {
                    let (expected, value) = left.next().expect("a row too many");
                    assert_eq!((key, cursor.value().expect("a value")), (*expected, &value[..]));
                }
                found = cursor.next().expect("a step");
            }
            assert_eq!(left.count(), 0, "rows are missing");
        }
    }
}

fn with_remainder(model: &Model, which: impl Fn(u32) -> bool) -> Model {
    model.iter().filter(|(key, _)| which(*key % 4)).map(|(k, v)| (*k, v.clone())).collect()
}

fn compact_beside_others(store: StoreKind) {
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config {
        store: Some(store),
        pool_bytes: 8 << 20,
        log_bytes: 16 << 20,
        ..Config::default()
    };
    let db = Db::open(dir.path(), config).expect("made");
    let (tree, mut model) = thinned(&db, ROWS, LEN);
    let before = tree.check(&mut |_| {}).expect("sound");
    let on_disk = db.stats().data_on_disk_bytes.expect("known");
    let stop = AtomicBool::new(false);
    let options = CompactOptions { bytes_per_second: Some(u64::MAX), ..CompactOptions::default() };
    let stable = with_remainder(&model, |part| part > 1);
    std::thread::scope(|scope| {
        let (db, tree, stop) = (&db, &tree, &stop);
        let own = [0, 1].map(|nth| (nth, with_remainder(&model, |part| part == nth)));
        let writers = own.map(|(nth, own)| scope.spawn(move || write(db, tree, nth, own, stop)));
        let stable = &stable;
        let readers = [0, 1].map(|_| scope.spawn(|| read(db, tree, stable, stop)));
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            let done = tree.compact(&options, &mut |_| true).expect("compacted");
            assert!(done.next.is_none() && done.leaves > 0, "{done:?}");
        }
        stop.store(true, Ordering::Relaxed);
        model = stable.clone();
        writers.into_iter().for_each(|writer| model.extend(writer.join().expect("a writer")));
        readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
    });
    assert_rows(&tree, &model);
    tree.compact(&options, &mut |_| true).expect("compacted");
    assert_rows(&tree, &model);
    assert_sound(&db);
    let after = tree.check(&mut |_| {}).expect("sound");
    let bytes: usize = model.values().map(|value| 4 + value.len()).sum();
    let leaf_bytes = after.leaves as usize * db.stats().page_size;
    println!("{store:?}: {} leaves of {} bytes of rows, {bytes}", after.leaves, before.leaves);
    assert!(leaf_bytes * 10 <= bytes * 13, "{leaf_bytes} bytes of leaves for {bytes} of rows");
    assert!(after.leaves < before.leaves, "{} of {}", after.leaves, before.leaves);
    // Of segments of a mebibyte 33 are enough for so little, and fewer than 16 are not cut off.
    let limit = if store == StoreKind::InPlace { on_disk / 6 } else { (33 + 16) << 20 };
    let left = given_back(&db, store);
    println!("{store:?}: {left} bytes on disk of {on_disk}");
    assert!(left <= limit || !db.stats().gives_back, "{left} of {on_disk}");
    assert_rows(&tree, &model);
    drop(tree);
    db.close().expect("closed");
}

/// Bytes on disk when all is given back that can be.
fn given_back(db: &Db, store: StoreKind) -> u64 {
    let until = Instant::now() + Duration::from_secs(60);
    let mut quiet = 0;
    while quiet < 10 && Instant::now() < until {
        db.checkpoint().expect("a checkpoint");
        std::thread::sleep(Duration::from_millis(100));
        quiet = if db.is_giving_back() { 0 } else { quiet + 1 };
    }
    // Segments may be few enough only a little later.
    let is_over = Instant::now() < until || store == StoreKind::Log;
    assert!(is_over, "it gives back for ever");
    db.stats().data_on_disk_bytes.expect("known")
}

#[test]
fn nine_tenths_deleted_in_place_leave_a_dense_tree_in_a_small_file() {
    compact_beside_others(StoreKind::InPlace);
}

#[test]
fn nine_tenths_deleted_in_segments_leave_a_dense_tree_in_a_small_file() {
    compact_beside_others(StoreKind::Log);
}

/// Of long values nine tenths are deleted, at random: what lies on disk then is little more than
/// the bytes that stay.
#[test]
fn nine_tenths_of_long_values_deleted_leave_a_small_file() {
    for len in [7_900, 12_000, 30_000] {
        let dir = tempfile::tempdir().expect("a directory");
        let store = StoreKind::InPlace;
        let config = Config {
            store: Some(store),
            pool_bytes: 16 << 20,
            log_bytes: 32 << 20,
            ..Config::default()
        };
        let db = Db::open(dir.path(), config).expect("made");
        let (tree, model) = thinned(&db, 48_000_000 / len, len as usize);
        let whole = db.stats().data_on_disk_bytes.expect("known");
        let options = CompactOptions { bytes_per_second: Some(u64::MAX), from: Vec::new() };
        let done = tree.compact(&options, &mut |_| true).expect("compacted");
        assert_rows(&tree, &model);
        assert_sound(&db);
        let bytes: u64 = model.values().map(|value| 4 + value.len() as u64).sum();
        let left = given_back(&db, store);
        println!("values of {len}: {left} on disk of {whole} for {bytes} bytes, {done:?}");
        assert!(left * 10 <= bytes * 25 || !db.stats().gives_back, "{left} for {bytes}");
        assert_rows(&tree, &model);
        drop(tree);
        db.close().expect("closed");
    }
}

/// A long value of a row: each says whose it is, and which one.
fn long_value(key: u32, nth: u32, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut value = format!("{key:08} {nth:08} ").into_bytes();
    let len = random.usize(3_000..40_000);
    value.extend((0..len).map(|i| (i as u32 ^ nth).wrapping_mul(0x9e37_79b9).to_be_bytes()[0]));
    value
}

/// Changes long values, rows' first bytes alone, too, and rolls some changes back; snapshots see
/// what was there when they were taken.
fn write_long(db: &Db, tree: &Tree, mut model: Model, stop: &AtomicBool) -> Model {
    let mut random = fastrand::Rng::with_seed(8);
    let (mut nth, mut held) = (0, std::collections::VecDeque::new());
    while !stop.load(Ordering::Relaxed) {
        let mut after = model.clone();
        let mut txn = db.begin(TxnOptions::default());
        for _ in 0..random.usize(1..6) {
            nth += 1;
            let key = random.u32(0..LONG_ROWS);
            let bytes = key.to_be_bytes();
            let mut old = Vec::new();
            let is_there = txn.get_for_update(tree, &bytes, &mut old).expect("read");
            assert_eq!(is_there.then_some(&old), after.get(&key), "row {key}");
            match (random.u8(0..10), is_there) {
                (0..6, true) => {
                    let mut new = old.clone();
                    new[9..17].copy_from_slice(format!("{nth:08}").as_bytes());
                    txn.replace(tree, &bytes, &old, &new).expect("replaced");
                    after.insert(key, new);
                }
                (6, true) => {
                    txn.delete(tree, &bytes).expect("deleted");
                    after.remove(&key);
                }
                _ => {
                    let value = long_value(key, nth, &mut random);
                    txn.put(tree, &bytes, &value).expect("put");
                    after.insert(key, value);
                }
            }
        }
        if random.u8(0..4) == 0 {
            txn.rollback().expect("rolled back");
        } else {
            txn.commit_durably(Durability::Lazy).expect("committed");
            model = after;
        }
        if random.u8(0..8) == 0 {
            held.push_back((db.snapshot(), model.clone()));
        }
        if held.len() > 5 {
            let (snapshot, then) = held.pop_front().expect("the oldest");
            walk(tree.cursor_at(&snapshot).expect("a cursor"), &then);
        }
    }
    model
}

const LONG_ROWS: u32 = 250;

/// Chains of long values move beside transactions, and those that read what was there before find
/// it, wherever it lies.
#[test]
fn long_values_move_beside_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config { pool_bytes: 16 << 20, log_bytes: 32 << 20, ..Config::default() };
    let db = Db::open(dir.path(), config).expect("made");
    let tree = db.create_tree("rows").expect("a tree");
    let (mut model, mut random) = (Model::new(), fastrand::Rng::with_seed(6));
    // Behind rows that go, so that there is room in front.
    let gone = db.create_tree("gone").expect("a tree");
    for key in 0..LONG_ROWS {
        gone.put(&key.to_be_bytes(), &vec![7; 30_000], Durability::Lazy).expect("put");
    }
    for key in 0..LONG_ROWS {
        let value = long_value(key, 0, &mut random);
        tree.put(&key.to_be_bytes(), &value, Durability::Lazy).expect("put");
        model.insert(key, value);
    }
    db.drop_tree("gone").expect("dropped");
    let (stop, options) = (
        AtomicBool::new(false),
        CompactOptions { bytes_per_second: Some(u64::MAX), ..CompactOptions::default() },
    );
    let moved = std::thread::scope(|scope| {
        let (db, tree, stop) = (&db, &tree, &stop);
        let writer = scope.spawn(move || write_long(db, tree, model, stop));
        let reader = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut cursor = tree.cursor();
                let mut on = cursor.seek_first().expect("a seek");
                while on {
                    let key = u32::from_be_bytes(cursor.key().try_into().expect("a key"));
                    let value = cursor.value().expect("a value");
                    assert!(value.starts_with(format!("{key:08} ").as_bytes()), "row {key}");
                    on = cursor.next().expect("a step");
                }
            }
        });
        let (began, mut moved) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(4) && !writer.is_finished() {
            moved += tree.compact(&options, &mut |_| true).expect("compacted").pages_moved;
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("a reader");
        (moved, writer.join().expect("a writer"))
    });
    let (moved, model) = moved;
    println!("{moved} pages moved");
    assert!(moved > 100, "{moved} pages moved");
    assert_rows(&tree, &model);
    assert_sound(&db);
    drop(tree);
    db.close().expect("closed");
    let db = Db::open(dir.path(), Config::default()).expect("opened");
    assert_rows(&db.open_tree("rows").expect("the tree"), &model);
    assert_sound(&db);
}

/// Ended after each leaf and gone on with it is the same as one in a piece.
#[test]
fn a_compaction_that_is_ended_goes_on_where_it_was() {
    let config = || Config { pages_max: 1 << 12, ..tiny() };
    let made = || {
        let db = Db::open_on(Arc::new(SimVolume::new(4)), config()).expect("made");
        let (tree, model) = thinned(&db, 4_000, LEN);
        (db, tree, model)
    };
    let (_db, whole, _) = made();
    let done = whole.compact(&CompactOptions::default(), &mut |_| true).expect("compacted");
    assert!(done.pages_freed > 0 && done.pages_moved > 0, "{done:?}");
    let (db, tree, model) = made();
    let mut options = CompactOptions::default();
    let (mut pieces, mut leaves) = (0, 0);
    loop {
        let part = tree.compact(&options, &mut |done| done.leaves == 0).expect("compacted");
        (pieces, leaves) = (pieces + 1, leaves + part.leaves);
        match part.next {
            Some(next) => options.from = next,
            None => break,
        }
    }
    assert!(pieces > 5 && leaves == done.leaves, "{pieces} pieces, {leaves}, {done:?}");
    assert_rows(&tree, &model);
    assert_sound(&db);
    let leaves = |tree: &Tree| tree.check(&mut |_| {}).expect("sound").leaves;
    assert_eq!(leaves(&tree), leaves(&whole));
}

#[test]
fn what_cannot_be_compacted_is_refused() {
    let volume = SimVolume::new(5);
    let db = Db::open_on(Arc::new(volume.clone()), tiny()).expect("made");
    let tree = db.create_tree("gone").expect("a tree");
    tree.put(b"key", b"value", Durability::Synced).expect("a put");
    let options = CompactOptions::default();
    let done = tree.compact(&options, &mut |_| true).expect("one leaf");
    assert_eq!((done.leaves, done.pages_freed, done.next), (1, 0, None));
    let long = CompactOptions { from: vec![0; 5_000], ..options.clone() };
    assert!(matches!(tree.compact(&long, &mut |_| true), Err(Error::Input(_))));
    // A snapshot keeps its pages; its name is gone all the same.
    let snapshot = db.snapshot();
    db.drop_tree("gone").expect("dropped");
    assert!(matches!(tree.compact(&options, &mut |_| true), Err(Error::NoTree(_))));
    drop(snapshot);
    let kept = db.create_tree("kept").expect("a tree");
    db.close().expect("closed");
    assert!(matches!(kept.compact(&options, &mut |_| true), Err(Error::Closed)));
    let config = Config { read_only: true, background: Background::Manual, ..tiny() };
    let db = Db::open_on(Arc::new(volume.snapshot()), config).expect("to read");
    let tree = db.tree("kept").expect("read").expect("it is there");
    assert!(matches!(tree.compact(&options, &mut |_| true), Err(Error::ReadOnly)));
}
