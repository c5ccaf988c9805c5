//! Fills the trees from a population.
use super::keys;
use super::population::Population;
use super::rows::{Customer, Row};
use super::scale::{DISTRICTS, Scale};
use super::trees::tree_name;
use crate::target::Table;
use anyhow::{Context, Result, ensure};

/// Customers' names of all districts, in key order: a district's at a time are in memory.
pub(super) fn names_in_order(population: &Population) -> impl Iterator<Item = Vec<u8>> + '_ {
    sorted_by_district(population.scale(), move |w, d| {
        let name = |customer: Customer| {
            let mut key = Vec::new();
            keys::customer_name(w, d, &customer.last, &customer.first, customer.c, &mut key);
            key
        };
        population.customers_of(w, d).map(name).collect()
    })
}

/// Orders of all customers, in key order.
pub(super) fn orders_in_order(population: &Population) -> impl Iterator<Item = Vec<u8>> + '_ {
    sorted_by_district(population.scale(), move |w, d| {
        let orders = population.orders_of(w, d);
        orders.map(|order| keys::customer_order(w, d, order.front.c, order.o).to_vec()).collect()
    })
}

fn sorted_by_district<'p>(
    scale: Scale,
    keys_of: impl Fn(u16, u8) -> Vec<Vec<u8>> + Copy + 'p,
) -> impl Iterator<Item = Vec<u8>> + 'p {
    (1..=scale.warehouses).flat_map(move |w| {
        (1..=DISTRICTS).flat_map(move |d| {
            let mut keys = keys_of(w, d);
            keys.sort_unstable();
            keys
        })
    })
}

/// Rows between two calls of the progress.
pub(super) const ROWS_PER_LOOK: u64 = 4096;

pub(super) struct Load<'a> {
    /// Rows of the trees that are whole.
    pub(super) before: u64,
    pub(super) progress: &'a mut dyn FnMut(u64) -> bool,
    pub(super) stopped: bool,
}

impl Load<'_> {
    pub(super) fn rows<T: Table, R: Row>(
        &mut self,
        tree: &T,
        rows: impl Iterator<Item = R>,
    ) -> Result<()> {
        let name = tree_name(R::RELATION);
        let entries = rows.map(|row| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            row.key(&mut key);
            row.value(&mut value);
            (key, value)
        });
        self.entries(tree, entries).with_context(|| format!("loading '{name}'"))
    }

    pub(super) fn keys<T: Table>(
        &mut self,
        tree: &T,
        keys: impl Iterator<Item = Vec<u8>>,
    ) -> Result<()> {
        self.entries(tree, keys.map(|key| (key, Vec::new()))).context("loading an index")
    }

    fn entries<T: Table>(
        &mut self,
        tree: &T,
        mut entries: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        let mut given = 0;
        let mut watched = std::iter::from_fn(|| {
            if given % ROWS_PER_LOOK == 0 && !self.stopped {
                self.stopped = !(self.progress)(self.before + given);
            }
            let next = if self.stopped { None } else { entries.next() };
            given += u64::from(next.is_some());
            next
        });
        let loaded = tree.bulk_load(&mut watched)?;
        ensure!(loaded == given, "{loaded} of {given} rows were loaded");
        self.before += given;
        Ok(())
    }
}
