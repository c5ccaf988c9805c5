//! Puts one value of a given length, reads it back, replaces it, and checks the tree:
//! `cargo run --release --example large_value -- 4GiB DIR`. Needs memory for three copies of it,
//! and a directory with room for two.
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use weir::{Config, Db, Durability, format_size, parse_size};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(size), Some(dir)) = (args.next(), args.next()) else {
        return Err("usage: large_value SIZE DIR (for example 1GiB large-value-data)".into());
    };
    // The longest that a value may be is one byte less than 4 GiB.
    let len = parse_size(&size)?.min(u64::from(u32::MAX)) as usize;
    let db = Db::open(&PathBuf::from(dir), Config::default())?;
    let tree = db.open_tree("large")?;
    let byte = |n: usize| (n.wrapping_mul(0x9e37_79b1) >> 13) as u8;
    let value: Vec<u8> = (0..len).map(byte).collect();

    let began = Instant::now();
    tree.put(b"key", &value, Durability::Synced)?;
    report("written", len, began);
    drop(value);

    let began = Instant::now();
    let back = tree.get(b"key")?.ok_or("the value is not there")?;
    report("read", len, began);
    if back.len() != len || (0..len).any(|n| back[n] != byte(n)) {
        return Err("the value read is not the one written".into());
    }
    drop(back);

    tree.put(b"key", b"small", Durability::Synced)?;
    let report = tree.check(&mut |_| {})?;
    println!("replaced; {} row, {} overflow pages left", report.rows, report.overflow_pages);
    Ok(db.close()?)
}

fn report(what: &str, len: usize, began: Instant) {
    let seconds = began.elapsed().as_secs_f64();
    println!("{what}: {} in {seconds:.1} s", format_size(len as u64));
}
