//! Rules about whole crates: floors, README headings, and where `unsafe` is forbidden outright.

use super::Finding;
use super::code::UNSAFE_ADDRESSES;
use crate::tree::Tree;

/// Headings of every crate's README, in this order.
pub const HEADINGS: [&str; 5] =
    ["## Owns", "## Refuses", "## Where things are", "## Invariants", "## Locks"];

/// What is read out of a crate's Cargo.toml. Our own manifests only, hence no TOML parser.
struct Manifest<'a> {
    name: &'a str,
    floor: Option<u32>,
    /// Line and package name of each entry under a dependencies heading other than dev.
    dependencies: Vec<(usize, &'a str)>,
}

fn manifest(text: &str) -> Manifest<'_> {
    let mut found = Manifest { name: "", floor: None, dependencies: Vec::new() };
    let mut section = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(inner) = line.strip_prefix('[') {
            section = inner.trim_end_matches(']');
            // [dependencies.weir-base] names a dependency in the heading itself.
            if let Some((kind, name)) = section.rsplit_once('.')
                && is_dependencies(kind)
            {
                found.dependencies.push((number + 1, name));
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match section {
            "package" if key == "name" => found.name = value.trim_matches('"'),
            "package.metadata" if key == "floor" => found.floor = value.parse().ok(),
            _ if is_dependencies(section) => {
                let name = key.split('.').next().unwrap_or(key);
                found.dependencies.push((number + 1, name));
            }
            _ => {}
        }
    }
    found
}

/// `dependencies`, `build-dependencies`, `target.'...'.dependencies`: not the ones only tests see.
fn is_dependencies(section: &str) -> bool {
    section.ends_with("dependencies") && !section.ends_with("dev-dependencies")
}

/// Each crate names its floor, and depends only on strictly lower ones.
pub fn floors(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut manifests = Vec::new();
    for folder in tree.crates() {
        let path = format!("crates/{folder}/Cargo.toml");
        if let Some(file) = tree.file(&path) {
            manifests.push((path, manifest(&file.text)));
        }
    }
    for (path, own) in &manifests {
        let Some(floor) = own.floor else {
            findings.push(Finding::new(path, 1, "add [package.metadata] floor = N"));
            continue;
        };
        for (line, name) in &own.dependencies {
            let below = manifests.iter().find(|(_, other)| other.name == *name);
            let Some((_, below)) = below else { continue };
            match below.floor {
                Some(other) if other >= floor => findings.push(Finding::new(
                    path,
                    *line,
                    format!(
                        "{name} is on floor {other}, {} on {floor}: import downwards",
                        own.name
                    ),
                )),
                _ => {}
            }
        }
    }
    findings
}

/// Workspaces of their own, whose lock files nothing brings up to date in passing.
const OTHER_LOCKS: [&str; 3] = ["fuzz/Cargo.lock", "python/Cargo.lock", "rivals/Cargo.lock"];

/// A crate of ours that another workspace's lock file names has its own dependencies named there
/// too: else a build with `--locked` refuses.
pub fn lock_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let paths = tree.crates().into_iter().map(|folder| format!("crates/{folder}/Cargo.toml"));
    let manifests: Vec<_> =
        paths.filter_map(|path| Some(manifest(&tree.file(&path)?.text))).collect();
    for path in OTHER_LOCKS {
        let Some(lock) = tree.file(path) else { continue };
        let names = |wanted: &str| {
            let line = format!("name = \"{wanted}\"");
            lock.text.lines().any(|found| found == line)
        };
        for own in manifests.iter().filter(|own| names(own.name)) {
            for (_, name) in &own.dependencies {
                if manifests.iter().any(|other| other.name == *name) && !names(name) {
                    let what = format!(
                        "{} depends on {name}, which is not in it: 'cargo metadata' there adds it",
                        own.name
                    );
                    findings.push(Finding::new(path, 1, what));
                }
            }
        }
    }
    findings
}

/// Each crate's README answers the five questions, in order.
pub fn readme_headings(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in tree.crates() {
        let path = format!("crates/{folder}/README.md");
        let Some(file) = tree.file(&path) else {
            findings.push(Finding::new(&path, 1, "write it, with the five headings"));
            continue;
        };
        let found: Vec<&str> =
            file.text.lines().map(str::trim_end).filter(|line| HEADINGS.contains(line)).collect();
        if found != HEADINGS {
            findings.push(Finding::new(
                &path,
                1,
                format!("needs, once each and in this order: {}", HEADINGS.join(", ")),
            ));
        }
    }
    findings
}

