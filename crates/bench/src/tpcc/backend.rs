//! The seam between TPC-C and whatever carries it out: five business transactions with the
//! parameters of their clauses, a population to load, rows to read back.
use super::input::{Delivery, NewOrder, OrderStatus, Payment, Request, StockLevel};
use super::population::Population;
use super::rows::Row;
use super::scale::Scale;
use super::store::Isolation;
use anyhow::Result;
use serde::Serialize;

/// A database that TPC-C can run on.
pub trait Backend: Sync {
    /// What a commit gives: it can be waited for.
    type Ticket: Copy + Send;

    /// One connection to it.
    type Terminal<'a>: Terminal<Ticket = Self::Ticket>
    where
        Self: 'a;

    /// What its transactions see of each other.
    fn isolation(&self) -> Isolation;

    /// What was loaded whole, if anything was.
    ///
    /// # Errors
    /// Whatever the database reports.
    fn loaded(&self) -> Result<Option<Loaded>>;

    /// Removes every table of TPC-C, whole or partly loaded.
    ///
    /// # Errors
    /// Whatever the database reports.
    fn drop_all(&self) -> Result<()>;

    /// Makes all tables and fills them; calls `progress` now and then with the rows loaded so far,
    /// and ends early, without an error, when it says false. Only a population loaded whole is
    /// [`Backend::loaded`] afterwards.
    ///
    /// # Errors
    /// Whatever the database reports.
    fn load(&self, population: &Population, progress: &mut dyn FnMut(u64) -> bool) -> Result<()>;

    /// Reads the tables, those first that are used most, until `go_on` says false of the rows read
    /// so far.
    ///
    /// # Errors
    /// Whatever the database reports.
    fn warm(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<()>;

    /// A terminal; `number` is another for each of those in use at one time, from 0.
    ///
    /// # Errors
    /// Whatever the database reports.
    fn terminal(&self, number: u16) -> Result<Self::Terminal<'_>>;

    /// Returns when this commit is as durable as was asked for.
    ///
    /// # Errors
    /// Whatever the database reports: then it is unknown whether it is.
    fn wait(&self, ticket: Self::Ticket) -> Result<()>;

    /// Whether this commit is as durable as was asked for. Commits become so in their order.
    fn is_durable(&self, ticket: Self::Ticket) -> bool;

    /// What its indexes say otherwise than its tables, as far as they are its own affair.
    ///
    /// # Errors
    /// Whatever the database reports.
    fn index_problems(&self) -> Result<Vec<String>>;

    /// Reads all rows of a table, in any order, as they are committed.
    ///
    /// # Errors
    /// Whatever the database reports, a row that cannot be read, or what `visit` says.
    fn visit<R: Row>(&self, visit: &mut dyn FnMut(&R) -> Result<()>) -> Result<()>;
}

/// What a backend remembers of the population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its cardinalities.
    pub scale: Scale,
    /// Its constant C for last names (clause 2.1.6.1).
    pub last_name_constant: u32,
}

/// Carries out transactions, one after the other.
pub trait Terminal {
    /// See [`Backend::Ticket`].
    type Ticket;

    /// Clause 2.4.2.
    ///
    /// # Errors
    /// Whatever the database reports, conflicts excepted: those are outcomes.
    fn new_order(&mut self, input: &NewOrder) -> Result<Outcome<NewOrderDone, Self::Ticket>>;

    /// Clause 2.5.2.
    ///
    /// # Errors
    /// As [`Terminal::new_order`].
    fn payment(&mut self, input: &Payment) -> Result<Outcome<PaymentDone, Self::Ticket>>;

    /// Clause 2.6.2.
    ///
    /// # Errors
    /// As [`Terminal::new_order`].
    fn order_status(
        &mut self,
        input: &OrderStatus,
    ) -> Result<Outcome<OrderStatusDone, Self::Ticket>>;

