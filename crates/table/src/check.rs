//! Comparing a table's indexes with its rows.
use weir::Txn;

use crate::build::{GoOn, MakeEntry, ask};
use crate::entry::{EntryBuf, stored_key, stored_value};
use crate::error::Error;
use crate::raw::RawTable;
use crate::scan::{Direction, KeyRange};

/// Problems that are told of: in a damaged index each row may have one.
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

impl RawTable {
    /// Compares, as the transaction sees them, all complete indexes with the rows. `make` gives the
    /// entry of a row in the index at a place; `go_on` is asked at each row and entry.
    ///
    /// # Errors
    /// [`Error`] when the check cannot go on; what does not agree is in the report.
    pub fn check(
        &self,
        txn: &mut Txn,
        make: &mut MakeAnyEntry<'_>,
        go_on: &mut GoOn<'_>,
    ) -> Result<TableReport, Error> {
        let rows = self.count_all(txn, None, go_on)?;
        let mut report = TableReport { rows, problems: Vec::new() };
        for (at, index) in self.info.indexes.iter().enumerate() {
            if index.building {
                continue;
            }
            let entries = self.count_all(txn, Some(at), go_on)?;
            if entries != rows {
                report.note(|| format!("index '{}': {entries} entries, {rows} rows", index.name));
            }
            let mut make_at =
                |key: &[u8], row: &[u8], entry: &mut EntryBuf| make(at, key, row, entry);
            self.check_index(txn, at, &mut make_at, go_on, &mut report)?;
        }
        Ok(report)
    }

    fn count_all(
        &self,
        txn: &mut Txn,
        index: Option<usize>,
        go_on: &mut GoOn<'_>,
    ) -> Result<u64, Error> {
        let mut scan = self.scan(txn, index, KeyRange::all(), Direction::Up)?;
        let mut count = 0;
        while scan.next(txn)? {
            ask(go_on)?;
            count += 1;
        }
        Ok(count)
    }

    /// Each row has its entry; since there are as many entries as rows, there are no others.
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
            let key = stored_key(index.unique, primary, entry.as_entry());
            let value = stored_value(index.unique, primary, entry.as_entry());
            let found = txn.get_into(&self.indexes[at], &key, &mut there)?;
            if !found || there != value {
                let (name, is) = (&index.name, if found { "another" } else { "no" });
                report.note(|| format!("index '{name}': {is} entry for row {primary:02x?}"));
            }
        }
        Ok(())
    }
}
