//! The five transactions, the twelve conditions and whole runs, on the store in memory.
use super::backend::{Backend, Done, Loaded, Outcome, Terminal, Why};
use super::consistency::{Consistency, check, totals};
use super::embedded::Embedded;
use super::input::{
    Delivery, Inputs, Line, NewOrder, OrderStatus, Payment, Request, StockLevel, Who,
};
use super::model::refuse_in;
use super::population::Population;
use super::random::Random;
use super::rows::{
    Customer, District, History, HistoryFront, NewOrderRow, Order, OrderLine, Row, Stock, Warehouse,
};
use super::run::{TpccOptions, check_only, run};
use super::scale::tests::tiny;
use super::scale::{Constants, Scale};
use super::text::Text;
use crate::ack::Acknowledged;
use crate::engine::Engine;
use crate::fake::Fake;
use crate::options::{DoubleWrite, Durability, Options, Phases, WorkloadKind};
use crate::run::Outcome as RunOutcome;
use crate::target::Target;
use std::sync::atomic::AtomicBool;
use weir_base::SystemClock;

const NOW: u32 = 1_700_000_000;

fn embedded(fake: &Fake) -> Embedded<'_, Fake> {
    Embedded::new(fake, Durability::Lazy)
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
    let name = super::embedded::tree_name(R::RELATION);
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

fn some_lines() -> Vec<Line> {
    let line = |item, supply_w, quantity| Line { item, supply_w, quantity };
    vec![line(9, 1, 3), line(4, 2, 10), line(9, 1, 1), line(1, 1, 7), line(200, 1, 2)]
}

#[test]
fn a_new_order_does_what_the_clause_says() {
    let (fake, scale) = loaded(2);
    let stock_of = |i, w| found(&fake, move |row: &Stock| row.i == i && row.w == w).front;
    let before = (stock_of(9, 1), stock_of(4, 2));
    let order = NewOrder::new(1, 3, 17, NOW + 5, &some_lines());
    let Done::NewOrder(done) = committed(carry_out(&fake, Request::NewOrder(order))) else {
        panic!("another transaction's result")
    };
    assert_eq!(done.order, 61, "the loaded ones end at 60");
    let row = found(&fake, |row: &Order| (row.w, row.d, row.o) == (1, 3, 61)).front;
    assert_eq!((row.c, row.carrier, row.lines, row.all_local), (17, 0, 5, 0));
    assert_eq!(row.entry_date, NOW + 5);
    found(&fake, |row: &NewOrderRow| (row.w, row.d, row.o) == (1, 3, 61));
    assert_eq!(found(&fake, |row: &District| (row.w, row.d) == (1, 3)).front.next_o, 62);

    let after = (stock_of(9, 1), stock_of(4, 2));
    let left = |quantity: i16, sold| {
        if quantity - sold >= 10 { quantity - sold } else { quantity - sold + 91 }
    };
    assert_eq!(after.0.quantity, left(left(before.0.quantity, 3), 1));
    assert_eq!((after.0.ytd, after.0.order_count, after.0.remote_count), (4, 2, 0));
    assert_eq!(after.1.quantity, left(before.1.quantity, 10));
    assert_eq!((after.1.ytd, after.1.order_count, after.1.remote_count), (10, 1, 1));

    let lines: Vec<OrderLine> = all(&fake)
        .into_iter()
        .filter(|line: &OrderLine| (line.w, line.d, line.o) == (1, 3, 61))
        .collect();
    let mut sum = 0;
    for (line, asked) in lines.iter().zip(some_lines()) {
        let item = found(&fake, |item: &super::rows::Item| item.i == asked.item);
        let stock =
            found(&fake, |stock: &Stock| stock.i == asked.item && stock.w == asked.supply_w);
        assert_eq!(line.front.amount, item.front.price * u32::from(asked.quantity));
        assert_eq!((line.front.i, line.front.supply_w), (asked.item, asked.supply_w));
        assert_eq!(line.front.info, stock.infos[2], "S_DIST_03 for district 3");
        assert_eq!(line.front.delivery_date, 0);
        sum += i64::from(line.front.amount);
    }
    assert_eq!(lines.len(), 5);
    let customer = found(&fake, |row: &Customer| (row.w, row.d, row.c) == (1, 3, 17));
    let tax = i64::from(found(&fake, |row: &Warehouse| row.w == 1).front.tax)
        + i64::from(found(&fake, |row: &District| (row.w, row.d) == (1, 3)).front.tax);
    let discount = i64::from(customer.front.discount);
    assert_eq!(done.total, sum * (10_000 - discount) * (10_000 + tax) / 100_000_000);
    assert!(checked(&fake, scale).holds());
}

