//! The twelve consistency conditions (clauses 3.3.2.1 to 3.3.2.12), from one pass over the tables.
use super::backend::Backend;
use super::rows::{Customer, District, History, NewOrderRow, Order, OrderLine, Warehouse};
use super::scale::{DISTRICTS, Scale};
use anyhow::{Result, ensure};
use serde::{Serialize, Serializer};

/// Which conditions hold.
#[derive(Clone, Debug, Default)]
pub struct Consistency {
    /// Violations of each, from 3.3.2.1.
    violations: [u64; CONDITIONS],
    /// Rows that belong to no warehouse, district, customer or order of this scale, and indexes
    /// that do not agree with their tables.
    strays: u64,
    /// The first few of all these, for people.
    pub problems: Vec<String>,
    /// Rows read.
    pub rows: u64,
    /// What the run's own count of what was acknowledged is compared with.
    pub totals: Totals,
}

/// What only grows: one by each New-Order, by the amount of each Payment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Order numbers given, of all districts.
    pub orders: u64,
    /// Payments of all warehouses, cents.
    pub paid: i64,
}

const CONDITIONS: usize = 12;
const PROBLEMS_MAX: usize = 10;
/// More orders than this in a district would be a damaged row, and not fit into memory here.
const ORDERS_MAX: u32 = 100_000_000;

impl Consistency {
    /// Whether all twelve hold, and nothing strays.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.strays == 0 && self.violations == [0; CONDITIONS]
    }

    /// Whether condition 3.3.2.`number` holds.
    #[must_use]
    pub fn condition_holds(&self, number: usize) -> bool {
        self.violations[number - 1] == 0
    }

    /// Names of the conditions, and whether they hold.
    pub fn conditions(&self) -> impl Iterator<Item = (String, bool)> + '_ {
        self.violations.iter().zip(1..).map(|(&count, n)| (format!("3.3.2.{n}"), count == 0))
    }

    fn require(&mut self, number: usize, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violations[number - 1] += 1;
            self.problem(|| format!("condition 3.3.2.{number}: {}", what()));
        }
    }

    fn stray(&mut self, what: impl FnOnce() -> String) {
        self.strays += 1;
        self.problem(what);
    }

    fn problem(&mut self, what: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(what());
        }
    }
}

impl Serialize for Consistency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.conditions())
    }
}

/// What is known of an order.
#[derive(Clone, Default)]
struct SeenOrder {
    /// Its row was met.
    there: bool,
    /// Its row of NEW-ORDER was met.
    is_new: bool,
    carried: bool,
    lines_said: u8,
    lines: u32,
    lines_delivered: u32,
    c: u16,
    /// Of its delivered lines.
    amount: i64,
}

#[derive(Clone, Default)]
struct SeenCustomer {
    balance: i64,
    ytd_payment: i64,
    paid: i64,
    delivered: i64,
}

#[derive(Clone, Default)]
struct SeenDistrict {
    next_o: u32,
    ytd: i64,
    paid: i64,
    order_count: u64,
    order_max: u32,
    new_count: u64,
    new_min: u32,
    new_max: u32,
    line_count: u64,
    lines_said: u64,
    deliveries: u64,
    /// By number, from 0; those given by the district.
    orders: Vec<SeenOrder>,
    /// By number, from 1.
    customers: Vec<SeenCustomer>,
}

#[derive(Clone, Default)]
struct SeenWarehouse {
    ytd: i64,
    paid: i64,
    districts_ytd: i64,
}

struct SeenState {
    scale: Scale,
    warehouses: Vec<SeenWarehouse>,
    districts: Vec<SeenDistrict>,
    found: Consistency,
}

/// Reads the database and says which conditions hold. Memory: about 24 bytes for each order and 32
/// for each customer.
///
/// # Errors
/// When the database cannot be read.
pub fn check<B: Backend>(backend: &B, scale: Scale) -> Result<Consistency> {
    let mut seen = SeenState {
        scale,
        warehouses: vec![SeenWarehouse::default(); scale.warehouses.into()],
        districts: vec![SeenDistrict::default(); scale.districts() as usize],
        found: Consistency::default(),
    };
    seen.places(backend)?;
    seen.orders(backend)?;
    backend.visit(&mut |line| seen.order_line(line))?;
    seen.people(backend)?;
    for problem in backend.index_problems()? {
        seen.found.stray(|| problem);
    }
    let mut found = std::mem::take(&mut seen.found);
    seen.judge(&mut found);
    Ok(found)
}

/// What only grows, read without the rest.
///
/// # Errors
/// When the database cannot be read.
pub fn totals<B: Backend>(backend: &B) -> Result<Totals> {
    let mut totals = Totals::default();
    backend.visit(&mut |row: &District| {
        totals.orders += u64::from(row.front.next_o);
        Ok(())
    })?;
    backend.visit(&mut |row: &Warehouse| {
        totals.paid += row.front.ytd;
        Ok(())
    })?;
    Ok(totals)
}

