//! The rules. Each is a pure function of the tree, and each has a test that breaks it.

pub mod benchmarks;
mod book;
mod circles;
mod code;
mod crates;
mod docs;
pub mod locks;
mod text;
mod words;

use crate::tree::Tree;

/// One place where the tree breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// 1-based; 1 where the whole file is meant.
    pub line: usize,
    pub what: String,
}

impl Finding {
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_string(), line, what: what.into() }
    }
}

pub struct Rule {
    pub name: &'static str,
    pub check: fn(&Tree) -> Vec<Finding>,
}

pub const RULES: &[Rule] = &[
    Rule { name: "floors", check: crates::floors },
    Rule { name: "lock-files", check: crates::lock_files },
    Rule { name: "readme-headings", check: crates::readme_headings },
    Rule { name: "forbid-unsafe", check: crates::forbids_unsafe },
    Rule { name: "circles", check: circles::circles },
    Rule { name: "module-head", check: text::module_heads },
    Rule { name: "file-length", check: text::file_lengths },
    Rule { name: "columns", check: text::columns },
    Rule { name: "ascii", check: text::ascii },
    Rule { name: "machine-path", check: text::machine_paths },
    Rule { name: "pronouns", check: words::pronouns },
    Rule { name: "phrases", check: words::phrases },
    Rule { name: "old-names", check: words::old_names },
    Rule { name: "names", check: words::names },
    Rule { name: "unsafe-address", check: code::unsafe_addresses },
    Rule { name: "banned-call", check: code::banned_calls },
    Rule { name: "unwrap-ratchet", check: code::unwrap_ratchet },
    Rule { name: "where-is", check: docs::where_is },
    Rule { name: "links", check: book::links },
    Rule { name: "named-paths", check: book::named_paths },
    Rule { name: "summary", check: book::summary },
    Rule { name: "threads", check: book::threads },
    Rule { name: "benchmarks-page", check: benchmarks::page },
    Rule { name: "locks-page", check: locks::page },
    Rule { name: "ranked-locks", check: locks::ranked },
];

/// What is worth knowing and breaks nothing.
pub fn notes(tree: &Tree) -> Vec<Finding> {
    let mut notes = text::long_files(tree);
    notes.extend(code::stale_addresses(tree));
    notes.extend(code::slack_in_ratchet(tree));
    notes
}
