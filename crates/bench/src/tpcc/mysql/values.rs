//! What rows hold, as SQL says it: money and rates as decimals, moments as dates.
use crate::tpcc::text::Text;
use mysql::Value;

const DAY_SECONDS: u32 = 86_400;

/// A number.
pub(super) fn int(number: impl Into<i64>) -> Value {
    Value::Int(number.into())
}

/// A text.
pub(super) fn text(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.to_vec())
}

/// Money, from cents.
pub(super) fn money(cents: impl Into<i64>) -> Value {
    decimal(cents.into(), 2)
}

/// A tax or a discount, from hundredths of a percent.
pub(super) fn rate(rate: u16) -> Value {
    decimal(rate.into(), 4)
}

fn decimal(units: i64, places: usize) -> Value {
    let sign = if units < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", units.unsigned_abs(), width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    Value::Bytes(format!("{sign}{whole}.{part}").into_bytes())
}

/// A moment, from seconds since 1970; 0 is null.
pub(super) fn moment(seconds: u32) -> Value {
    if seconds == 0 {
        return Value::NULL;
    }
    let (mut year, mut day) = (1970, seconds / DAY_SECONDS);
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let second = seconds % DAY_SECONDS;
    let (hour, minute) = ((second / 3600) as u8, (second / 60 % 60) as u8);
    Value::Date(year, month, day as u8 + 1, hour, minute, (second % 60) as u8, 0)
}

fn days_of_year(year: u16) -> u32 {
    (1..=12).map(|month| days_of_month(year, month)).sum()
}

fn days_of_month(year: u16, month: u8) -> u32 {
    let leaps = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(leaps),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The values of a row, taken one after the other. `None`: this one is not what the schema says.
pub(super) struct Values(pub(super) std::vec::IntoIter<Value>);

impl Values {
    /// Those of a row that nothing has been taken of.
    pub(super) fn of(row: mysql::Row) -> Self {
        let values = row.unwrap_raw().into_iter();
        Values::new(values.map(|value| value.unwrap_or(Value::NULL)).collect())
    }

    pub(super) fn new(values: Vec<Value>) -> Self {
        Values(values.into_iter())
    }

    /// A number that fits.
    pub(super) fn int<N: TryFrom<i64>>(&mut self) -> Option<N> {
        self.maybe_int()?
    }

    /// As [`Values::int`]; `Some(None)` is null.
    pub(super) fn maybe_int<N: TryFrom<i64>>(&mut self) -> Option<Option<N>> {
        let number = match self.0.next()? {
            Value::NULL => return Some(None),
            Value::Int(number) => number,
            Value::UInt(number) => i64::try_from(number).ok()?,
            // Sums and counts are decimals to some servers.
            Value::Bytes(digits) => std::str::from_utf8(&digits).ok()?.parse().ok()?,
            _ => return None,
        };
        N::try_from(number).ok().map(Some)
    }

    pub(super) fn text<const N: usize>(&mut self) -> Option<Text<N>> {
        Text::new(&self.bytes()?)
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes()?.try_into().ok()
    }

    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        match self.0.next()? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Cents.
    pub(super) fn money<N: TryFrom<i64>>(&mut self) -> Option<N> {
        N::try_from(self.decimal(2)?).ok()
    }

    /// Hundredths of a percent.
    pub(super) fn rate(&mut self) -> Option<u16> {
        self.decimal(4)?.try_into().ok()
    }

    fn decimal(&mut self, places: usize) -> Option<i64> {
        let bytes = self.bytes()?;
        let (whole, part) = std::str::from_utf8(&bytes).ok()?.split_once('.')?;
        if part.len() != places {
            return None;
        }
        format!("{whole}{part}").parse().ok()
    }

    /// Seconds since 1970; null is 0.
    pub(super) fn moment(&mut self) -> Option<u32> {
        let Value::Date(year, month, day, hour, minute, second, _) = self.0.next()? else {
            // Nothing else than a null or a date is in such a column.
            return Some(0);
        };
        let years: u32 = (1970..year).map(days_of_year).sum();
        let months: u32 = (1..month).map(|month| days_of_month(year, month)).sum();
        let days = years + months + u32::from(day).checked_sub(1)?;
        let [hour, minute, second] = [hour, minute, second].map(u32::from);
        Some(days * DAY_SECONDS + hour * 3600 + minute * 60 + second)
    }

    /// `whole`, if nothing is left over.
    pub(super) fn end<X>(mut self, whole: X) -> Option<X> {
        self.0.next().is_none().then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_and_rates_are_decimals() {
        for (cents, shown) in [(0, "0.00"), (5, "0.05"), (-1000, "-10.00"), (123_456, "1234.56")] {
            assert_eq!(money(cents), Value::Bytes(shown.into()));
            assert_eq!(Values::new(vec![money(cents)]).money(), Some(cents));
        }
        assert_eq!(rate(17), Value::Bytes("0.0017".into()));
        assert_eq!(Values::new(vec![rate(5000)]).rate(), Some(5000));
        assert_eq!(Values::new(vec![text(b"1.5")]).money::<i64>(), None);
    }

    #[test]
    fn moments_are_dates() {
        let date = |seconds| match moment(seconds) {
            Value::Date(y, m, d, h, min, s, _) => (y, m, d, h, min, s),
            other => panic!("{other:?}"),
        };
        assert_eq!(date(1), (1970, 1, 1, 0, 0, 1));
        assert_eq!(date(951_782_400), (2000, 2, 29, 0, 0, 0));
        assert_eq!(date(1_795_219_199), (2026, 11, 20, 23, 59, 59));
        for seconds in [0, 1, 951_782_399, 951_782_400, 4_102_444_800] {
            assert_eq!(Values::new(vec![moment(seconds)]).moment(), Some(seconds));
        }
    }
}
