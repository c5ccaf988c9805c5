//! Trees that are dropped while others still have handles of them.
use std::sync::Arc;
use std::time::Duration;

use weir::{
    Batch, Config, Db, DoubleWriteConfig, DoubleWriteMode, Durability, Error, Isolation, LockError,
    SimVolume, Tree, Txn, TxnError, TxnOptions, Wait,
};

use crate::support::{open, tiny};

fn begin_at(db: &Db, isolation: Isolation) -> Txn {
    db.begin(TxnOptions { isolation, lock_wait: Wait::No })
}

fn begin(db: &Db) -> Txn {
    begin_at(db, Isolation::RepeatableRead)
}

/// A tree with a hundred rows and a long one.
fn filled(db: &Db, name: &str) -> Tree {
    let tree = db.create_tree(name).expect("a tree");
    let mut batch = Batch::new();
    for n in 0u32..100 {
        batch.put(&tree, &n.to_be_bytes(), &[n as u8; 90]);
    }
    batch.put(&tree, b"long", &[1; 9_000]);
    db.write(&batch, Durability::Synced).expect("rows");
    tree
}

fn assert_sound(db: &Db) {
    let report = db.check(&mut |_, _| {}).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
}

fn is_taken<T>(result: &Result<T, Error>) -> bool {
    let why = result.as_ref().err();
    matches!(why, Some(Error::Transaction(TxnError::Lock(LockError::WouldWait { .. }))))
}

fn drop_now(db: &Db, name: &str) -> Result<bool, Error> {
    let mut txn = begin(db);
    let dropped = txn.drop_tree(name)?;
    txn.commit_durably(Durability::Synced)?;
    Ok(dropped)
}

/// All that can be done with a handle fails: the tree is gone.
fn assert_gone(db: &Db, tree: &Tree) {
    let gone = |e: Option<Error>| assert!(matches!(e, Some(Error::NoTree(_))), "{e:?}");
    gone(tree.get(b"k").err());
    gone(tree.cursor().seek_first().err());
    assert_no_writes(db, tree);
}

fn assert_no_writes(db: &Db, tree: &Tree) {
    let gone = |e: Option<Error>| assert!(matches!(e, Some(Error::NoTree(_))), "{e:?}");
    gone(tree.put(b"k", b"v", Durability::Lazy).err());
    gone(tree.put(b"k", &[3; 9_000], Durability::Lazy).err());
    gone(tree.delete(&7u32.to_be_bytes(), Durability::Lazy).err());
    gone(tree.bulk_load([(b"k", b"v")].into_iter()).err());
    let mut batch = Batch::new();
    batch.put(tree, b"k", b"v");
    gone(db.write(&batch, Durability::Lazy).err());
    let mut txn = begin(db);
    gone(txn.put(tree, b"k", b"v").err());
    gone(txn.insert(tree, b"k", &[3; 9_000]).err());
    gone(txn.update(tree, b"long", |_, _| true).err());
    gone(txn.delete(tree, b"k").err());
    let mut value = Vec::new();
    gone(txn.get_for_update(tree, b"k", &mut value).err());
    let mut cursor = txn.cursor_for_share(tree);
    gone(cursor.seek_first(&mut txn).err());
    txn.rollback().expect("a rollback");
}

#[test]
fn a_handle_that_outlives_its_tree_harms_nothing() {
    let db = open(&SimVolume::new(80)).expect("a database");
    let old = filled(&db, "old");
    assert!(db.drop_tree("old").expect("dropped"));
    assert_gone(&db, &old);
    // Its pages are others' now: rows, and a long value.
    let next = filled(&db, "next");
    assert_gone(&db, &old);
    assert_eq!(next.cursor().seek_first().ok(), Some(true));
    assert_sound(&db);
    db.close().expect("close");
}

#[test]
fn a_tree_whose_creation_is_rolled_back_is_gone_too() {
    let db = open(&SimVolume::new(81)).expect("a database");
    let mut txn = begin(&db);
    let before = txn.savepoint();
    let made = txn.create_tree("made").expect("made");
    txn.put(&made, b"k", &[1; 9_000]).expect("a row");
    txn.rollback_to(before).expect("back");
    assert!(matches!(txn.put(&made, b"k", b"v"), Err(Error::NoTree(_))));
    txn.rollback().expect("a rollback");
    assert_gone(&db, &made);
    assert_sound(&db);
}

#[test]
fn snapshots_from_before_see_it_and_writes_are_refused() {
    let db = open(&SimVolume::new(82)).expect("a database");
    let old = filled(&db, "old");
    let mut reader = begin(&db);
    assert_eq!(reader.get(&old, b"long").expect("read").map(|v| v.len()), Some(9_000));
    assert!(drop_now(&db, "old").expect("dropped"));
    for _ in 0..5 {
        db.step().expect("a step");
    }
    assert_no_writes(&db, &old);
    let mut cursor = reader.cursor(&old);
    let (mut on, mut rows) = (cursor.seek_first(&mut reader).expect("first"), 0);
    while on {
        rows += 1;
        on = cursor.next(&mut reader).expect("next");
    }
    assert_eq!(rows, 101);
    drop((cursor, reader));
    assert_sound(&db);
    assert_gone(&db, &old);
    db.close().expect("close");
}

