//! Counters that many threads change at once, and transfers between them that lose nothing.
use std::thread;

use weirdb::{Config, Durability, Error, TxnOptions};

const THREADS: u64 = 8;
const EACH: u64 = 100;

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let db = Config::new().durability(Durability::Lazy).open(dir.path().join("store"))?;
    let (visits, accounts) = (db.open_tree("visits")?, db.open_tree("accounts")?);
    for account in 0..4u8 {
        accounts.add([account], 1000)?;
    }
    let total = || -> Result<i64, Error> {
        // One moment of all of them.
        accounts.iter().try_fold(0, |sum, row| {
            let (_, value) = row?;
            let value = value.as_ref().try_into().map(i64::from_le_bytes);
            Ok(sum + value.map_err(|_| Error::InvalidInput("no counter".into()))?)
        })
    };
    thread::scope(|scope| -> Result<(), Error> {
        let run = |of: u64| {
            let (db, visits, accounts) = (&db, &visits, &accounts);
            move || -> Result<(), Error> {
                for n in 0..EACH {
                    // Adding to one counter waits for others that do; nothing is tried again.
                    visits.add(format!("page {}", n % 3), 1)?;
                    let (from, to) = ([(of % 4) as u8], [((of + n) % 4) as u8]);
                    db.transact(TxnOptions::new(), |txn| {
                        if txn.add(accounts, from, -1)? < 0 {
                            return Err(Error::InvalidInput("there is nothing left".into()));
                        }
                        txn.add(accounts, to, 1)
                    })?;
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|of| scope.spawn(run(of))).collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            assert_eq!(total()?, 4000, "at every moment");
            thread::yield_now();
        }
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let visited: i64 = (0..3).map(|n| visits.add(format!("page {n}"), 0)).sum::<Result<_, _>>()?;
    assert_eq!(visited as u64, THREADS * EACH);
    assert_eq!(total()?, 4000);
    println!("{visited} visits, 4000 on the accounts");
    db.close()
}
