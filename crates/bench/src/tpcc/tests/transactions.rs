//! What each transaction does to the rows.
use super::{NOW, all, carry_out, checked, committed, embedded, found, loaded};
use crate::fake::Fake;
use crate::target::Target;
use crate::tpcc::backend::{Backend, Done, Outcome, PaymentDone, Terminal, Why};
use crate::tpcc::input::{
    CustomerBy, Delivery, Line, NewOrder, OrderStatus, Payment, Request, StockLevel,
};
use crate::tpcc::model::refuse_in;
use crate::tpcc::rows::{
    Customer, District, History, HistoryFront, Item, NewOrderRow, Order, OrderLine, Stock,
    Warehouse,
};
use crate::tpcc::text::Text;

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
        let item = found(&fake, |item: &Item| item.i == asked.item);
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

fn payment(customer: CustomerBy) -> Payment {
    Payment { w: 1, d: 2, customer_w: 2, customer_d: 5, customer, amount: 123_456, date: NOW }
}

fn pay(fake: &Fake, customer: CustomerBy) -> PaymentDone {
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
        let done = pay(&fake, CustomerBy::Number(before.c));
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
        assert_eq!(pay(&fake, CustomerBy::LastName(last)).customer, middle.c);
    }
    let unknown = CustomerBy::LastName(Text::new(b"NOBODY").unwrap());
    let request = Request::Payment(payment(unknown));
    let error = embedded(&fake).terminal(0).unwrap().carry_out(&request).unwrap_err();
    assert!(format!("{error:#}").contains("NOBODY"), "{error:#}");
}

#[test]
fn a_terminal_goes_on_counting_its_payments() {
    let (fake, scale) = loaded(1);
    let own = Payment { customer_w: 1, customer_d: 2, ..payment(CustomerBy::Number(1)) };
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
        Request::OrderStatus(OrderStatus { w: 1, d: 6, customer: CustomerBy::Number(c) }),
    )) {
        Done::OrderStatus(done) => done,
        other => panic!("another transaction's result: {other:?}"),
    };
    let order = found(&fake, |row: &Order| (row.d, row.front.c) == (6, 33));
    assert_eq!((status(33).order, status(33).lines), (order.o, order.front.lines));
    let line = Line { item: 3, supply_w: 1, quantity: 4 };
    carry_out(&fake, Request::NewOrder(NewOrder::new(1, 6, 33, NOW, &[line; 6])));
    let price = found(&fake, |row: &Item| row.i == 3).front.price;
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
