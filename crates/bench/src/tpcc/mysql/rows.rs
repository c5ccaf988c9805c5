//! The rows of the nine tables as the values of their columns.
use super::values::{Values, int, moment, money, rate, text};
use crate::tpcc::rows::{
    Address, Customer, CustomerFront, District, DistrictFront, History, HistoryFront, Item,
    ItemFront, NewOrderRow, Order, OrderFront, OrderLine, OrderLineFront, Relation, Row, Stock,
    StockFront, Warehouse, WarehouseFront,
};
use mysql::Value;

/// A row as the values of its table's columns.
pub(super) trait SqlRow: Row {
    fn values(&self) -> Vec<Value>;
    fn read(values: Values) -> Option<Self>;
}

/// A row of any table, read by its relation. `number` is the next of those that have no key.
pub(super) fn read_row<R: Row>(values: Values, number: u64) -> Option<R> {
    fn bytes<S: SqlRow, R: Row>(values: Values, change: impl FnOnce(&mut S)) -> Option<R> {
        let mut row = S::read(values)?;
        change(&mut row);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        row.key(&mut key);
        row.value(&mut value);
        R::decode(&key, &value)
    }
    match R::RELATION {
        Relation::Warehouse => bytes::<Warehouse, R>(values, |_| ()),
        Relation::District => bytes::<District, R>(values, |_| ()),
        Relation::Customer => bytes::<Customer, R>(values, |_| ()),
        Relation::History => bytes::<History, R>(values, |row| row.count = number),
        Relation::NewOrder => bytes::<NewOrderRow, R>(values, |_| ()),
        Relation::Order => bytes::<Order, R>(values, |_| ()),
        Relation::OrderLine => bytes::<OrderLine, R>(values, |_| ()),
        Relation::Item => bytes::<Item, R>(values, |_| ()),
        Relation::Stock => bytes::<Stock, R>(values, |_| ()),
    }
}

fn put_address(address: &Address, out: &mut Vec<Value>) {
    let Address { streets: [one, two], city, state, zip } = address;
    out.extend([text(one), text(two), text(city), text(state), text(zip)]);
}

fn read_address(values: &mut Values) -> Option<Address> {
    Some(Address {
        streets: [values.text()?, values.text()?],
        city: values.text()?,
        state: values.fixed()?,
        zip: values.fixed()?,
    })
}

impl SqlRow for Warehouse {
    fn values(&self) -> Vec<Value> {
        let mut out = vec![int(self.w), text(&self.name)];
        put_address(&self.address, &mut out);
        out.extend([rate(self.front.tax), money(self.front.ytd)]);
        out
    }

    fn read(mut values: Values) -> Option<Self> {
        let (w, name, address) = (values.int()?, values.text()?, read_address(&mut values)?);
        let front = WarehouseFront { tax: values.rate()?, ytd: values.money()? };
        values.end(Warehouse { w, front, name, address })
    }
}

impl SqlRow for District {
    fn values(&self) -> Vec<Value> {
        let mut out = vec![int(self.w), int(self.d), text(&self.name)];
        put_address(&self.address, &mut out);
        let DistrictFront { next_o, ytd, tax } = self.front;
        out.extend([rate(tax), money(ytd), int(next_o)]);
        out
    }

    fn read(mut values: Values) -> Option<Self> {
        let (w, d, name) = (values.int()?, values.int()?, values.text()?);
        let address = read_address(&mut values)?;
        let (tax, ytd, next_o) = (values.rate()?, values.money()?, values.int()?);
        values.end(District { w, d, front: DistrictFront { next_o, ytd, tax }, name, address })
    }
}

impl SqlRow for Customer {
    fn values(&self) -> Vec<Value> {
        let Customer { w, d, c, front, first, last, address, data } = self;
        let mut out = vec![int(*w), int(*d), int(*c)];
        out.extend([text(first), text(&front.middle), text(last)]);
        put_address(address, &mut out);
        out.extend([text(&front.phone), moment(front.since), text(&front.credit)]);
        out.extend([money(front.credit_limit), rate(front.discount), money(front.balance)]);
        out.extend([money(front.ytd_payment), int(front.payment_count)]);
        out.extend([int(front.delivery_count), text(data)]);
        out
    }

