//! The rows of the nine tables (clause 1.3) and their bytes.
//!
//! A value begins with the row's numbers, at fixed offsets: a transaction patches what it changes
//! in place and decodes nothing else. Texts follow, each with its length before it. Money is in
//! cents, rates are in hundredths of a percent, dates are seconds since 1970.
use super::keys::{self, Parts};
use super::text::Text;

/// The tables of clause 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Clause 1.3.1.
    Warehouse,
    /// Its ten districts.
    District,
    /// Customers of a district.
    Customer,
    /// Payments.
    History,
    /// Orders not yet delivered.
    NewOrder,
    /// Orders.
    Order,
    /// Their lines.
    OrderLine,
    /// What can be ordered.
    Item,
    /// How much of it each warehouse has.
    Stock,
}

/// A row of one table.
pub trait Row: Sized {
    /// Its table.
    const RELATION: Relation;

    /// Replaces `out` by the row's key.
    fn key(&self, out: &mut Vec<u8>);

    /// Replaces `out` by the rest of the row.
    fn value(&self, out: &mut Vec<u8>);

    /// The row of this key and value; `None` when they are not of this table.
    fn decode(key: &[u8], value: &[u8]) -> Option<Self>;
}

/// A number or a text of fixed length.
trait Fixed: Sized + Copy {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> Option<Self>;
    fn write(self, bytes: &mut [u8]);
}

macro_rules! fixed_numbers {
    ($($number:ty),*) => {$(
        impl Fixed for $number {
            const BYTES: usize = size_of::<$number>();
            #[inline]
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| <$number>::from_le_bytes(*bytes))
            }
            #[inline]
            fn write(self, bytes: &mut [u8]) {
                bytes[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

fixed_numbers!(u8, u16, i16, u32, i64);

impl<const N: usize> Fixed for [u8; N] {
    const BYTES: usize = N;
    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied()
    }
    #[inline]
    fn write(self, bytes: &mut [u8]) {
        bytes[..N].copy_from_slice(&self);
    }
}

/// The numbers that a value begins with.
pub(crate) trait Front: Sized + Copy {
    /// Bytes that it takes.
    const BYTES: usize;

    /// Reads it; `None` when the value is too short.
    fn read(value: &[u8]) -> Option<Self>;

    /// Writes it over the front of a value that has one.
    fn write(&self, value: &mut [u8]);

    /// Replaces `out` by a value of nothing else.
    fn begin(&self, out: &mut Vec<u8>) {
        out.clear();
        out.resize(Self::BYTES, 0);
        self.write(out);
    }
}

/// Declares a [`Front`].
macro_rules! front {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$what])* pub $field: $kind,)* }

        impl Front for $name {
            const BYTES: usize = 0 $(+ <$kind as Fixed>::BYTES)*;

            #[inline]
            #[allow(unused_assignments)] // Behind the last field nothing is read.
            fn read(value: &[u8]) -> Option<Self> {
                let mut rest = value.get(..Self::BYTES)?;
                $(
                    let $field = <$kind as Fixed>::read(rest)?;
                    rest = &rest[<$kind as Fixed>::BYTES..];
                )*
                Some($name { $($field),* })
            }

            #[inline]
            #[allow(unused_assignments)]
            fn write(&self, value: &mut [u8]) {
                let mut rest = &mut value[..Self::BYTES];
                $(
                    let (this, behind) = rest.split_at_mut(<$kind as Fixed>::BYTES);
                    self.$field.write(this);
                    rest = behind;
                )*
            }
        }
    };
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    // Only a customer's data is longer than a byte tells; two bytes for all would cost more.
    weir_base::varint::put(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// The text at the front of `bytes`, which then begin behind it.
#[inline]
pub(crate) fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(weir_base::varint::take(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<Text<N>> {
    Text::new(take_text(bytes)?)
}

fn take_fixed<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Where a warehouse, a district or a customer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Two streets.
    pub streets: [Text<20>; 2],
    /// City.
    pub city: Text<20>,
    /// Two letters.
    pub state: [u8; 2],
    /// Nine digits.
    pub zip: [u8; 9],
}

impl Address {
    fn put(&self, out: &mut Vec<u8>) {
        for text in [&self.streets[0], &self.streets[1], &self.city] {
            put_text(out, text);
        }
        out.extend_from_slice(&self.state);
        out.extend_from_slice(&self.zip);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Address {
            streets: [take(bytes)?, take(bytes)?],
            city: take(bytes)?,
            state: take_fixed(bytes)?,
            zip: take_fixed(bytes)?,
        })
    }
}

front! {
    /// The numbers of a warehouse.
    WarehouseFront {
        /// `W_YTD`: payments so far, cents.
        ytd: i64,
        /// `W_TAX`: sales tax, hundredths of a percent.
        tax: u16,
    }
}

/// A row of WAREHOUSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warehouse {
    /// `W_ID`.
    pub w: u16,
    /// Its numbers.
    pub front: WarehouseFront,
    /// `W_NAME`.
    pub name: Text<10>,
    /// Where it is.
    pub address: Address,
}

front! {
    /// The numbers of a district.
    DistrictFront {
        /// `D_NEXT_O_ID`: the next order's number.
        next_o: u32,
        /// `D_YTD`: payments so far, cents.
        ytd: i64,
        /// `D_TAX`: sales tax, hundredths of a percent.
        tax: u16,
    }
}

/// A row of DISTRICT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct District {
    /// `D_W_ID`.
    pub w: u16,
    /// `D_ID`.
    pub d: u8,
    /// Its numbers.
    pub front: DistrictFront,
    /// `D_NAME`.
    pub name: Text<10>,
    /// Where it is.
    pub address: Address,
}

