//! The Delivery transaction (clause 2.7.4), as one transaction of the store.
use super::backend::DeliveryDone;
use super::embedded::{Buffers, Trees, missing};
use super::input::Delivery;
use super::keys;
use super::rows::{CustomerFront, OrderFront, OrderLineFront};
use super::scale::DISTRICTS;
use super::store::{Stop, Txn};

/// The oldest undelivered order of each district, in the districts' order, so that two deliveries
/// cannot wait for each other.
pub(super) fn run<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &Delivery,
) -> Result<Option<DeliveryDone>, Stop> {
    let mut delivered = 0;
    for d in 1..=DISTRICTS {
        if let Some(o) = take_oldest(txn, trees, buffers, input.w, d)? {
            deliver(txn, trees, buffers, input, d, o)?;
            delivered += 1;
        }
    }
    Ok(Some(DeliveryDone { delivered, skipped: DISTRICTS - delivered }))
}

/// Removes the district's oldest row of NEW-ORDER; its order, or none when there is none.
fn take_oldest<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    w: u16,
    d: u8,
) -> Result<Option<u32>, Stop> {
    let district = keys::district(w, d);
    let oldest = &mut buffers.key;
    let mut from = 0;
    loop {
        oldest.clear();
        txn.scan(&trees.new_order, &keys::order(w, d, from), &mut |key, _| {
            oldest.extend_from_slice(key);
            false
        })?;
        let Some(o) = keys::last_u32(oldest).filter(|_| oldest.starts_with(&district)) else {
            return Ok(None);
        };
        if txn.delete(&trees.new_order, oldest)? {
            return Ok(Some(o));
        }
        // Another delivery has taken it since the snapshot.
        from = o + 1;
    }
}

fn deliver<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &Delivery,
    d: u8,
    o: u32,
) -> Result<(), Stop> {
    let w = input.w;
    let Buffers { value, lines, .. } = buffers;
    let key = keys::order(w, d, o);
    txn.get_for_update(&trees.order, &key, value)?;
    let order =
        OrderFront::read(value).ok_or_else(|| missing(format_args!("order {w}-{d}-{o}")))?;
    OrderFront { carrier: input.carrier, ..order }.write(value);
    txn.update(&trees.order, &key, value)?;

    // The row of NEW-ORDER was in the snapshot, and with it the lines: only a delivery changes them.
    lines.clear();
    txn.scan(&trees.order_line, &keys::order_line(w, d, o, 0), &mut |line, value| {
        let ours = line.starts_with(&key);
        lines.extend(OrderLineFront::read(value).filter(|_| ours));
        ours
    })?;
    if lines.len() != usize::from(order.lines) {
        return Err(missing(format_args!("a line of order {w}-{d}-{o}")));
    }
    let mut sum = 0;
    for (line, number) in lines.iter().zip(1..) {
        sum += i64::from(line.amount);
        OrderLineFront { delivery_date: input.date, ..*line }.begin(value);
        txn.update(&trees.order_line, &keys::order_line(w, d, o, number), value)?;
    }

    let c = order.c;
    let key = keys::customer(w, d, c);
    txn.get_for_update(&trees.customer, &key, value)?;
    let mut customer =
        CustomerFront::read(value).ok_or_else(|| missing(format_args!("customer {w}-{d}-{c}")))?;
    customer.balance += sum;
    customer.delivery_count += 1;
    customer.write(value);
    txn.update(&trees.customer, &key, value)
}
