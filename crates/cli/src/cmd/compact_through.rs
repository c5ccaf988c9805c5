//! `weir compact` of a database that another process has open: that process compacts its trees.
use std::io::Write;
use std::sync::atomic::Ordering;

use anyhow::{Error, Result};
use weir::{COMPACT, CompactAnswer, CompactRequest};

use super::compact::say;
use super::through::Through;
use crate::args_trees::Compact;
use crate::exit::{EXIT_INTERRUPTED, EXIT_OK};
use crate::opening::{bar, interrupted};

const BY_HAND: &str = "the process that has the database open must compact it: OPTIMIZE TABLE on a \
                       MariaDB server, Tree::compact in a program; or end it first";
const GOES_BACK: &str = "What is free goes back to the file system after the next checkpoints of \
                         the process that has the database open.";

/// Has the process compact its trees, and prints what that came to. `in_use`: why the database
/// could not be opened here.
pub(super) fn compact_through(args: &Compact, in_use: Error) -> Result<u8> {
    let dir = &*args.dir.path;
    let through = Through { dir, question: COMPACT, what: "compaction", by_hand: BY_HAND };
    let request = CompactRequest { bytes_per_second: args.rate, trees: args.trees.clone() };
    let stop = interrupted()?;
    let put = through.put(request.ask(dir), in_use)?;
    let (text, in_use) = put.answer(&bar("compacting"), &|| stop.load(Ordering::Relaxed))?;
    if text.is_empty() && stop.load(Ordering::Relaxed) {
        return Ok(EXIT_INTERRUPTED);
    }
    let answer = CompactAnswer::from_text(&text).unwrap_or_else(|| CompactAnswer {
        failed: Some("its answer cannot be read".into()),
        ..CompactAnswer::default()
    });
    for (name, done, is_gone) in &answer.trees {
        match is_gone {
            true => writeln!(std::io::stdout(), "tree {name}: dropped meanwhile")?,
            false => say(name, done)?,
        }
    }
    if let Some(why) = answer.failed {
        return Err(in_use.context(format!("it could not compact all ({why}): {BY_HAND}")));
    }
    writeln!(std::io::stdout(), "{GOES_BACK}")?;
    let is_ended = answer.trees.iter().any(|(_, done, _)| done.next.is_some());
    Ok(if is_ended || stop.load(Ordering::Relaxed) { EXIT_INTERRUPTED } else { EXIT_OK })
}
