//! Rows of the catalog of tables: their keys, and the transactions that change them.
use weir::{Db, Isolation, Txn, TxnOptions};

/// A transaction that looks at what is committed now.
pub(crate) fn begin(db: &Db) -> Txn {
    let isolation = Isolation::ReadCommitted;
    db.begin(TxnOptions { isolation, ..TxnOptions::default() })
}

/// The key of a table's row of this kind.
pub(crate) fn key_of(kind: u8, id: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&id.to_be_bytes());
    key
}
