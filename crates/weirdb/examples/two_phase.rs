//! Two-phase commit: one transaction over two databases, which a crash between them cannot tear.
use std::path::Path;

use weirdb::{Config, Db, Error};

/// Both have said that they can; the coordinator's word is what counts from then on.
fn transfer(from: &Db, to: &Db, log: &Db, name: &str, amount: i64) -> Result<(), Error> {
    let (mut out, mut into) = (from.write(), to.write());
    out.add(&from.open_tree("accounts")?, "alice", -amount)?;
    into.add(&to.open_tree("accounts")?, "bob", amount)?;
    out.prepare(name)?;
    into.prepare(name)?;
    // The decision: durable when this returns.
    log.open_tree("decided")?.put(name, "commit")
}

/// What is prepared and decided is committed, everything else is rolled back.
fn settle(databases: [&Db; 2], log: &Db) -> Result<(), Error> {
    let decided = log.open_tree("decided")?;
    for db in databases {
        for name in db.prepared() {
            if decided.contains_key(&name)? {
                db.commit_prepared(&name)?;
            } else {
                db.rollback_prepared(&name)?;
            }
        }
    }
    Ok(())
}

fn open(dir: &Path, name: &str) -> Result<Db, Error> {
    Ok(Config::new().cache_bytes(8 << 20).open(dir.join(name))?)
}

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let dir = dir.path();
    {
        let (one, two, log) = (open(dir, "one")?, open(dir, "two")?, open(dir, "log")?);
        one.open_tree("accounts")?.add("alice", 100)?;
        transfer(&one, &two, &log, "first", 30)?;
        settle([&one, &two], &log)?;
        // Prepared and decided, and then the power goes.
        transfer(&one, &two, &log, "second", 20)?;
        // Prepared in one of them, and never decided.
        let mut undecided = one.write();
        undecided.add(&one.open_tree("accounts")?, "carol", 1)?;
        undecided.prepare("third")?;
    }
    let (one, two, log) = (open(dir, "one")?, open(dir, "two")?, open(dir, "log")?);
    assert_eq!(one.prepared(), [&b"second"[..], &b"third"[..]]);
    settle([&one, &two], &log)?;
    assert_eq!(one.open_tree("accounts")?.add("alice", 0)?, 50);
    assert_eq!(two.open_tree("accounts")?.add("bob", 0)?, 50);
    assert_eq!(one.open_tree("accounts")?.get("carol")?, None);
    println!("50 here, 50 there");
    Ok(())
}
