//! `weir check`: every page of every tree, and that each page has one owner.
use crate::args::Check;
use crate::opening::{bar, open_existing};
use crate::{EXIT_FINDINGS, EXIT_OK};
use anyhow::{Context, Result};

/// Checks the whole database and prints what is wrong, and where.
pub(crate) fn check(args: &Check) -> Result<u8> {
    let db = open_existing(&args.dir)?;
    let bar = bar("checking");
    let report = db.check(&mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report.with_context(|| format!("checking {}", args.dir.path.display()))?;
    print!("{report}");
    let sound = report.problems.is_empty();
    drop(db);
    Ok(if sound { EXIT_OK } else { EXIT_FINDINGS })
}
