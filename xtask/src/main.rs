//! Checks of the tree itself: `cargo run -p xtask -- tidy`; of what it is linked with: `licences`;
//! the notices that go with it: `notices`; the table of ranks for its page: `locks`; the tables
//! of figures for theirs: `benchmarks`; and what is published, packed: `package`.
#![forbid(unsafe_code)]

mod figures;
mod lexer;
mod licences;
mod package;
mod rules;
mod tree;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: cargo run -p xtask -- \
                     tidy [DIRECTORY] | locks | benchmarks | \
                     licences | notices PACKAGE... | package [verify]";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(root()?),
        ["locks"] => locks(root()?),
        ["benchmarks"] => benchmarks(root()?),
        ["licences"] => {
            let crates = licences::check(root()?)?;
            println!("licences: {crates} crates of others, all may be linked");
            Ok(ExitCode::SUCCESS)
        }
        ["package"] => pack(false),
        ["package", "verify"] => pack(true),
        ["notices", ref packages @ ..] if !packages.is_empty() => {
            print!("{}", licences::notices(root()?, packages)?);
            Ok(ExitCode::SUCCESS)
        }
        ["tidy", root] => tidy(Path::new(root)),
        _ => bail!(USAGE),
    }
}

/// Packs what is published.
fn pack(verify: bool) -> Result<ExitCode> {
    let (copy, packages) = package::package(root()?, verify)?;
    println!("package: {packages} packages in {}/target/package", copy.display());
    Ok(ExitCode::SUCCESS)
}

/// The root of the tree.
fn root() -> Result<&'static Path> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().context("xtask lies in the root of the tree")
}

/// Writes the table of ranks into its page.
fn locks(root: &Path) -> Result<ExitCode> {
    let path = root.join(rules::locks::PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let page =
        rules::locks::page_with_table(&page).context("the page has no place for the table")?;
    std::fs::write(&path, page)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the tables of figures into their page.
fn benchmarks(root: &Path) -> Result<ExitCode> {
    let path = root.join(rules::benchmarks::PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let set_text = |set: &str| std::fs::read_to_string(root.join(set)).ok();
    let (page, sets) =
        rules::benchmarks::page_with_tables(&page, &set_text).map_err(anyhow::Error::msg)?;
    std::fs::write(&path, page)?;
    println!("benchmarks: {} tables in {}", sets.len(), rules::benchmarks::PAGE);
    Ok(ExitCode::SUCCESS)
}

/// Prints every finding as `path:line: rule: what to do`, so that an editor can jump to it.
fn tidy(root: &Path) -> Result<ExitCode> {
    let tree = tree::load(root)?;
    let (mut report, mut found) = (String::new(), 0);
    for rule in rules::RULES {
        for finding in (rule.check)(&tree) {
            let (path, line, name) = (&finding.path, finding.line, rule.name);
            writeln!(report, "{path}:{line}: {name}: {}", finding.what)?;
            found += 1;
        }
    }
    for note in rules::notes(&tree) {
        writeln!(report, "note: {}: {}", note.path, note.what)?;
    }
    let (files, rules) = (tree.files.len(), rules::RULES.len());
    writeln!(report, "tidy: {files} files, {rules} rules, {found} findings")?;
    // A reader that leaves early (`| head`) does not change the verdict.
    let _ = std::io::stdout().write_all(report.as_bytes());
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
