//! `weir man DIR`: the manual pages, made of the same words as the help. `weir.1` is the whole,
//! `weir-bench-update.1` one command of it.
use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::{Args, Man};
use crate::exit::EXIT_OK;

pub(crate) fn man(args: &Man) -> Result<u8> {
    clap_mangen::generate_to(Args::command(), &args.dir)
        .with_context(|| format!("writing manual pages to {}", args.dir.display()))?;
    Ok(EXIT_OK)
}