    /// Clause 2.7.4.
    ///
    /// # Errors
    /// As [`Terminal::new_order`].
    fn delivery(&mut self, input: &Delivery) -> Result<Outcome<DeliveryDone, Self::Ticket>>;

    /// Clause 2.8.2.
    ///
    /// # Errors
    /// As [`Terminal::new_order`].
    fn stock_level(&mut self, input: &StockLevel) -> Result<Outcome<StockLevelDone, Self::Ticket>>;

    /// Carries out any of the five.
    ///
    /// # Errors
    /// As [`Terminal::new_order`].
    fn carry_out(&mut self, request: &Request) -> Result<Outcome<Done, Self::Ticket>> {
        Ok(match request {
            Request::NewOrder(input) => self.new_order(input)?.map(Done::NewOrder),
            Request::Payment(input) => self.payment(input)?.map(Done::Payment),
            Request::OrderStatus(input) => self.order_status(input)?.map(Done::OrderStatus),
            Request::Delivery(input) => self.delivery(input)?.map(Done::Delivery),
            Request::StockLevel(input) => self.stock_level(input)?.map(Done::StockLevel),
        })
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<D, T> {
    /// Others see it; [`Backend::wait`] says when it is durable.
    Committed(D, T),
    /// The user's mistake of clause 2.4.1.4: nothing was changed.
    RolledBack,
    /// Nothing was changed, and the same may well work now.
    Retry(Why),
}

impl<D, T> Outcome<D, T> {
    fn map<E>(self, f: impl FnOnce(D) -> E) -> Outcome<E, T> {
        match self {
            Outcome::Committed(done, ticket) => Outcome::Committed(f(done), ticket),
            Outcome::RolledBack => Outcome::RolledBack,
            Outcome::Retry(why) => Outcome::Retry(why),
        }
    }
}

/// Why a transaction must be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It was the victim of a deadlock.
    Deadlock,
    /// It waited too long for a lock.
    LockTimeout,
    /// A row that it wanted to change has changed since its snapshot.
    WriteConflict,
    /// Something else that passes.
    Other,
}

impl Why {
    /// All of them.
    pub const ALL: [Why; 4] = [Why::Deadlock, Why::LockTimeout, Why::WriteConflict, Why::Other];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Why::Deadlock => "deadlock",
            Why::LockTimeout => "lock_timeout",
            Why::WriteConflict => "write_conflict",
            Why::Other => "other",
        }
    }
}

/// What the terminal shows after a transaction, as far as it can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Clause 2.4.3.3.
    NewOrder(NewOrderDone),
    /// Clause 2.5.3.3.
    Payment(PaymentDone),
    /// Clause 2.6.3.3.
    OrderStatus(OrderStatusDone),
    /// Clause 2.7.2.
    Delivery(DeliveryDone),
    /// Clause 2.8.3.3.
    StockLevel(StockLevelDone),
}

/// Clause 2.4.3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrderDone {
    /// The number that the order was given.
    pub order: u32,
    /// What it costs, cents.
    pub total: i64,
    /// Lines whose item and stock are both `ORIGINAL`.
    pub brands: u8,
}

/// Clause 2.5.3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentDone {
    /// The payer.
    pub customer: u16,
    /// `C_BALANCE` after it, cents.
    pub balance: i64,
}

/// Clause 2.6.3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStatusDone {
    /// Whose order.
    pub customer: u16,
    /// The customer's last one.
    pub order: u32,
    /// Its lines, as they were read.
    pub lines: u8,
    /// What they cost, cents.
    pub amount: i64,
}

/// Clause 2.7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryDone {
    /// Districts whose oldest order was delivered.
    pub delivered: u8,
    /// Districts without one (clause 2.7.4.2).
    pub skipped: u8,
}

/// Clause 2.8.3.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockLevelDone {
    /// Items of which there are fewer than the threshold.
    pub low_stock: u32,
}
