//! The `weir` command: measures, checks and looks into databases. Everything it does goes through
//! the public API of `weir` and `weir-bench`; this crate parses, prints and chooses exit codes.
#![forbid(unsafe_code)]

mod args;
mod args_backup;
mod args_trees;
mod cmd;
mod exit;
mod forced;
mod keys;
mod opening;
mod text;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    keys::set(args.key_file);
    let result = match args.command {
        Command::Bench(args) => cmd::bench(*args),
        Command::Lab(args) => cmd::lab(&args),
        Command::Check(args) => cmd::check(&args),
        Command::Backup(args) => cmd::backup(&args),
        Command::Verify(args) => cmd::verify(&args),
        Command::Repair(args) => cmd::repair(&args),
        Command::Restore(args) => cmd::restore(&args),
        Command::Codec(args) => cmd::codec(&args),
        Command::Compact(args) => cmd::compact(&args),
        Command::Copy(args) => cmd::copy(&args),
        Command::Dump(args) => cmd::dump(&args),
        Command::Salvage(args) => cmd::salvage(&args),
        Command::Key(args) => cmd::key(&args),
        Command::Stat(args) => cmd::stat(&args),
        Command::Advise(args) => cmd::advise(&args),
        Command::Trees(args) => cmd::trees(&args),
        Command::Get(args) => cmd::get(&args),
        Command::Put(args) => cmd::put(&args),
        Command::Delete(args) => cmd::delete(&args),
        Command::Scan(args) => cmd::scan(&args),
        Command::Man(args) => cmd::man(&args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // `weir scan | head`: the reader has seen enough.
        Err(error) if text::is_broken_pipe(&error) => ExitCode::from(exit::EXIT_OK),
        Err(error) => {
            eprintln!("weir: {}", text::Reasons(&error));
            ExitCode::from(exit::EXIT_CANNOT)
        }
    }
}
