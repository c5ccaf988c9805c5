//! The twelve conditions hold after thousands of transactions, and each is seen to fail.
use super::{NOW, checked, embedded, found, loaded, plant, remove};
use crate::fake::Fake;
use crate::target::Target;
use crate::tpcc::backend::{Backend, Loaded, Outcome, Terminal};
use crate::tpcc::consistency::totals;
use crate::tpcc::input::{Inputs, Request};
use crate::tpcc::model::refuse_in;
use crate::tpcc::random::Random;
use crate::tpcc::rows::{Customer, District, History, NewOrderRow, Order, OrderLine, Warehouse};
use crate::tpcc::scale::Constants;
use crate::tpcc::scale::tests::tiny;

#[test]
fn thousands_of_mixed_transactions_leave_it_consistent() {
    let (fake, scale) = loaded(2);
    let before = totals(&embedded(&fake)).unwrap();
    let fresh = checked(&fake, scale);
    assert!(fresh.holds(), "{:?}", fresh.problems);
    assert_eq!(fresh.totals, before);
    let backend = embedded(&fake);
    let mut terminal = backend.terminal(3).unwrap();
    let constants = Constants::for_run(fresh_constant(&fake), &mut Random::new(8));
    let mut inputs = Inputs::new(scale, constants, 2);
    let (mut orders, mut paid, mut back, mut refused) = (0, 0, 0, 0);
    for number in 0..6000 {
        let request = inputs.draw(NOW + number);
        if number % 7 == 0 {
            refuse_in(number % 40);
        }
        match (terminal.carry_out(&request).unwrap(), request) {
            (Outcome::Committed(..), Request::NewOrder(_)) => orders += 1,
            (Outcome::Committed(..), Request::Payment(payment)) => {
                paid += i64::from(payment.amount)
            }
            (Outcome::RolledBack, _) => back += 1,
            (Outcome::Retry(_), _) => refused += 1,
            _ => {}
        }
    }
    let after = checked(&fake, scale);
    assert!(after.holds(), "{:?}", after.problems);
    assert_eq!(after.totals.orders - before.orders, orders);
    assert_eq!(after.totals.paid - before.paid, paid);
    assert!(back > 5 && refused > 100 && orders > 1500, "{back} {refused} {orders}");
}

fn fresh_constant(fake: &Fake) -> u32 {
    let Loaded { scale, last_name_constant } = embedded(fake).loaded().unwrap().unwrap();
    assert_eq!(scale, tiny(2));
    last_name_constant
}

/// Each condition fails, and those only that it says something about, when a row is changed.
#[test]
fn each_condition_is_seen_to_fail() {
    type Violation = (&'static [usize], fn(&Fake));
    let violations: &[Violation] = &[
        (&[1, 8], |fake| {
            let mut row = found(fake, |row: &Warehouse| row.w == 2);
            row.front.ytd += 1;
            plant(fake, &row);
        }),
        (&[1, 9], |fake| {
            let mut row = found(fake, |row: &District| row.d == 3);
            row.front.ytd -= 1;
            plant(fake, &row);
        }),
        (&[2], |fake| {
            let mut row = found(fake, |row: &District| row.d == 3);
            row.front.next_o += 1;
            plant(fake, &row);
        }),
        (&[2, 5, 11], |fake| remove(fake, &found(fake, |row: &NewOrderRow| row.o == 60))),
        (&[3, 5, 11], |fake| remove(fake, &found(fake, |row: &NewOrderRow| row.o == 50))),
        (&[4, 6], |fake| remove(fake, &found(fake, |row: &OrderLine| row.o == 9))),
        (&[4, 6], |fake| {
            let mut row = found(fake, |row: &Order| row.o == 9);
            row.front.lines += 1;
            plant(fake, &row);
        }),
        (&[5, 7], |fake| {
            let mut row = found(fake, |row: &Order| row.o == 9);
            row.front.carrier = 0;
            plant(fake, &row);
        }),
        (&[7], |fake| {
            let mut row = found(fake, |row: &OrderLine| row.o == 9);
            row.front.delivery_date = 0;
            plant(fake, &row);
        }),
        (&[7, 10, 12], |fake| {
            let mut row = found(fake, |row: &OrderLine| row.o == 60 && row.front.amount > 0);
            row.front.delivery_date = NOW;
            plant(fake, &row);
        }),
        (&[8, 9, 10], |fake| remove(fake, &found(fake, |row: &History| row.count == 7))),
        (&[10, 12], |fake| {
            let mut row = found(fake, |row: &Customer| row.c == 5);
            row.front.balance += 1;
            plant(fake, &row);
        }),
        (&[11], |fake| {
            let mut row = found(fake, |row: &Customer| row.c == 5);
            row.front.delivery_count += 1;
            plant(fake, &row);
        }),
        (&[12], |fake| {
            let mut row = found(fake, |row: &Customer| row.c == 5);
            row.front.ytd_payment += 1;
            plant(fake, &row);
        }),
    ];
    for (broken, violate) in violations {
        let (fake, scale) = loaded(2);
        violate(&fake);
        let found = checked(&fake, scale);
        let failed: Vec<usize> = (1..=12).filter(|&n| !found.condition_holds(n)).collect();
        assert_eq!(&failed, broken, "{:?}", found.problems);
        assert!(!found.holds() && !found.problems.is_empty());
    }
}

#[test]
fn rows_and_entries_that_belong_nowhere_are_found() {
    let strays: &[fn(&Fake)] = &[
        |fake| {
            let row = found(fake, |row: &Order| row.o == 9);
            plant(fake, &Order { o: 4000, ..row });
        },
        |fake| {
            let row = found(fake, |row: &OrderLine| row.o == 9);
            plant(fake, &OrderLine { w: 9, ..row });
        },
        |fake| {
            let row = found(fake, |row: &Customer| row.c == 9);
            plant(fake, &Customer { c: 61, ..row });
        },
        |fake| {
            let mut row = found(fake, |row: &History| row.count == 9);
            row.front.c = 0;
            plant(fake, &row);
        },
        |fake| {
            let tree = fake.table("tpcc-customers-by-name").unwrap().unwrap();
            tree.rows().write().pop_last();
        },
        |fake| {
            let tree = fake.table("tpcc-orders-by-customer").unwrap().unwrap();
            let mut rows = tree.rows().write();
            let (mut key, value) = rows.pop_last().unwrap();
            key[4] ^= 1;
            rows.insert(key, value);
        },
    ];
    for stray in strays {
        let (fake, scale) = loaded(2);
        assert!(checked(&fake, scale).holds());
        stray(&fake);
        assert!(!checked(&fake, scale).holds());
    }
}
