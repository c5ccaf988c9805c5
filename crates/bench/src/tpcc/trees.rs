//! The nine tables and two secondary indexes as trees of a store, and what all transactions do with
//! them.
use super::codec::Front;
use super::keys;
use super::rows::Relation;
use super::store::{Stop, Txn};
use crate::target::Table;
use anyhow::{Result, anyhow};

/// The trees of the tables, and of the two indexes beside their primary keys.
pub(super) struct Trees<T> {
    pub(super) warehouse: T,
    pub(super) district: T,
    pub(super) customer: T,
    pub(super) history: T,
    pub(super) new_order: T,
    pub(super) order: T,
    pub(super) order_line: T,
    pub(super) item: T,
    pub(super) stock: T,
    /// Warehouse, district, last name, first name, number: no values.
    pub(super) customers_by_name: T,
    /// Warehouse, district, customer, order: no values.
    pub(super) orders_by_customer: T,
}

pub(super) const CUSTOMERS_BY_NAME: &str = "tpcc-customers-by-name";
pub(super) const ORDERS_BY_CUSTOMER: &str = "tpcc-orders-by-customer";
/// The name of a table's tree.
pub(super) fn tree_name(relation: Relation) -> &'static str {
    match relation {
        Relation::Warehouse => "tpcc-warehouse",
        Relation::District => "tpcc-district",
        Relation::Customer => "tpcc-customer",
        Relation::History => "tpcc-history",
        Relation::NewOrder => "tpcc-new-order",
        Relation::Order => "tpcc-order",
        Relation::OrderLine => "tpcc-order-line",
        Relation::Item => "tpcc-item",
        Relation::Stock => "tpcc-stock",
    }
}

impl<T: Table> Trees<T> {
    /// All of them, each got by its name.
    pub(super) fn each(mut get: impl FnMut(&'static str) -> Result<T>) -> Result<Self> {
        let mut of = |relation| get(tree_name(relation));
        Ok(Trees {
            warehouse: of(Relation::Warehouse)?,
            district: of(Relation::District)?,
            customer: of(Relation::Customer)?,
            history: of(Relation::History)?,
            new_order: of(Relation::NewOrder)?,
            order: of(Relation::Order)?,
            order_line: of(Relation::OrderLine)?,
            item: of(Relation::Item)?,
            stock: of(Relation::Stock)?,
            customers_by_name: get(CUSTOMERS_BY_NAME)?,
            orders_by_customer: get(ORDERS_BY_CUSTOMER)?,
        })
    }
}

/// The hidden row numbers of one terminal's payments.
pub(super) struct HistoryCount {
    pub(super) counter: u16,
    pub(super) next: u64,
}

impl HistoryCount {
    /// A key that was never used.
    pub(super) fn next_key(&mut self) -> [u8; 8] {
        self.next += 1;
        keys::history(self.counter, self.next - 1)
    }
}

/// Memory that transactions use again and again.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) other: Vec<u8>,
    pub(super) customers: Vec<u16>,
    pub(super) items: Vec<u32>,
}

/// Changes a row: `change` gets its numbers, and a copy of its whole value whose front they will be
/// written over. Returns the new numbers.
pub(super) fn patch<T, X: Txn<T>, F: Front>(
    txn: &mut X,
    tree: &T,
    key: &[u8],
    mut change: impl FnMut(&mut F, &mut Vec<u8>),
) -> Result<Option<F>, Stop> {
    let mut made = None;
    txn.update(tree, key, &mut |old, new| {
        made = F::read(old).map(|mut front| {
            new.extend_from_slice(old);
            change(&mut front, new);
            front.write(new);
            front
        });
        made.is_some()
    })?;
    Ok(made)
}

/// A row that must be there is not, or is not of its table: the store has lost or damaged it.
pub(super) fn missing(what: std::fmt::Arguments<'_>) -> Stop {
    Stop::Failed(anyhow!("{what} is missing or damaged"))
}
