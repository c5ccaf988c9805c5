//! The bytes of each row: its key, its value, and back.
use super::codec::{Fixed, Front, put_text, take, take_fixed, take_text};
use super::keys::{self, Parts};
use super::rows::{
    Address, Customer, CustomerFront, District, DistrictFront, History, HistoryFront, Item,
    ItemFront, NewOrderRow, Order, OrderFront, OrderLine, OrderLineFront, Relation, Row, Stock,
    StockFront, Warehouse, WarehouseFront, name_behind,
};

/// `S_DIST_xx` for district `d` in a stock row's value.
pub(crate) fn stock_info(value: &[u8], d: u8) -> Option<[u8; 24]> {
    let at = StockFront::BYTES + 24 * usize::from(d.checked_sub(1)?);
    value.get(at..).and_then(<[u8; 24]>::read)
}

/// `S_DATA` in a stock row's value.
pub(crate) fn stock_data(value: &[u8]) -> Option<&[u8]> {
    name_behind(value, StockFront::BYTES + 240)
}

/// `C_FIRST` and `C_LAST` in a customer's value.
pub(crate) fn customer_name_in(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = value.get(CustomerFront::BYTES..)?;
    Some((take_text(&mut rest)?, take_text(&mut rest)?))
}

/// `C_DATA` begins here in a customer's value: its length comes first.
pub(crate) fn customer_data_at(value: &[u8]) -> Option<usize> {
    let mut rest = value.get(CustomerFront::BYTES..)?;
    for _name in 0..2 {
        take_text(&mut rest)?;
    }
    Address::take(&mut rest)?;
    Some(value.len() - rest.len())
}

/// Replaces a customer's `C_DATA`, which begins at `at`, by `data`.
pub(crate) fn replace_customer_data(value: &mut Vec<u8>, at: usize, data: &[u8]) {
    value.truncate(at);
    put_text(value, data);
}

/// Writes the codec of a row: how its key is made and taken apart, its front, and what follows.
macro_rules! row {
    ($name:ident, $relation:ident, ($($part:ident: $take:ident),*) by $key:path, $front:ident,
     |$row:ident, $out:ident| $put:expr, |$bytes:ident| { $($field:ident: $read:expr),* }) => {
        impl Row for $name {
            const RELATION: Relation = Relation::$relation;

            fn key(&self, out: &mut Vec<u8>) {
                out.clear();
                out.extend_from_slice(&$key($(self.$part),*));
            }

            fn value(&self, $out: &mut Vec<u8>) {
                self.front.begin($out);
                let $row = self;
                $put;
            }

            fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
                let mut parts = Parts(key);
                $(let $part = parts.$take()?;)*
                let front = $front::read(value)?;
                let mut rest = &value[$front::BYTES..];
                let $bytes = &mut rest;
                let row = $name { $($part,)* front, $($field: $read,)* };
                parts.end(row).filter(|_| rest.is_empty())
            }
        }
    };
}

row!(Warehouse, Warehouse, (w: two) by keys::warehouse, WarehouseFront,
    |row, out| {
        put_text(out, &row.name);
        row.address.put(out);
    },
    |bytes| { name: take(bytes)?, address: Address::take(bytes)? });

row!(District, District, (w: two, d: one) by keys::district, DistrictFront,
    |row, out| {
        put_text(out, &row.name);
        row.address.put(out);
    },
    |bytes| { name: take(bytes)?, address: Address::take(bytes)? });

row!(Customer, Customer, (w: two, d: one, c: two) by keys::customer, CustomerFront,
|row, out| {
    put_text(out, &row.first);
    put_text(out, &row.last);
    row.address.put(out);
    put_text(out, &row.data);
},
|bytes| {
    first: take(bytes)?,
    last: take(bytes)?,
    address: Address::take(bytes)?,
    data: take(bytes)?
});

row!(Order, Order, (w: two, d: one, o: four) by keys::order, OrderFront,
    |_row, _out| {}, |_bytes| {});

row!(OrderLine, OrderLine, (w: two, d: one, o: four, number: one) by keys::order_line,
    OrderLineFront, |_row, _out| {}, |_bytes| {});

row!(Item, Item, (i: three) by keys::item, ItemFront,
    |row, out| {
        put_text(out, &row.name);
        put_text(out, &row.data);
    },
    |bytes| { name: take(bytes)?, data: take(bytes)? });

row!(Stock, Stock, (w: two, i: three) by keys::stock, StockFront,
    |row, out| {
        out.extend_from_slice(row.infos.as_flattened());
        put_text(out, &row.data);
    },
    |bytes| { infos: take_infos(bytes)?, data: take(bytes)? });

fn take_infos(bytes: &mut &[u8]) -> Option<[[u8; 24]; 10]> {
    let mut infos = [[0; 24]; 10];
    for info in &mut infos {
        *info = take_fixed(bytes)?;
    }
    Some(infos)
}

impl Row for History {
    const RELATION: Relation = Relation::History;

