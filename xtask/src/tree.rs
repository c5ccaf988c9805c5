//! The files of the tree, in memory, so that a rule is a pure function and its test needs no disk.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::lexer;

/// One text file. `path` is relative to the root and uses `/`.
pub struct File {
    pub path: String,
    pub text: String,
    /// For Rust files: the text with comments, strings and character literals blanked out.
    pub code: String,
    /// The same, with test code blanked out as well.
    pub shipped: String,
}

impl File {
    pub fn new(path: &str, text: &str) -> File {
        let is_rust = path.ends_with(".rs");
        let code = if is_rust { lexer::code_only(text) } else { String::new() };
        let shipped = if is_test_path(path) { String::new() } else { lexer::without_tests(&code) };
        File { path: path.to_string(), text: text.to_string(), code, shipped }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

fn is_test_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.contains("/tests/")
        || path.contains("/benches/")
        || path.contains("/examples/")
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
        || name.ends_with("_test.rs")
}

pub struct Tree {
    pub files: Vec<File>,
}

impl Tree {
    /// For tests: a tree of the given paths and texts.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| File::new(path, text)).collect() }
    }

    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// Folder names under `crates/` that hold a Cargo.toml, sorted.
    pub fn crates(&self) -> Vec<&str> {
        let mut folders: Vec<&str> = self
            .files
            .iter()
            .filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
            .filter(|folder| !folder.contains('/'))
            .collect();
        folders.sort_unstable();
        folders
    }
}

/// Reads what git tracks or would track; outside a git checkout, what a walk finds.
pub fn load(root: &Path) -> Result<Tree> {
    let mut paths = match git_paths(root) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            paths
        }
    };
    paths.sort_unstable();
    let mut files = Vec::new();
    for path in paths {
        // Tracked and deleted: nothing here for a rule to read.
        let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
        // What is not text is there, so that a page may name it.
        let text = String::from_utf8(bytes).unwrap_or_default();
        files.push(File::new(&path, &text));
    }
    Ok(Tree { files })
}

fn git_paths(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect())
}

fn walk(root: &Path, under: &str, paths: &mut Vec<String>) -> Result<()> {
    let folder = root.join(under);
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if ["target", ".git", "weir-data", "rivals-data", "corpus", "artifacts"]
            .contains(&name.as_str())
        {
            continue;
        }
        let path = if under.is_empty() { name } else { format!("{under}/{name}") };
        if entry.file_type()?.is_dir() {
            walk(root, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