impl SeenState {
    fn warehouse(&mut self, w: u16) -> Option<&mut SeenWarehouse> {
        self.warehouses.get_mut(usize::from(w).checked_sub(1)?)
    }

    fn district(&mut self, w: u16, d: u8) -> Option<&mut SeenDistrict> {
        let w = usize::from(w).checked_sub(1)?;
        let d = usize::from(d).checked_sub(1)?;
        let within = d < usize::from(DISTRICTS);
        self.districts.get_mut(w * usize::from(DISTRICTS) + d).filter(|_| within)
    }

    fn order(&mut self, w: u16, d: u8, o: u32) -> Option<&mut SeenOrder> {
        self.district(w, d)?.orders.get_mut(o as usize)
    }

    fn customer(&mut self, w: u16, d: u8, c: u16) -> Option<&mut SeenCustomer> {
        self.district(w, d)?.customers.get_mut(usize::from(c).checked_sub(1)?)
    }

    /// WAREHOUSE and DISTRICT.
    fn places<B: Backend>(&mut self, backend: &B) -> Result<()> {
        backend.visit(&mut |row: &Warehouse| {
            self.found.rows += 1;
            self.found.totals.paid += row.front.ytd;
            match self.warehouse(row.w) {
                Some(seen) => seen.ytd = row.front.ytd,
                None => self.found.stray(|| format!("there is a warehouse {}", row.w)),
            }
            Ok(())
        })?;
        backend.visit(&mut |row: &District| {
            let (w, d, next_o) = (row.w, row.d, row.front.next_o);
            ensure!(next_o <= ORDERS_MAX, "district {w}-{d} has given {next_o} order numbers");
            self.found.rows += 1;
            self.found.totals.orders += u64::from(next_o);
            let customers = usize::from(self.scale.customers);
            match self.district(w, d) {
                Some(seen) => {
                    seen.next_o = next_o;
                    seen.ytd = row.front.ytd;
                    seen.orders = vec![SeenOrder::default(); next_o as usize];
                    seen.customers = vec![SeenCustomer::default(); customers];
                    if let Some(warehouse) = self.warehouse(w) {
                        warehouse.districts_ytd += row.front.ytd;
                    }
                }
                None => self.found.stray(|| format!("there is a district {w}-{d}")),
            }
            Ok(())
        })
    }

    /// ORDER and NEW-ORDER.
    fn orders<B: Backend>(&mut self, backend: &B) -> Result<()> {
        backend.visit(&mut |row: &Order| {
            let (w, d, o) = (row.w, row.d, row.o);
            self.found.rows += 1;
            if let Some(district) = self.district(w, d) {
                district.order_count += 1;
                district.order_max = district.order_max.max(o);
                district.lines_said += u64::from(row.front.lines);
            }
            match self.order(w, d, o) {
                Some(seen) => {
                    seen.there = true;
                    seen.carried = row.front.carrier != 0;
                    seen.lines_said = row.front.lines;
                    seen.c = row.front.c;
                }
                None => self.found.stray(|| format!("order {w}-{d}-{o} was never entered")),
            }
            Ok(())
        })?;
        backend.visit(&mut |row: &NewOrderRow| {
            let (w, d, o) = (row.w, row.d, row.o);
            self.found.rows += 1;
            if let Some(district) = self.district(w, d) {
                let first = district.new_count == 0;
                district.new_count += 1;
                district.new_min = if first { o } else { district.new_min.min(o) };
                district.new_max = district.new_max.max(o);
            }
            match self.order(w, d, o) {
                Some(seen) => seen.is_new = true,
                None => self.found.stray(|| format!("new order {w}-{d}-{o} was never entered")),
            }
            Ok(())
        })
    }

    fn order_line(&mut self, row: &OrderLine) -> Result<()> {
        let (w, d, o) = (row.w, row.d, row.o);
        self.found.rows += 1;
        let delivered = row.front.delivery_date != 0;
        if let Some(district) = self.district(w, d) {
            district.line_count += 1;
        }
        match self.order(w, d, o) {
            Some(seen) => {
                seen.lines += 1;
                seen.lines_delivered += u32::from(delivered);
                seen.amount += if delivered { i64::from(row.front.amount) } else { 0 };
            }
            None => self.found.stray(|| format!("a line of order {w}-{d}-{o}, never entered")),
        }
        Ok(())
    }

