//! A key-value store: put, get, remove, ranges both ways, a batch.
use weirdb::{Batch, Config, Db, Error};

fn count_words(db: &Db, text: &str) -> Result<(), Error> {
    let words = db.open_tree("words")?;
    for word in text.split_whitespace() {
        words.add(word, 1)?;
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Error> {
    let dir = tempfile::tempdir().map_err(|source| Error::InvalidInput(source.to_string()))?;
    let db = Config::new().cache_bytes(16 << 20).open(dir.path().join("store"))?;

    let settings = db.open_tree("settings")?;
    settings.put("colour", "green")?;
    settings.put("size", "12")?;
    assert_eq!(settings.get("colour")?.as_deref(), Some(&b"green"[..]));
    assert!(settings.remove("size")?);

    // Several changes at once, in any trees: all of them or none.
    let mut batch = Batch::new();
    batch.put(&settings, "font", "serif");
    batch.remove(&settings, "colour");
    db.apply(&batch)?;

    count_words(&db, "the heron and the egret and the bittern")?;
    let words = db.open_tree("words")?;
    for row in words.range("a".."f").rev() {
        let (word, count) = row?;
        println!("{word:?}: {count:?}");
    }
    assert_eq!(words.add("the", 0)?, 3);
    assert_eq!(words.prefix("e").count(), 1);
    println!("{} words, {} trees", words.len()?, db.tree_names()?.len());
    db.close()
}
