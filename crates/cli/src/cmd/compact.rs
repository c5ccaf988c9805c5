//! `weir compact`: trees made dense.
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use weir::{CompactOptions, Compacted, Db, format_size};

use super::compact_through::compact_through;
use super::entries::existing_tree;
use super::stat::NO_HOLES;
use crate::args_trees::Compact;
use crate::exit::{EXIT_INTERRUPTED, EXIT_OK};
use crate::opening::{bar, interrupted, is_in_use, open_existing};

/// So long it is waited for blocks to go back to the file system, which come late.
const GIVEN_BACK_WAIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
/// Without anything to give back for so long, all has gone.
const SETTLED: Duration = Duration::from_secs(1);
/// Without anything that goes back for so long, none does: pages are held.
const QUIET: Duration = Duration::from_secs(8);

/// Compacts the trees, and says what that came to.
pub(crate) fn compact(args: &Compact) -> Result<u8> {
    let db = match open_existing(&args.dir) {
        Err(e) if is_in_use(&e) => return compact_through(args, e),
        opened => opened?,
    };
    let stop = interrupted()?;
    let names = match args.trees.is_empty() {
        true => db.tree_names()?,
        false => args.trees.clone(),
    };
    // None is begun with where one is not there.
    for name in &names {
        existing_tree(&db, name)?;
    }
    let on_disk = db.stats().data_on_disk_bytes;
    for name in &names {
        let done = compact_tree(&db, name, args.rate, &stop)?;
        say(name, &done)?;
    }
    give_back(&db, &stop)?;
    let sizes = (on_disk, db.stats().data_on_disk_bytes);
    if let (Some(before), Some(after)) = sizes {
        let sizes = (format_size(before), format_size(after));
        writeln!(std::io::stdout(), "data on disk: {}, before: {}", sizes.1, sizes.0)?;
    }
    if !db.stats().gives_back {
        writeln!(std::io::stdout(), "holes: {NO_HOLES}")?;
    }
    db.close()?;
    Ok(if stop.load(Ordering::Relaxed) { EXIT_INTERRUPTED } else { EXIT_OK })
}

pub(super) fn say(name: &str, done: &Compacted) -> Result<()> {
    let Compacted { leaves, pages_freed, pages_moved, next } = done;
    let ended = if next.is_some() { " (interrupted)" } else { "" };
    let pages = format!("{pages_freed} pages freed, {pages_moved} moved");
    writeln!(std::io::stdout(), "tree {name}: {pages}, {leaves} leaves are dense{ended}")?;
    Ok(())
}

fn compact_tree(db: &Db, name: &str, rate: Option<u64>, stop: &AtomicBool) -> Result<Compacted> {
    let tree = existing_tree(db, name)?;
    let bar = bar("compacting");
    bar.set_length(tree.size()?.leaf_pages);
    let options = CompactOptions {
        bytes_per_second: Some(rate.unwrap_or(u64::MAX)),
        ..CompactOptions::default()
    };
    let done = tree.compact(&options, &mut |done| {
        bar.set_position(done.leaves + done.pages_freed);
        !stop.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    done.with_context(|| format!("compacting the tree '{name}'"))
}

/// Waits until what is free has gone back to the file system, behind checkpoints.
fn give_back(db: &Db, stop: &AtomicBool) -> Result<()> {
    let began = Instant::now();
    let (mut last, mut changed, mut more) = (None, began, began);
    while db.stats().gives_back && !stop.load(Ordering::Relaxed) {
        db.checkpoint().context("writing all pages")?;
        let now = db.stats().data_on_disk_bytes;
        if last != now {
            (last, changed) = (now, Instant::now());
        }
        if db.is_giving_back() {
            more = Instant::now();
        }
        if more.elapsed() > SETTLED
            || changed.elapsed() > QUIET
            || began.elapsed() > GIVEN_BACK_WAIT
        {
            break;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