    /// CUSTOMER and HISTORY.
    fn people<B: Backend>(&mut self, backend: &B) -> Result<()> {
        backend.visit(&mut |row: &Customer| {
            let (w, d, c) = (row.w, row.d, row.c);
            self.found.rows += 1;
            if let Some(district) = self.district(w, d) {
                district.deliveries += u64::from(row.front.delivery_count);
            }
            match self.customer(w, d, c) {
                Some(seen) => {
                    seen.balance = row.front.balance;
                    seen.ytd_payment = row.front.ytd_payment;
                }
                None => self.found.stray(|| format!("there is a customer {w}-{d}-{c}")),
            }
            Ok(())
        })?;
        backend.visit(&mut |row: &History| {
            let (front, amount) = (&row.front, i64::from(row.front.amount));
            self.found.rows += 1;
            let mut place = self.district(front.w, front.d).map(|seen| seen.paid += amount);
            place = place.and(self.warehouse(front.w).map(|seen| seen.paid += amount));
            let payer = self.customer(front.c_w, front.c_d, front.c);
            if place.and(payer.map(|seen| seen.paid += amount)).is_none() {
                self.found.stray(|| format!("a payment without a customer: {front:?}"));
            }
            Ok(())
        })
    }

    fn judge(&mut self, found: &mut Consistency) {
        for (seen, w) in self.warehouses.iter().zip(1..) {
            let SeenWarehouse { ytd, paid, districts_ytd } = *seen;
            found.require(1, ytd == districts_ytd, || {
                format!("warehouse {w} was paid {ytd} cents, its districts {districts_ytd}")
            });
            found.require(8, ytd == paid, || {
                format!("warehouse {w} was paid {ytd} cents, the history says {paid}")
            });
        }
        for (at, district) in self.districts.iter_mut().enumerate() {
            let (w, d) = (at / usize::from(DISTRICTS) + 1, at % usize::from(DISTRICTS) + 1);
            let name = format!("district {w}-{d}");
            judge_district(district, &name, self.scale, found);
            judge_orders(district, &name, found);
            judge_customers(district, &name, found);
        }
    }
}

fn judge_district(seen: &SeenDistrict, name: &str, scale: Scale, found: &mut Consistency) {
    let SeenDistrict { next_o, order_max, new_max, new_min, new_count, .. } = *seen;
    let newest = new_count == 0 || new_max == order_max;
    found.require(2, next_o == order_max + 1 && newest, || {
        format!("{name}: next order {next_o}, last order {order_max}, last new order {new_max}")
    });
    let dense = new_count == 0 || u64::from(new_max - new_min) + 1 == new_count;
    found.require(3, dense, || {
        format!("{name}: {new_count} new orders from {new_min} to {new_max}")
    });
    found.require(4, seen.lines_said == seen.line_count, || {
        format!("{name}: orders speak of {} lines, there are {}", seen.lines_said, seen.line_count)
    });
    found.require(9, seen.ytd == seen.paid, || {
        format!("{name} was paid {} cents, the history says {}", seen.ytd, seen.paid)
    });
    // The clause says 2,100, the orders delivered when loaded; each delivery adds one.
    let delivered = u64::from(scale.delivered_orders()) + seen.deliveries;
    let old = seen.order_count.checked_sub(new_count);
    found.require(11, old == Some(delivered), || {
        let orders = seen.order_count;
        format!("{name}: {orders} orders, {new_count} of them new, but {delivered} delivered")
    });
}

fn judge_orders(district: &mut SeenDistrict, name: &str, found: &mut Consistency) {
    for (o, seen) in district.orders.iter().enumerate() {
        found.require(5, seen.is_new == (seen.there && !seen.carried), || {
            let SeenOrder { there, carried, is_new, .. } = *seen;
            format!("{name}, order {o}: there {there}, delivered {carried}, new {is_new}")
        });
        found.require(6, u32::from(seen.lines_said) == seen.lines, || {
            format!("{name}, order {o}: {} lines instead of {}", seen.lines, seen.lines_said)
        });
        let delivered = if seen.carried { seen.lines } else { 0 };
        found.require(7, seen.lines_delivered == delivered, || {
            let (carried, lines) = (seen.carried, seen.lines_delivered);
            format!("{name}, order {o}: delivered {carried}, {lines} of its lines delivered")
        });
        let customer = usize::from(seen.c).checked_sub(1);
        match customer.and_then(|c| district.customers.get_mut(c)) {
            Some(customer) => customer.delivered += seen.amount,
            None if seen.there => {
                found.stray(|| format!("{name}, order {o} belongs to no customer"))
            }
            None => {}
        }
    }
}

fn judge_customers(district: &SeenDistrict, name: &str, found: &mut Consistency) {
    for (seen, c) in district.customers.iter().zip(1..) {
        let SeenCustomer { balance, ytd_payment, paid, delivered } = *seen;
        found.require(10, balance == delivered - paid, || {
            format!("{name}, customer {c}: balance {balance}, bought {delivered}, paid {paid}")
        });
        found.require(12, balance + ytd_payment == delivered, || {
            format!(
                "{name}, customer {c}: balance {balance}, has paid {ytd_payment}, \
                     bought {delivered}"
            )
        });
    }
}