/// A crate without an entry among the addresses of `unsafe` says so to the compiler.
pub fn forbids_unsafe(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in tree.crates() {
        let under = format!("crates/{folder}/");
        if UNSAFE_ADDRESSES.iter().any(|address| address.starts_with(&under)) {
            continue;
        }
        for root in ["src/lib.rs", "src/main.rs"] {
            let Some(file) = tree.file(&format!("{under}{root}")) else { continue };
            if !file.code.contains("#![forbid(unsafe_code)]") {
                findings.push(Finding::new(&file.path, 1, "add #![forbid(unsafe_code)]"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(name: &str, floor: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n[package.metadata]\n{floor}\n{rest}")
    }

    #[test]
    fn a_dependency_upwards_or_sideways_is_caught() {
        let low = cargo("weir-low", "floor = 1", "");
        let side = cargo("weir-side", "floor = 3", "");
        let good = cargo("weir-a", "floor = 3", "[dependencies]\nweir-low.workspace = true");
        let dev = cargo("weir-a", "floor = 3", "[dev-dependencies]\nweir-side = \"1\"");
        let bad = cargo("weir-a", "floor = 3", "[dependencies]\nweir-side = { path = \"x\" }");
        let table = cargo("weir-a", "floor = 3", "[dependencies.weir-side]\npath = \"x\"");
        let build = cargo("weir-a", "floor = 3", "[build-dependencies]\nweir-side = \"1\"");
        for (text, expected) in [(good, 0), (dev, 0), (bad, 1), (table, 1), (build, 1)] {
            let tree = Tree::of(&[
                ("crates/a/Cargo.toml", &text),
                ("crates/low/Cargo.toml", &low),
                ("crates/side/Cargo.toml", &side),
            ]);
            assert_eq!(floors(&tree).len(), expected, "{text}");
        }
    }

    #[test]
    fn a_crate_without_a_floor_is_caught() {
        let tree = Tree::of(&[("crates/a/Cargo.toml", &cargo("weir-a", "", ""))]);
        assert_eq!(floors(&tree).len(), 1);
    }

    #[test]
    fn a_lock_file_that_lacks_a_crate_is_caught() {
        let low = cargo("weir-low", "floor = 1", "");
        let high = cargo("weir-high", "floor = 2", "[dependencies]\nweir-low.workspace = true");
        let named = |names: &[&str]| {
            let lines = names.iter().map(|name| format!("[[package]]\nname = \"{name}\"\n"));
            lines.collect::<String>()
        };
        for (names, expected) in [
            (&["weir-high", "weir-low"][..], 0),
            (&["weir-high", "weir-lower"], 1),
            (&["weir-low"], 0),
            (&[], 0),
        ] {
            let tree = Tree::of(&[
                ("crates/low/Cargo.toml", &low),
                ("crates/high/Cargo.toml", &high),
                ("python/Cargo.lock", &named(names)),
            ]);
            assert_eq!(lock_files(&tree).len(), expected, "{names:?}");
        }
    }

    #[test]
    fn a_missing_or_misordered_heading_is_caught() {
        let right = HEADINGS.join("\n\ntext\n");
        let lacking = HEADINGS[1..].join("\n");
        let swapped = right.replace("## Owns", "## X").replace("## Locks", "## Owns");
        for (text, expected) in [(right, 0), (lacking, 1), (swapped, 1)] {
            let tree = Tree::of(&[("crates/a/Cargo.toml", ""), ("crates/a/README.md", &text)]);
            assert_eq!(readme_headings(&tree).len(), expected, "{text}");
        }
        assert_eq!(readme_headings(&Tree::of(&[("crates/a/Cargo.toml", "")])).len(), 1);
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_is_caught() {
        for (text, expected) in [("#![forbid(unsafe_code)]", 0), ("// #![forbid(unsafe_code)]", 1)]
        {
            let tree = Tree::of(&[("crates/a/Cargo.toml", ""), ("crates/a/src/lib.rs", text)]);
            assert_eq!(forbids_unsafe(&tree).len(), expected, "{text}");
        }
    }
}
