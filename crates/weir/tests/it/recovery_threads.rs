//! Recovery gives the same database however many threads do it.
use std::sync::Arc;

use weir::{Background, Batch, Config, Db, Durability, SimVolume};

use crate::support::assert_sound;

fn config(recovery_threads: usize) -> Config {
    Config {
        pool_bytes: 8 << 20,
        log_bytes: 16 << 20,
        page_size: 4096,
        recovery_threads,
        background: Background::Threads,
        ..Config::default()
    }
}

/// All rows of all trees, in order.
fn contents(db: &Db) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    for name in db.tree_names().expect("names") {
        let tree = db.tree(&name).expect("read").expect("the tree");
        let mut cursor = tree.cursor();
        let mut on = cursor.seek_first().expect("seek");
        while on {
            let value = cursor.value().expect("a value").to_vec();
            rows.push((name.clone(), cursor.key().to_vec(), value));
            on = cursor.next().expect("a step");
        }
    }
    rows
}

#[test]
fn one_thread_and_several_give_the_same() {
    let volume = SimVolume::new(77);
    // Nothing is written in the background, so that much is left to redo.
    let manual = Config { background: Background::Manual, ..config(0) };
    let db = Db::open_on(Arc::new(volume.clone()), manual).expect("a database");
    let (rows, others) = (db.create_tree("rows").expect("t"), db.create_tree("others").expect("t"));
    for n in 0u64..20_000 {
        let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).to_be_bytes();
        match n % 10 {
            0 => assert!(rows.delete(&key, Durability::Lazy).is_ok()),
            1 => {
                let mut batch = Batch::new();
                batch.put(&rows, &key, &[n as u8; 6_000]);
                batch.put(&others, &key, &n.to_be_bytes());
                db.write(&batch, Durability::Lazy).expect("a batch");
            }
            _ => rows.put(&key, &[n as u8; 90], Durability::Lazy).expect("a put"),
        }
    }
    // Left open: half done when the disk stops.
    let mut open = db.begin(weir::TxnOptions::default());
    for n in 0u64..500 {
        open.put(&others, &(n << 32).to_be_bytes(), b"never").expect("put");
    }
    rows.put(b"last", b"synced", Durability::Synced).expect("a put");
    let before = contents(&db);
    let image = volume.snapshot();
    let mut seen = Vec::new();
    for threads in [1, 2, 5] {
        let db = Db::open_on(Arc::new(image.fork()), config(threads)).expect("recovery");
        let report = db.recovery_report().expect("there was something to do");
        assert!(report.redo.pages > 100, "{report:?}");
        assert_eq!(report.undone, 1);
        assert_sound(&db);
        seen.push(contents(&db));
    }
    assert!(seen[0] == before, "what was synced is there, and nothing else");
    assert!(seen[0] == seen[1] && seen[1] == seen[2]);
}
