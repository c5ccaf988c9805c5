//! The Payment transaction (clause 2.5.2).
use super::backend::PaymentDone;
use super::embedded::{Buffers, HistoryCount, Trees, missing};
use super::input::{Payment, Who};
use super::keys;
use super::rows::{
    CustomerFront, DistrictFront, History, HistoryFront, Row, WarehouseFront, customer_data_at,
    name_behind, replace_customer_data, take_text,
};
use super::store::{Stop, Txn};
use super::text::Text;
use std::io::Write;

/// All of the profile. The customer, whom few others want, is locked first; the warehouse, where
/// all payments meet, is locked last.
pub(super) fn run<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    history: &mut HistoryCount,
    input: &Payment,
) -> Result<Option<PaymentDone>, Stop> {
    let Payment { w, d, customer_w, customer_d, amount, date, .. } = *input;
    let c = find_customer(txn, trees, buffers, customer_w, customer_d, &input.customer)?;
    let balance = pay(txn, trees, buffers, input, c)?;
    let value = &mut buffers.value;
    let cents = i64::from(amount);

    let key = keys::district(w, d);
    let gone = || missing(format_args!("district {w}-{d}"));
    txn.get_for_update(&trees.district, &key, value)?;
    let district = DistrictFront::read(value).ok_or_else(gone)?;
    DistrictFront { ytd: district.ytd + cents, ..district }.write(value);
    txn.update(&trees.district, &key, value)?;
    let district_name: Text<10> =
        name_behind(value, DistrictFront::BYTES).and_then(Text::new).ok_or_else(gone)?;

    let key = keys::warehouse(w);
    let gone = || missing(format_args!("warehouse {w}"));
    txn.get_for_update(&trees.warehouse, &key, value)?;
    let warehouse = WarehouseFront::read(value).ok_or_else(gone)?;
    WarehouseFront { ytd: warehouse.ytd + cents, ..warehouse }.write(value);
    txn.update(&trees.warehouse, &key, value)?;
    let mut data: Text<24> =
        name_behind(value, WarehouseFront::BYTES).and_then(Text::new).ok_or_else(gone)?;
    data.push_cut(b"    ");
    data.push_cut(&district_name);

    let front = HistoryFront { c, c_d: customer_d, c_w: customer_w, d, w, date, amount };
    // The key is made below, from the same counter.
    History { counter: 0, count: 0, front, data }.value(value);
    txn.insert(&trees.history, &history.next_key(), value)?;
    Ok(Some(PaymentDone { customer: c, balance }))
}

/// Takes the payment from the customer's balance; returns what is left.
fn pay<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &Payment,
    c: u16,
) -> Result<i64, Stop> {
    let Payment { customer_w: w, customer_d: d, amount, .. } = *input;
    let Buffers { value, other, .. } = buffers;
    let key = keys::customer(w, d, c);
    let gone = || missing(format_args!("customer {w}-{d}-{c}"));
    txn.get_for_update(&trees.customer, &key, value)?;
    let mut customer = CustomerFront::read(value).ok_or_else(gone)?;
    customer.balance -= i64::from(amount);
    customer.ytd_payment += i64::from(amount);
    customer.payment_count += 1;
    customer.write(value);
    if customer.credit == *b"BC" {
        note(value, other, input, c).ok_or_else(gone)?;
    }
    txn.update(&trees.customer, &key, value)?;
    Ok(customer.balance)
}

/// Clause 2.5.2.2: of a customer of bad credit the payment is noted in front of `C_DATA`, whose end
/// is cut off.
fn note(value: &mut Vec<u8>, scratch: &mut Vec<u8>, input: &Payment, c: u16) -> Option<()> {
    let Payment { w, d, customer_w, customer_d, amount, .. } = *input;
    let at = customer_data_at(value)?;
    scratch.clear();
    let (whole, cents) = (amount / 100, amount % 100);
    write!(scratch, "{c} {customer_d} {customer_w} {d} {w} {whole}.{cents:02} | ").ok()?;
    scratch.extend_from_slice(take_text(&mut &value[at..])?);
    scratch.truncate(500);
    replace_customer_data(value, at, scratch);
    Some(())
}

/// Clauses 2.5.2.2 and 2.6.2.2: the customer's number.
pub(super) fn find_customer<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    w: u16,
    d: u8,
    who: &Who,
) -> Result<u16, Stop> {
    let last = match who {
        Who::Number(c) => return Ok(*c),
        Who::LastName(last) => last,
    };
    let Buffers { key: prefix, customers, .. } = buffers;
    keys::customers_named(w, d, last, prefix);
    customers.clear();
    txn.scan(&trees.customers_by_name, prefix, &mut |key, _| {
        let named = key.starts_with(prefix);
        customers.extend(keys::last_u16(key).filter(|_| named));
        named
    })?;
    // Position n/2, rounded up, counted from one.
    let middle = customers.len().div_ceil(2).checked_sub(1);
    let name = String::from_utf8_lossy(last);
    middle
        .map(|middle| customers[middle])
        .ok_or_else(|| missing(format_args!("a customer {name} of district {w}-{d}")))
}
