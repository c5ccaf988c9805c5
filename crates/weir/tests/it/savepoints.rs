//! Savepoints that are not the transaction's, or not any more: refused, and nothing is rolled back.
use std::collections::BTreeMap;

use proptest::prelude::*;
use weir::{Db, Error, Savepoint, SimVolume, Tree, Txn, TxnOptions};

use crate::support::open;

type Model = BTreeMap<u8, u8>;

#[derive(Clone, Debug)]
enum Act {
    Put(u8, u8),
    Delete(u8),
    Save,
    /// To any savepoint that was ever made, of any transaction.
    Back(usize),
    Commit,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (0..12u8, any::<u8>()).prop_map(|(key, value)| Act::Put(key, value)),
        2 => (0..12u8).prop_map(Act::Delete),
        3 => Just(Act::Save),
        3 => any::<usize>().prop_map(Act::Back),
        1 => Just(Act::Commit),
    ];
    prop::collection::vec(act, 1..60)
}

fn rows(txn: &mut Txn, tree: &Tree) -> Model {
    let mut cursor = txn.cursor(tree);
    let mut rows = Model::new();
    let mut on = cursor.seek_first(txn).expect("read");
    while on {
        rows.insert(cursor.key()[0], cursor.value()[0]);
        on = cursor.next(txn).expect("read");
    }
    rows
}

fn run(db: &Db, tree: &Tree, acts: &[Act]) {
    let mut txn = db.begin(TxnOptions::default());
    let mut model = rows(&mut txn, tree);
    let mut all: Vec<Savepoint> = Vec::new();
    // Those that are good: a stack of this transaction's.
    let mut good: Vec<(Savepoint, Model)> = Vec::new();
    for act in acts {
        match act {
            Act::Put(key, value) => {
                txn.put(tree, &[*key], &[*value]).expect("put");
                model.insert(*key, *value);
            }
            Act::Delete(key) => {
                txn.delete(tree, &[*key]).expect("deleted");
                model.remove(key);
            }
            Act::Save => {
                let made = txn.savepoint();
                assert!(all.iter().all(|other| other.number() != made.number()));
                all.push(made);
                good.push((made, model.clone()));
            }
            Act::Back(which) if !all.is_empty() => {
                let wanted = all[which % all.len()];
                let done = txn.rollback_to(wanted);
                match good.iter().position(|(point, _)| *point == wanted) {
                    Some(at) => {
                        done.expect("it is good");
                        good.truncate(at + 1);
                        model = good[at].1.clone();
                    }
                    None => assert!(matches!(done, Err(Error::Foreign(_))), "{done:?}"),
                }
            }
            Act::Back(_) => {}
            Act::Commit => {
                std::mem::replace(&mut txn, db.begin(TxnOptions::default()))
                    .commit()
                    .map(drop)
                    .expect("committed");
                good.clear();
            }
        }
        assert_eq!(rows(&mut txn, tree), model, "{act:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn only_good_savepoints_take_anything_back(acts in acts()) {
        let db = open(&SimVolume::new(1)).expect("opened");
        let tree = db.create_tree("t").expect("made");
        run(&db, &tree, &acts);
    }
}

#[test]
fn one_of_another_database_is_refused() {
    let (one, two) =
        (open(&SimVolume::new(1)).expect("one"), open(&SimVolume::new(2)).expect("two"));
    let (mut a, mut b) = (one.begin(TxnOptions::default()), two.begin(TxnOptions::default()));
    let tree = two.create_tree("t").expect("made");
    let foreign = a.savepoint();
    b.put(&tree, b"k", b"v").expect("put");
    assert!(matches!(b.rollback_to(foreign), Err(Error::Foreign(_))));
    assert_eq!(b.get(&tree, b"k").expect("read").as_deref(), Some(&b"v"[..]));
    a.rollback_to(foreign).expect("its own");
}
