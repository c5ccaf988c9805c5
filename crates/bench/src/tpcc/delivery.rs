//! The Delivery transaction (clause 2.7.4), as one transaction of the store.
use super::backend::DeliveryDone;
use super::input::Delivery;
use super::keys;
use super::rows::{CustomerFront, OrderFront, OrderLineFront};
use super::scale::DISTRICTS;
use super::store::{Stop, Txn};
use super::trees::{Buffers, Trees, missing, patch};

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
            deliver(txn, trees, input, d, o)?;
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
    input: &Delivery,
    d: u8,
    o: u32,
) -> Result<(), Stop> {
    let w = input.w;
    let key = keys::order(w, d, o);
    let carry = |order: &mut OrderFront, _: &mut Vec<u8>| order.carrier = input.carrier;
    let order = patch(txn, &trees.order, &key, carry)?
        .ok_or_else(|| missing(format_args!("order {w}-{d}-{o}")))?;

    let mut sum = 0;
    for number in 1..=order.lines {
        let key = keys::order_line(w, d, o, number);
        let deliver = |line: &mut OrderLineFront, _: &mut Vec<u8>| line.delivery_date = input.date;
        let line = patch(txn, &trees.order_line, &key, deliver)?
            .ok_or_else(|| missing(format_args!("line {number} of order {w}-{d}-{o}")))?;
        sum += i64::from(line.amount);
    }

    let c = order.c;
    let bill = |customer: &mut CustomerFront, _: &mut Vec<u8>| {
        customer.balance += sum;
        customer.delivery_count += 1;
    };
    patch(txn, &trees.customer, &keys::customer(w, d, c), bill)?
        .ok_or_else(|| missing(format_args!("customer {w}-{d}-{c}")))?;
    Ok(())
}