/// The name behind the numbers of a warehouse (`WarehouseFront`) or a district.
pub(crate) fn name_behind(value: &[u8], front_bytes: usize) -> Option<&[u8]> {
    take_text(&mut value.get(front_bytes..)?)
}

front! {
    /// The numbers of a customer.
    CustomerFront {
        /// `C_BALANCE`, cents.
        balance: i64,
        /// `C_YTD_PAYMENT`, cents.
        ytd_payment: i64,
        /// `C_PAYMENT_CNT`.
        payment_count: u32,
        /// `C_DELIVERY_CNT`.
        delivery_count: u32,
        /// `C_DISCOUNT`, hundredths of a percent.
        discount: u16,
        /// `C_CREDIT`: `GC` (good) or `BC` (bad).
        credit: [u8; 2],
        /// `C_CREDIT_LIM`, cents.
        credit_limit: i64,
        /// `C_SINCE`.
        since: u32,
        /// `C_MIDDLE`.
        middle: [u8; 2],
        /// `C_PHONE`.
        phone: [u8; 16],
    }
}

/// A row of CUSTOMER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Customer {
    /// `C_W_ID`.
    pub w: u16,
    /// `C_D_ID`.
    pub d: u8,
    /// `C_ID`.
    pub c: u16,
    /// Its numbers.
    pub front: CustomerFront,
    /// `C_FIRST`.
    pub first: Text<16>,
    /// `C_LAST`.
    pub last: Text<16>,
    /// Where the customer lives.
    pub address: Address,
    /// `C_DATA`.
    pub data: Text<500>,
}

front! {
    /// A row of HISTORY but for its text.
    HistoryFront {
        /// `H_C_ID`.
        c: u16,
        /// `H_C_D_ID`.
        c_d: u8,
        /// `H_C_W_ID`.
        c_w: u16,
        /// `H_D_ID`.
        d: u8,
        /// `H_W_ID`.
        w: u16,
        /// `H_DATE`.
        date: u32,
        /// `H_AMOUNT`, cents.
        amount: u32,
    }
}

/// A row of HISTORY, which has no key of its own (clause 1.3.1): its number is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Who counts.
    pub counter: u16,
    /// How far.
    pub count: u64,
    /// What was paid.
    pub front: HistoryFront,
    /// `H_DATA`.
    pub data: Text<24>,
}

/// A row of NEW-ORDER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrderRow {
    /// `NO_W_ID`.
    pub w: u16,
    /// `NO_D_ID`.
    pub d: u8,
    /// `NO_O_ID`.
    pub o: u32,
}

front! {
    /// A row of ORDER but for its key.
    OrderFront {
        /// `O_CARRIER_ID`; 0 is null: not yet delivered.
        carrier: u8,
        /// `O_C_ID`.
        c: u16,
        /// `O_ENTRY_D`.
        entry_date: u32,
        /// `O_OL_CNT`.
        lines: u8,
        /// `O_ALL_LOCAL`.
        all_local: u8,
    }
}

/// A row of ORDER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// `O_W_ID`.
    pub w: u16,
    /// `O_D_ID`.
    pub d: u8,
    /// `O_ID`.
    pub o: u32,
    /// The rest.
    pub front: OrderFront,
}

front! {
    /// A row of ORDER-LINE but for its key.
    OrderLineFront {
        /// `OL_DELIVERY_D`; 0 is null: not yet delivered.
        delivery_date: u32,
        /// `OL_I_ID`.
        i: u32,
        /// `OL_SUPPLY_W_ID`.
        supply_w: u16,
        /// `OL_QUANTITY`.
        quantity: u8,
        /// `OL_AMOUNT`, cents.
        amount: u32,
        /// `OL_DIST_INFO`.
        info: [u8; 24],
    }
}

/// A row of ORDER-LINE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLine {
    /// `OL_W_ID`.
    pub w: u16,
    /// `OL_D_ID`.
    pub d: u8,
    /// `OL_O_ID`.
    pub o: u32,
    /// `OL_NUMBER`.
    pub number: u8,
    /// The rest.
    pub front: OrderLineFront,
}

front! {
    /// The numbers of an item.
    ItemFront {
        /// `I_PRICE`, cents.
        price: u32,
        /// `I_IM_ID`: its image.
        image: u16,
    }
}

/// A row of ITEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// `I_ID`.
    pub i: u32,
    /// Its numbers.
    pub front: ItemFront,
    /// `I_NAME`.
    pub name: Text<24>,
    /// `I_DATA`.
    pub data: Text<50>,
}

front! {
    /// The numbers of a stock row.
    StockFront {
        /// `S_QUANTITY`.
        quantity: i16,
        /// `S_YTD`: ordered so far.
        ytd: u32,
        /// `S_ORDER_CNT`.
        order_count: u32,
        /// `S_REMOTE_CNT`.
        remote_count: u32,
    }
}

/// A row of STOCK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    /// `S_W_ID`.
    pub w: u16,
    /// `S_I_ID`.
    pub i: u32,
    /// Its numbers.
    pub front: StockFront,
    /// `S_DIST_01` to `S_DIST_10`.
    pub infos: [[u8; 24]; 10],
    /// `S_DATA`.
    pub data: Text<50>,
}

/// `S_DIST_xx` for district `d` in a stock row's value.
pub(crate) fn stock_info(value: &[u8], d: u8) -> Option<[u8; 24]> {
    let at = StockFront::BYTES + 24 * usize::from(d.checked_sub(1)?);
    value.get(at..).and_then(<[u8; 24]>::read)
}

/// `S_DATA` in a stock row's value.
pub(crate) fn stock_data(value: &[u8]) -> Option<&[u8]> {
    name_behind(value, StockFront::BYTES + 240)
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
