//! A table with two indexes is a `BTreeMap`, whatever is done and rolled back.
use std::collections::BTreeMap;

use proptest::prelude::*;
use weir::{Durability, Savepoint, SimVolume, Txn};
use weir_table::{Direction, Error, Range, Row, Table, Value};

use crate::support::{assert_sound, begin, bird, birds, open, rows};

type Bird = (Option<u32>, String, i32);
type Model = BTreeMap<u64, Bird>;

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, Bird),
    Update(u64, u64, Bird),
    Delete(u64),
    Save,
    Back,
    Commit,
    Rollback,
    Reopen,
}

fn a_bird() -> impl Strategy<Value = Bird> {
    // Now and then a name that does not fit a page.
    let name = prop_oneof![8 => "[ab]{0,2}", 1 => Just("long ".repeat(120))];
    (prop::option::of(0u32..6), name, -2..2i32)
}

fn op() -> impl Strategy<Value = Op> {
    let id = 0u64..10;
    prop_oneof![
        6 => (id.clone(), a_bird()).prop_map(|(id, bird)| Op::Insert(id, bird)),
        6 => (id.clone(), id.clone(), any::<bool>(), a_bird())
            .prop_map(|(id, to, moves, bird)| Op::Update(id, if moves { to } else { id }, bird)),
        3 => id.prop_map(Op::Delete),
        2 => Just(Op::Save),
        2 => Just(Op::Back),
        3 => Just(Op::Commit),
        1 => Just(Op::Rollback),
        1 => Just(Op::Reopen),
    ]
}

fn row(id: u64, (ring, name, weight): &Bird) -> Row {
    bird(id, *ring, name, *weight)
}

/// What inserting must say: which key is taken, leaving out the row that is replaced.
fn taken(model: &Model, without: Option<u64>, id: u64, bird: &Bird) -> Option<Option<usize>> {
    let others = || model.iter().filter(|(other, _)| Some(**other) != without);
    if others().any(|(other, _)| *other == id) {
        return Some(None);
    }
    let same = |ring: u32| others().any(|(_, other)| other.0 == Some(ring));
    bird.0.is_some_and(same).then_some(Some(0))
}

fn assert_says<T: std::fmt::Debug>(done: Result<T, Error>, expected: Option<Option<usize>>) {
    match (done, expected) {
        (Ok(_), None) => {}
        (Err(Error::Duplicate { index }), Some(expected)) => assert_eq!(index, expected),
        (done, expected) => panic!("{done:?}, not {expected:?}"),
    }
}

fn assert_same(table: &Table, txn: &mut Txn, model: &Model) {
    let expected: Vec<Row> = model.iter().map(|(id, bird)| row(*id, bird)).collect();
    for direction in [Direction::Up, Direction::Down] {
        let mut of = |index, order: &dyn Fn(&Row) -> Vec<Value>| {
            let mut expected = expected.clone();
            expected.sort_by_key(|row| order(row));
            if direction == Direction::Down {
                expected.reverse();
            }
            assert_eq!(rows(table, txn, index, &Range::all(), direction), expected, "{index:?}");
        };
        of(None, &|row| vec![row[0].clone()]);
        of(Some("by_ring"), &|row| vec![row[1].clone(), row[0].clone()]);
        of(Some("by_name"), &|row| {
            let Value::Int(weight) = row[3] else { panic!("a weight") };
            vec![row[2].clone(), Value::Int(-weight), row[0].clone()]
        });
    }
    assert_eq!(table.count(txn).expect("count"), model.len() as u64);
    let report = table.check(txn).expect("a check");
    assert_eq!(report.problems, Vec::<String>::new());
}

fn run(ops: &[Op]) {
    let mut volume = SimVolume::new(11);
    let (mut db, mut tables) = open(&volume);
    let mut table = birds(&tables);
    let (mut committed, mut now) = (Model::new(), Model::new());
    let mut saved: Vec<(Savepoint, Model)> = Vec::new();
    let mut txn = begin(&db);
    for op in ops {
        match op {
            Op::Insert(id, bird) => {
                let expected = taken(&now, None, *id, bird);
                assert_says(table.insert(&mut txn, &row(*id, bird)), expected);
                if expected.is_none() {
                    now.insert(*id, bird.clone());
                }
            }
            Op::Update(id, to, bird) => {
                let there = now.contains_key(id);
                let expected = taken(&now, Some(*id), *to, bird).filter(|_| there);
                let key = [Value::from(*id)];
                let done = table.update(&mut txn, &key, |old| *old = row(*to, bird));
                if let Ok(done) = done {
                    assert_eq!(done, there);
                }
                assert_says(done, expected);
                if there && expected.is_none() {
                    now.remove(id);
                    now.insert(*to, bird.clone());
                }
            }
            Op::Delete(id) => {
                let deleted = table.delete(&mut txn, &[Value::from(*id)]).expect("delete");
                assert_eq!(deleted, now.remove(id).is_some());
            }
            Op::Save => saved.push((txn.savepoint(), now.clone())),
            Op::Back => {
                if let Some((savepoint, then)) = saved.pop() {
                    txn.rollback_to(savepoint).expect("back");
                    now = then;
                    assert_same(&table, &mut txn, &now);
                }
            }
            Op::Commit | Op::Rollback => {
                let ended = std::mem::replace(&mut txn, begin(&db));
                if matches!(op, Op::Commit) {
                    ended.commit_durably(Durability::Synced).expect("a commit");
                    committed = now.clone();
                } else {
                    ended.rollback().expect("rollback");
                    now = committed.clone();
                }
                saved.clear();
                assert_same(&table, &mut begin(&db), &committed);
                db.step().expect("a step");
            }
            Op::Reopen => {
                drop(txn);
                volume = volume.crash(3);
                (db, tables) = open(&volume);
                table = tables.open_table("birds").expect("the table");
                (now, txn) = (committed.clone(), begin(&db));
                saved.clear();
            }
        }
    }
    assert_same(&table, &mut txn, &now);
    drop(txn);
    assert_same(&table, &mut begin(&db), &committed);
    assert_sound(&db, &tables);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_table_is_a_map(ops in prop::collection::vec(op(), 1..60)) {
        run(&ops);
    }
}
