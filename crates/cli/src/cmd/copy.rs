//! `weir copy`: a database of the same rows, made anew.
use crate::args::Copy;
use crate::exit::EXIT_OK;
use crate::keys::encryption_of;
use crate::opening::open_to_read;
use anyhow::{Context, Result};
use std::io::Write;
use weir::{CopyOptions, TxnOptions};

/// Copies the database and says what was copied.
pub(crate) fn copy(args: &Copy) -> Result<u8> {
    let db = open_to_read(&args.dir)?;
    let options = CopyOptions {
        store: args.store,
        encryption: args.to_key_file.clone().map(encryption_of),
        is_plain: args.decrypt,
    };
    let mut txn = db.begin(TxnOptions::default());
    let copied = db
        .copy_to_as(&mut txn, &args.to, &options)
        .with_context(|| format!("copying to {}", args.to.display()))?;
    drop(txn);
    db.close()?;
    writeln!(std::io::stdout(), "{} trees, {} rows", copied.trees, copied.rows)?;
    Ok(EXIT_OK)
}
