//! Comparing a table's indexes with its rows.
use weir::Txn;

use crate::build::MakeEntry;
use crate::entry::{EntryBuf, stored_key, stored_value};
use crate::error::Error;
use crate::raw::RawTable;
use crate::scan::{Direction, KeyRange};

/// What a check of a table found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableReport {
    /// Rows seen.
    pub rows: u64,
    /// What does not agree. Empty: all indexes agree with the rows.
    pub problems: Vec<String>,
}

/// As [`MakeEntry`], of the index at a place.
pub type MakeAnyEntry<'m> = dyn FnMut(usize, &[u8], &[u8], &mut EntryBuf) -> Result<(), Error> + 'm;

impl RawTable {
    /// Compares, as the transaction sees them, all complete indexes with the rows. `make` gives the
    /// entry of a row in the index at a place.
    ///
    /// # Errors
    /// [`Error`] when the check cannot go on; what does not agree is in the report.
    pub fn check(&self, txn: &mut Txn, make: &mut MakeAnyEntry<'_>) -> Result<TableReport, Error> {
        let mut report = TableReport { rows: self.walk(txn, None)?, problems: Vec::new() };
        for (at, index) in self.info.indexes.iter().enumerate() {
            if index.building {
                continue;
            }
            let entries = self.walk(txn, Some(at))?;
            if entries != report.rows {
                let (name, rows) = (&index.name, report.rows);
                report.problems.push(format!("index '{name}': {entries} entries, {rows} rows"));
            }
            self.check_index(
                txn,
                at,
                &mut |key, row, entry| make(at, key, row, entry),
                &mut report,
            )?;
        }
        Ok(report)
    }

    fn walk(&self, txn: &mut Txn, index: Option<usize>) -> Result<u64, Error> {
        let mut scan = self.scan(txn, index, KeyRange::all(), Direction::Up)?;
        let mut count = 0;
        while scan.next(txn)? {
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
        report: &mut TableReport,
    ) -> Result<(), Error> {
        let index = &self.info.indexes[at];
        let mut scan = self.scan(txn, None, KeyRange::all(), Direction::Up)?;
        let (mut entry, mut there) = (EntryBuf::default(), Vec::new());
        while scan.next(txn)? {
            let primary = scan.tree_key();
            entry.clear();
            make(primary, scan.row(), &mut entry)?;
            let key = stored_key(index.unique, primary, entry.as_entry());
            let value = stored_value(index.unique, primary, entry.as_entry());
            let found = txn.get_into(&self.indexes[at], &key, &mut there)?;
            if !found || there != value {
                let (name, is) = (&index.name, if found { "another" } else { "no" });
                report.problems.push(format!("index '{name}': {is} entry for row {primary:02x?}"));
            }
        }
        Ok(())
    }
}
