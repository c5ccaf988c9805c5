//! Scans of more data than memory, which read ahead, in both stores, encrypted or not, and after a
//! crash.
use std::ops::ControlFlow;
use std::sync::Arc;

use weir::{Config, Db, Durability, Encryption, SimVolume, StoreKind, Tree, TxnOptions};

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
