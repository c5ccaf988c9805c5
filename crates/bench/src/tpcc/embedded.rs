//! The backend for stores that are embedded: the nine tables and two secondary indexes as trees of
//! a [`Transactional`] store.
use super::backend::{
    Backend, DeliveryDone, Loaded, NewOrderDone, OrderStatusDone, Outcome, PaymentDone,
    StockLevelDone, Terminal,
};
use super::indexes;
use super::input::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use super::keys;
use super::load::{Load, ROWS_PER_LOOK, names_in_order, orders_in_order};
use super::population::Population;
use super::rows::{Relation, Row};
use super::scale::Scale;
use super::store::{Access, Isolation, Stop, Transactional, Txn};
use super::trees::{
    Buffers, CUSTOMERS_BY_NAME, HistoryCount, ORDERS_BY_CUSTOMER, Trees, tree_name,
};
use super::{delivery, new_order, payment, query};
use crate::durability::Durability;
use crate::target::{Table, Target};
use anyhow::{Context, Result, anyhow};

/// TPC-C on a store of this process.
pub struct Embedded<'s, S> {
    store: &'s S,
    durability: Durability,
    isolation: Isolation,
}

/// Holds one row, written when everything else is loaded and safe.
const LOADED: &str = "tpcc-loaded";
const LOADED_KEY: &[u8] = b"scale";

/// All of them; first those that transactions visit everywhere, last those that they mostly append
/// to.
const BY_USE: [Relation; 9] = [
    Relation::Warehouse,
    Relation::District,
    Relation::Item,
    Relation::Stock,
    Relation::Customer,
    Relation::NewOrder,
    Relation::Order,
    Relation::OrderLine,
    Relation::History,
];

/// Bytes of [`Loaded`] in the store.
const LOADED_BYTES: usize = 14;

fn loaded_bytes(loaded: &Loaded) -> [u8; LOADED_BYTES] {
    let scale = &loaded.scale;
    let mut bytes = [0; LOADED_BYTES];
    bytes[..2].copy_from_slice(&scale.warehouses.to_be_bytes());
    bytes[2..6].copy_from_slice(&scale.items.to_be_bytes());
    bytes[6..8].copy_from_slice(&scale.customers.to_be_bytes());
    bytes[8..10].copy_from_slice(&scale.new_orders.to_be_bytes());
    bytes[10..].copy_from_slice(&loaded.last_name_constant.to_be_bytes());
    bytes
}

fn loaded_of(bytes: &[u8]) -> Option<Loaded> {
    let mut parts = keys::Parts(bytes);
    let (warehouses, items) = (parts.two()?, parts.four()?);
    let scale = Scale { warehouses, items, customers: parts.two()?, new_orders: parts.two()? };
    let last_name_constant = parts.four()?;
    parts.end(Loaded { scale, last_name_constant })
}

impl<'s, S: Transactional> Embedded<'s, S> {
    /// TPC-C on this store; its commits count when they are as durable as said.
    pub fn new(store: &'s S, durability: Durability, isolation: Isolation) -> Self {
        Embedded { store, durability, isolation }
    }

    fn trees(&self) -> Result<Trees<S::Table>> {
        Trees::each(|name| self.open(name))
    }

    /// Reads from one snapshot, whatever the run's level: a check is no part of it, and locks
    /// nothing.
    fn read(&self) -> Result<S::Txn<'s>> {
        self.store.begin(Access::Read, Isolation::RepeatableRead)
    }

    fn open(&self, name: &str) -> Result<S::Table> {
        self.store.table(name)?.with_context(|| format!("there is no tree '{name}'"))
    }
}

