//! Scans of more data than memory, which read ahead, in both stores, encrypted or not, and after a
//! crash.
use std::ops::ControlFlow;
use std::sync::Arc;

use weir::{Batch, Config, Db, Durability, Encryption, SimVolume, StoreKind, Tree, TxnOptions};

use crate::encrypted::Keys;
use crate::support::{assert_sound, tiny};

const ROWS: u32 = 6_000;

fn value(n: u32) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(u64::from(n));
    (0..400).map(|_| random.u8(..)).collect()
}

fn scan(tree: &Tree) -> u32 {
    let (mut cursor, mut rows) = (tree.cursor(), 0u32);
    assert!(cursor.seek_first().expect("a seek"));
    let visit = |key: &[u8], found: &[u8]| {
        assert_eq!((key, found), (&rows.to_be_bytes()[..], &value(rows)[..]));
        rows += 1;
        ControlFlow::Continue(())
    };
    cursor.visit(visit).expect("visited");
    rows
}

/// The same from the other end, by the cursor of a transaction.
fn scan_down(db: &Db, tree: &Tree) -> u32 {
    let mut txn = db.begin(TxnOptions::default());
    let (mut cursor, mut left) = (txn.cursor(tree), ROWS);
    let mut on = cursor.seek_last(&mut txn).expect("a seek");
    while on {
        left -= 1;
        assert_eq!((cursor.key(), cursor.value()), (&left.to_be_bytes()[..], &value(left)[..]));
        on = cursor.prev(&mut txn).expect("a step");
    }
    ROWS - left
}

#[test]
fn what_memory_does_not_hold_is_scanned_in_batches() {
    for store in [StoreKind::InPlace, StoreKind::Log] {
        for keys in [None, Some(Keys::with(1, 7))] {
            let volume = SimVolume::new(3);
            let encryption = keys.map(|keys| Encryption::new(keys));
            let config = Config {
                store: Some(store),
                encryption,
                pool_bytes: 1 << 20,
                log_bytes: 4 << 20,
                pages_max: 1 << 16,
                ..tiny()
            };
            let open = |volume: &SimVolume| {
                Db::open_on(Arc::new(volume.clone()), config.clone()).expect("a database")
            };
            let db = open(&volume);
            let tree = db.create_tree("t").expect("a tree");
            let rows = |range: std::ops::Range<u32>| range.map(|n| (n.to_be_bytes(), value(n)));
            tree.bulk_load(rows(0..ROWS - 1_000)).expect("loaded");
            for (key, value) in rows(ROWS - 1_000..ROWS) {
                tree.put(&key, &value, Durability::Lazy).expect("a put");
            }
            db.sync().expect("synced");
            // What the log has for pages that are read ahead goes into them on their way.
            let crashed = open(&volume.fork());
            for (db, least) in [(&db, 900), (&crashed, 100)] {
                let tree = db.tree("t").expect("read").expect("the tree");
                let before = db.stats();
                assert_eq!((scan(&tree), scan_down(db, &tree)), (ROWS, ROWS));
                let now = db.stats();
                let (read, ahead) = (
                    now.page_reads - before.page_reads,
                    now.pages_read_ahead - before.pages_read_ahead,
                );
                assert!(ahead > read / 2 && read > least, "{store:?}: {ahead} of {read} pages");
                assert_sound(db);
            }
        }
    }
}

/// What a batch changes of so many rows, each `step`th: removed, or with the value of another row.
fn batch_of(tree: &Tree, step: u32) -> Batch {
    let mut batch = Batch::new();
    for n in (0..ROWS).step_by(step as usize) {
        match n % 4 {
            0 => batch.delete(tree, &n.to_be_bytes()),
            _ => batch.put(tree, &n.to_be_bytes(), &value(n + 1)),
        }
    }
    batch
}

#[test]
fn a_batch_reads_the_leaves_of_its_next_changes_at_once() {
    for store in [StoreKind::InPlace, StoreKind::Log] {
        let config =
            Config { store: Some(store), pool_bytes: 1 << 20, log_bytes: 4 << 20, ..tiny() };
        let volume = SimVolume::new(4);
        let db = Db::open_on(Arc::new(volume.clone()), Config { pages_max: 1 << 16, ..config })
            .expect("a database");
        let (tree, other) = (db.create_tree("t").expect("a"), db.create_tree("u").expect("b"));
        for tree in [&tree, &other] {
            tree.bulk_load((0..ROWS).map(|n| (n.to_be_bytes(), value(n)))).expect("loaded");
        }
        assert_eq!(scan(&other), ROWS);
        // Of both trees, in one batch.
        let mut batch = batch_of(&tree, 61);
        let of_other = (0..ROWS).step_by(61).filter(|n| n % 4 != 0);
        of_other.for_each(|n| batch.put(&other, &n.to_be_bytes(), &value(n)));
        let before = db.stats();
        db.write(&batch, Durability::Lazy).expect("written");
        let now = db.stats();
        let ahead = now.pages_read_ahead - before.pages_read_ahead;
        let read = now.page_reads - before.page_reads;
        assert!(read > 80 && ahead > read / 2, "{store:?}: {ahead} of {read}");
        for n in 0..ROWS {
            let expected = match (n % 61, n % 4) {
                (0, 0) => None,
                (0, _) => Some(value(n + 1)),
                _ => Some(value(n)),
            };
            assert_eq!(tree.get(&n.to_be_bytes()).expect("read"), expected, "{n}");
        }
        assert_eq!(scan(&other), ROWS);
        assert_sound(&db);
        // In memory nothing is looked for.
        let mut small = Batch::new();
        (0..8u32).for_each(|n| small.put(&tree, &n.to_be_bytes(), b"v"));
        db.write(&small, Durability::Lazy).expect("written");
        let before = db.stats().pages_read_ahead;
        db.write(&small, Durability::Lazy).expect("written");
        assert_eq!(db.stats().pages_read_ahead, before);
    }
}
