//! The five transactions, the twelve conditions and whole runs, on the store in memory.
mod conditions;
#[cfg(feature = "mysql")]
mod mysql;
mod runs;
mod transactions;

use super::backend::{Backend, Done, Outcome, Terminal};
use super::consistency::{Consistency, check};
use super::embedded::Embedded;
use super::input::Request;
use super::population::Population;
use super::rows::Row;
use super::scale::Scale;
use super::scale::tests::tiny;
use super::store::Isolation;
use crate::durability::Durability;
use crate::fake::Fake;
use crate::target::Target;

const NOW: u32 = 1_700_000_000;

fn embedded(fake: &Fake) -> Embedded<'_, Fake> {
    Embedded::new(fake, Durability::Lazy, Isolation::default())
}

fn loaded(warehouses: u16) -> (Fake, Scale) {
    let (fake, scale) = (Fake::default(), tiny(warehouses));
    embedded(&fake).load(&Population::new(scale, 3, NOW), &mut |_| true).unwrap();
    (fake, scale)
}

fn checked(fake: &Fake, scale: Scale) -> Consistency {
    check(&embedded(fake), scale).unwrap()
}

fn all<R: Row + Clone>(fake: &Fake) -> Vec<R> {
    let mut rows = Vec::new();
    embedded(fake)
        .visit(&mut |row: &R| {
            rows.push(row.clone());
            Ok(())
        })
        .unwrap();
    rows
}

fn found<R: Row + Clone>(fake: &Fake, which: impl Fn(&R) -> bool) -> R {
    all(fake).into_iter().find(which).expect("there is such a row")
}

/// The row's table and key.
fn entry<R: Row>(fake: &Fake, row: &R) -> (crate::fake::FakeTable, Vec<u8>, Vec<u8>) {
    let name = super::trees::tree_name(R::RELATION);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    row.key(&mut key);
    row.value(&mut value);
    (fake.table(name).unwrap().unwrap(), key, value)
}

fn plant<R: Row>(fake: &Fake, row: &R) {
    let (tree, key, value) = entry(fake, row);
    tree.rows().write().insert(key, value);
}

fn remove<R: Row>(fake: &Fake, row: &R) {
    let (tree, key, _) = entry(fake, row);
    tree.rows().write().remove(&key).expect("it was there");
}

fn committed(outcome: Outcome<Done, ()>) -> Done {
    match outcome {
        Outcome::Committed(done, _) => done,
        other => panic!("not committed: {other:?}"),
    }
}

fn carry_out(fake: &Fake, request: Request) -> Outcome<Done, ()> {
    embedded(fake).terminal(0).unwrap().carry_out(&request).unwrap()
}
