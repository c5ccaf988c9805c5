//! The initial population (clause 4.3.3.1), table by table in key order. Each row is a function of
//! the seed and its key, so that a table can be made twice: an index is made from its table again.
use super::random::{Random, last_name};
use super::rows::{
    Address, Customer, CustomerFront, District, DistrictFront, History, HistoryFront, Item,
    ItemFront, NewOrderRow, Order, OrderFront, OrderLine, OrderLineFront, Stock, StockFront,
    Warehouse, WarehouseFront,
};
use super::scale::{Constants, DISTRICTS, LINES_MAX, LINES_MIN, Scale};

/// What is loaded into an empty database.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    scale: Scale,
    constants: Constants,
    seed: u64,
    /// Seconds since 1970: the date of everything.
    now: u32,
}

/// Which stream a table's rows are made from.
#[derive(Clone, Copy)]
enum Stream {
    Constants,
    Item,
    Warehouse,
    Stock,
    District,
    Customer,
    History,
    Order,
    Permutation,
    OrderLine,
}

/// Initial values of clause 4.3.3.1, in cents.
const WAREHOUSE_YTD: i64 = 30_000_000;
const CREDIT_LIMIT: i64 = 5_000_000;
const FIRST_PAYMENT: i64 = 1_000;
/// Each district has its part of what its warehouse has been paid: so conditions 1 and 8 hold.
const PAYMENTS_PER_DISTRICT: i64 = WAREHOUSE_YTD / DISTRICTS as i64;

impl Population {
    /// The population of this scale.
    #[must_use]
    pub fn new(scale: Scale, seed: u64, now: u32) -> Self {
        let mut random = Random::of(seed, [Stream::Constants as u32, 0, 0, 0]);
        Population { scale, constants: Constants::for_load(&mut random), seed, now }
    }

    /// Its cardinalities.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The constants that it was made with: the terminals must use others (clause 2.1.6.1).
    #[must_use]
    pub fn constants(&self) -> Constants {
        self.constants
    }

    fn stream(&self, stream: Stream, a: u32, b: u32, c: u32) -> Random {
        Random::of(self.seed, [stream as u32, a, b, c])
    }

