//! A time series: rows by series and moment; the newest first, a window, and old ones removed.
use std::cmp::Reverse;
use std::time::Duration;

use weirdb::{Db, Durability, Error, TxnOptions, TypedTree};

/// Since the series began; turned, so that the newest comes first.
type Moment = Reverse<Duration>;

fn at(seconds: u64) -> Moment {
    Reverse(Duration::from_secs(seconds))
}

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let db = Db::open(dir.path().join("store"))?;
    let points: TypedTree<(String, Moment), f64> = db.typed_tree("points")?;

    // Many rows in a transaction, which need not be on the disk at once.
    let lazy = TxnOptions::new().durability(Durability::Lazy);
    for minute in 0..60u64 {
        db.transact(lazy, |txn| {
            for second in (0..60).step_by(10) {
                let seconds = minute * 60 + second;
                for (series, height) in [("river", 2.0), ("weir", 3.5)] {
                    let level = height + (seconds as f64 / 600.0).sin() / 10.0;
                    points.put(txn, &(series.into(), at(seconds)), &level)?;
                }
            }
            Ok::<(), Error>(())
        })?;
    }
    db.sync()?;

    let now = db.read();
    let newest = points.prefix(&now, &("weir".to_string(),)).next().transpose()?;
    let ((_, moment), level) = newest.ok_or(Error::InvalidInput("there are no points".into()))?;
    assert_eq!(moment, at(3590));
    println!("the weir, newest: {level:.3} m");

    // Ten minutes: from the newer to the older.
    let window = ("river".to_string(), at(1200))..("river".to_string(), at(600));
    let levels: Vec<f64> = points
        .range(&now, window)
        .map(|row| row.map(|(_, level)| level))
        .collect::<Result<_, _>>()?;
    assert_eq!(levels.len(), 60);
    println!("the river, mean: {:.3} m", levels.iter().sum::<f64>() / levels.len() as f64);

    // All that is older than half an hour goes, some rows a transaction.
    let end = ("weir".to_string(), Reverse(Duration::ZERO));
    loop {
        let old: Vec<_> = points
            .range(&db.read(), ("weir".to_string(), at(1799))..=end.clone())
            .take(50)
            .map(|row| row.map(|(key, _)| key))
            .collect::<Result<_, _>>()?;
        if old.is_empty() {
            break;
        }
        db.transact(lazy, |txn| old.iter().try_for_each(|key| points.remove(txn, key).map(drop)))?;
    }
    assert_eq!(points.prefix(&db.read(), &("weir".to_string(),)).count(), 180);
    assert_eq!(points.prefix(&now, &("weir".to_string(),)).count(), 360, "as it was then");
    db.close()
}