    fn key(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&keys::history(self.counter, self.count));
    }

    fn value(&self, out: &mut Vec<u8>) {
        self.front.begin(out);
        put_text(out, &self.data);
    }

    fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        let (counter, count) = keys::history_parts(key)?;
        let front = HistoryFront::read(value)?;
        let mut rest = &value[HistoryFront::BYTES..];
        let data = take(&mut rest)?;
        rest.is_empty().then_some(History { counter, count, front, data })
    }
}

impl Row for NewOrderRow {
    const RELATION: Relation = Relation::NewOrder;

    fn key(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&keys::order(self.w, self.d, self.o));
    }

    fn value(&self, out: &mut Vec<u8>) {
        out.clear();
    }

    fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        let mut parts = Parts(key);
        let row = NewOrderRow { w: parts.two()?, d: parts.one()?, o: parts.four()? };
        parts.end(row).filter(|_| value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::population::Population;
    use crate::tpcc::scale::tests::tiny;
    use crate::tpcc::text::Text;
    use proptest::prelude::*;

    fn round_trip<R: Row + PartialEq + std::fmt::Debug>(row: &R) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        row.key(&mut key);
        row.value(&mut value);
        assert_eq!(R::decode(&key, &value).as_ref(), Some(row));
        // A byte more or less is no row.
        value.push(0);
        assert_eq!(R::decode(&key, &value), None);
        value.truncate(value.len().saturating_sub(2));
        assert!(R::decode(&key, &value).is_none_or(|_| R::RELATION == Relation::NewOrder));
        assert_eq!(R::decode(&key[1..], &value), None);
    }

    #[test]
    fn populations_round_trip() {
        let all = Population::new(tiny(2), 11, 5);
        all.warehouses().for_each(|row| round_trip(&row));
        all.districts().for_each(|row| round_trip(&row));
        all.customers().step_by(7).for_each(|row| round_trip(&row));
        all.history().step_by(7).for_each(|row| round_trip(&row));
        all.orders().step_by(7).for_each(|row| round_trip(&row));
        all.order_lines().step_by(7).for_each(|row| round_trip(&row));
        all.new_orders().step_by(7).for_each(|row| round_trip(&row));
        all.items().for_each(|row| round_trip(&row));
        all.stock().for_each(|row| round_trip(&row));
    }

    proptest! {
        #[test]
        fn a_customer_is_patched_in_place(
            numbers in any::<(i64, i64, u32, u32, u16, u32)>(),
            first in "[a-zA-Z]{0,16}",
            data in proptest::collection::vec(any::<u8>(), 0..=500),
            new_data in proptest::collection::vec(any::<u8>(), 0..=500),
        ) {
            let (balance, ytd_payment, payment_count, delivery_count, discount, since) = numbers;
            let mut row = Population::new(tiny(1), 1, 1).customers().next().unwrap();
            row.front = CustomerFront {
                balance, ytd_payment, payment_count, delivery_count, discount, since, ..row.front
            };
            row.first = Text::new(first.as_bytes()).unwrap();
            row.data = Text::new(&data).unwrap();
            round_trip(&row);
            let (mut key, mut value) = (Vec::new(), Vec::new());
            row.key(&mut key);
            row.value(&mut value);
            row.front.balance = balance.wrapping_add(1);
            row.front.write(&mut value);
            row.data = Text::new(&new_data).unwrap();
            let at = customer_data_at(&value).unwrap();
            prop_assert_eq!(take_text(&mut &value[at..]), Some(&data[..]));
            replace_customer_data(&mut value, at, &new_data);
            prop_assert_eq!(Customer::decode(&key, &value), Some(row));
        }

        #[test]
        fn stock_is_patched_in_place(
            quantity: i16, ytd: u32, order_count: u32, remote_count: u32, d in 1u8..=10,
        ) {
            let mut row = Population::new(tiny(1), 1, 1).stock().next().unwrap();
            let (mut key, mut value) = (Vec::new(), Vec::new());
            row.key(&mut key);
            row.value(&mut value);
            row.front = StockFront { quantity, ytd, order_count, remote_count };
            row.front.write(&mut value);
            prop_assert_eq!(Stock::decode(&key, &value), Some(row));
            prop_assert_eq!(stock_info(&value, d), Some(row.infos[usize::from(d) - 1]));
            prop_assert_eq!(stock_data(&value), Some(&*row.data));
        }

        #[test]
        fn no_bytes_make_a_reader_panic(
            key in proptest::collection::vec(any::<u8>(), 0..12),
            value in proptest::collection::vec(any::<u8>(), 0..700),
        ) {
            let _ = (Warehouse::decode(&key, &value), District::decode(&key, &value));
            let _ = (Customer::decode(&key, &value), History::decode(&key, &value));
            let _ = (Order::decode(&key, &value), OrderLine::decode(&key, &value));
            let _ = (Item::decode(&key, &value), Stock::decode(&key, &value));
            let _ = (customer_data_at(&value), stock_info(&value, 0), stock_data(&value));
        }
    }
}