    /// Warehouse and district numbers, in order.
    fn places(&self) -> impl Iterator<Item = (u16, u8)> + use<> {
        (1..=self.scale.warehouses).flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)))
    }

    /// Rows of ITEM.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        (1..=self.scale.items).map(|i| {
            let mut random = self.stream(Stream::Item, i, 0, 0);
            let price = random.within(100, 10_000);
            let front = ItemFront { price, image: random.within(1, 10_000) as u16 };
            Item { i, front, name: random.alphanumeric(14, 24), data: random.data() }
        })
    }

    /// Rows of WAREHOUSE.
    pub fn warehouses(&self) -> impl Iterator<Item = Warehouse> + '_ {
        (1..=self.scale.warehouses).map(|w| {
            let mut random = self.stream(Stream::Warehouse, u32::from(w), 0, 0);
            let ytd = self.paid_per_district() * i64::from(DISTRICTS);
            let front = WarehouseFront { ytd, tax: random.within(0, 2000) as u16 };
            let name = random.alphanumeric(6, 10);
            Warehouse { w, front, name, address: address(&mut random) }
        })
    }

    /// Rows of STOCK.
    pub fn stock(&self) -> impl Iterator<Item = Stock> + '_ {
        let of_warehouse = move |w| (1..=self.scale.items).map(move |i| self.stock_row(w, i));
        (1..=self.scale.warehouses).flat_map(of_warehouse)
    }

    fn stock_row(&self, w: u16, i: u32) -> Stock {
        let mut random = self.stream(Stream::Stock, u32::from(w), i, 0);
        let quantity = random.within(10, 100) as i16;
        Stock {
            w,
            i,
            front: StockFront { quantity, ytd: 0, order_count: 0, remote_count: 0 },
            infos: std::array::from_fn(|_| random.letters_and_digits()),
            data: random.data(),
        }
    }

    /// Rows of DISTRICT.
    pub fn districts(&self) -> impl Iterator<Item = District> + '_ {
        self.places().map(|(w, d)| {
            let mut random = self.stream(Stream::District, u32::from(w), u32::from(d), 0);
            let front = DistrictFront {
                next_o: u32::from(self.scale.customers) + 1,
                ytd: self.paid_per_district(),
                tax: random.within(0, 2000) as u16,
            };
            let name = random.alphanumeric(6, 10);
            District { w, d, front, name, address: address(&mut random) }
        })
    }

    /// 30,000.00 with the specification's 3,000 customers, which paid 10.00 each.
    fn paid_per_district(&self) -> i64 {
        let paid = FIRST_PAYMENT * i64::from(self.scale.customers);
        debug_assert!(self.scale.customers != 3000 || paid == PAYMENTS_PER_DISTRICT);
        paid
    }

    /// Rows of CUSTOMER.
    pub fn customers(&self) -> impl Iterator<Item = Customer> + '_ {
        self.places().flat_map(|(w, d)| self.customers_of(w, d))
    }

    /// Those of one district.
    pub fn customers_of(&self, w: u16, d: u8) -> impl Iterator<Item = Customer> + '_ {
        (1..=self.scale.customers).map(move |c| self.customer(w, d, c))
    }

    fn customer(&self, w: u16, d: u8, c: u16) -> Customer {
        let mut random = self.stream(Stream::Customer, u32::from(w), u32::from(d), u32::from(c));
        // Clause 4.3.3.1: the first customers have each name once, the others by NURand.
        let name = match u32::from(c) - 1 {
            number if number < self.scale.last_names() => number,
            _ => self.constants.draw_last_name(&self.scale, &mut random),
        };
        let front = CustomerFront {
            balance: -FIRST_PAYMENT,
            ytd_payment: FIRST_PAYMENT,
            payment_count: 1,
            delivery_count: 0,
            discount: random.within(0, 5000) as u16,
            credit: if random.percent(10) { *b"BC" } else { *b"GC" },
            credit_limit: CREDIT_LIMIT,
            since: self.now,
            middle: *b"OE",
            phone: random.digits(),
        };
        Customer {
            w,
            d,
            c,
            front,
            first: random.alphanumeric(8, 16),
            last: last_name(name),
            address: address(&mut random),
            data: random.alphanumeric(300, 500),
        }
    }

    /// Rows of HISTORY: one payment of each customer.
    pub fn history(&self) -> impl Iterator<Item = History> + '_ {
        let payers =
            self.places().flat_map(|place| (1..=self.scale.customers).map(move |c| (place, c)));
        payers.zip(0..).map(|(((w, d), c), count)| {
            let numbers = (u32::from(w), u32::from(d), u32::from(c));
            let mut random = self.stream(Stream::History, numbers.0, numbers.1, numbers.2);
            let amount = FIRST_PAYMENT as u32;
            let front = HistoryFront { c, c_d: d, c_w: w, d, w, date: self.now, amount };
            History { counter: 0, count, front, data: random.alphanumeric(12, 24) }
        })
    }

    /// Rows of ORDER.
    pub fn orders(&self) -> impl Iterator<Item = Order> + '_ {
        self.places().flat_map(|(w, d)| self.orders_of(w, d))
    }

    /// Those of one district: one of each customer, in random order.
    pub fn orders_of(&self, w: u16, d: u8) -> impl Iterator<Item = Order> + '_ {
        let mut customers: Vec<u16> = (1..=self.scale.customers).collect();
        self.stream(Stream::Permutation, u32::from(w), u32::from(d), 0).shuffle(&mut customers);
        customers.into_iter().zip(1..).map(move |(c, o)| self.order(w, d, o, c))
    }

    fn order(&self, w: u16, d: u8, o: u32, c: u16) -> Order {
        let mut random = self.stream(Stream::Order, u32::from(w), u32::from(d), o);
        let lines = random.within(LINES_MIN.into(), LINES_MAX.into()) as u8;
        let carrier = random.within(1, 10) as u8;
        let carrier = if self.is_delivered(o) { carrier } else { 0 };
        let front = OrderFront { carrier, c, entry_date: self.now, lines, all_local: 1 };
        Order { w, d, o, front }
    }

    fn is_delivered(&self, o: u32) -> bool {
        o <= self.scale.delivered_orders()
    }

    /// Rows of ORDER-LINE.
    pub fn order_lines(&self) -> impl Iterator<Item = OrderLine> + '_ {
        self.orders().flat_map(|order| self.lines_of(order))
    }

    fn lines_of(&self, order: Order) -> impl Iterator<Item = OrderLine> + use<> {
        let Order { w, d, o, front } = order;
        let (items, delivered) = (self.scale.items, self.is_delivered(o));
        let mut random = self.stream(Stream::OrderLine, u32::from(w), u32::from(d), o);
        (1..=front.lines).map(move |number| {
            let i = random.within(1, items);
            let amount = random.within(1, 999_999);
            let front = OrderLineFront {
                delivery_date: if delivered { front.entry_date } else { 0 },
                i,
                supply_w: w,
                quantity: 5,
                amount: if delivered { 0 } else { amount },
                info: random.letters_and_digits(),
            };
            OrderLine { w, d, o, number, front }
        })
    }

    /// Rows of NEW-ORDER: the last 900 orders of each district.
    pub fn new_orders(&self) -> impl Iterator<Item = NewOrderRow> + '_ {
        let first = self.scale.delivered_orders() + 1;
        let of_district = move |(w, d)| {
            (first..=self.scale.customers.into()).map(move |o| NewOrderRow { w, d, o })
        };
        self.places().flat_map(of_district)
    }
}

