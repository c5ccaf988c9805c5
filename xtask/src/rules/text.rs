//! Rules about a file's text, whatever it says: its head, its size, its characters.

use super::Finding;
use crate::tree::Tree;

/// No Rust file is longer.
pub const LINES_MAX: usize = 800;
/// Rust files aim to be no longer.
pub const LINES_AIM: usize = 400;
/// No line of Rust is wider.
pub const COLUMNS_MAX: usize = 100;

/// Each Rust file begins by saying what it is for.
pub fn module_heads(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| !file.text.trim_start().starts_with("//!"))
        .map(|file| Finding::new(&file.path, 1, "begin the file with //! and what it is for"))
        .collect()
}

pub fn file_lengths(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| file.text.lines().count() > LINES_MAX)
        .map(|file| {
            let lines = file.text.lines().count();
            Finding::new(&file.path, lines, format!("{lines} lines; split it below {LINES_MAX}"))
        })
        .collect()
}

/// Files past the aim and within the limit.
pub fn long_files(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| (LINES_AIM + 1..=LINES_MAX).contains(lines))
        .map(|(file, lines)| {
            Finding::new(&file.path, lines, format!("{lines} lines, the aim is {LINES_AIM}"))
        })
        .collect()
}

pub fn columns(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, line) in file.text.lines().enumerate() {
            let width = line.chars().count();
            if width > COLUMNS_MAX {
                let what = format!("{width} columns; break it at {COLUMNS_MAX}");
                findings.push(Finding::new(&file.path, number + 1, what));
            }
        }
    }
    findings
}

fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ends = [".rs", ".toml", ".sh", ".c", ".h", ".cc"];
    ends.iter().any(|end| name.ends_with(end)) || name == "Makefile" || path == ".ci/run"
}

/// Sources are ASCII: a lookalike letter in code deceives the reader.
pub fn ascii(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_source(&file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(c) = line.chars().find(|c| !c.is_ascii()) {
                let what = format!("character U+{:04X}; write it in ASCII", u32::from(c));
                findings.push(Finding::new(&file.path, number + 1, what));
            }
        }
    }
    findings
}

/// In halves, so that this file does not break its own rule.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp", "/t-"), concat!("/ho", "me/")];

/// No file names a directory of the machine it was written on.
pub fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in file.text.lines().enumerate() {
            for path in MACHINE_PATHS {
                // Only where a path begins: "a/work/b" is a relative path.
                let begins = |at: usize| {
                    let before = line[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || "._-})".contains(c))
                };
                if line.match_indices(path).any(|(at, _)| begins(at)) {
                    let what = format!("names {path} of one machine; use a relative path");
                    findings.push(Finding::new(&file.path, number + 1, what));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, text: &str) -> Tree {
        Tree::of(&[(path, text)])
    }

    #[test]
    fn a_module_without_a_head_is_caught() {
        assert_eq!(module_heads(&one("crates/a/src/x.rs", "//! Why.\nfn f() {}")), []);
        assert_eq!(module_heads(&one("crates/a/src/x.rs", "// Why.\nfn f() {}")).len(), 1);
        assert_eq!(module_heads(&one("crates/a/src/x.rs", "")).len(), 1);
    }

    #[test]
    fn a_long_file_is_noted_and_then_caught() {
        for (lines, noted, caught) in [(400, 0, 0), (401, 1, 0), (800, 1, 0), (801, 0, 1)] {
            let tree = one("crates/a/src/x.rs", &"x\n".repeat(lines));
            assert_eq!(long_files(&tree).len(), noted, "{lines}");
            assert_eq!(file_lengths(&tree).len(), caught, "{lines}");
        }
    }

    #[test]
    fn a_wide_line_is_caught_at_its_line() {
        let text = format!("//! x\n{}\n{}", "a".repeat(100), "b".repeat(101));
        let findings = columns(&one("crates/a/src/x.rs", &text));
        assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_letter_outside_ascii_is_caught_in_sources_only() {
        let text = "//! caf\u{e9}";
        assert_eq!(ascii(&one("crates/a/src/x.rs", text)).len(), 1);
        assert_eq!(ascii(&one("Makefile", text)).len(), 1);
        assert_eq!(ascii(&one("README.md", text)).len(), 0);
    }

    #[test]
    fn a_path_of_one_machine_is_caught() {
        for path in MACHINE_PATHS {
            let text = format!("see {path}x");
            assert_eq!(machine_paths(&one("docs/x.md", &text)).len(), 1, "{path}");
        }
        let relative = format!("see some{}x", MACHINE_PATHS[0]);
        assert_eq!(machine_paths(&one("docs/x.md", &relative)), []);
    }
}
