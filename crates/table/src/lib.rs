//! Tables: rows of columns with any number of indexes that always agree with them, over the
//! transactions of `weir`. Two ways in: [`Table`], of values with a [`Schema`], and [`RawTable`],
//! of keys and rows that the caller has encoded. Definitions change by [`Tables`].
#![forbid(unsafe_code)]
mod build;
mod catalog;
mod catalog_row;
mod check;
mod columns;
mod copy;
mod delta;
mod descriptor;
mod entry;
mod error;
mod export;
mod fill;
mod fold;
mod import;
mod key;
mod later;
mod layout;
mod layouts;
mod owner;
mod range;
mod raw;
mod redefine;
mod rewrite;
mod rewrite_changes;
mod rewrite_values;
mod row;
mod run;
mod scan;
mod schema;
mod sequence;
mod several;
mod shared;
mod span;
mod stats;
mod table;
#[cfg(test)]
mod testing;
mod value;
mod walk;

pub use build::{GoOn, MakeEntry};
pub use catalog::{IndexSpec, Tables};
pub use check::{MakeAnyEntry, TableReport};
pub use columns::ColumnChange;
pub use copy::Copy;
pub use descriptor::{IndexInfo, TableInfo};
pub use entry::{Entry, EntryBuf};
pub use error::Error;
pub use export::{ExportHead, Exported, verify_export};
pub use key::{KeyColumn, Malformed, after_prefix, put_column, take_column, take_columns};
pub use later::RowEntries;
pub use layout::Row;
pub use range::Range;
pub use raw::{RawTable, RowImage};
pub use redefine::{Redefinition, Rename};
pub use rewrite::{MakeRow, RowBuf};
pub use row::{RowCodec, RowColumn};
pub use scan::{Direction, KeyRange, Lock, RawScan};
pub use schema::{Column, Index, KeyPart, Schema, desc};
pub use several::put_entry;
pub use stats::Estimate;
pub use table::Table;
pub use value::{ColumnType, Value};
pub use walk::{RowKey, Scan};
