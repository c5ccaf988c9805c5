//! `weir check`: every page of every tree, and that each page has one owner.
use super::check_through::check_through;
use crate::args::Check;
use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::forced::is_damage;
use crate::opening::{bar, is_in_use, open_forced};
use crate::text::Reasons;
use anyhow::{Context, Result};
use std::io::Write;
use weir::{CheckReport, format_size};

/// Checks the whole database and prints what is wrong, and where.
pub(crate) fn check(args: &Check) -> Result<u8> {
    let mut out = std::io::stdout();
    let db = match open_forced(&args.dir, &args.forced) {
        // So damaged that it cannot be opened: a finding, not a failure of the check.
        Err(error) if is_damage(&error) => {
            writeln!(out, "1 problem: {}", Reasons(&error))?;
            return Ok(EXIT_FINDINGS);
        }
        Err(error) if is_in_use(&error) => return check_through(&args.dir.path, error),
        opened => opened?,
    };
    let bar = bar("checking");
    let report = db.check(&mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report.with_context(|| format!("checking {}", args.dir.path.display()))?;
    print_report(&report, db.stats().page_size as u64, &mut out)?;
    if report.problems.is_empty() {
        return args.forced.close(db, EXIT_OK);
    }
    // What is damaged may keep the database from closing in order; the findings are out already.
    if let Err(error) = args.forced.close(db, EXIT_FINDINGS) {
        eprintln!("weir: closing: {error}");
    }
    Ok(EXIT_FINDINGS)
}

fn print_report(report: &CheckReport, page_size: u64, out: &mut dyn Write) -> Result<()> {
    for (name, tree) in &report.trees {
        let name = if name.is_empty() { "(catalog)" } else { name };
        let (pages, leaf_bytes) = (tree.pages.len(), tree.leaves * page_size);
        let full = 100.0 * tree.leaf_bytes_used as f64 / leaf_bytes.max(1) as f64;
        writeln!(
            out,
            "tree {name}: {} rows, {} levels, {pages} pages, leaves {full:.0} % full",
            tree.rows, tree.height
        )?;
    }
    writeln!(
        out,
        "{} pages in use ({}), {} free",
        report.pages_used,
        format_size(report.pages_used * page_size),
        report.pages_free
    )?;
    if report.pages_held > 0 {
        let held = report.pages_held;
        writeln!(
            out,
            "{held} of the pages in use belong to no tree: those are for transactions that are \
             prepared; once they are decided, this check finds what is not needed"
        )?;
    }
    for problem in &report.problems {
        writeln!(out, "problem: {problem}")?;
    }
    match report.problems.len() {
        0 => writeln!(out, "sound")?,
        1 => writeln!(out, "1 problem")?,
        n => writeln!(out, "{n} problems")?,
    }
    Ok(())
}