/// A transaction that has changed or locked rows of a tree keeps it, committed or rolled back.
#[test]
fn a_tree_is_dropped_when_its_users_have_ended() {
    for end in ["commit", "rollback"] {
        let db = open(&SimVolume::new(83)).expect("a database");
        let old = filled(&db, "old");
        let mut writer = begin(&db);
        writer.put(&old, b"long", &[2; 20_000]).expect("a change");
        assert!(is_taken(&drop_now(&db, "old")), "a writer has it");
        assert_eq!(db.tree_names().expect("names"), ["old"], "nothing was dropped");
        if end == "commit" {
            writer.commit_durably(Durability::Lazy).expect("a commit");
        } else {
            writer.rollback().expect("a rollback");
        }
        for isolation in [Isolation::Serializable, Isolation::RepeatableRead] {
            let mut reader = begin_at(&db, isolation);
            let mut cursor = reader.cursor_for_share(&old);
            assert!(cursor.seek_first(&mut reader).expect("a row"));
            assert!(is_taken(&drop_now(&db, "old")), "a reader has locked a row of it");
            reader.rollback().expect("a rollback");
        }
        assert!(drop_now(&db, "old").expect("dropped"));
        assert_gone_soon(&db, &old);
        assert_sound(&db);
        assert_eq!(db.stats().locks.ranges, 0, "{end}");
    }
}

fn assert_gone_soon(db: &Db, tree: &Tree) {
    assert_no_writes(db, tree);
}

#[test]
fn while_a_drop_is_not_committed_others_keep_off() {
    let db = open(&SimVolume::new(84)).expect("a database");
    let old = filled(&db, "old");
    let mut dropper = begin(&db);
    let before = dropper.savepoint();
    assert!(dropper.drop_tree("old").expect("dropped"));
    let mut other = begin(&db);
    assert!(is_taken(&other.put(&old, b"k", b"v").map(|_| true)));
    let mut value = Vec::new();
    assert!(is_taken(&other.get_for_share(&old, b"long", &mut value)));
    assert!(other.get(&old, b"long").expect("a read").is_some(), "it is not committed");
    dropper.rollback_to(before).expect("back");
    dropper.rollback().expect("a rollback");
    other.put(&old, b"k", b"v").expect("it is free again");
    other.commit_durably(Durability::Synced).expect("a commit");
    assert_sound(&db);
}

/// A writer that waits for a tree that is being dropped gets an error.
#[test]
fn waiting_for_a_dropped_tree_is_an_error() {
    let volume = SimVolume::new(85);
    let config = Config { background: weir::Background::Threads, ..tiny() };
    let db = Db::open_on(std::sync::Arc::new(volume), config).expect("a database");
    let old = filled(&db, "old");
    let held = db.snapshot();
    let mut dropper = db.begin(TxnOptions::default());
    assert!(dropper.drop_tree("old").expect("dropped"));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| old.put(b"k", b"v", Durability::Lazy));
        let reader = scope.spawn(|| {
            let mut txn = db.begin(TxnOptions::default());
            txn.get_for_share(&old, b"k", &mut Vec::new())
        });
        while db.stats().locks.waiting < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        dropper.commit_durably(Durability::Synced).expect("a commit");
        let told = writer.join().expect("the writer");
        assert!(matches!(told, Err(Error::NoTree(_))), "{told:?}");
        let told = reader.join().expect("the reader");
        assert!(matches!(told, Err(Error::NoTree(_))), "{told:?}");
    });
    // And one that drops waits for a transaction that writes there.
    let next = filled(&db, "next");
    let mut writer = db.begin(TxnOptions::default());
    writer.put(&next, b"k", b"v").expect("a change");
    std::thread::scope(|scope| {
        let dropper = scope.spawn(|| db.drop_tree("next"));
        while db.stats().locks.waiting < 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
        writer.commit_durably(Durability::Lazy).expect("a commit");
        assert!(dropper.join().expect("the dropper").expect("dropped"));
    });
    drop(held);
    assert_sound(&db);
    db.close().expect("close");
}

/// After a crash, a tree waits for what is rolled back of it, and for what is prepared.
#[test]
fn recovered_transactions_keep_their_trees() {
    for prepared in [false, true] {
        let volume = SimVolume::new(86);
        let db = open(&volume).expect("a database");
        let old = filled(&db, "old");
        let _ = filled(&db, "other");
        let mut writer = begin(&db);
        writer.put(&old, b"long", &[2; 20_000]).expect("a change");
        writer.put(&old, b"k", b"v").expect("a change");
        if prepared {
            writer.prepare(b"x").expect("prepared");
        } else {
            old.put(b"l", b"v", Durability::Synced).expect("and the log is synced");
            std::mem::forget(writer);
        }
        let db = open(&volume.crash(1)).expect("recovered");
        assert!(is_taken(&drop_now(&db, "old")), "prepared: {prepared}");
        if prepared {
            assert!(drop_now(&db, "other").expect("unused"));
            assert!(db.rollback_prepared(b"x").expect("rolled back"));
        } else {
            while db.stats().losers > 0 {
                db.step().expect("a step");
            }
        }
        assert!(drop_now(&db, "old").expect("dropped"), "prepared: {prepared}");
        assert_sound(&db);
        db.close().expect("close");
    }
}

