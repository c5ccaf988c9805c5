//! How large a TPC-C database is (clause 1.2.1) and the constants of its random distributions
//! (clause 2.1.6).
use super::random::Random;
use anyhow::{Result, ensure};

/// Districts of a warehouse.
pub(crate) const DISTRICTS: u8 = 10;
/// The most warehouses that a key has room for.
pub(crate) const WAREHOUSES_MAX: u64 = 65_535;
/// The least and the most lines of an order (clause 2.4.1.3).
pub(crate) const LINES_MIN: u8 = 5;
/// See [`LINES_MIN`].
pub(crate) const LINES_MAX: u8 = 15;
/// The terminals' A of `NURand` (clause 2.1.6) for customers' last names.
const A_LAST_NAME: u32 = 255;
const A_CUSTOMER: u32 = 1023;
const A_ITEM: u32 = 8191;
/// Different last names (clause 4.3.2.3).
const LAST_NAMES: u32 = 1000;

/// Cardinalities of the tables (clause 1.2.1, 4.3.3.1). All but the warehouses are the
/// specification's outside of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u16,
    /// Items, and stock rows of each warehouse.
    pub items: u32,
    /// Customers of a district; as many orders are loaded.
    pub customers: u16,
    /// Loaded orders of a district that are not yet delivered: the last ones.
    pub new_orders: u16,
}

impl Scale {
    /// The specification's for so many warehouses.
    ///
    /// # Errors
    /// When there is no warehouse, or one too many for a key.
    pub fn new(warehouses: u64) -> Result<Self> {
        ensure!(
            (1..=WAREHOUSES_MAX).contains(&warehouses),
            "{warehouses} warehouses; choose 1 to {WAREHOUSES_MAX}"
        );
        Ok(Scale {
            warehouses: warehouses as u16,
            items: 100_000,
            customers: 3000,
            new_orders: 900,
        })
    }

    /// Orders of a district that are delivered when loaded: the first ones.
    #[must_use]
    pub fn delivered_orders(&self) -> u32 {
        u32::from(self.customers - self.new_orders)
    }

    /// Districts of all warehouses.
    #[must_use]
    pub fn districts(&self) -> u64 {
        u64::from(self.warehouses) * u64::from(DISTRICTS)
    }

    /// Different last names in a district: a smaller scale has not all of them.
    pub(crate) fn last_names(&self) -> u32 {
        LAST_NAMES.min(u32::from(self.customers))
    }

    /// Rows of all tables but the order lines, whose number is random.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let stock = u64::from(self.items) * u64::from(self.warehouses);
        // Customer, history and order; the new orders besides.
        let of_district = 3 * u64::from(self.customers) + u64::from(self.new_orders) + 1;
        u64::from(self.items) + stock + u64::from(self.warehouses) + self.districts() * of_district
    }
}

/// The constants C of `NURand` (clause 2.1.6.1): chosen once per run, and for last names once for
/// the population and again, at a distance, for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// For last names.
    pub last_name: u32,
    /// For customer numbers.
    pub customer: u32,
    /// For item numbers.
    pub item: u32,
}

impl Constants {
    /// Those of the population.
    pub(crate) fn for_load(random: &mut Random) -> Self {
        Constants {
            last_name: random.within(0, A_LAST_NAME),
            customer: random.within(0, A_CUSTOMER),
            item: random.within(0, A_ITEM),
        }
    }

    /// Those of a run on a population loaded with `loaded.last_name`.
    pub(crate) fn for_run(loaded_last_name: u32, random: &mut Random) -> Self {
        let mut run = Constants::for_load(random);
        while !last_name_distance_allowed(loaded_last_name.abs_diff(run.last_name)) {
            run.last_name = random.within(0, A_LAST_NAME);
        }
        run
    }

    /// A last name's number for a population or a terminal of this scale.
    pub(crate) fn draw_last_name(&self, scale: &Scale, random: &mut Random) -> u32 {
        random.nurand(A_LAST_NAME, self.last_name, 0, scale.last_names() - 1)
    }

    pub(crate) fn draw_customer(&self, scale: &Scale, random: &mut Random) -> u16 {
        random.nurand(A_CUSTOMER, self.customer, 1, u32::from(scale.customers)) as u16
    }

    pub(crate) fn draw_item(&self, scale: &Scale, random: &mut Random) -> u32 {
        random.nurand(A_ITEM, self.item, 1, scale.items)
    }
}

/// Clause 2.1.6.1: C-Delta lies in 65 to 119, and is neither 96 nor 112.
fn last_name_distance_allowed(delta: u32) -> bool {
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Small enough for tests in a debug build; everything that the clauses speak of is there.
    pub(crate) fn tiny(warehouses: u16) -> Scale {
        Scale { warehouses, items: 200, customers: 60, new_orders: 18 }
    }

    #[test]
    fn cardinalities() {
        let scale = Scale::new(10).unwrap();
        assert_eq!(scale.delivered_orders(), 2100);
        // Clause 1.2.1 for ten warehouses, without order lines.
        let clause = 10 + 100 + 300_000 + 300_000 + 90_000 + 300_000 + 100_000 + 1_000_000;
        assert_eq!(scale.rows(), clause);
        assert!(Scale::new(0).is_err() && Scale::new(65_536).is_err());
    }

    #[test]
    fn the_run_keeps_its_distance_from_the_population() {
        let mut random = Random::new(1);
        for loaded in 0..=A_LAST_NAME {
            let run = Constants::for_run(loaded, &mut random);
            assert!(last_name_distance_allowed(run.last_name.abs_diff(loaded)), "{loaded}");
        }
        for wrong in [0, 64, 96, 112, 120] {
            assert!(!last_name_distance_allowed(wrong), "{wrong}");
        }
    }
}
