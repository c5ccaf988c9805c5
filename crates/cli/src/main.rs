//! The `weir` command: measures, checks and looks into databases. Everything it does goes through
//! the public API of `weir` and `weir-bench`; this crate parses, prints and chooses exit codes.
#![forbid(unsafe_code)]

mod args;
mod cmd;
mod opening;
mod text;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

/// All is well. (CLI-1)
const EXIT_OK: u8 = 0;
/// It ran, and what it found is not well: problems in a check, a run that could not be verified, a
/// key that is not there.
const EXIT_FINDINGS: u8 = 1;
/// It could not run: bad input, no database there, a device that fails. (clap uses the same.)
const EXIT_CANNOT: u8 = 2;
/// Ended by Ctrl-C, as shells have it: 128 + SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.command {
        Command::Bench(args) => cmd::bench(*args),
        Command::Lab(args) => cmd::lab(&args),
        Command::Check(args) => cmd::check(&args),
        Command::Copy(args) => cmd::copy(&args),
        Command::Dump(args) => cmd::dump(&args),
        Command::Stat(args) => cmd::stat(&args),
        Command::Advise(args) => cmd::advise(&args),
        Command::Trees(args) => cmd::trees(&args),
        Command::Get(args) => cmd::get(&args),
        Command::Put(args) => cmd::put(&args),
        Command::Delete(args) => cmd::delete(&args),
        Command::Scan(args) => cmd::scan(&args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // `weir scan | head`: the reader has seen enough.
        Err(error) if text::is_broken_pipe(&error) => ExitCode::from(EXIT_OK),
        Err(error) => {
            eprintln!("weir: {error:#}");
            ExitCode::from(EXIT_CANNOT)
        }
    }
}