#[test]
fn an_unused_item_and_a_conflict_change_nothing() {
    let (fake, scale) = loaded(2);
    let snapshot = || {
        let rows = |name: &str| fake.table(name).unwrap().unwrap().rows().read().clone();
        let names =
            ["district", "stock", "order", "order-line", "new-order", "customer", "warehouse"];
        names.map(|name| rows(&format!("tpcc-{name}")))
    };
    let before = snapshot();
    let mut lines = some_lines();
    lines[4].item = 201;
    let order = Request::NewOrder(NewOrder::new(1, 3, 17, NOW, &lines));
    assert_eq!(carry_out(&fake, order), Outcome::RolledBack);
    assert!(snapshot() == before);
    let order = Request::NewOrder(NewOrder::new(1, 3, 17, NOW, &some_lines()));
    let delivery = Request::Delivery(Delivery { w: 2, carrier: 1, date: NOW });
    for request in [order, delivery] {
        for operations in [0, 5, 12] {
            refuse_in(operations);
            assert_eq!(carry_out(&fake, request), Outcome::Retry(Why::Deadlock));
            assert!(snapshot() == before);
        }
    }
    assert!(checked(&fake, scale).holds());
}

fn payment(customer: Who) -> Payment {
    Payment { w: 1, d: 2, customer_w: 2, customer_d: 5, customer, amount: 123_456, date: NOW }
}

fn pay(fake: &Fake, customer: Who) -> super::backend::PaymentDone {
    match committed(carry_out(fake, Request::Payment(payment(customer)))) {
        Done::Payment(done) => done,
        other => panic!("another transaction's result: {other:?}"),
    }
}

#[test]
fn a_payment_does_what_the_clause_says() {
    let (fake, scale) = loaded(2);
    let of = |c| found(&fake, move |row: &Customer| (row.w, row.d, row.c) == (2, 5, c));
    let good =
        found(&fake, |row: &Customer| (row.w, row.d) == (2, 5) && row.front.credit == *b"GC");
    let bad = found(&fake, |row: &Customer| (row.w, row.d) == (2, 5) && row.front.credit == *b"BC");
    for before in [good, bad] {
        let done = pay(&fake, Who::Number(before.c));
        let after = of(before.c);
        assert_eq!((done.customer, done.balance), (before.c, -1000 - 123_456));
        assert_eq!(after.front.balance, done.balance);
        assert_eq!((after.front.ytd_payment, after.front.payment_count), (124_456, 2));
        let note = format!("{} 5 2 2 1 1234.56 | ", before.c);
        let mut expected = Text::<500>::EMPTY;
        if before.front.credit == *b"BC" {
            expected.push_cut(note.as_bytes());
        }
        expected.push_cut(&before.data);
        assert_eq!(after.data, expected);
        assert_eq!((after.last, after.address), (before.last, before.address));
    }
    let paid = found(&fake, |row: &History| row.counter == 1 && row.count == 1);
    let expected =
        HistoryFront { c: bad.c, c_d: 5, c_w: 2, d: 2, w: 1, date: NOW, amount: 123_456 };
    assert_eq!(paid.front, expected);
    let name = found(&fake, |row: &Warehouse| row.w == 1).name;
    assert!(paid.data.starts_with(&name) && paid.data[name.len()..].starts_with(b"    "));
    assert!(checked(&fake, scale).holds());
}

