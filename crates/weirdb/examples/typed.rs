//! Keys and values with types: a tuple as the key, a struct as the value.
//!
//! With the feature `serde`, `weirdb::serde_value!(Reading);` would stand for the `impl` below.
use weirdb::{Cause, Db, Error, Malformed, TxnOptions, TypedTree, Value};

#[derive(Clone, PartialEq, Debug)]
struct Reading {
    celsius: f32,
    percent: u8,
}

impl Value for Reading {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Cause> {
        out.extend_from_slice(&self.celsius.to_le_bytes());
        out.push(self.percent);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, Cause> {
        let Some((celsius, [percent])) = bytes.split_first_chunk() else {
            return Err(Malformed("a reading has five bytes").into());
        };
        Ok(Reading { celsius: f32::from_le_bytes(*celsius), percent: *percent })
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let db = Db::open(dir.path().join("store"))?;
    // By room, then by hour.
    let readings: TypedTree<(String, u32), Reading> = db.typed_tree("readings")?;
    db.transact(TxnOptions::new(), |txn| {
        for hour in 0..24u32 {
            for (room, warmer) in [("attic", 4.0), ("cellar", -6.0)] {
                let reading = Reading { celsius: 18.0 + warmer + hour as f32 / 8.0, percent: 55 };
                readings.insert(txn, &(room.to_string(), hour), &reading)?;
            }
        }
        Ok::<(), Error>(())
    })?;

    let now = db.read();
    let noon = readings.get(&now, &("attic".to_string(), 12))?;
    assert_eq!(noon, Some(Reading { celsius: 23.5, percent: 55 }));
    let mut warmest = f32::MIN;
    for row in readings.prefix(&now, &("cellar".to_string(),)) {
        let ((_, hour), reading) = row?;
        println!("cellar at {hour}: {} degrees", reading.celsius);
        warmest = warmest.max(reading.celsius);
    }
    assert_eq!(warmest, 12.0 + 23.0 / 8.0);
    let evening = ("attic".to_string(), 18)..("attic".to_string(), 24);
    assert_eq!(readings.range(&now, evening).count(), 6);
    assert_eq!(
        readings.last(&now)?.map(|((room, hour), _)| (room, hour)),
        Some(("cellar".into(), 23))
    );
    db.close()
}
