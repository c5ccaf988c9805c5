//! The Payment transaction (clause 2.5.2).
use super::backend::PaymentDone;
use super::codec::{Front, take_text};
use super::input::{CustomerBy, Payment};
use super::keys;
use super::row_codec::{customer_data_at, replace_customer_data};
use super::rows::{
    CustomerFront, DistrictFront, History, HistoryFront, Row, WarehouseFront, name_behind,
};
use super::store::{Stop, Txn};
use super::text::Text;
use super::trees::{Buffers, HistoryCount, Trees, missing, patch};
use std::io::Write;

/// All of the profile. The customer's row, which few others want, is locked first; the warehouse,
/// where all payments meet, is locked last.
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
    let cents = i64::from(amount);

    let mut district_name: Option<Text<10>> = None;
    patch(txn, &trees.district, &keys::district(w, d), |district: &mut DistrictFront, value| {
        district.ytd += cents;
        district_name = name_behind(value, DistrictFront::BYTES).and_then(Text::new);
    })?;
    let district_name = district_name.ok_or_else(|| missing(format_args!("district {w}-{d}")))?;

    let mut data: Option<Text<24>> = None;
    patch(txn, &trees.warehouse, &keys::warehouse(w), |warehouse: &mut WarehouseFront, value| {
        warehouse.ytd += cents;
        data = name_behind(value, WarehouseFront::BYTES).and_then(Text::new);
    })?;
    let mut data = data.ok_or_else(|| missing(format_args!("warehouse {w}")))?;
    data.push_cut(b"    ");
    data.push_cut(&district_name);

    let front = HistoryFront { c, c_d: customer_d, c_w: customer_w, d, w, date, amount };
    // The key is made below, from the same counter.
    let value = &mut buffers.value;
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
    let scratch = &mut buffers.other;
    let mut noted = Some(());
    let paid = patch(txn, &trees.customer, &keys::customer(w, d, c), |front, value| {
        let front: &mut CustomerFront = front;
        front.balance -= i64::from(amount);
        front.ytd_payment += i64::from(amount);
        front.payment_count += 1;
        if front.credit == *b"BC" {
            noted = note(value, scratch, input, c);
        }
    })?;
    let paid = paid.filter(|_| noted.is_some());
    Ok(paid.ok_or_else(|| missing(format_args!("customer {w}-{d}-{c}")))?.balance)
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
    by: &CustomerBy,
) -> Result<u16, Stop> {
    let last = match by {
        CustomerBy::Number(c) => return Ok(*c),
        CustomerBy::LastName(last) => last,
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