/// Clause 2.5.2.2, case 2: position n/2, rounded up, by first name.
#[test]
fn a_payer_is_found_by_name() {
    let (fake, _) = loaded(2);
    let customers: Vec<Customer> = all(&fake);
    let of_district: Vec<&Customer> =
        customers.iter().filter(|row| (row.w, row.d) == (2, 5)).collect();
    for last in of_district.iter().map(|row| row.last).take(20) {
        let mut named: Vec<&&Customer> =
            of_district.iter().filter(|row| row.last == last).collect();
        named.sort_by_key(|row| (row.first.to_vec(), row.c));
        let middle = named[named.len().div_ceil(2) - 1];
        assert_eq!(pay(&fake, Who::LastName(last)).customer, middle.c);
    }
    let nobody = Who::LastName(Text::new(b"NOBODY").unwrap());
    let request = Request::Payment(payment(nobody));
    let error = embedded(&fake).terminal(0).unwrap().carry_out(&request).unwrap_err();
    assert!(format!("{error:#}").contains("NOBODY"), "{error:#}");
}

#[test]
fn a_terminal_goes_on_counting_its_payments() {
    let (fake, scale) = loaded(1);
    let own = Payment { customer_w: 1, customer_d: 2, ..payment(Who::Number(1)) };
    for number in [0, 0, 5, 0, 5] {
        let embedded = embedded(&fake);
        embedded.terminal(number).unwrap().payment(&own).unwrap();
    }
    let counts: Vec<(u16, u64)> = all(&fake)
        .iter()
        .map(|row: &History| (row.counter, row.count))
        .filter(|(counter, _)| *counter > 0)
        .collect();
    assert_eq!(counts, [(1, 0), (1, 1), (1, 2), (6, 0), (6, 1)]);
    assert!(checked(&fake, scale).holds());
}

#[test]
fn a_delivery_takes_the_oldest_of_each_district() {
    let (fake, scale) = loaded(1);
    let deliver = || match committed(carry_out(
        &fake,
        Request::Delivery(Delivery { w: 1, carrier: 7, date: NOW + 9 }),
    )) {
        Done::Delivery(done) => (done.delivered, done.skipped),
        other => panic!("another transaction's result: {other:?}"),
    };
    let order = found(&fake, |row: &Order| (row.d, row.o) == (4, 43));
    assert_eq!(deliver(), (10, 0));
    assert_eq!(found(&fake, |row: &NewOrderRow| row.d == 4).o, 44);
    assert_eq!(found(&fake, |row: &Order| (row.d, row.o) == (4, 43)).front.carrier, 7);
    let lines: Vec<OrderLine> =
        all(&fake).into_iter().filter(|line: &OrderLine| (line.d, line.o) == (4, 43)).collect();
    assert!(lines.iter().all(|line| line.front.delivery_date == NOW + 9));
    let sum: i64 = lines.iter().map(|line| i64::from(line.front.amount)).sum();
    let customer = found(&fake, |row: &Customer| (row.d, row.c) == (4, order.front.c));
    assert_eq!((customer.front.balance, customer.front.delivery_count), (sum - 1000, 1));
    for _ in 1..18 {
        assert_eq!(deliver(), (10, 0));
    }
    assert_eq!(deliver(), (0, 10), "nothing is left");
    let order = NewOrder::new(1, 9, 5, NOW, &[Line { item: 3, supply_w: 1, quantity: 1 }; 5]);
    carry_out(&fake, Request::NewOrder(order));
    assert_eq!(deliver(), (1, 9));
    let found = checked(&fake, scale);
    assert!(found.holds(), "{:?}", found.problems);
}

