//! Reads a whole store back and judges every byte of it.

use anyhow::{Result, bail, ensure};

use crate::engine::Engine;
use crate::rows::{self, Keys};

/// What must be there.
pub struct Expected<'a> {
    pub keys: Keys,
    pub value_bytes: usize,
    /// How many rows.
    pub rows: u64,
    /// Whether a row of this number may be there at this version. Together with the count, and with
    /// no key twice, it says that all are there: it must accept just so many numbers.
    pub judge: &'a dyn Fn(u64, u64) -> bool,
}

/// Scans the store; returns how many rows there were.
///
/// # Errors
/// The first row that is out of order, damaged, not to be there, or at a wrong version; too few.
pub fn verify(store: &dyn Engine, expected: &Expected) -> Result<u64> {
    let mut scratch = vec![0; expected.value_bytes];
    let mut before: Option<[u8; 8]> = None;
    let mut wrong: Option<String> = None;
    let mut found = 0;
    store.with_worker(&mut |worker| {
        found = worker.scan(&[0; 8], u64::MAX, &mut |key, value| {
            if wrong.is_none() {
                wrong = judge(expected, before, key, value, &mut scratch).err();
                before = key.try_into().ok();
            }
        })?;
        Ok(())
    })?;
    if let Some(what) = wrong {
        bail!("{what}");
    }
    ensure!(found == expected.rows, "{found} rows, not {}", expected.rows);
    Ok(found)
}

fn judge(
    expected: &Expected,
    before: Option<[u8; 8]>,
    key: &[u8],
    value: &[u8],
    scratch: &mut [u8],
) -> Result<(), String> {
    if before.is_some_and(|before| key <= &before[..]) {
        return Err(format!("key {key:02x?} is out of order"));
    }
    let Some(number) = expected.keys.number(key) else {
        return Err(format!("key {key:02x?} is none of ours"));
    };
    match rows::version_of(value, number, scratch) {
        None => Err(format!("row {number} is damaged")),
        Some(version) if !(expected.judge)(number, version) => {
            Err(format!("row {number} is at version {version:x}, which is not the last"))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Durability, Setup};
    use crate::stores;

    #[test]
    fn what_is_missing_too_much_stale_or_damaged_is_found() {
        for known in stores::ALL {
            let dir = tempfile::tempdir().unwrap();
            let durability = Durability::Synced;
            let setup = Setup { cache_bytes: 16 << 20, threads: 1, durability };
            let store = stores::open(known.name, dir.path(), setup).unwrap();
            let keys = Keys::Hashed;
            let mut row = (keys.key(7), vec![0; 40]);
            rows::fill(&mut row.1, 7, 3);
            let mut all: Vec<_> = (0..200).map(|number| rows::first(keys, number, 40)).collect();
            all[7] = row;
            let put = |rows: &[crate::engine::Row]| {
                store.with_worker(&mut |worker| worker.replace(&[], rows)).unwrap();
            };
            put(&all);
            let look = |rows, judge: &dyn Fn(u64, u64) -> bool| {
                let expected = Expected { keys, value_bytes: 40, rows, judge };
                verify(&*store, &expected).map_err(|error| error.to_string())
            };
            let last = |number, version| number < 200 && version == if number == 7 { 3 } else { 0 };
            assert_eq!(look(200, &last), Ok(200), "{}", known.name);
            assert_eq!(look(201, &last).unwrap_err(), "200 rows, not 201");
            assert!(
                look(200, &|n, _| n != 199).unwrap_err().starts_with("row 199 is at version 0")
            );
            assert!(look(200, &|_, v| v == 0).unwrap_err().starts_with("row 7 is at version 3"));
            let mut changed = rows::first(keys, 9, 40);
            changed.1[39] ^= 1;
            store.with_worker(&mut |worker| worker.update(&changed.0, &changed.1)).unwrap();
            assert_eq!(look(200, &last).unwrap_err(), "row 9 is damaged", "{}", known.name);
        }
    }
}
