//! A table of birds: made, filled, searched, altered. `cargo run --example birds -- DIR`.
use std::error::Error;
use std::path::PathBuf;

use weir::{Config, Db, Durability, TxnOptions};
use weir_table::{ColumnType, Direction, Index, Range, Schema, Tables, Value, desc};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: birds DIR")?;
    let db = Db::open(&PathBuf::from(dir), Config::default())?;
    let tables = Tables::open(&db)?;
    let schema = Schema::new()
        .column("id", ColumnType::U64)
        .column("species", ColumnType::Text)
        .nullable("ring", ColumnType::U32)
        .column("grams", ColumnType::F64)
        .primary_key(["id"])
        .auto_increment("id")
        .index(Index::unique("by_ring", ["ring"]))
        .index(Index::new("by_species", ["species".into(), desc("grams")]));
    if tables.create_table("birds", &schema)? {
        println!("made the table");
    }
    let birds = tables.open_table("birds")?;

    let mut txn = db.begin(TxnOptions::default());
    for (species, grams) in [("heron", 1_500.0), ("egret", 450.0), ("heron", 1_720.5)] {
        let row = [Value::Null, species.into(), Value::Null, grams.into()];
        let id = birds.insert(&mut txn, &row)?;
        println!("a {species} is number {id:?}");
    }
    txn.commit_durably(Durability::Synced)?;

    let mut txn = db.begin(TxnOptions::default());
    let herons = Range::equal(["heron"]);
    let mut scan = birds.scan(&mut txn, Some("by_species"), &herons, Direction::Up)?;
    let mut heaviest = None;
    while let Some(row) = scan.next(&mut txn)? {
        println!("{row:?}");
        heaviest.get_or_insert(row);
    }
    if let Some(row) = heaviest {
        birds.update(&mut txn, &row[..1], |bird| bird[2] = 4711u32.into())?;
        println!("ringed: {:?}", birds.find(&mut txn, "by_ring", &[4711u32.into()])?);
        birds.update(&mut txn, &row[..1], |bird| bird[2] = Value::Null)?;
    }
    println!("{} birds", birds.count(&mut txn)?);
    txn.commit_durably(Durability::Synced)?;

    // Others may go on writing meanwhile.
    tables.add_index("birds", &Index::new("by_weight", ["grams"]))?;
    println!("checked: {:?}", birds.check(&mut db.begin(TxnOptions::default()))?);
    tables.drop_index("birds", "by_weight")?;
    Ok(db.close()?)
}