#[test]
fn the_status_is_of_the_last_order() {
    let (fake, _) = loaded(1);
    let status = |c| match committed(carry_out(
        &fake,
        Request::OrderStatus(OrderStatus { w: 1, d: 6, customer: Who::Number(c) }),
    )) {
        Done::OrderStatus(done) => done,
        other => panic!("another transaction's result: {other:?}"),
    };
    let order = found(&fake, |row: &Order| (row.d, row.front.c) == (6, 33));
    assert_eq!((status(33).order, status(33).lines), (order.o, order.front.lines));
    let line = Line { item: 3, supply_w: 1, quantity: 4 };
    carry_out(&fake, Request::NewOrder(NewOrder::new(1, 6, 33, NOW, &[line; 6])));
    let price = found(&fake, |row: &super::rows::Item| row.i == 3).front.price;
    let done = status(33);
    assert_eq!((done.customer, done.order, done.lines), (33, 61, 6));
    assert_eq!(done.amount, 6 * 4 * i64::from(price));
    assert_ne!(status(32).order, 61);
}

#[test]
fn the_stock_level_is_of_the_last_twenty_orders() {
    let (fake, _) = loaded(1);
    for threshold in [10, 15, 20] {
        let mut items: Vec<u32> = all(&fake)
            .iter()
            .filter(|line: &&OrderLine| line.d == 8 && line.o > 40)
            .map(|line| line.front.i)
            .collect();
        items.sort_unstable();
        items.dedup();
        let low = |stock: &&Stock| {
            items.contains(&stock.i) && stock.front.quantity < i16::from(threshold)
        };
        let expected = all(&fake).iter().filter(low).count() as u32;
        let request = Request::StockLevel(StockLevel { w: 1, d: 8, threshold });
        match committed(carry_out(&fake, request)) {
            Done::StockLevel(done) => assert_eq!(done.low_stock, expected),
            other => panic!("another transaction's result: {other:?}"),
        }
    }
}

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
fn rows_that_belong_nowhere_are_found() {
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
    ];
    for stray in strays {
        let (fake, scale) = loaded(2);
        stray(&fake);
        assert!(!checked(&fake, scale).holds());
    }
}

fn options(phases: &str, fresh: bool) -> TpccOptions {
    let run = Options {
        workload: WorkloadKind::Tpcc,
        dir: "unused".into(),
        rows: 0,
        phases: Phases::parse(phases, None).unwrap(),
        durability: Durability::Lazy,
        pool_bytes: 1 << 20,
        log_bytes: 1 << 20,
        page_size: 0,
        disk: None,
        warmup_seconds: Some(1),
        fresh,
        doublewrite: DoubleWrite::default(),
        ack_file: None,
        raw: false,
    };
    TpccOptions { run, scale: tiny(2), pipeline: false, seed: 4 }
}

fn run_on(fake: &Fake, options: &TpccOptions) -> (super::TpccReport, String) {
    let (stop, clock, mut out) = (AtomicBool::new(false), SystemClock::new(), Vec::new());
    let outcome =
        run(&embedded(fake), fake, options, "a fake", None, &clock, &stop, &mut out).unwrap();
    let RunOutcome::Done(report) = outcome else { panic!("nobody interrupted it") };
    (*report, String::from_utf8(out).unwrap())
}

