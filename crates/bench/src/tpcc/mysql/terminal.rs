//! The five transactions in SQL. Rows are locked in the order in which the embedded backend locks
//! them, so that two transactions seldom wait for each other in a circle.
use super::values::{Values, int, moment, money};
use crate::tpcc::backend::{
    DeliveryDone, NewOrderDone, OrderStatusDone, Outcome, PaymentDone, StockLevelDone, Terminal,
    Why,
};
use crate::tpcc::input::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tpcc::scale::DISTRICTS;
use anyhow::{Context, Result, anyhow};
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Value};

/// A connection.
pub struct MysqlTerminal {
    conn: Conn,
}

/// Why a statement did not do what it was asked to.
pub(super) enum Stop {
    Retry(Why),
    Failed(anyhow::Error),
}

/// The server's numbers for what may well work the next time.
const DEADLOCK: u16 = 1213;
const LOCK_TIMEOUT: u16 = 1205;
const CHANGED_SINCE: u16 = 1020;

impl From<mysql::Error> for Stop {
    fn from(error: mysql::Error) -> Self {
        match &error {
            mysql::Error::MySqlError(told) if told.code == DEADLOCK => Stop::Retry(Why::Deadlock),
            mysql::Error::MySqlError(told) if told.code == LOCK_TIMEOUT => {
                Stop::Retry(Why::LockTimeout)
            }
            mysql::Error::MySqlError(told) if told.code == CHANGED_SINCE => {
                Stop::Retry(Why::WriteConflict)
            }
            _ => Stop::Failed(error.into()),
        }
    }
}

pub(super) fn missing(what: std::fmt::Arguments<'_>) -> Stop {
    Stop::Failed(anyhow!("{what} is missing or damaged"))
}

impl MysqlTerminal {
    pub(super) fn new(conn: Conn) -> Self {
        MysqlTerminal { conn }
    }

