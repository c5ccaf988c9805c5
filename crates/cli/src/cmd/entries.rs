//! `weir get`, `put`, `delete` and `scan`: single entries, for people.
use crate::args::{Delete, Get, Put, Scan};
use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::opening::{open_existing, open_forced, open_or_create};
use crate::text::show_bytes;
use anyhow::{Context, Result, bail};
use std::io::Write;
use weir::{Db, Durability, Tree};

/// The tree, or an error that says which there are.
pub(super) fn existing_tree(db: &Db, name: &str) -> Result<Tree> {
    if let Some(tree) = db.tree(name)? {
        return Ok(tree);
    }
    match db.tree_names()?.as_slice() {
        [] => bail!("there is no tree '{name}'; there are no trees at all"),
        names => bail!("there is no tree '{name}'; there are: {}", names.join(", ")),
    }
}

/// Prints a value.
pub(crate) fn get(args: &Get) -> Result<u8> {
    let db = open_forced(&args.dir, &args.forced)?;
    let found = existing_tree(&db, &args.tree).and_then(|tree| Ok(tree.get(&args.key)?));
    let value = args.forced.explain(found)?;
    let code = match value {
        Some(value) => {
            writeln!(std::io::stdout(), "{}", show_bytes(&value))?;
            EXIT_OK
        }
        None => {
            eprintln!("weir: there is no key {} in '{}'", show_bytes(&args.key), args.tree);
            EXIT_FINDINGS
        }
    };
    args.forced.close(db, code)
}

/// Puts a value, synced.
pub(crate) fn put(args: &Put) -> Result<u8> {
    let db = open_or_create(&args.dir)?;
    let tree = match db.tree(&args.tree)? {
        Some(tree) => tree,
        None => db.create_tree(&args.tree)?,
    };
    tree.put(&args.key, &args.value, Durability::Synced)
        .with_context(|| format!("putting {}", show_bytes(&args.key)))?;
    drop(tree);
    db.close()?;
    Ok(EXIT_OK)
}

/// Deletes a key, synced.
pub(crate) fn delete(args: &Delete) -> Result<u8> {
    let db = open_existing(&args.dir)?;
    let was_there = existing_tree(&db, &args.tree)?.delete(&args.key, Durability::Synced)?;
    db.close()?;
    if was_there {
        return Ok(EXIT_OK);
    }
    eprintln!("weir: there is no key {} in '{}'", show_bytes(&args.key), args.tree);
    Ok(EXIT_FINDINGS)
}

/// Prints entries in order.
pub(crate) fn scan(args: &Scan) -> Result<u8> {
    let db = open_forced(&args.dir, &args.forced)?;
    let printed = existing_tree(&db, &args.tree).and_then(|tree| print_entries(&tree, args));
    let code = args.forced.close(db, EXIT_OK)?;
    args.forced.explain(printed)?;
    Ok(code)
}

fn print_entries(tree: &Tree, args: &Scan) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut cursor = tree.cursor();
    let mut on = match (args.reverse, args.from.as_deref()) {
        (false, None) => cursor.seek_first()?,
        (false, Some(from)) => cursor.seek(from)?,
        (true, None) => cursor.seek_last()?,
        (true, Some(from)) => cursor.seek_before(from)?,
    };
    let mut left = args.limit.unwrap_or(u64::MAX);
    while on && left > 0 {
        let past = match args.to.as_deref() {
            Some(to) if args.reverse => cursor.key() < to,
            Some(to) => cursor.key() >= to,
            None => false,
        };
        if past {
            break;
        }
        let key = show_bytes(cursor.key());
        writeln!(out, "{key}\t{}", show_bytes(cursor.value()?))?;
        left -= 1;
        on = if args.reverse { cursor.prev()? } else { cursor.next()? };
    }
    out.flush()?;
    Ok(())
}
