//! The New-Order transaction (clause 2.4.2).
use super::backend::NewOrderDone;
use super::codec::Front;
use super::input::{Line, NewOrder};
use super::keys;
use super::random::is_original;
use super::row_codec::{stock_data, stock_info};
use super::rows::{
    CustomerFront, DistrictFront, ItemFront, OrderFront, OrderLineFront, StockFront,
    WarehouseFront, name_behind,
};
use super::scale::LINES_MAX;
use super::store::{Stop, Txn};
use super::trees::{Buffers, Trees, missing, patch};

/// What a line of the order comes to.
type Sold = Option<OrderLineFront>;

/// All of the profile. Stock is locked in key order, so that two orders cannot wait for each
/// other, and the district, where all orders of the district meet, is locked last.
pub(super) fn run<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &NewOrder,
) -> Result<Option<NewOrderDone>, Stop> {
    let NewOrder { w, d, c, .. } = *input;
    let value = &mut buffers.value;
    txn.get(&trees.warehouse, &keys::warehouse(w), value)?;
    let warehouse =
        WarehouseFront::read(value).ok_or_else(|| missing(format_args!("warehouse {w}")))?;
    txn.get(&trees.customer, &keys::customer(w, d, c), value)?;
    let customer =
        CustomerFront::read(value).ok_or_else(|| missing(format_args!("customer {w}-{d}-{c}")))?;

    let mut order = [0u8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
    let lines = input.lines();
    let order = &mut order[..lines.len()];
    order.sort_unstable_by_key(|&at| {
        let line = &lines[usize::from(at)];
        (line.supply_w, line.item)
    });
    let mut sold: [Sold; LINES_MAX as usize] = [None; LINES_MAX as usize];
    let mut brands = 0;
    for &at in order.iter() {
        let at = usize::from(at);
        sold[at] = sell(txn, trees, buffers, input, &lines[at], &mut brands)?;
    }
    let sold = &sold[..lines.len()];

    let next = |district: &mut DistrictFront, _: &mut Vec<u8>| district.next_o += 1;
    let district = patch(txn, &trees.district, &keys::district(w, d), next)?
        .ok_or_else(|| missing(format_args!("district {w}-{d}")))?;
    let number = district.next_o - 1;
    insert(txn, trees, buffers, input, number, sold)?;
    if sold.iter().any(Option::is_none) {
        // Clause 2.4.2.3: all of the profile is carried out, and then rolled back.
        return Ok(None);
    }
    let sum: i64 = sold.iter().flatten().map(|line| i64::from(line.amount)).sum();
    let discounted = sum * (10_000 - i64::from(customer.discount));
    let taxed = discounted * (10_000 + i64::from(warehouse.tax) + i64::from(district.tax));
    Ok(Some(NewOrderDone { order: number, total: taxed / 100_000_000, brands }))
}

/// Takes a line's quantity from the stock; none when there is no such item.
fn sell<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &NewOrder,
    line: &Line,
    brands: &mut u8,
) -> Result<Sold, Stop> {
    let Line { item, supply_w, quantity } = *line;
    let value = &mut buffers.value;
    if !txn.get(&trees.item, &keys::item(item), value)? {
        return Ok(None);
    }
    let gone = || missing(format_args!("item {item}"));
    let price = ItemFront::read(value).ok_or_else(gone)?.price;
    let item_data = item_data(value).ok_or_else(gone)?;
    let mut of_stock = None;
    patch(txn, &trees.stock, &keys::stock(supply_w, item), |stock: &mut StockFront, value| {
        let left = stock.quantity - i16::from(quantity);
        stock.quantity = if left >= 10 { left } else { left + 91 };
        stock.ytd += u32::from(quantity);
        stock.order_count += 1;
        stock.remote_count += u32::from(supply_w != input.w);
        // Only two originals make a brand, and few items are.
        let brand = is_original(item_data) && stock_data(value).is_some_and(is_original);
        of_stock = stock_info(value, input.d).map(|info| (info, brand));
    })?;
    let (info, brand) = of_stock
        .ok_or_else(|| missing(format_args!("stock of item {item} in warehouse {supply_w}")))?;
    *brands += u8::from(brand);
    let amount = u32::from(quantity) * price;
    Ok(Some(OrderLineFront { delivery_date: 0, i: item, supply_w, quantity, amount, info }))
}

/// `I_DATA` in an item's value: behind the name.
fn item_data(value: &[u8]) -> Option<&[u8]> {
    let name = name_behind(value, ItemFront::BYTES)?;
    // A name is at most 24 bytes long: its length takes one.
    name_behind(value, ItemFront::BYTES + 1 + name.len())
}

fn insert<T, X: Txn<T>>(
    txn: &mut X,
    trees: &Trees<T>,
    buffers: &mut Buffers,
    input: &NewOrder,
    o: u32,
    sold: &[Sold],
) -> Result<(), Stop> {
    let NewOrder { w, d, c, entry_date, .. } = *input;
    let value = &mut buffers.value;
    let lines = sold.len() as u8;
    let all_local = u8::from(input.all_local());
    OrderFront { carrier: 0, c, entry_date, lines, all_local }.begin(value);
    txn.insert(&trees.order, &keys::order(w, d, o), value)?;
    txn.insert(&trees.orders_by_customer, &keys::customer_order(w, d, c, o), &[])?;
    txn.insert(&trees.new_order, &keys::order(w, d, o), &[])?;
    for (line, number) in sold.iter().zip(1..) {
        if let Some(line) = line {
            line.begin(value);
            txn.insert(&trees.order_line, &keys::order_line(w, d, o, number), value)?;
        }
    }
    Ok(())
}
