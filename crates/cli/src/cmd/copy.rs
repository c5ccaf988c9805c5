//! `weir copy`: a database of the same rows, made anew.
use crate::args::Copy;
use crate::exit::EXIT_OK;
use crate::opening::open_to_read;
use anyhow::{Context, Result};
use std::io::Write;
use weir::TxnOptions;

/// Copies the database and says what was copied.
pub(crate) fn copy(args: &Copy) -> Result<u8> {
    let db = open_to_read(&args.dir)?;
    let store = args.store.unwrap_or_else(|| db.stats().store);
    let mut txn = db.begin(TxnOptions::default());
    let copied = db
        .copy_to_store(&mut txn, &args.to, store)
        .with_context(|| format!("copying to {}", args.to.display()))?;
    drop(txn);
    db.close()?;
    writeln!(std::io::stdout(), "{} trees, {} rows", copied.trees, copied.rows)?;
    Ok(EXIT_OK)
}