    /// Carries a transaction out; `None` of its body means that the user rolls it back.
    fn carry_out<D>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<Option<D>, Stop>,
    ) -> Result<Outcome<D, ()>> {
        let begun = self.conn.query_drop("START TRANSACTION").map_err(Stop::from);
        let ended = match begun.and_then(|()| body(self)) {
            Ok(Some(done)) => match self.conn.query_drop("COMMIT") {
                Ok(()) => return Ok(Outcome::Committed(done, ())),
                Err(error) => Err(error.into()),
            },
            Ok(None) => Ok(Outcome::RolledBack),
            Err(stop) => Err(stop),
        };
        let ended = match ended {
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Retry(why)) => Outcome::Retry(why),
            Ok(outcome) => outcome,
        };
        // After a deadlock there is nothing left to roll back, after a timeout everything.
        self.conn.query_drop("ROLLBACK")?;
        Ok(ended)
    }

    pub(super) fn rows(
        &mut self,
        statement: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Values>, Stop> {
        let rows: Vec<mysql::Row> = self.conn.exec(statement, Params::Positional(values))?;
        Ok(rows.into_iter().map(Values::of).collect())
    }

    /// The first row, read by `read`; `None` when there is none, or when it is not as expected.
    pub(super) fn row<T>(
        &mut self,
        statement: &str,
        values: Vec<Value>,
        read: impl FnOnce(&mut Values) -> Option<T>,
    ) -> Result<Option<T>, Stop> {
        Ok(self.rows(statement, values)?.first_mut().and_then(read))
    }

    /// Changes or adds rows; says how many.
    pub(super) fn change(&mut self, statement: &str, values: Vec<Value>) -> Result<u64, Stop> {
        self.conn.exec_drop(statement, Params::Positional(values))?;
        Ok(self.conn.affected_rows())
    }

    fn status(&mut self, input: &OrderStatus) -> Result<Option<OrderStatusDone>, Stop> {
        let OrderStatus { w, d, .. } = *input;
        let c = self.find_customer(w, d, &input.customer)?;
        self.row(
            "SELECT c_balance, c_first, c_middle, c_last FROM customer \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            vec![int(w), int(d), int(c)],
            Values::money::<i64>,
        )?
        .ok_or_else(|| missing(format_args!("customer {w}-{d}-{c}")))?;
        let (o, said) = self
            .row(
                "SELECT o_id, o_ol_cnt, o_carrier_id, o_entry_d FROM orders \
                 WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
                vec![int(w), int(d), int(c)],
                |row| Some((row.int::<u32>()?, row.int::<u8>()?)),
            )?
            .ok_or_else(|| missing(format_args!("an order of customer {w}-{d}-{c}")))?;
        let mut lines = self.rows(
            "SELECT ol_amount, ol_i_id, ol_supply_w_id, ol_quantity, ol_delivery_d \
             FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            vec![int(w), int(d), int(o)],
        )?;
        let amount: Option<i64> = lines.iter_mut().map(Values::money::<i64>).sum();
        let whole = amount.filter(|_| lines.len() == usize::from(said));
        let amount = whole.ok_or_else(|| missing(format_args!("a line of order {w}-{d}-{o}")))?;
        Ok(Some(OrderStatusDone { customer: c, order: o, lines: said, amount }))
    }

    fn deliver(&mut self, input: &Delivery) -> Result<Option<DeliveryDone>, Stop> {
        let w = input.w;
        let mut delivered = 0;
        for d in 1..=DISTRICTS {
            let oldest = self.row(
                "SELECT no_o_id FROM new_orders WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE",
                vec![int(w), int(d)],
                Values::int::<u32>,
            )?;
            let Some(o) = oldest else { continue };
            let key = || [int(w), int(d), int(o)];
            let gone = self.change(
                "DELETE FROM new_orders WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
                key().to_vec(),
            )?;
            if gone != 1 {
                return Err(missing(format_args!("new order {w}-{d}-{o}")));
            }
            self.deliver_order(input, d, &key)?;
            delivered += 1;
        }
        Ok(Some(DeliveryDone { delivered, skipped: DISTRICTS - delivered }))
    }

    fn deliver_order(
        &mut self,
        input: &Delivery,
        d: u8,
        key: &dyn Fn() -> [Value; 3],
    ) -> Result<(), Stop> {
        let with_key = |first: Value| [&[first][..], &key()].concat();
        let w = input.w;
        let gone = || missing(format_args!("an order of district {w}-{d}"));
        // Locked, so as it is now: where all others are delivered it may have come after the
        // transaction's snapshot.
        let c = self
            .row(
                "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? \
                 FOR UPDATE",
                key().to_vec(),
                Values::int::<u16>,
            )?
            .ok_or_else(gone)?;
        self.change(
            "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            with_key(int(input.carrier)),
        )?;
        self.change(
            "UPDATE order_line SET ol_delivery_d = ? \
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            with_key(moment(input.date)),
        )?;
        let sum = self
            .row(
                "SELECT SUM(ol_amount) FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                key().to_vec(),
                Values::money::<i64>,
            )?
            .ok_or_else(gone)?;
        self.change(
            "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            vec![money(sum), int(w), int(d), int(c)],
        )?;
        Ok(())
    }

    fn stock(&mut self, input: &StockLevel) -> Result<Option<StockLevelDone>, Stop> {
        let StockLevel { w, d, threshold } = *input;
        let next = self
            .row(
                "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
                vec![int(w), int(d)],
                Values::int::<u32>,
            )?
            .ok_or_else(|| missing(format_args!("district {w}-{d}")))?;
        let low_stock = self
            .row(
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock \
                 ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = ? AND ol_d_id = ? \
                 AND ol_o_id < ? AND ol_o_id >= ? AND s_quantity < ?",
                vec![int(w), int(d), int(next), int(next.saturating_sub(20)), int(threshold)],
                Values::int,
            )?
            .ok_or_else(|| missing(format_args!("a count of stock in warehouse {w}")))?;
        Ok(Some(StockLevelDone { low_stock }))
    }
}

impl Terminal for MysqlTerminal {
    type Ticket = ();

    fn new_order(&mut self, input: &NewOrder) -> Result<Outcome<NewOrderDone, ()>> {
        self.carry_out(|this| this.order(input)).context("New-Order")
    }

    fn payment(&mut self, input: &Payment) -> Result<Outcome<PaymentDone, ()>> {
        self.carry_out(|this| this.pay(input)).context("Payment")
    }

    fn order_status(&mut self, input: &OrderStatus) -> Result<Outcome<OrderStatusDone, ()>> {
        self.carry_out(|this| this.status(input)).context("Order-Status")
    }

    fn delivery(&mut self, input: &Delivery) -> Result<Outcome<DeliveryDone, ()>> {
        self.carry_out(|this| this.deliver(input)).context("Delivery")
    }

    fn stock_level(&mut self, input: &StockLevel) -> Result<Outcome<StockLevelDone, ()>> {
        self.carry_out(|this| this.stock(input)).context("Stock-Level")
    }
}
