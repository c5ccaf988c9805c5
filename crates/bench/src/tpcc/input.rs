//! What the terminals ask for: the input of the five transactions (clauses 2.4.1 to 2.8.1).
use super::deck::{Deck, Kind};
use super::random::{Random, last_name};
use super::scale::{Constants, DISTRICTS, LINES_MAX, LINES_MIN, Scale};
use super::text::Text;

/// One line of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// `OL_I_ID`. In one order of a hundred the last one is no item's number (clause 2.4.1.5).
    pub item: u32,
    /// `OL_SUPPLY_W_ID`.
    pub supply_w: u16,
    /// `OL_QUANTITY`.
    pub quantity: u8,
}

/// Input of the New-Order transaction (clause 2.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// Warehouse, district and customer.
    pub w: u16,
    /// See `w`.
    pub d: u8,
    /// See `w`.
    pub c: u16,
    /// Now.
    pub entry_date: u32,
    lines: [Line; LINES_MAX as usize],
    count: u8,
}

impl NewOrder {
    /// An order of these lines, at most fifteen.
    #[must_use]
    pub fn new(w: u16, d: u8, c: u16, entry_date: u32, asked: &[Line]) -> Self {
        let mut lines = [Line::default(); LINES_MAX as usize];
        lines[..asked.len()].copy_from_slice(asked);
        NewOrder { w, d, c, entry_date, lines, count: asked.len() as u8 }
    }

    /// Five to fifteen of them.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines[..usize::from(self.count)]
    }

    /// `O_ALL_LOCAL`: whether the home warehouse supplies everything.
    #[must_use]
    pub fn all_local(&self) -> bool {
        self.lines().iter().all(|line| line.supply_w == self.w)
    }
}

/// How a customer is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomerBy {
    /// By number.
    Number(u16),
    /// By last name: of those that have it the middle one by first name (clause 2.5.2.2).
    LastName(Text<16>),
}

/// Input of the Payment transaction (clause 2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment {
    /// Where it is paid.
    pub w: u16,
    /// See `w`.
    pub d: u8,
    /// Where the customer belongs.
    pub customer_w: u16,
    /// See `customer_w`.
    pub customer_d: u8,
    /// The payer.
    pub customer: CustomerBy,
    /// Cents.
    pub amount: u32,
    /// Now.
    pub date: u32,
}

/// Input of the Order-Status transaction (clause 2.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    /// Where the customer belongs.
    pub w: u16,
    /// See `w`.
    pub d: u8,
    /// Whose last order.
    pub customer: CustomerBy,
}

/// Input of the Delivery transaction (clause 2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Whose oldest undelivered orders, one of each district.
    pub w: u16,
    /// `O_CARRIER_ID`.
    pub carrier: u8,
    /// `OL_DELIVERY_D`: now.
    pub date: u32,
}

/// Input of the Stock-Level transaction (clause 2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockLevel {
    /// Whose last twenty orders.
    pub w: u16,
    /// See `w`.
    pub d: u8,
    /// Items of which there are fewer are counted.
    pub threshold: u8,
}

/// One business transaction to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Clause 2.4.
    NewOrder(NewOrder),
    /// Clause 2.5.
    Payment(Payment),
    /// Clause 2.6.
    OrderStatus(OrderStatus),
    /// Clause 2.7.
    Delivery(Delivery),
    /// Clause 2.8.
    StockLevel(StockLevel),
}

impl Request {
    /// Which of the five it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Request::NewOrder(_) => Kind::NewOrder,
            Request::Payment(_) => Kind::Payment,
            Request::OrderStatus(_) => Kind::OrderStatus,
            Request::Delivery(_) => Kind::Delivery,
            Request::StockLevel(_) => Kind::StockLevel,
        }
    }
}

/// Draws what terminals ask for. One thread plays all of them in turn: each request comes from a
/// terminal, and thereby from a warehouse and a district, drawn anew.
pub(crate) struct Inputs {
    scale: Scale,
    constants: Constants,
    random: Random,
    deck: Deck,
}

impl Inputs {
    pub(crate) fn new(scale: Scale, constants: Constants, seed: u64) -> Self {
        Inputs { scale, constants, random: Random::new(seed), deck: Deck::new() }
    }

    /// The next request; `now` is the date, in seconds since 1970.
    pub(crate) fn draw(&mut self, now: u32) -> Request {
        let kind = self.deck.deal(&mut self.random);
        let w = self.random.within(1, self.scale.warehouses.into()) as u16;
        let d = self.district();
        match kind {
            Kind::NewOrder => Request::NewOrder(self.new_order(w, d, now)),
            Kind::Payment => Request::Payment(self.payment(w, d, now)),
            Kind::OrderStatus => {
                Request::OrderStatus(OrderStatus { w, d, customer: self.customer() })
            }
            Kind::Delivery => {
                let carrier = self.random.within(1, 10) as u8;
                Request::Delivery(Delivery { w, carrier, date: now })
            }
            Kind::StockLevel => {
                let threshold = self.random.within(10, 20) as u8;
                Request::StockLevel(StockLevel { w, d, threshold })
            }
        }
    }

