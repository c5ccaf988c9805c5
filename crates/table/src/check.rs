//! Comparing a table's indexes with its rows.
use std::hash::{BuildHasher, RandomState};

use weir::Txn;

use crate::build::{GoOn, MakeEntry, ask};
use crate::entry::{EntryBuf, stored_key, stored_value};
use crate::error::Error;
use crate::raw::RawTable;
use crate::scan::{Direction, KeyRange};
use crate::several::Entries;

/// Problems that are reported: in a damaged index each row may have one.
const PROBLEMS_MAX: usize = 100;

/// What a check of a table found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableReport {
    /// Rows seen.
    pub rows: u64,
    /// What does not agree, the first hundred. Empty: all indexes agree with the rows.
    pub problems: Vec<String>,
}

impl TableReport {
    fn note(&mut self, problem: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem());
        }
    }
}

/// As [`MakeEntry`], of the index at a place.
pub type MakeAnyEntry<'m> = dyn FnMut(usize, &[u8], &[u8], &mut EntryBuf) -> Result<(), Error> + 'm;

/// A sum over entries that does not depend on their order. Its hash is keyed by chance, so that no
/// two sets of entries are made to agree.
struct Sums {
    keyed: RandomState,
}

/// Of one index: how many entries, and the sum of their hashes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sum {
    entries: u64,
    hashes: u64,
}

impl Sums {
    fn add(&self, sum: &mut Sum, key: &[u8], value: &[u8]) {
        sum.entries += 1;
        sum.hashes = sum.hashes.wrapping_add(self.keyed.hash_one((key, value)));
    }
}

