//! The Payment transaction (clause 2.5.2) in SQL.
use super::terminal::{MysqlTerminal, Stop, missing};
use super::values::{Values, int, moment, money, text};
use crate::tpcc::backend::PaymentDone;
use crate::tpcc::input::{CustomerBy, Payment};
use crate::tpcc::text::Text;

impl MysqlTerminal {
    /// Clauses 2.5.2.2 and 2.6.2.2: the customer's number.
    pub(super) fn find_customer(&mut self, w: u16, d: u8, by: &CustomerBy) -> Result<u16, Stop> {
        let last = match by {
            CustomerBy::Number(c) => return Ok(*c),
            CustomerBy::LastName(last) => last,
        };
        let mut found = self.rows(
            "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
             ORDER BY c_first, c_id",
            vec![int(w), int(d), text(last)],
        )?;
        // Position n/2, rounded up, counted from one.
        let middle = found.len().div_ceil(2).checked_sub(1);
        let name = String::from_utf8_lossy(last);
        middle
            .and_then(|middle| found[middle].int())
            .ok_or_else(|| missing(format_args!("a customer {name} of district {w}-{d}")))
    }

    /// Clause 2.5.2.
    pub(super) fn pay(&mut self, input: &Payment) -> Result<Option<PaymentDone>, Stop> {
        let Payment { w, d, customer_w, customer_d, amount, date, .. } = *input;
        let c = self.find_customer(customer_w, customer_d, &input.customer)?;
        let balance = self.take_from_balance(input, c)?;
        self.change(
            "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            vec![money(amount), int(w), int(d)],
        )?;
        let district = self
            .row(
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
                 WHERE d_w_id = ? AND d_id = ?",
                vec![int(w), int(d)],
                Values::bytes,
            )?
            .ok_or_else(|| missing(format_args!("district {w}-{d}")))?;
        self.change(
            "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            vec![money(amount), int(w)],
        )?;
        let warehouse = self
            .row(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
                 WHERE w_id = ?",
                vec![int(w)],
                Values::bytes,
            )?
            .ok_or_else(|| missing(format_args!("warehouse {w}")))?;
        let mut data: Text<24> = Text::EMPTY;
        [&warehouse[..], b"    ", &district].iter().for_each(|part| data.push_cut(part));
        self.change(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, \
             h_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            vec![
                int(c),
                int(customer_d),
                int(customer_w),
                int(d),
                int(w),
                moment(date),
                money(amount),
                text(&data),
            ],
        )?;
        Ok(Some(PaymentDone { customer: c, balance }))
    }

    /// Takes the payment from the customer's balance; returns what is left.
    fn take_from_balance(&mut self, input: &Payment, c: u16) -> Result<i64, Stop> {
        let Payment { w, d, customer_w, customer_d, amount, .. } = *input;
        let key = || [int(customer_w), int(customer_d), int(c)];
        let (balance, credit) = self
            .row(
                "SELECT c_balance, c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, \
                 c_city, c_state, c_zip, c_phone, c_credit_lim, c_discount, c_since FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
                key().to_vec(),
                |row| Some((row.money::<i64>()?, row.bytes()?)),
            )?
            .ok_or_else(|| missing(format_args!("customer {customer_w}-{customer_d}-{c}")))?;
        let mut values = vec![money(amount), money(amount)];
        if credit == b"BC" {
            // Clause 2.5.2.2: noted in front of `C_DATA`, whose end is cut off.
            let (whole, cents) = (amount / 100, amount % 100);
            let note = format!("{c} {customer_d} {customer_w} {d} {w} {whole}.{cents:02} | ");
            values.push(text(note.as_bytes()));
            values.extend(key());
            self.change(
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = LEFT(CONCAT(?, c_data), 500) \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                values,
            )?;
        } else {
            values.extend(key());
            self.change(
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                values,
            )?;
        }
        Ok(balance - i64::from(amount))
    }
}
