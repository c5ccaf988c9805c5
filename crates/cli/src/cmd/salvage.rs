//! `weir salvage`: what can be read of a database that does not open, in a new one.
use crate::args::Salvage;
use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::opening::{bar, must_exist};
use anyhow::{Context, Result};
use std::io::Write;
use weir_salvage::{Options, Phase};

/// Saves what can be saved, and prints what that is and what is missing.
pub(crate) fn salvage(args: &Salvage) -> Result<u8> {
    must_exist(&args.path)?;
    let page_size = args.page_size.map(|size| size as usize);
    let options = Options {
        page_size,
        pool_bytes: args.pool,
        store: args.store,
        encryption: crate::keys::given(),
    };
    let bar = bar("salvaging");
    let mut progress = |phase, done, of| {
        bar.set_message(match phase {
            Phase::Log => "reading the log",
            Phase::Redo => "bringing pages up to date",
            Phase::Pages => "looking at pages",
            Phase::Rows => "saving rows",
        });
        bar.set_length(of);
        bar.set_position(done);
    };
    let saved = weir_salvage::salvage(&args.path, &args.to, &options, &mut progress);
    bar.finish_and_clear();
    let report = saved
        .with_context(|| format!("salvaging {} to {}", args.path.display(), args.to.display()))?;
    let mut out = std::io::stdout();
    write!(out, "{report}")?;
    writeln!(out, "{} rows saved to {}", report.rows(), args.to.display())?;
    Ok(if report.is_whole() { EXIT_OK } else { EXIT_FINDINGS })
}