#[test]
fn whole_runs() {
    let fake = Fake::default();
    for pipeline in [false, true] {
        let asked = TpccOptions { pipeline, ..options("2:1s,3:1s", false) };
        let (report, text) = run_on(&fake, &asked);
        assert!(report.report.verified, "{text}");
        assert!(text.contains("3.3.2.12 hold"), "{text}");
        assert_eq!(text.contains("using the 2 warehouses"), pipeline, "{text}");
        assert!(text.contains("   tpmC "), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        for n in 1..=12 {
            assert_eq!(json["consistency"][format!("3.3.2.{n}")], true);
        }
        assert_eq!(json["setup"]["workload"], "tpcc");
        assert!(json["tpmc"].as_f64() > Some(1.0) && json["tps_mean"].as_f64() > Some(1.0));
        let count = |kind| json["types"][kind]["count"].as_u64().unwrap();
        let kinds = ["new_order", "payment", "order_status", "delivery", "stock_level"];
        let total: u64 = kinds.into_iter().map(count).sum();
        let transactions = json["transactions"].as_u64().unwrap();
        assert!(total.abs_diff(transactions) <= transactions / 50, "{total} of {transactions}");
        assert!(json["types"]["delivery"]["latency_micros"]["p99"].is_u64());
        assert_eq!(json["retries"]["deadlock"], 0);
    }
    let mut out = Vec::new();
    assert_eq!(check_only(&embedded(&fake), None, &mut out).unwrap(), Some(true));
    remove(&fake, &found(&fake, |row: &OrderLine| row.o == 60));
    assert_eq!(check_only(&embedded(&fake), None, &mut out).unwrap(), Some(false));
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("violated: 3.3.2.4, 3.3.2.6"), "{text}");
    let (report, text) = run_on(&fake, &options("1:1s", true));
    assert!(report.report.verified && !report.report.setup.table_reused, "{text}");
}

#[test]
fn another_scale_is_refused_and_a_partial_load_is_no_load() {
    let (fake, _) = loaded(1);
    let (stop, clock) = (AtomicBool::new(false), SystemClock::new());
    let refused =
        run(&embedded(&fake), &fake, &options("1:1s", false), "", None, &clock, &stop, &mut vec![]);
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("1 warehouses, not 2") && error.contains("--fresh"), "{error}");

    let fake = Fake::default();
    let population = Population::new(tiny(2), 3, NOW);
    embedded(&fake).load(&population, &mut |rows| rows < 1000).unwrap();
    assert_eq!(embedded(&fake).loaded().unwrap(), None);
    assert_eq!(check_only(&embedded(&fake), None, &mut Vec::new()).unwrap(), None);
    let (report, text) = run_on(&fake, &options("1:1s", false));
    assert!(report.report.verified, "{text}");
}

#[test]
fn acknowledged_orders_are_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("acks");
    let fake = Fake::default();
    let mut asked = options("2:1s", false);
    asked.run.ack_file = Some(file.clone());
    let (report, text) = run_on(&fake, &asked);
    assert!(report.report.verified, "{text}");
    let mut acks = Acknowledged::read(&file).unwrap();
    assert!(acks.orders.len() as u64 >= report.types["new_order"].count);
    let check = |acks: &Acknowledged| {
        check_only(&embedded(&fake), Some(acks), &mut Vec::new()).unwrap().unwrap()
    };
    assert!(check(&acks));
    acks.orders.insert(super::terminals::order_number(1, 1, 4_000_000), 0);
    assert!(!check(&acks));
}

/// On the real engine, with more terminals than rows to go round: everybody waits for everybody.
#[test]
fn whole_runs_on_weir() {
    let dir = tempfile::tempdir().unwrap();
    let config = weir::Config { pool_bytes: 8 << 20, log_bytes: 8 << 20, ..Default::default() };
    let db = weir::Db::open(dir.path(), config).unwrap();
    let engine = Engine::new(db);
    for pipeline in [false, true] {
        let mut asked = TpccOptions { pipeline, ..options("8:1s,2:1s", false) };
        asked.run.durability = Durability::Synced;
        let backend = Embedded::new(&engine, Durability::Synced);
        let (stop, clock, mut out) = (AtomicBool::new(false), SystemClock::new(), Vec::new());
        let outcome =
            run(&backend, &engine, &asked, "weir", None, &clock, &stop, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let RunOutcome::Done(report) = outcome else { panic!("nobody interrupted it") };
        assert!(report.report.verified, "{text}");
        assert!(report.types["delivery"].count > 0, "{text}");
    }
    let checked = engine.db().check(&mut |_, _| {}).unwrap();
    assert!(checked.problems.is_empty(), "{:?}", checked.problems);
    engine.close().unwrap();
}
