//! What the caller's functions are called with: no page is latched, and no lock is held that the
//! engine needs, so that they may use the database (`docs/decisions/leaf-as-value.md`).
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::Mutex;
use weir::{
    Background, BackupOptions, Config, Db, Durability, Isolation, Progress, SimVolume, Tree,
    TxnOptions,
};
use weir_base::held::{are_ranks_checked, held};

use crate::support::tiny;

/// Where functions were called.
#[derive(Clone, Default)]
struct Called(Arc<Mutex<Vec<&'static str>>>);

impl Called {
    /// Said by a function of the caller, which may hold nothing, or only what `allowed` names.
    fn by(&self, what: &'static str, allowed: &[&str]) {
        let held = held();
        assert!(held.iter().all(|name| allowed.contains(name)), "{what}: held are {held:?}");
        let mut called = self.0.lock();
        if !called.contains(&what) {
            called.push(what);
        }
    }
}

fn rows() -> impl Iterator<Item = ([u8; 4], Vec<u8>)> {
    let value = |n: u32| vec![n as u8; if n.is_multiple_of(50) { 9_000 } else { 60 }];
    (0..400u32).map(move |n| (n.to_be_bytes(), value(n)))
}

fn filled(db: &Db, called: &Called) -> Tree {
    let tree = db.create_tree("t").expect("a tree");
    let rows = rows().inspect(|_| called.by("bulk load", &[]));
    assert_eq!(tree.bulk_load(rows).expect("loaded"), 400);
    tree
}

fn reads(db: &Db, tree: &Tree, called: &Called) {
    let visit = |what| {
        move |_: &[u8], _: &[u8]| {
            called.by(what, &[]);
            ControlFlow::Continue(())
        }
    };
    let mut cursor = tree.cursor();
    assert!(cursor.seek_first().expect("a seek"));
    cursor.visit(visit("cursor")).expect("visited");
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let mut txn = db.begin(TxnOptions { isolation, ..TxnOptions::default() });
        let mut cursor = txn.cursor(tree);
        assert!(cursor.seek_first(&mut txn).expect("a seek"));
        cursor.visit(&mut txn, visit("cursor of a transaction")).expect("visited");
    }
    tree.check(&mut |_| called.by("check of a tree", &[])).expect("sound");
    db.check(&mut |_, _| called.by("check", &[])).expect("sound");
    db.scrub(&mut |_, _| called.by("scrub", &[])).expect("sound");
    db.visit_metrics(&mut |_, _| called.by("metrics", &[]));
    db.visit_counters(&mut |_, _, _, _| called.by("counters", &[]));
    let progress = &mut |_| {
        called.by("backup", &[]);
        true
    };
    db.backup(io::sink(), &BackupOptions::default(), progress).expect("backed up");
}

fn writes(db: &Db, tree: &Tree, called: &Called) {
    let mut txn = db.begin(TxnOptions::default());
    for (key, _) in rows() {
        let edit = |old: &[u8], new: &mut Vec<u8>| {
            called.by("update", &[]);
            // It may use the row's leaf, also to write.
            tree.get(&key).expect("read");
            let beside = [&key[..], b"beside"].concat();
            tree.put(&beside, old.get(..9).unwrap_or(old), Durability::Lazy).expect("put");
            new.extend_from_slice(old);
            new.push(1);
            true
        };
        assert!(txn.update(tree, &key, edit).expect("updated"));
    }
    let commit = txn.commit().expect("committed");
    let when = called.clone();
    db.when_durable(commit, move |_| when.by("when durable", &[]));
    db.wait(commit, Durability::Synced).expect("durable");
}

#[test]
fn no_page_is_latched_while_a_function_of_the_caller_runs() {
    if !are_ranks_checked() {
        return;
    }
    let (called, volume) = (Called::default(), SimVolume::new(11));
    let listener = called.clone();
    let recovery = move |_: &Progress| listener.by("recovery", &[]);
    let config = Config {
        pool_bytes: 4 << 20,
        log_bytes: 4 << 20,
        pages_max: 1 << 16,
        background: Background::Threads,
        recovery_progress: Some(Arc::new(recovery)),
        ..tiny()
    };
    let db = Db::open_on(Arc::new(volume.clone()), config.clone()).expect("a new database");
    let tree = filled(&db, &called);
    writes(&db, &tree, &called);
    reads(&db, &tree, &called);
    let crashed = volume.crash(1);
    drop((tree, db));
    Db::open_on(Arc::new(crashed), config).expect("recovered").close().expect("closed");
    let mut wanted = vec![
        "backup",
        "bulk load",
        "check",
        "check of a tree",
        "counters",
        "cursor",
        "cursor of a transaction",
        "metrics",
        "recovery",
        "scrub",
        "update",
        "when durable",
    ];
    wanted.sort_unstable();
    let mut called = called.0.lock().clone();
    called.sort_unstable();
    assert_eq!(called, wanted);
}

/// What a thread holds is seen, or the test above would show nothing.
#[test]
fn what_a_thread_holds_has_a_name() {
    if !are_ranks_checked() {
        return;
    }
    let lock = weir_base::lock::Mutex::<weir_base::rank::PageLatch, ()>::new(());
    assert!(held().is_empty());
    let guard = lock.lock();
    assert_eq!(held(), ["PageLatch"]);
    drop(guard);
    assert!(held().is_empty());
}
