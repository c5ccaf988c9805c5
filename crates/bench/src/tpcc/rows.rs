//! The rows of the nine tables (clause 1.3) and their bytes.
//!
//! A value begins with the row's numbers, at fixed offsets: a transaction patches what it changes
//! in place and decodes nothing else. Texts follow, each with its length before it. Money is in
//! cents, rates are in hundredths of a percent, dates are seconds since 1970.
use super::codec::{Fixed, Front, front, put_text, take, take_fixed, take_text};
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
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        for text in [&self.streets[0], &self.streets[1], &self.city] {
            put_text(out, text);
        }
        out.extend_from_slice(&self.state);
        out.extend_from_slice(&self.zip);
    }

    pub(super) fn take(bytes: &mut &[u8]) -> Option<Self> {
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
    /// What counts.
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