    fn district(&mut self) -> u8 {
        self.random.within(1, DISTRICTS.into()) as u8
    }

    /// Clause 2.4.1.
    fn new_order(&mut self, w: u16, d: u8, now: u32) -> NewOrder {
        let c = self.constants.draw_customer(&self.scale, &mut self.random);
        let count = self.random.within(LINES_MIN.into(), LINES_MAX.into()) as usize;
        let unused = self.random.percent(1);
        let mut lines = [Line::default(); LINES_MAX as usize];
        for line in &mut lines[..count] {
            let item = self.constants.draw_item(&self.scale, &mut self.random);
            let remote = self.scale.warehouses > 1 && self.random.percent(1);
            let supply_w = if remote { self.other_warehouse(w) } else { w };
            *line = Line { item, supply_w, quantity: self.random.within(1, 10) as u8 };
        }
        if unused {
            lines[count - 1].item = self.scale.items + 1;
        }
        NewOrder::new(w, d, c, now, &lines[..count])
    }

    /// Clause 2.5.1.
    fn payment(&mut self, w: u16, d: u8, now: u32) -> Payment {
        let home = self.scale.warehouses == 1 || self.random.percent(85);
        let (customer_w, customer_d) =
            if home { (w, d) } else { (self.other_warehouse(w), self.district()) };
        let customer = self.customer();
        let amount = self.random.within(100, 500_000);
        Payment { w, d, customer_w, customer_d, customer, amount, date: now }
    }

    /// Clauses 2.5.1.2 and 2.6.1.2: six of ten by last name.
    fn customer(&mut self) -> CustomerBy {
        if self.random.percent(60) {
            let number = self.constants.draw_last_name(&self.scale, &mut self.random);
            CustomerBy::LastName(last_name(number))
        } else {
            CustomerBy::Number(self.constants.draw_customer(&self.scale, &mut self.random))
        }
    }

    fn other_warehouse(&mut self, home: u16) -> u16 {
        let drawn = self.random.within(1, u32::from(self.scale.warehouses) - 1) as u16;
        drawn + u16::from(drawn >= home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(warehouses: u64, count: usize) -> Vec<Request> {
        let scale = Scale::new(warehouses).unwrap();
        let constants = Constants::for_load(&mut Random::new(5));
        let mut inputs = Inputs::new(scale, constants, 9);
        (0..count).map(|_| inputs.draw(123)).collect()
    }

    /// How many of a hundred, and that it is near enough.
    fn about(expected: f64, hits: usize, of: usize) {
        let percent = 100.0 * hits as f64 / of as f64;
        let tolerance = 1.0_f64.min(0.4 * expected);
        assert!((percent - expected).abs() <= tolerance, "{percent} % instead of {expected} %");
    }

    #[test]
    fn new_orders_as_the_clause_draws_them() {
        let all = draw(4, 100_000);
        let orders: Vec<NewOrder> = all
            .iter()
            .filter_map(|r| if let Request::NewOrder(order) = r { Some(*order) } else { None })
            .collect();
        about(43.478, orders.len(), all.len());
        let lines: Vec<(u16, Line)> =
            orders.iter().flat_map(|o| o.lines().iter().map(|l| (o.w, *l))).collect();
        about(
            1.0,
            orders.iter().filter(|o| o.lines().iter().any(|l| l.item > 100_000)).count(),
            orders.len(),
        );
        about(1.0, lines.iter().filter(|(w, l)| l.supply_w != *w).count(), lines.len());
        about(100.0, 10 * orders.len(), lines.len());
        assert!(lines.iter().all(|(_, l)| (1..=10).contains(&l.quantity) && l.item > 0));
        assert!(lines.iter().all(|(_, l)| (1..=4).contains(&l.supply_w)));
        assert!(orders.iter().all(|o| (1..=3000).contains(&o.c) && (1..=10).contains(&o.d)));
        let counts: std::collections::BTreeSet<_> = orders.iter().map(|o| o.count).collect();
        assert_eq!(counts, (5..=15).collect());
        assert!(orders.iter().any(NewOrder::all_local) && !orders.iter().all(NewOrder::all_local));
    }

    #[test]
    fn payments_as_the_clause_draws_them() {
        let all = draw(4, 100_000);
        let payments: Vec<Payment> = all
            .iter()
            .filter_map(|r| if let Request::Payment(pay) = r { Some(*pay) } else { None })
            .collect();
        let by_name = |by: &CustomerBy| matches!(by, CustomerBy::LastName(_));
        about(60.0, payments.iter().filter(|p| by_name(&p.customer)).count(), payments.len());
        about(85.0, payments.iter().filter(|p| p.customer_w == p.w).count(), payments.len());
        assert!(payments.iter().all(|p| (100..=500_000).contains(&p.amount)));
        assert!(payments.iter().all(|p| p.customer_w != p.w || p.customer_d == p.d));
    }

    #[test]
    fn one_warehouse_has_no_other() {
        for request in draw(1, 20_000) {
            match request {
                Request::NewOrder(order) => assert!(order.all_local()),
                Request::Payment(payment) => assert_eq!(payment.customer_w, 1),
                _ => {}
            }
        }
    }
}
