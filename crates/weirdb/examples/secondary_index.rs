//! A secondary index: a tree of its own, changed in the same transaction as the rows.
//!
//! `weirdb` has no tables: columns, unique keys and indexes that are built while writers go on are
//! in the crate `weir-table` below it.
use weirdb::{Db, Error, ReadTxn, TxnOptions, TypedTree, WriteTxn};

/// People by number, and their numbers by city.
struct People {
    rows: TypedTree<u64, String>,
    by_city: TypedTree<(String, u64), ()>,
}

/// A row is its city, a comma, and the name.
fn city(row: &str) -> String {
    row.split(',').next().unwrap_or_default().to_string()
}

impl People {
    fn open(db: &Db) -> Result<Self, Error> {
        Ok(People { rows: db.typed_tree("people")?, by_city: db.typed_tree("people by city")? })
    }

    fn put(&self, txn: &mut WriteTxn, number: u64, row: &str) -> Result<(), Error> {
        // Locked, so that the entry that goes is the one that is there.
        if let Some(old) = self.rows.get_for_update(txn, &number)? {
            self.by_city.remove(txn, &(city(&old), number))?;
        }
        self.rows.put(txn, &number, &row.to_string())?;
        self.by_city.put(txn, &(city(row), number), &())
    }

    /// From one snapshot: index and rows agree.
    fn in_city(&self, now: &ReadTxn, city: &str) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for entry in self.by_city.prefix(now, &(city.to_string(),)) {
            let ((_, number), ()) = entry?;
            found.extend(self.rows.get(now, &number)?);
        }
        Ok(found)
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let db = Db::open(dir.path().join("store"))?;
    let people = People::open(&db)?;
    db.transact(TxnOptions::new(), |txn| {
        people.put(txn, 1, "Bremen,Ada")?;
        people.put(txn, 2, "Lyon,Blaise")?;
        people.put(txn, 3, "Bremen,Carl")
    })?;
    let before = db.read();
    db.transact(TxnOptions::new(), |txn| people.put(txn, 1, "Lyon,Ada"))?;

    assert_eq!(people.in_city(&db.read(), "Bremen")?, ["Bremen,Carl"]);
    assert_eq!(people.in_city(&db.read(), "Lyon")?, ["Lyon,Ada", "Lyon,Blaise"]);
    assert_eq!(people.in_city(&before, "Bremen")?, ["Bremen,Ada", "Bremen,Carl"]);
    println!("{:?}", people.in_city(&db.read(), "Lyon")?);
    db.close()
}