/// A prepared drop keeps others off, over restarts too.
#[test]
fn a_prepared_drop_keeps_the_tree() {
    for (crash, commit) in [(false, true), (false, false), (true, true), (true, false)] {
        let volume = SimVolume::new(87);
        let db = open(&volume).expect("a database");
        let _ = filled(&db, "old");
        let mut dropper = begin(&db);
        assert!(dropper.drop_tree("old").expect("dropped"));
        dropper.prepare(b"x").expect("prepared");
        let db = if crash {
            open(&volume.crash(2)).expect("recovered")
        } else {
            db.close().expect("close");
            open(&volume).expect("opened")
        };
        let old = db.tree("old").expect("a look").expect("it is there");
        let mut other = begin(&db);
        assert!(is_taken(&other.put(&old, b"k", b"v").map(|_| true)));
        assert!(is_taken(&drop_now(&db, "old")));
        if commit {
            assert!(db.commit_prepared(b"x", Durability::Synced).expect("committed"));
            assert_no_writes(&db, &old);
        } else {
            assert!(db.rollback_prepared(b"x").expect("rolled back"));
            other.put(&old, b"k", b"v").expect("it is free again");
        }
        drop(other);
        assert_sound(&db);
        db.close().expect("close");
    }
}

/// A row's change is logged by the bytes that differ; after a crash the row itself is looked at for
/// the rest, in a tree that no name leads to.
#[test]
fn changes_before_a_truncation_are_rolled_back_after_a_crash() {
    for prepares in [false, true] {
        let volume = SimVolume::new(93);
        let db = open(&volume).expect("a database");
        let tree = db.create_tree("t").expect("a tree");
        tree.put(b"k", b"first", Durability::Synced).expect("a row");
        let mut txn = db.begin(TxnOptions::default());
        txn.put(&tree, b"k", b"other").expect("changed");
        assert!(txn.drop_tree("t").expect("dropped"));
        txn.create_tree("t").expect("made again");
        if prepares {
            txn.prepare(b"x").expect("prepared");
        } else {
            tree_put_synced(&db);
        }
        let db = open(&volume.crash(3)).expect("recovered");
        let tree = db.tree("t").expect("a look").expect("the tree");
        let mut reader = db.begin(TxnOptions::default());
        assert_eq!(reader.get(&tree, b"k").expect("read").as_deref(), Some(&b"first"[..]));
        reader.rollback().expect("ended");
        if prepares {
            assert!(db.rollback_prepared(b"x").expect("rolled back"));
        }
        while db.stats().losers > 0 {
            db.step().expect("a step");
        }
        assert_eq!(tree.get(b"k").expect("read").as_deref(), Some(&b"first"[..]));
    }
}

/// Brings the log to disk.
fn tree_put_synced(db: &weir::Db) {
    let other = db.create_tree("other").expect("a tree");
    other.put(b"k", b"", Durability::Synced).expect("a row");
}

#[test]
fn a_check_says_why_a_long_value_cannot_be_freed() {
    let volume = SimVolume::new(81);
    // Its copy in the doublewrite area would mend the page.
    let doublewrite =
        DoubleWriteConfig { mode: DoubleWriteMode::Off, ..DoubleWriteConfig::default() };
    let config = Config { doublewrite, ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config.clone()).expect("a database");
    let tree = db.create_tree("rows").expect("a tree");
    for n in 0u32..2_000 {
        tree.put(&n.to_be_bytes(), &[7; 90], Durability::Lazy).expect("a put");
    }
    tree.put(b"long", &[1; 9_000], Durability::Lazy).expect("a put");
    let report = db.check(&mut |_, _| {}).expect("checked");
    assert_eq!(report.problems, Vec::<String>::new());
    drop(tree);
    db.close().expect("closed");
    // The first page that holds nothing but a part of the long value.
    let pages = volume.read_raw("pages").expect("pages");
    let is_chain = |page: &[u8]| page[1_000..3_000].iter().all(|&byte| byte == 1);
    let page = pages.chunks(4096).position(is_chain).expect("a chain");
    volume.corrupt("pages", page as u64 * 4096 + 1_000, 0x10).expect("flipped");
    let db = Db::open_on(Arc::new(volume), config).expect("opened");
    let tree = db.tree("rows").expect("read").expect("the tree");
    assert!(tree.delete(b"long", Durability::Synced).expect("deleted"));
    let report = db.check(&mut |_, _| {}).expect("checked");
    let told = format!("cannot be done: page {page} in 'pages'");
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert!(report.problems[0].contains(&told), "{:?}", report.problems);
}