impl<S: Transactional> Backend for Embedded<'_, S> {
    type Ticket = S::Ticket;
    type Terminal<'a>
        = EmbeddedTerminal<'a, S>
    where
        Self: 'a;

    fn isolation(&self) -> Isolation {
        self.isolation
    }

    fn loaded(&self) -> Result<Option<Loaded>> {
        let Some(tree) = self.store.table(LOADED)? else { return Ok(None) };
        let mut bytes = Vec::new();
        if !tree.get_into(LOADED_KEY, &mut bytes)? {
            return Ok(None);
        }
        let loaded = loaded_of(&bytes);
        Ok(Some(loaded.with_context(|| format!("'{LOADED}' holds {} strange bytes", bytes.len()))?))
    }

    fn drop_all(&self) -> Result<()> {
        // First what says that the others are whole.
        let names = [LOADED, CUSTOMERS_BY_NAME, ORDERS_BY_CUSTOMER];
        for name in names.into_iter().chain(BY_USE.map(tree_name)) {
            if self.store.table(name)?.is_some() {
                self.store.drop_table(name)?;
            }
        }
        Ok(())
    }

    fn load(&self, population: &Population, progress: &mut dyn FnMut(u64) -> bool) -> Result<()> {
        let trees = Trees::each(|name| self.store.create_table(name))?;
        let mut load = Load { before: 0, progress, stopped: false };
        load.rows(&trees.item, population.items())?;
        load.rows(&trees.warehouse, population.warehouses())?;
        load.rows(&trees.stock, population.stock())?;
        load.rows(&trees.district, population.districts())?;
        load.rows(&trees.customer, population.customers())?;
        load.keys(&trees.customers_by_name, names_in_order(population))?;
        load.rows(&trees.history, population.history())?;
        load.rows(&trees.order, population.orders())?;
        load.keys(&trees.orders_by_customer, orders_in_order(population))?;
        load.rows(&trees.new_order, population.new_orders())?;
        load.rows(&trees.order_line, population.order_lines())?;
        if load.stopped {
            return Ok(());
        }
        self.store.checkpoint().context("writing the loaded pages")?;
        let loaded = Loaded {
            scale: population.scale(),
            last_name_constant: population.constants().last_name,
        };
        let tree = self.store.create_table(LOADED)?;
        tree.put(LOADED_KEY, &loaded_bytes(&loaded), Durability::Synced)
    }

    fn warm(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<()> {
        let mut rows = 0;
        for name in BY_USE.into_iter().map(tree_name).chain([CUSTOMERS_BY_NAME, ORDERS_BY_CUSTOMER])
        {
            let mut goes_on = true;
            self.open(name)?.scan_up(&[], &mut |_, _| {
                rows += 1;
                if rows % ROWS_PER_LOOK == 0 {
                    goes_on = go_on(rows);
                }
                goes_on
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn index_problems(&self) -> Result<Vec<String>> {
        let (trees, mut txn) = (self.trees()?, self.read()?);
        let problems = indexes::problems(&mut txn, &trees).map_err(failure)?;
        txn.rollback().map_err(failure)?;
        Ok(problems)
    }

    fn terminal(&self, number: u16) -> Result<EmbeddedTerminal<'_, S>> {
        let trees = self.trees()?;
        // The population's rows were counted by 0.
        let counter = number + 1;
        let mut txn = self.read()?;
        let mut last = Vec::new();
        let end = keys::history(counter + 1, 0);
        let found = txn.last_below(&trees.history, &end, &mut last).map_err(failure)?;
        txn.rollback().map_err(failure)?;
        let last = keys::history_parts(&last).filter(|last| found && last.0 == counter);
        Ok(EmbeddedTerminal {
            store: self.store,
            isolation: self.isolation,
            trees,
            history: HistoryCount { counter, next: last.map_or(0, |(_, count)| count + 1) },
            buffers: Buffers::default(),
        })
    }

    fn wait(&self, ticket: S::Ticket) -> Result<()> {
        self.store.wait(ticket, self.durability).context("waiting for a commit to be durable")
    }

    fn is_durable(&self, ticket: S::Ticket) -> bool {
        self.durability == Durability::Lazy || self.store.is_synced(ticket)
    }

    fn visit<R: Row>(&self, visit: &mut dyn FnMut(&R) -> Result<()>) -> Result<()> {
        let name = tree_name(R::RELATION);
        let tree = self.open(name)?;
        let mut txn = self.read()?;
        let mut ended = Ok(());
        let scanned = txn.scan(&tree, &[], &mut |key, value| {
            ended = match R::decode(key, value) {
                Some(row) => visit(&row),
                None => Err(anyhow!("'{name}' has a row at {key:02x?} that is none of its own")),
            };
            ended.is_ok()
        });
        scanned.map_err(failure)?;
        txn.rollback().map_err(failure)?;
        ended
    }
}

/// Where a conflict is not to be expected.
fn failure(stop: Stop) -> anyhow::Error {
    match stop {
        Stop::Retry(why) => anyhow!("reading was refused: {}", why.name()),
        Stop::Failed(error) => error,
    }
}

/// One terminal's connection: nothing but a store in this process and memory to be used again.
pub struct EmbeddedTerminal<'a, S: Target> {
    store: &'a S,
    isolation: Isolation,
    trees: Trees<S::Table>,
    history: HistoryCount,
    buffers: Buffers,
}

/// Carries a transaction out; `None` of its body means that the user rolls it back.
fn carry_out<'s, S: Transactional, D>(
    store: &'s S,
    (access, isolation): (Access, Isolation),
    body: impl FnOnce(&mut S::Txn<'s>) -> Result<Option<D>, Stop>,
) -> Result<Outcome<D, S::Ticket>> {
    let mut txn = store.begin(access, isolation)?;
    let ended = match body(&mut txn) {
        Ok(Some(done)) => txn.commit().map(|ticket| Outcome::Committed(done, ticket)),
        Ok(None) => txn.rollback().map(|()| Outcome::RolledBack),
        Err(Stop::Retry(why)) => txn.rollback().map(|()| Outcome::Retry(why)),
        Err(failed) => Err(failed),
    };
    match ended {
        Ok(outcome) => Ok(outcome),
        Err(Stop::Retry(why)) => Ok(Outcome::Retry(why)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

impl<S: Transactional> Terminal for EmbeddedTerminal<'_, S> {
    type Ticket = S::Ticket;

    fn new_order(&mut self, input: &NewOrder) -> Result<Outcome<NewOrderDone, S::Ticket>> {
        let (trees, buffers) = (&self.trees, &mut self.buffers);
        carry_out(self.store, (Access::Write, self.isolation), |txn| {
            new_order::run(txn, trees, buffers, input)
        })
        .context("New-Order")
    }

    fn payment(&mut self, input: &Payment) -> Result<Outcome<PaymentDone, S::Ticket>> {
        let (trees, buffers, history) = (&self.trees, &mut self.buffers, &mut self.history);
        carry_out(self.store, (Access::Write, self.isolation), |txn| {
            payment::run(txn, trees, buffers, history, input)
        })
        .context("Payment")
    }

    fn order_status(&mut self, input: &OrderStatus) -> Result<Outcome<OrderStatusDone, S::Ticket>> {
        let (trees, buffers) = (&self.trees, &mut self.buffers);
        carry_out(self.store, (Access::Read, self.isolation), |txn| {
            query::order_status(txn, trees, buffers, input)
        })
        .context("Order-Status")
    }

    fn delivery(&mut self, input: &Delivery) -> Result<Outcome<DeliveryDone, S::Ticket>> {
        let (trees, buffers) = (&self.trees, &mut self.buffers);
        carry_out(self.store, (Access::Write, self.isolation), |txn| {
            delivery::run(txn, trees, buffers, input)
        })
        .context("Delivery")
    }

    fn stock_level(&mut self, input: &StockLevel) -> Result<Outcome<StockLevelDone, S::Ticket>> {
        let (trees, buffers) = (&self.trees, &mut self.buffers);
        carry_out(self.store, (Access::Read, self.isolation), |txn| {
            query::stock_level(txn, trees, buffers, input)
        })
        .context("Stock-Level")
    }
}
