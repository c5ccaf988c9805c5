//! Keys as they lie in the trees: big-endian, so that bytes sort as numbers do.
//!
//! A warehouse takes 2 bytes, a district 1, a customer 2, an order 4, an order line 1, an item 3.

/// A row of the history has no key of its own: so many bits of its hidden row number count, the
/// others name which counts. (Terminals that count apart do not meet in one leaf.)
const HISTORY_COUNT_BITS: u32 = 40;

/// The parts one after the other; they must fill the key.
fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut key = [0; N];
    let mut at = 0;
    for part in parts {
        key[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    debug_assert_eq!(at, N);
    key
}

/// Three bytes: items go up to 100,000.
fn three(number: u32) -> [u8; 3] {
    let [_, high, middle, low] = number.to_be_bytes();
    [high, middle, low]
}

pub(crate) fn warehouse(w: u16) -> [u8; 2] {
    w.to_be_bytes()
}

pub(crate) fn district(w: u16, d: u8) -> [u8; 3] {
    join(&[&w.to_be_bytes(), &[d]])
}

pub(crate) fn customer(w: u16, d: u8, c: u16) -> [u8; 5] {
    join(&[&w.to_be_bytes(), &[d], &c.to_be_bytes()])
}

/// Of an order and of a new order.
pub(crate) fn order(w: u16, d: u8, o: u32) -> [u8; 7] {
    join(&[&w.to_be_bytes(), &[d], &o.to_be_bytes()])
}

pub(crate) fn order_line(w: u16, d: u8, o: u32, number: u8) -> [u8; 8] {
    join(&[&order(w, d, o), &[number]])
}

pub(crate) fn item(i: u32) -> [u8; 3] {
    three(i)
}

pub(crate) fn stock(w: u16, i: u32) -> [u8; 5] {
    join(&[&w.to_be_bytes(), &three(i)])
}

/// Row `count` of the history rows that `counter` has written.
pub(crate) fn history(counter: u16, count: u64) -> [u8; 8] {
    debug_assert!(count < 1 << HISTORY_COUNT_BITS);
    (u64::from(counter) << HISTORY_COUNT_BITS | count).to_be_bytes()
}

/// The counter and the count of a history row.
pub(crate) fn history_parts(key: &[u8]) -> Option<(u16, u64)> {
    let number = u64::from_be_bytes(key.try_into().ok()?);
    let counter = u16::try_from(number >> HISTORY_COUNT_BITS).ok()?;
    Some((counter, number & ((1 << HISTORY_COUNT_BITS) - 1)))
}

/// In the tree of orders by customer.
pub(crate) fn customer_order(w: u16, d: u8, c: u16, o: u32) -> [u8; 9] {
    join(&[&customer(w, d, c), &o.to_be_bytes()])
}

/// The beginning of the keys of all customers of that last name, in the tree of customers by name.
/// Names hold no zero byte, which therefore ends one and sorts a shorter name first.
pub(crate) fn customers_named(w: u16, d: u8, last: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&district(w, d));
    out.extend_from_slice(last);
    out.push(0);
}

/// In the tree of customers by name: ordered by last name, then by first name.
pub(crate) fn customer_name(w: u16, d: u8, last: &[u8], first: &[u8], c: u16, out: &mut Vec<u8>) {
    customers_named(w, d, last, out);
    out.extend_from_slice(first);
    out.push(0);
    out.extend_from_slice(&c.to_be_bytes());
}

/// The customer or the order number at a key's end.
pub(crate) fn last_u16(key: &[u8]) -> Option<u16> {
    key.last_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// See [`last_u16`].
pub(crate) fn last_u32(key: &[u8]) -> Option<u32> {
    key.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Takes a key apart from the front.
pub(crate) struct Parts<'a>(pub(crate) &'a [u8]);

impl Parts<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn one(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    pub(crate) fn two(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub(crate) fn three(&mut self) -> Option<u32> {
        self.take().map(|[high, middle, low]| u32::from_be_bytes([0, high, middle, low]))
    }

    pub(crate) fn four(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    /// `whole`, if nothing is left over.
    pub(crate) fn end<X>(&self, whole: X) -> Option<X> {
        self.0.is_empty().then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sort_as_numbers_do() {
        assert!(order(1, 2, 255) < order(1, 2, 256));
        assert!(order_line(1, 2, 300, 15) < order_line(1, 3, 1, 1));
        assert!(stock(1, 100_000) < stock(2, 1));
        assert!(history(1, 70_000) < history(2, 0));
        assert_eq!(history_parts(&history(513, 70_000)), Some((513, 70_000)));
        let name = |last: &str, first: &str, c| {
            let mut key = Vec::new();
            customer_name(1, 1, last.as_bytes(), first.as_bytes(), c, &mut key);
            key
        };
        assert!(name("BAR", "zz", 2) < name("BARBAR", "aa", 1));
        assert!(name("BAR", "aa", 9) < name("BAR", "aab", 1));
        assert!(name("BAR", "aa", 1) < name("BAR", "aa", 2));
        assert_eq!(last_u16(&name("BAR", "aa", 777)), Some(777));
        assert_eq!(last_u32(&customer_order(1, 2, 3, 4_000_000)), Some(4_000_000));
    }
}