impl RawTable {
    /// Compares, as the transaction sees them, all complete indexes with the rows. `make` gives the
    /// entry of a row in the index at a place; `go_on` is asked at each row and entry.
    ///
    /// Rows and each index are read once, in their own order, and compared by sums of hashes: data
    /// larger than memory take as long as reading them does. Only where sums differ is the entry of
    /// each row looked up, to say which.
    ///
    /// # Errors
    /// [`Error`] when the check cannot go on; what does not agree is in the report.
    pub fn check(
        &self,
        txn: &mut Txn,
        make: &mut MakeAnyEntry<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<TableReport, Error> {
        let sums = Sums { keyed: RandomState::new() };
        let (rows, wanted) = self.sum_rows(txn, &sums, make, go_on)?;
        let mut report = TableReport { rows, problems: Vec::new() };
        for (at, index) in self.info.indexes.iter().enumerate() {
            if index.building {
                continue;
            }
            let there = self.sum_entries(txn, at, &sums, go_on)?;
            let reported_before = report.problems.len();
            if there.entries != wanted[at].entries {
                let (entries, name) = (there.entries, &index.name);
                report.note(|| match index.several {
                    false => format!("index '{name}': {entries} entries, {rows} rows"),
                    true => format!(
                        "index '{name}': {entries} entries, {} of {rows} rows",
                        wanted[at].entries
                    ),
                });
            }
            if there != wanted[at] {
                let mut make_at =
                    |key: &[u8], row: &[u8], entry: &mut EntryBuf| make(at, key, row, entry);
                self.check_index(txn, at, &mut make_at, go_on, &mut report)?;
                if report.problems.len() == reported_before {
                    let name = &index.name;
                    report
                        .note(|| format!("index '{name}': its entries are not those of the rows"));
                }
            }
        }
        Ok(report)
    }

    /// How many rows there are, and the sums of the entries that they should have, by index.
    fn sum_rows(
        &self,
        txn: &mut Txn,
        sums: &Sums,
        make: &mut MakeAnyEntry<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(u64, Vec<Sum>), Error> {
        let mut wanted = vec![Sum::default(); self.info.indexes.len()];
        let mut scan = self.scan(txn, None, KeyRange::all(), Direction::Up)?;
        let (mut entry, mut rows) = (EntryBuf::default(), 0);
        while scan.next(txn)? {
            ask(go_on)?;
            rows += 1;
            let primary = scan.tree_key();
            for (at, index) in self.info.indexes.iter().enumerate().filter(|i| !i.1.building) {
                entry.clear();
                make(at, primary, scan.row(), &mut entry)?;
                for entry in Entries::of(index, entry.as_entry()) {
                    let entry = entry?;
                    let key = stored_key(index.unique, primary, entry);
                    let value = stored_value(index.unique, primary, entry);
                    sums.add(&mut wanted[at], &key, &value);
                }
            }
        }
        Ok((rows, wanted))
    }

    /// The sum of the entries that an index has.
    fn sum_entries(
        &self,
        txn: &mut Txn,
        at: usize,
        sums: &Sums,
        go_on: &mut GoOn<'_>,
    ) -> Result<Sum, Error> {
        let mut there = Sum::default();
        let mut cursor = txn.cursor(&self.indexes[at]);
        // As a walk over the index does: an older snapshot must not judge it (TABLE-4).
        self.check_view(txn, self.info.indexes[at].since)?;
        let mut on = cursor.seek_first(txn)?;
        while on {
            ask(go_on)?;
            sums.add(&mut there, cursor.key(), cursor.value());
            on = cursor.next(txn)?;
        }
        Ok(there)
    }

    /// Looks the entry of each row up.
    fn check_index(
        &self,
        txn: &mut Txn,
        at: usize,
        make: &mut MakeEntry<'_>,
        go_on: &mut GoOn<'_>,
        report: &mut TableReport,
    ) -> Result<(), Error> {
        let index = &self.info.indexes[at];
        let mut scan = self.scan(txn, None, KeyRange::all(), Direction::Up)?;
        let (mut entry, mut there) = (EntryBuf::default(), Vec::new());
        while scan.next(txn)? {
            ask(go_on)?;
            let primary = scan.tree_key();
            entry.clear();
            make(primary, scan.row(), &mut entry)?;
            for entry in Entries::of(index, entry.as_entry()) {
                let entry = entry?;
                let key = stored_key(index.unique, primary, entry);
                let value = stored_value(index.unique, primary, entry);
                let found = txn.get_into(&self.indexes[at], &key, &mut there)?;
                if !found || there != value {
                    let (name, is) = (&index.name, if found { "another" } else { "no" });
                    report.note(|| format!("index '{name}': {is} entry for row {primary:02x?}"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir::{Config, Db, Durability, SimVolume, Tree, TxnOptions};

    use super::*;
    use crate::{Entry, IndexSpec, RowImage, Tables};

    const ROWS: u32 = 200;

    /// Two indexes, `u` and `n`, both by the primary key's bytes the other way round.
    fn filled() -> (Db, RawTable) {
        let config = Config { pool_bytes: 2 << 20, log_bytes: 4 << 20, ..Config::default() };
        let db = Db::open_on(Arc::new(SimVolume::new(91)), config).expect("a database");
        let tables = Tables::open(&db).expect("its tables");
        let indexes = [("u", true), ("n", false)].map(|(name, unique)| IndexSpec {
            name: name.into(),
            unique,
            several: false,
            definition: Vec::new(),
        });
        tables.create_raw("t", b"", &indexes).expect("a table");
        let table = tables.open_raw("t").expect("the table");
        let mut txn = db.begin(TxnOptions::default());
        for n in 0..ROWS {
            let (key, turned) = (n.to_be_bytes(), n.to_le_bytes());
            let entry = Entry { key: &turned, has_null: false, payload: b"p" };
            let row = RowImage { key: &key, row: b"row", entries: &[entry, entry] };
            table.insert(&mut txn, row).expect("an insert");
        }
        txn.commit_durably(Durability::Lazy).expect("a commit");
        (db, table)
    }

    fn problems(db: &Db, table: &RawTable) -> Vec<String> {
        let mut make = |_: usize, key: &[u8], _: &[u8], entry: &mut EntryBuf| {
            entry.key.extend(key.iter().rev());
            entry.payload.extend_from_slice(b"p");
            Ok(())
        };
        let mut txn = db.begin(TxnOptions::default());
        let report = table.check(&mut txn, &mut make, &mut || true).expect("a check");
        assert_eq!(report.rows, u64::from(ROWS));
        report.problems
    }

    fn first_entry(tree: &Tree) -> (Vec<u8>, Vec<u8>) {
        let mut cursor = tree.cursor();
        assert!(cursor.seek_first().expect("a seek"));
        (cursor.key().to_vec(), cursor.value().expect("a value").to_vec())
    }

    #[test]
    fn each_difference_between_an_index_and_the_rows_is_reported() {
        let (db, table) = filled();
        assert_eq!(problems(&db, &table), Vec::<String>::new());
        for (at, name) in ["u", "n"].into_iter().enumerate() {
            let tree = &table.indexes[at];
            let (key, value) = first_entry(tree);
            let of_row = format!("for row {:02x?}", [0, 0, 0, 0]);
            // Another value.
            tree.put(&key, b"another", Durability::Lazy).expect("put");
            assert_eq!(problems(&db, &table), [format!("index '{name}': another entry {of_row}")]);
            // None, and one that belongs to no row in its place: as many as there are rows.
            assert!(tree.delete(&key, Durability::Lazy).expect("delete"));
            tree.put(b"\xff of no row", &value, Durability::Lazy).expect("put");
            assert_eq!(problems(&db, &table), [format!("index '{name}': no entry {of_row}")]);
            // One too many.
            tree.put(&key, &value, Durability::Lazy).expect("put");
            let many = format!("index '{name}': {} entries, {ROWS} rows", ROWS + 1);
            assert_eq!(problems(&db, &table), [many]);
            // One too few.
            tree.delete(b"\xff of no row", Durability::Lazy).expect("delete");
            tree.delete(&key, Durability::Lazy).expect("delete");
            let few = format!("index '{name}': {} entries, {ROWS} rows", ROWS - 1);
            let none = format!("index '{name}': no entry {of_row}");
            assert_eq!(problems(&db, &table), [few, none]);
            tree.put(&key, &value, Durability::Lazy).expect("put");
            assert_eq!(problems(&db, &table), Vec::<String>::new());
        }
    }

    #[test]
    fn a_snapshot_from_before_an_index_does_not_judge_it() {
        let (db, table) = filled();
        let mut old = db.begin(TxnOptions::default());
        assert!(old.get(&table.primary, &0u32.to_be_bytes()).expect("a read").is_some());
        let mut make = |key: &[u8], _: &[u8], entry: &mut EntryBuf| {
            entry.key.extend_from_slice(key);
            Ok(())
        };
        let tables = Tables::open(&db).expect("its tables");
        let spec = IndexSpec {
            name: "late".into(),
            unique: false,
            several: false,
            definition: Vec::new(),
        };
        assert!(tables.add_index_raw("t", &spec, &mut make).expect("added"));
        let table = tables.open_raw("t").expect("the table");
        let mut make_any = |at: usize, key: &[u8], _: &[u8], entry: &mut EntryBuf| {
            match at {
                2 => entry.key.extend_from_slice(key),
                _ => entry.key.extend(key.iter().rev()),
            }
            entry.payload.extend_from_slice(if at == 2 { b"" } else { b"p" });
            Ok(())
        };
        let judged = table.check(&mut old, &mut make_any, &mut || true);
        assert!(matches!(judged, Err(Error::Changed)), "{judged:?}");
        let mut new = db.begin(TxnOptions::default());
        let report = table.check(&mut new, &mut make_any, &mut || true).expect("a check");
        assert_eq!(report.problems, Vec::<String>::new());
    }

    #[test]
    fn a_sum_is_the_same_in_any_order_and_another_where_a_byte_moves() {
        let sums = Sums { keyed: RandomState::new() };
        let sum = |entries: &[(&[u8], &[u8])]| {
            let mut sum = Sum::default();
            entries.iter().for_each(|(key, value)| sums.add(&mut sum, key, value));
            sum
        };
        assert_eq!(sum(&[(b"a", b"1"), (b"b", b"2")]), sum(&[(b"b", b"2"), (b"a", b"1")]));
        assert_ne!(sum(&[(b"a", b"1"), (b"b", b"2")]), sum(&[(b"a", b"2"), (b"b", b"1")]));
        assert_ne!(sum(&[(b"ab", b"c")]), sum(&[(b"a", b"bc")]));
        assert_ne!(sum(&[(b"a", b"1"), (b"a", b"1")]), sum(&[(b"a", b"2"), (b"a", b"2")]));
    }
}
