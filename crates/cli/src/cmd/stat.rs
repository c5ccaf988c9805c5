//! `weir stat` and `weir trees`: what a database consists of.
use crate::args::{Stat, Trees};
use crate::exit::EXIT_OK;
use crate::opening::open_forced;
use crate::text::show_bytes;
use anyhow::{Context, Result};
use std::io::Write;
use weir::{StatsSnapshot, format_size};

/// What is said where the file system makes no holes.
pub(super) const NO_HOLES: &str = "this file system makes none: room of free pages is used again, \
                                   and does not go back to it";

/// Prints files, log, trees and counters.
pub(crate) fn stat(args: &Stat) -> Result<u8> {
    let db = open_forced(&args.dir, &args.forced)?;
    let dir = &args.dir.path;
    let seen = db.stats();
    let names = db.tree_names()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "database    {}", dir.display())?;
    writeln!(out, "device      {}", seen.device_description)?;
    match db.key_name() {
        Some(name) => writeln!(out, "encryption  AES-256-HCTR2, {name}")?,
        None => writeln!(out, "encryption  none")?,
    }
    writeln!(
        out,
        "pages       {} allocated of {} bytes ({})",
        seen.pages_allocated,
        seen.page_size,
        format_size(seen.pages_allocated * seen.page_size as u64),
    )?;
    writeln!(out, "data file   {}", data_file(&seen))?;
    if seen.segments.is_none() && weir::punches_holes(dir) == Some(false) {
        writeln!(out, "holes       {NO_HOLES}")?;
    }
    if let Some((codec, look)) = seen.segments.and_then(|look| Some((look.codec?, look))) {
        writeln!(out, "packing     {codec} now, of trees that ask for none: {}", look.codec_why)?;
    }
    writeln!(
        out,
        "log         ends at {}, durable to {}; capacity {}; checkpoint age {} of at most {}",
        seen.log_end,
        seen.log_durable,
        format_size(seen.log_capacity_bytes),
        format_size(seen.checkpoint_age_bytes),
        format_size(seen.checkpoint_age_limit_bytes),
    )?;
    if let Some(observed) = db.observed() {
        writeln!(out, "advice      {}", super::advise::line(&observed))?;
    }
    writeln!(out, "trees       {}", names.len())?;
    for name in &names {
        writeln!(out, "  {}", show_bytes(name.as_bytes()))?;
    }
    writeln!(out, "files")?;
    let mut files = std::fs::read_dir(dir)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .with_context(|| format!("listing {}", dir.display()))?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files {
        let bytes = file.metadata()?.len();
        writeln!(out, "  {:<24} {:>12}", file.file_name().to_string_lossy(), format_size(bytes))?;
    }
    writeln!(out, "metrics (counters since opening)")?;
    let mut lines = Vec::new();
    db.visit_metrics(&mut |metric, value| {
        let (name, unit, help) = (&metric.name, metric.unit, metric.help);
        lines.push(format!("  {name:<36} {value:>14} {unit:<12} {help}"));
    });
    for line in lines {
        writeln!(out, "{}", line.trim_end())?;
    }
    drop(out);
    args.forced.close(db, EXIT_OK)
}

/// How large the file of pages is, and how much of it is there.
fn data_file(seen: &StatsSnapshot) -> String {
    let whole = format_size(seen.data_file_bytes);
    match seen.data_on_disk_bytes {
        Some(bytes) if bytes < seen.data_file_bytes => {
            format!("{whole}, of which {} on disk", format_size(bytes))
        }
        _ => whole,
    }
}

/// Prints the trees' names, one a line.
pub(crate) fn trees(args: &Trees) -> Result<u8> {
    let db = open_forced(&args.dir, &args.forced)?;
    let mut out = std::io::stdout().lock();
    for name in db.tree_names()? {
        writeln!(out, "{}", show_bytes(name.as_bytes()))?;
    }
    drop(out);
    args.forced.close(db, EXIT_OK)
}