fn address(random: &mut Random) -> Address {
    Address {
        streets: [random.alphanumeric(10, 20), random.alphanumeric(10, 20)],
        city: random.alphanumeric(10, 20),
        state: random.letters(),
        zip: random.zip(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::scale::tests::tiny;
    use std::collections::HashSet;

    #[test]
    fn cardinalities_of_one_warehouse() {
        let all = Population::new(Scale::new(1).unwrap(), 1, 1_000_000);
        assert_eq!(all.items().count(), 100_000);
        assert_eq!(all.stock().count(), 100_000);
        assert_eq!((all.warehouses().count(), all.districts().count()), (1, 10));
        assert_eq!((all.customers().count(), all.history().count()), (30_000, 30_000));
        assert_eq!((all.orders().count(), all.new_orders().count()), (30_000, 9000));
        let lines = all.order_lines().count();
        assert!((297_000..303_000).contains(&lines), "{lines}");
        assert_eq!(all.warehouses().next().unwrap().front.ytd, 30_000_000);
        assert_eq!(all.districts().next().unwrap().front.ytd, 3_000_000);
        assert_eq!(all.districts().next().unwrap().front.next_o, 3001);
        let first_new = all.new_orders().next().unwrap();
        assert_eq!((first_new.o, all.order(1, 1, 2100, 1).front.carrier > 0), (2101, true));
        let names = |c| all.customers().skip(c).take(1000).map(|c| c.last.to_vec());
        assert_eq!(names(0).collect::<HashSet<_>>().len(), 1000, "each name once");
        assert!(names(1000).collect::<HashSet<_>>().len() < 900, "names by NURand are met again");
        let bad = all.customers().filter(|c| c.front.credit == *b"BC").count();
        assert!((2700..3300).contains(&bad), "{bad} of 30,000");
    }

    #[test]
    fn each_customer_has_one_order_and_delivered_lines_are_free() {
        let all = Population::new(tiny(2), 1, 77);
        let owners: HashSet<u16> = all.orders_of(2, 3).map(|order| order.front.c).collect();
        assert_eq!(owners.len(), 60);
        for line in all.order_lines() {
            let delivered = line.o <= 42;
            assert_eq!(line.front.delivery_date, if delivered { 77 } else { 0 });
            assert_eq!(line.front.amount == 0, delivered);
        }
        let twice = || all.stock().collect::<Vec<_>>();
        assert!(twice() == twice(), "a table can be made again");
    }
}
