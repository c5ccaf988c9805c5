//! The New-Order transaction (clause 2.4.2) in SQL.
use super::terminal::{MysqlTerminal, Stop, missing};
use super::values::{Values, int, moment, money, text};
use crate::tpcc::backend::NewOrderDone;
use crate::tpcc::input::{Line, NewOrder};
use crate::tpcc::random::is_original;

/// What a line of the order comes to.
struct Sold {
    line: Line,
    amount: u32,
    info: Vec<u8>,
}

macro_rules! stock_of_district {
    ($($number:literal),*) => {
        [$(concat!(
            "SELECT s_quantity, s_dist_", $number, ", s_data FROM stock ",
            "WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
        )),*]
    };
}

const STOCK_OF_DISTRICT: [&str; 10] =
    stock_of_district!["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"];

impl MysqlTerminal {
    /// Takes a line's quantity from the stock; none when there is no such item.
    fn sell(
        &mut self,
        input: &NewOrder,
        line: &Line,
        brands: &mut u8,
    ) -> Result<Option<Sold>, Stop> {
        let Line { item, supply_w, quantity } = *line;
        let found =
            self.row("SELECT i_price, i_data FROM item WHERE i_id = ?", vec![int(item)], |row| {
                Some((row.money::<u32>()?, row.bytes()?))
            })?;
        let Some((price, item_data)) = found else { return Ok(None) };
        let found = self.row(
            STOCK_OF_DISTRICT[usize::from(input.d) - 1],
            vec![int(supply_w), int(item)],
            |row| Some((row.int::<i16>()?, row.bytes()?, row.bytes()?)),
        )?;
        let (have, info, stock_data) = found
            .ok_or_else(|| missing(format_args!("stock of {item} in warehouse {supply_w}")))?;
        let left = have - i16::from(quantity);
        let left = if left >= 10 { left } else { left + 91 };
        let remote = u8::from(supply_w != input.w);
        self.change(
            "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
            vec![int(left), int(quantity), int(remote), int(supply_w), int(item)],
        )?;
        *brands += u8::from(is_original(&item_data) && is_original(&stock_data));
        Ok(Some(Sold { line: *line, amount: u32::from(quantity) * price, info }))
    }

    /// Clause 2.4.2.
    pub(super) fn order(&mut self, input: &NewOrder) -> Result<Option<NewOrderDone>, Stop> {
        let NewOrder { w, d, c, entry_date, .. } = *input;
        let w_tax = self
            .row("SELECT w_tax FROM warehouse WHERE w_id = ?", vec![int(w)], Values::rate)?
            .ok_or_else(|| missing(format_args!("warehouse {w}")))?;
        let discount = self
            .row(
                "SELECT c_discount, c_last, c_credit FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                vec![int(w), int(d), int(c)],
                Values::rate,
            )?
            .ok_or_else(|| missing(format_args!("customer {w}-{d}-{c}")))?;
        let lines = input.lines();
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.sort_unstable_by_key(|&at| (lines[at].supply_w, lines[at].item));
        let mut sold: Vec<Option<Sold>> = lines.iter().map(|_| None).collect();
        let mut brands = 0;
        for at in order {
            sold[at] = self.sell(input, &lines[at], &mut brands)?;
        }
        let (o, d_tax) = self
            .row(
                "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
                vec![int(w), int(d)],
                |row| Some((row.int::<u32>()?, row.rate()?)),
            )?
            .ok_or_else(|| missing(format_args!("district {w}-{d}")))?;
        self.change(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
            vec![int(w), int(d)],
        )?;
        let all_local = u8::from(input.all_local());
        self.change(
            "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            vec![
                int(w),
                int(d),
                int(o),
                int(c),
                moment(entry_date),
                int(lines.len() as u8),
                int(all_local),
            ],
        )?;
        self.change(
            "INSERT INTO new_orders (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)",
            vec![int(w), int(d), int(o)],
        )?;
        for (line, number) in sold.iter().zip(1_u8..) {
            if let Some(Sold { line, amount, info }) = line {
                self.change(
                    "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, \
                     ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    vec![
                        int(w),
                        int(d),
                        int(o),
                        int(number),
                        int(line.item),
                        int(line.supply_w),
                        int(line.quantity),
                        money(*amount),
                        text(info),
                    ],
                )?;
            }
        }
        if sold.iter().any(Option::is_none) {
            // Clause 2.4.2.3: all of the profile is carried out, and then rolled back.
            return Ok(None);
        }
        let sum: i64 = sold.iter().flatten().map(|line| i64::from(line.amount)).sum();
        let discounted = sum * (10_000 - i64::from(discount));
        let taxed = discounted * (10_000 + i64::from(w_tax) + i64::from(d_tax));
        Ok(Some(NewOrderDone { order: o, total: taxed / 100_000_000, brands }))
    }
}