    fn read(mut values: Values) -> Option<Self> {
        let (w, d, c) = (values.int()?, values.int()?, values.int()?);
        let (first, middle, last) = (values.text()?, values.fixed()?, values.text()?);
        let address = read_address(&mut values)?;
        let (phone, since, credit) = (values.fixed()?, values.moment()?, values.fixed()?);
        let (credit_limit, discount) = (values.money()?, values.rate()?);
        let (balance, ytd_payment) = (values.money()?, values.money()?);
        let (payment_count, delivery_count) = (values.int()?, values.int()?);
        let front = CustomerFront {
            balance,
            ytd_payment,
            payment_count,
            delivery_count,
            discount,
            credit,
            credit_limit,
            since,
            middle,
            phone,
        };
        let data = values.text()?;
        values.end(Customer { w, d, c, front, first, last, address, data })
    }
}

impl SqlRow for History {
    fn values(&self) -> Vec<Value> {
        let HistoryFront { c, c_d, c_w, d, w, date, amount } = self.front;
        let mut out = vec![int(c), int(c_d), int(c_w), int(d), int(w)];
        out.extend([moment(date), money(amount), text(&self.data)]);
        out
    }

    fn read(mut values: Values) -> Option<Self> {
        let (c, c_d, c_w) = (values.int()?, values.int()?, values.int()?);
        let (d, w, date) = (values.int()?, values.int()?, values.moment()?);
        let front = HistoryFront { c, c_d, c_w, d, w, date, amount: values.money()? };
        let data = values.text()?;
        values.end(History { counter: 0, count: 0, front, data })
    }
}

impl SqlRow for NewOrderRow {
    fn values(&self) -> Vec<Value> {
        vec![int(self.w), int(self.d), int(self.o)]
    }

    fn read(mut values: Values) -> Option<Self> {
        let row = NewOrderRow { w: values.int()?, d: values.int()?, o: values.int()? };
        values.end(row)
    }
}

impl SqlRow for Order {
    fn values(&self) -> Vec<Value> {
        let OrderFront { carrier, c, entry_date, lines, all_local } = self.front;
        let carrier = if carrier == 0 { Value::NULL } else { int(carrier) };
        let mut out = vec![int(self.w), int(self.d), int(self.o), int(c), moment(entry_date)];
        out.extend([carrier, int(lines), int(all_local)]);
        out
    }

    fn read(mut values: Values) -> Option<Self> {
        let (w, d, o) = (values.int()?, values.int()?, values.int()?);
        let (c, entry_date, carrier) = (values.int()?, values.moment()?, values.maybe_int()?);
        let (lines, all_local) = (values.int()?, values.int()?);
        let carrier = carrier.unwrap_or(0);
        let front = OrderFront { carrier, c, entry_date, lines, all_local };
        values.end(Order { w, d, o, front })
    }
}

impl SqlRow for OrderLine {
    fn values(&self) -> Vec<Value> {
        let OrderLineFront { delivery_date, i, supply_w, quantity, amount, info } = self.front;
        let mut out = vec![int(self.w), int(self.d), int(self.o), int(self.number)];
        out.extend([int(i), int(supply_w), moment(delivery_date), int(quantity)]);
        out.extend([money(amount), text(&info)]);
        out
    }

    fn read(mut values: Values) -> Option<Self> {
        let (w, d, o, number) = (values.int()?, values.int()?, values.int()?, values.int()?);
        let front = OrderLineFront {
            i: values.int()?,
            supply_w: values.int()?,
            delivery_date: values.moment()?,
            quantity: values.int()?,
            amount: values.money()?,
            info: values.fixed()?,
        };
        values.end(OrderLine { w, d, o, number, front })
    }
}

impl SqlRow for Item {
    fn values(&self) -> Vec<Value> {
        let Item { i, front, name, data } = self;
        vec![int(*i), int(front.image), text(name), money(front.price), text(data)]
    }

    fn read(mut values: Values) -> Option<Self> {
        let (i, image, name) = (values.int()?, values.int()?, values.text()?);
        let (price, data) = (values.money()?, values.text()?);
        values.end(Item { i, front: ItemFront { price, image }, name, data })
    }
}

impl SqlRow for Stock {
    fn values(&self) -> Vec<Value> {
        let StockFront { quantity, ytd, order_count, remote_count } = self.front;
        let mut out = vec![int(self.w), int(self.i), int(quantity)];
        out.extend(self.infos.iter().map(|info| text(info)));
        out.extend([int(ytd), int(order_count), int(remote_count), text(&self.data)]);
        out
    }

    fn read(mut values: Values) -> Option<Self> {
        let (w, i, quantity) = (values.int()?, values.int()?, values.int()?);
        let mut infos = [[0; 24]; 10];
        for info in &mut infos {
            *info = values.fixed()?;
        }
        let (ytd, order_count, remote_count) = (values.int()?, values.int()?, values.int()?);
        let front = StockFront { quantity, ytd, order_count, remote_count };
        let data = values.text()?;
        values.end(Stock { w, i, front, infos, data })
    }
}
