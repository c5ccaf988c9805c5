//! Transactions whose undo is stored in pages, and crashes in the middle of them: afterwards the
//! rows are those of before or those of after, and every page is accounted for.
use std::collections::BTreeMap;
use std::sync::Arc;

use weir::{Config, Db, Durability, Error, SimVolume, Tree, Txn};

use crate::support::tiny;

const ROWS: u32 = 400;

type Rows = BTreeMap<u32, Vec<u8>>;

fn open(volume: &SimVolume) -> Result<Db, Error> {
    let config = Config { pool_bytes: 1 << 20, pages_max: 4096, ..tiny() };
    Db::open_on(Arc::new(volume.clone()), config)
}

fn before() -> Rows {
    (0..ROWS)
        .map(|n| (n, vec![1; if n % 40 == 3 { 6_000 } else { 150 + n as usize % 90 }]))
        .collect()
}

fn filled(volume: &SimVolume) -> Db {
    let db = open(volume).expect("a new database");
    let tree = db.create_tree("t").expect("a tree");
    for (n, value) in before() {
        tree.put(&n.to_be_bytes(), &value, Durability::Lazy).expect("put");
        db.step().expect("step");
    }
    db.checkpoint().expect("all of it is durable");
    db
}

/// Inserts rows with these numbers at once.
fn insert_all(
    txn: &mut Txn,
    tree: &Tree,
    numbers: impl Iterator<Item = u32>,
    after: &mut Rows,
) -> Result<(), Error> {
    let value = |n: u32| vec![4; if n % 60 == 7 { 7_000 } else { 40 + n as usize % 30 }];
    let new = numbers.map(|n| (n.to_be_bytes(), value(n))).collect::<Vec<_>>();
    let rows = new.iter().map(|(key, value)| (&key[..], &value[..])).collect::<Vec<_>>();
    txn.insert_all(tree, &rows)?;
    after.extend(new.into_iter().map(|(key, value)| (u32::from_be_bytes(key), value)));
    Ok(())
}

/// Changes every row, most of them more than once, and rolls a part of that back.
fn change_all(db: &Db, txn: &mut Txn, tree: &Tree, after: &mut Rows) -> Result<(), Error> {
    let put = |txn: &mut Txn, n: u32, value: Vec<u8>, after: &mut Rows| {
        txn.put(tree, &n.to_be_bytes(), &value)?;
        after.insert(n, value);
        Ok::<(), Error>(())
    };
    for n in 0..ROWS {
        put(txn, n, vec![2; 100 + n as usize % 200], after)?;
        put(txn, ROWS + n, vec![3; if n % 50 == 9 { 7_000 } else { 60 }], after)?;
    }
    insert_all(txn, tree, (2 * ROWS..3 * ROWS).step_by(2), after)?;
    let savepoint = txn.savepoint();
    insert_all(txn, tree, (2 * ROWS + 1..3 * ROWS).step_by(2), &mut Rows::new())?;
    for n in (0..ROWS).step_by(2) {
        txn.delete(tree, &n.to_be_bytes())?;
        txn.put(tree, &(n + 1).to_be_bytes(), &[9; 5_000])?;
    }
    db.step()?;
    txn.rollback_to(savepoint)?;
    for n in (0..ROWS).step_by(3) {
        txn.delete(tree, &n.to_be_bytes())?;
        after.remove(&n);
    }
    Ok(())
}

fn rows(db: &Db) -> Rows {
    let tree = db.open_tree("t").expect("the tree");
    let mut cursor = tree.cursor();
    let mut rows = Rows::new();
    let mut on = cursor.seek_first().expect("seek");
    while on {
        let key = cursor.key().try_into().expect("four bytes");
        rows.insert(u32::from_be_bytes(key), cursor.value().expect("a value").to_vec());
        on = cursor.next().expect("next");
    }
    rows
}

fn assert_sound(db: &Db, what: &str) {
    for _ in 0..20 {
        db.step().expect("step");
    }
    let report = db.check(&mut |_, _| {}).expect("checked");
    assert_eq!(report.problems, Vec::<String>::new(), "{what}");
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Commit,
    Rollback,
    Prepare { commits: bool },
}

const ENDS: [End; 4] =
    [End::Commit, End::Rollback, End::Prepare { commits: true }, End::Prepare { commits: false }];

/// Runs the transaction; what the rows are when nothing has crashed.
fn run(db: &Db, end: End, after: &mut Rows) -> Result<(), Error> {
    let tree = db.open_tree("t")?;
    let mut txn = db.begin(weir::TxnOptions::default());
    change_all(db, &mut txn, &tree, after)?;
    match end {
        End::Commit => txn.commit_durably(Durability::Synced)?,
        End::Rollback => txn.rollback()?,
        End::Prepare { .. } => txn.prepare(b"x")?,
    }
    if let End::Prepare { commits } = end {
        if commits {
            db.commit_prepared(b"x", Durability::Synced)?;
        } else {
            db.rollback_prepared(b"x")?;
        }
    }
    (0..20).try_for_each(|_| db.step())
}

#[test]
fn a_large_transaction_commits_or_rolls_back() {
    for end in ENDS {
        let volume = SimVolume::new(3);
        let db = filled(&volume);
        let mut after = before();
        run(&db, end, &mut after).expect("no fault");
        let commits = matches!(end, End::Commit | End::Prepare { commits: true });
        assert!(rows(&db) == if commits { after } else { before() }, "{end:?}");
        assert_sound(&db, &format!("{end:?}"));
        db.close().expect("closed");
    }
}

#[test]
fn a_crash_anywhere_leaves_all_or_nothing() {
    let rounds = if cfg!(debug_assertions) { 50 } else { 200 };
    let mut seen = BTreeMap::new();
    for end in ENDS {
        let calm = SimVolume::new(3);
        let db = filled(&calm);
        let start = calm.writes_so_far();
        let mut after = before();
        run(&db, end, &mut after).expect("no fault");
        let writes = calm.writes_so_far() - start;
        drop(db);
        for round in 0..rounds {
            let what = format!("{end:?}, round {round} of {rounds}, {writes} writes");
            let volume = SimVolume::new(3);
            let db = filled(&volume);
            volume.set_crash_after(Some(round * writes / rounds));
            let _ = run(&db, end, &mut before());
            let mut found = volume.crash(round);
            drop(db);
            // Again while the first opening recovers.
            found.set_crash_after(Some(round % 40));
            drop(open(&found));
            found = found.crash(round + 1);
            let db = open(&found).unwrap_or_else(|e| panic!("{what}: {e}"));
            let is_prepared = !db.prepared().is_empty();
            if is_prepared {
                assert!(rows(&db) == before(), "{what}: nothing of it is seen");
                match end {
                    End::Prepare { commits: true } => {
                        assert!(db.commit_prepared(b"x", Durability::Synced).expect("committed"));
                    }
                    _ => assert!(db.rollback_prepared(b"x").expect("rolled back")),
                }
            }
            let now = rows(&db);
            let is_after = now == after;
            assert!(is_after || now == before(), "{what}: a part of it");
            *seen.entry((format!("{end:?}"), is_prepared, is_after)).or_insert(0) += 1;
            assert_sound(&db, &what);
        }
    }
    assert!(seen.len() >= 6, "{seen:?}");
}
