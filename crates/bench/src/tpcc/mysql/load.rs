//! Fills the tables from a population.
use super::rows::SqlRow;
use super::tables::table;
use crate::tpcc::population::Population;
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};

/// Values of one statement: servers take 65,535.
const VALUES_PER_STATEMENT: usize = 4_000;
/// Rows of one transaction.
const ROWS_PER_COMMIT: u64 = 20_000;

/// Fills all of them; false when `progress` wanted it to end.
pub(super) fn load(
    conn: &mut Conn,
    population: &Population,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<bool> {
    conn.query_drop("SET SESSION autocommit = 0")?;
    let mut filling = Filling { conn, progress, rows: 0, committed: 0, goes_on: true };
    filling.rows(population.items())?;
    filling.rows(population.warehouses())?;
    filling.rows(population.stock())?;
    filling.rows(population.districts())?;
    filling.rows(population.customers())?;
    filling.rows(population.history())?;
    filling.rows(population.orders())?;
    filling.rows(population.new_orders())?;
    filling.rows(population.order_lines())?;
    let goes_on = filling.goes_on;
    conn.query_drop("COMMIT")?;
    conn.query_drop("SET SESSION autocommit = 1")?;
    Ok(goes_on)
}

struct Filling<'a> {
    conn: &'a mut Conn,
    progress: &'a mut dyn FnMut(u64) -> bool,
    rows: u64,
    committed: u64,
    goes_on: bool,
}

impl Filling<'_> {
    fn rows<R: SqlRow>(&mut self, mut rows: impl Iterator<Item = R>) -> Result<()> {
        let table = table(R::RELATION);
        let at_once = VALUES_PER_STATEMENT / table.columns.len();
        let many = table.insert(at_once);
        while self.goes_on {
            let mut values = Vec::with_capacity(VALUES_PER_STATEMENT);
            let taken = rows.by_ref().take(at_once);
            let count = taken.map(|row| values.extend(row.values())).count();
            if count == 0 {
                break;
            }
            let sent = if count == at_once {
                self.send(&many, values)
            } else {
                self.send(&table.insert(count), values)
            };
            sent.with_context(|| format!("loading {}", table.name))?;
            self.rows += count as u64;
            if self.rows - self.committed >= ROWS_PER_COMMIT {
                self.conn.query_drop("COMMIT")?;
                self.committed = self.rows;
            }
            self.goes_on = (self.progress)(self.rows);
        }
        Ok(())
    }

    fn send(&mut self, statement: &str, values: Vec<Value>) -> Result<()> {
        Ok(self.conn.exec_drop(statement, Params::Positional(values))?)
    }
}
