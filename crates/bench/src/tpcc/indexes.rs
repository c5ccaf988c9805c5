//! Whether the secondary indexes of the embedded backend say the same as their tables. No condition
//! of the specification speaks of them, and yet transactions find their rows by them.
use super::codec::Front;
use super::keys::{self, Parts};
use super::row_codec::customer_name_in;
use super::rows::OrderFront;
use super::store::{Stop, Txn};
use super::trees::Trees;

/// Entries that are wrong or missing, one text for each index that has some. Each entry of an index
/// is compared with its row; where there are as many entries as rows, none is missing.
pub(super) fn problems<T, X: Txn<T>>(txn: &mut X, trees: &Trees<T>) -> Result<Vec<String>, Stop> {
    let mut value = Vec::new();
    let mut expected = Vec::new();
    let names = compare(txn, &trees.customers_by_name, &trees.customer, |txn, key| {
        let Some(((w, d), c)) = place(key).zip(keys::last_u16(key)) else { return Ok(false) };
        let found = txn.get(&trees.customer, &keys::customer(w, d, c), &mut value)?;
        let Some((first, last)) = customer_name_in(&value).filter(|_| found) else {
            return Ok(false);
        };
        keys::customer_name(w, d, last, first, c, &mut expected);
        Ok(expected == key)
    })?;
    let orders = compare(txn, &trees.orders_by_customer, &trees.order, |txn, key| {
        let Some(((w, d), o)) = place(key).zip(keys::last_u32(key)) else { return Ok(false) };
        let found = txn.get(&trees.order, &keys::order(w, d, o), &mut value)?;
        let order = OrderFront::read(&value).filter(|_| found);
        Ok(order.is_some_and(|order| keys::customer_order(w, d, order.c, o) == key))
    })?;
    let named = [("customers by name", names), ("orders by customer", orders)];
    Ok(named.into_iter().filter_map(|(name, what)| Some(format!("{name}: {}", what?))).collect())
}

fn place(key: &[u8]) -> Option<(u16, u8)> {
    let mut parts = Parts(key);
    Some((parts.two()?, parts.one()?))
}

/// Entries that are read before they are compared with their rows.
const ENTRIES_AT_ONCE: usize = 4096;

/// What is wrong with `index`, if anything is; `is_right` judges an entry.
fn compare<T, X: Txn<T>>(
    txn: &mut X,
    index: &T,
    table: &T,
    mut is_right: impl FnMut(&mut X, &[u8]) -> Result<bool, Stop>,
) -> Result<Option<String>, Stop> {
    let (mut entries, mut wrong, mut rows) = (0u64, 0u64, 0u64);
    let mut from = Vec::new();
    loop {
        let mut some: Vec<Vec<u8>> = Vec::with_capacity(ENTRIES_AT_ONCE);
        txn.scan(index, &from, &mut |key, _| {
            some.push(key.to_vec());
            some.len() < ENTRIES_AT_ONCE
        })?;
        for key in &some {
            wrong += u64::from(!is_right(txn, key)?);
        }
        entries += some.len() as u64;
        let Some(last) = some.pop() else { break };
        // The least key above the last one.
        from = last;
        from.push(0);
    }
    txn.scan(table, &[], &mut |_, _| {
        rows += 1;
        true
    })?;
    let all_right = wrong == 0 && entries == rows;
    Ok((!all_right).then(|| format!("{entries} entries for {rows} rows, {wrong} of them wrong")))
}
