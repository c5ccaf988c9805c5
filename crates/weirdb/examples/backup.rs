//! A backup while writers go on: a copy of one moment, whole and ready to be opened.
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use weirdb::{Config, Create, Durability, Error, TxnOptions};

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let config = Config::new().durability(Durability::Lazy);
    let db = config.open(dir.path().join("store"))?;
    let (debit, credit) = (db.open_tree("debit")?, db.open_tree("credit")?);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| -> Result<(), Error> {
        let writer = scope.spawn(|| -> Result<u64, Error> {
            let mut number = 0u64;
            while number < 10_000 && !stop.load(Ordering::Relaxed) {
                db.transact(TxnOptions::new(), |txn| {
                    txn.put(&debit, number.to_be_bytes(), "10")?;
                    txn.put(&credit, number.to_be_bytes(), "10")
                })?;
                number += 1;
            }
            Ok(number)
        });
        for copy in 0..3 {
            let to = dir.path().join(format!("backup {copy}"));
            let backup = db.read().backup(&to)?;
            // Of two rows that are written together there are both or none.
            let copied = config.clone().create(Create::Never).open(&to)?;
            let rows = copied.open_tree("debit")?.len()?;
            assert_eq!(copied.open_tree("credit")?.len()?, rows);
            assert_eq!(backup.rows, 2 * rows);
            assert!(copied.check(|_, _| {})?.problems.is_empty());
            copied.close()?;
            println!("backup {copy}: {rows} bookings");
        }
        stop.store(true, Ordering::Relaxed);
        match writer.join() {
            Ok(written) => println!("{} written meanwhile", written?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(())
    })?;
    db.close()
}
