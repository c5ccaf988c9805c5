//! Rules about the pages that people read: links lead somewhere, files that are named exist, the
//! book's contents name every page, and the page of threads every thread.

use std::collections::BTreeSet;

use super::Finding;
use crate::tree::Tree;

/// The book's contents, as mdBook has them.
const SUMMARY: &str = "docs/SUMMARY.md";
const BOOK: &str = "docs/";
/// Superseded tables: they name what was there when they were written.
const NOTEBOOK: &str = "docs/notebook/";
const THREADS: &str = "docs/threads.md";
const WORKERS: &str = "crates/weir/src/workers.rs";
/// Where a path in backticks is one of this tree.
const ROOTS: [&str; 6] = ["crates/", "docs/", "fuzz/", "plugin/", "rivals/", "xtask/"];

fn pages(tree: &Tree) -> impl Iterator<Item = &crate::tree::File> {
    tree.files.iter().filter(|file| file.path.ends_with(".md") && !file.path.contains("/target/"))
}

/// The targets of `[text](target)` in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// What lies at `target` seen from the folder of `page`: a path of the tree.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let folder = format!("{path}/");
    tree.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
}

/// A heading as the end of a link names it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_';
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

fn has_heading(text: &str, wanted: &str) -> bool {
    text.lines().filter(|line| line.starts_with('#')).any(|line| {
        let heading = line.trim_start_matches('#');
        anchor(heading) == wanted
    })
}

/// Each link to a file or heading of the tree leads there.
pub fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in pages(tree) {
        for (number, line) in prose(&page.text) {
            for target in targets(line) {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let path =
                    if file.is_empty() { page.path.clone() } else { resolve(&page.path, file) };
                if !exists(tree, &path) {
                    let what = format!("links to {path}, which does not exist");
                    findings.push(Finding::new(&page.path, number, what));
                } else if !heading.is_empty()
                    && tree.file(&path).is_some_and(|file| !has_heading(&file.text, heading))
                {
                    let what = format!("links to a heading that {path} does not have: {heading}");
                    findings.push(Finding::new(&page.path, number, what));
                }
            }
        }
    }
    findings
}

/// The lines that are not within a block of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        (!in_code).then_some((number + 1, line))
    })
}

/// Files that pages name in backticks exist. Decisions and figures name what was there then.
pub fn named_paths(tree: &Tree) -> Vec<Finding> {
    let is_kept = |path: &str| {
        let root = !path.contains('/');
        let book = path.starts_with(BOOK)
            && !path.starts_with(NOTEBOOK)
            && !path.starts_with("docs/decisions/");
        root || book
    };
    let mut findings = Vec::new();
    for page in pages(tree).filter(|page| is_kept(&page.path)) {
        for (number, line) in prose(&page.text) {
            for named in line.split('`').skip(1).step_by(2) {
                let is_path = ROOTS.iter().any(|root| named.starts_with(root));
                let is_plain = !named.contains([' ', '*', '<', '{', '(']);
                if is_path && is_plain && !exists(tree, named.trim_end_matches('/')) {
                    let what = format!("names {named}, which does not exist");
                    findings.push(Finding::new(&page.path, number, what));
                }
            }
        }
    }
    findings
}

/// The book's contents name every page below `docs`, once.
pub fn summary(tree: &Tree) -> Vec<Finding> {
    let Some(contents) = tree.file(SUMMARY) else {
        return vec![Finding::new(SUMMARY, 1, "write it: the book's contents")];
    };
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for (number, line) in prose(&contents.text) {
        for target in targets(line) {
            let path = resolve(SUMMARY, target);
            if !named.insert(path.clone()) {
                findings.push(Finding::new(SUMMARY, number, format!("names {path} twice")));
            }
        }
    }
    for page in pages(tree) {
        if page.path.starts_with(BOOK) && page.path != SUMMARY && !named.contains(&page.path) {
            let what = "stands in no line of docs/SUMMARY.md";
            findings.push(Finding::new(&page.path, 1, what));
        }
    }
    findings
}

/// The page of threads names each thread that the engine starts.
pub fn threads(tree: &Tree) -> Vec<Finding> {
    let (Some(page), Some(workers)) = (tree.file(THREADS), tree.file(WORKERS)) else {
        return vec![Finding::new(THREADS, 1, format!("it or {WORKERS} is missing"))];
    };
    let mut findings = Vec::new();
    for (number, line) in workers.text.lines().enumerate() {
        for name in line.split('"').skip(1).step_by(2).filter(|name| name.starts_with("weir-")) {
            if !page.text.contains(&format!("`{name}`")) {
                let what = format!("{THREADS} says nothing of the thread {name}");
                findings.push(Finding::new(WORKERS, number + 1, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_caught() {
        let findings = |line: &str| {
            let text = format!("# A\n{line}\n");
            let other = "# Title\n## What a lock is, and is not\n";
            links(&Tree::of(&[("docs/a.md", &text), ("docs/in/b.md", other), ("README.md", "")]))
                .len()
        };
        for (line, expected) in [
            ("[b](in/b.md)", 0),
            ("[b](in/c.md)", 1),
            ("[b](in)", 0),
            ("[up](../README.md) and [b](b.md)", 1),
            ("[b](in/b.md#what-a-lock-is-and-is-not)", 0),
            ("[b](in/b.md#what-else)", 1),
            ("[here](#a) [gone](#b)", 1),
            ("[away](https://example.org/x.md)", 0),
            ("```\n[b](in/c.md)\n```", 0),
        ] {
            assert_eq!(findings(line), expected, "{line}");
        }
    }

    #[test]
    fn a_file_that_is_named_and_gone_is_caught() {
        let findings = |path: &str, line: &str| {
            named_paths(&Tree::of(&[(path, line), ("crates/a/src/x.rs", "")])).len()
        };
        assert_eq!(findings("docs/a.md", "see `crates/a/src/x.rs` and `crates/a`"), 0);
        assert_eq!(findings("docs/a.md", "see `crates/a/src/y.rs`"), 1);
        assert_eq!(findings("CONTRIBUTING.md", "see `crates/a/src/y.rs`"), 1);
        assert_eq!(findings("docs/a.md", "see `crates/*/src/y.rs`, `a word`"), 0);
        assert_eq!(findings("docs/decisions/a.md", "there was `crates/a/src/y.rs`"), 0);
    }

    #[test]
    fn a_page_that_the_contents_do_not_name_is_caught() {
        let tree = |contents: &str| Tree::of(&[(SUMMARY, contents), ("docs/a.md", "")]);
        assert_eq!(summary(&tree("- [A](a.md)")), []);
        assert_eq!(summary(&tree("# Nothing")).len(), 1);
        assert_eq!(summary(&tree("- [A](a.md)\n- [A](./a.md)")).len(), 1);
        assert_eq!(summary(&Tree::of(&[("docs/a.md", "")])).len(), 1);
    }

    #[test]
    fn a_thread_that_no_page_names_is_caught() {
        let workers = "//! x\nlet loops = [(\"weir-log\", f), (\"weir-new\", g)];";
        let tree = |page: &str| Tree::of(&[(THREADS, page), (WORKERS, workers)]);
        assert_eq!(threads(&tree("| `weir-log` | `weir-new` |")), []);
        assert_eq!(threads(&tree("| `weir-log` |")).len(), 1);
    }
}
