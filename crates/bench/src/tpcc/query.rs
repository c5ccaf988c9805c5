//! The two transactions that only read: Order-Status (clause 2.6.2) and Stock-Level (clause 2.8.2).
use super::backend::{OrderStatusDone, StockLevelDone};
use super::codec::Front;
use super::input::{OrderStatus, StockLevel};
use super::keys;
use super::payment::find_customer;
use super::rows::{CustomerFront, DistrictFront, OrderFront, OrderLineFront, StockFront};
use super::store::{Stop, Txn};
use super::trees::{Buffers, Trees, missing};

/// Orders that a Stock-Level looks at.
const ORDERS_LOOKED_AT: u32 = 20;

pub(super) fn order_status<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &OrderStatus,
) -> Result<Option<OrderStatusDone>, Stop> {
    let OrderStatus { w, d, .. } = *input;
    let c = find_customer(txn, trees, buffers, w, d, &input.customer)?;
    let Buffers { key, value, .. } = buffers;
    let customer = keys::customer(w, d, c);
    txn.get(&trees.customer, &customer, value)?;
    CustomerFront::read(value).ok_or_else(|| missing(format_args!("customer {w}-{d}-{c}")))?;

    let end = keys::customer_order(w, d, c, u32::MAX);
    let found = txn.last_below(&trees.orders_by_customer, &end, key)?;
    let last = keys::last_u32(key).filter(|_| found && key.starts_with(&customer));
    let o = last.ok_or_else(|| missing(format_args!("an order of customer {w}-{d}-{c}")))?;
    let order_key = keys::order(w, d, o);
    txn.get(&trees.order, &order_key, value)?;
    let order =
        OrderFront::read(value).ok_or_else(|| missing(format_args!("order {w}-{d}-{o}")))?;
    let (mut lines, mut amount) = (0, 0);
    txn.scan(&trees.order_line, &keys::order_line(w, d, o, 0), &mut |key, value| {
        let line = OrderLineFront::read(value).filter(|_| key.starts_with(&order_key));
        amount += line.map_or(0, |line| i64::from(line.amount));
        lines += u8::from(line.is_some());
        line.is_some()
    })?;
    if lines != order.lines || order.c != c {
        return Err(missing(format_args!("a line of order {w}-{d}-{o}")));
    }
    Ok(Some(OrderStatusDone { customer: c, order: o, lines, amount }))
}

pub(super) fn stock_level<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &StockLevel,
) -> Result<Option<StockLevelDone>, Stop> {
    let StockLevel { w, d, threshold } = *input;
    let Buffers { value, items, .. } = buffers;
    txn.get(&trees.district, &keys::district(w, d), value)?;
    let district =
        DistrictFront::read(value).ok_or_else(|| missing(format_args!("district {w}-{d}")))?;

    let end = keys::order(w, d, district.next_o);
    let first = district.next_o.saturating_sub(ORDERS_LOOKED_AT);
    items.clear();
    txn.scan(&trees.order_line, &keys::order(w, d, first), &mut |key, value| {
        let line = OrderLineFront::read(value).filter(|_| key < end.as_slice());
        items.extend(line.map(|line| line.i));
        line.is_some()
    })?;
    // Distinct items (clause 2.8.2.2), and in key order, so that neighbours are met together.
    items.sort_unstable();
    items.dedup();
    let mut low_stock = 0;
    for &i in items.iter() {
        txn.get(&trees.stock, &keys::stock(w, i), value)?;
        let stock = StockFront::read(value)
            .ok_or_else(|| missing(format_args!("stock of item {i} in warehouse {w}")))?;
        low_stock += u32::from(stock.quantity < i16::from(threshold));
    }
    Ok(Some(StockLevelDone { low_stock }))
}
