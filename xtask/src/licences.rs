//! What other people's crates ask of us: that each may be linked and comes from the registry, that
//! it is content with the compiler that our manifest names, and the notices that go with a program
//! that they are linked into. What cargo-deny does for licences and sources, in a second and
//! without installing it; advisories need a database from elsewhere.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A crate may be linked under one of these (SPDX): all allow it in programs under the GPL, version
/// 2, too, as the plugin is, and ask for no more than a notice.
const LINKED: [&str; 8] =
    ["MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unlicense", "0BSD", "Unicode-3.0"];
/// And these where nothing of the crate is in what we hand out.
const TOOLS: [&str; 2] = ["Apache-2.0", "MPL-2.0"];
/// Where crates may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// What is handed out: the library, the command, the plugin's engine.
const SHIPPED: [&str; 3] = ["weir", "weir-cli", "weir-capi"];

/// A crate from elsewhere.
struct Crate {
    name: String,
    version: String,
    licence: String,
    source: String,
    manifest: String,
    /// The oldest compiler that it asks for; empty: it does not say.
    rust: String,
}

/// The workspace's dependencies.
struct Graph {
    crates: BTreeMap<String, Crate>,
    /// Of our crates, by name.
    ours: BTreeMap<String, String>,
    /// What each is linked with.
    links: BTreeMap<String, Vec<String>>,
    /// The oldest compiler that ours are for.
    rust: String,
}

/// Looks at every dependency; `Ok(n)`: so many, all well.
///
/// # Errors
/// Names each crate that is not, and why.
pub(crate) fn check(root: &Path) -> Result<usize> {
    let graph = Graph::read(root)?;
    let shipped = graph.linked_with(&SHIPPED)?;
    let mut bad = String::new();
    for (id, found) in &graph.crates {
        let may = |licence: &str| {
            LINKED.contains(&licence) || !shipped.contains(id) && TOOLS.contains(&licence)
        };
        if !is_allowed(&found.licence, &may) {
            let Crate { name, version, licence, .. } = found;
            writeln!(bad, "{name} {version}: licence '{licence}'; see xtask/src/licences.rs")?;
        }
        if found.source != REGISTRY {
            writeln!(bad, "{} {}: from {}", found.name, found.version, found.source)?;
        }
        if release(&found.rust) > release(&graph.rust) {
            let Crate { name, version, rust, .. } = found;
            let ours = &graph.rust;
            writeln!(
                bad,
                "{name} {version}: needs Rust {rust}, we say {ours}; cargo update {name}"
            )?;
        }
    }
    ensure!(bad.is_empty(), "crates that may not be used:\n{bad}");
    Ok(graph.crates.len())
}

/// The notices of what is linked into crates of ours: names, licences, and the licences' texts
/// as the crates bring them.
///
/// # Errors
/// When there is no such crate of ours, or one of the others brings no text.
pub(crate) fn notices(root: &Path, packages: &[&str]) -> Result<String> {
    let graph = Graph::read(root)?;
    let mut out = String::from("Other people's work that is linked into this program.\n");
    for id in graph.linked_with(packages)? {
        let Some(found) = graph.crates.get(&id) else { continue };
        let Crate { name, version, licence, manifest, .. } = found;
        write!(out, "\n---- {name} {version}: {licence}\n")?;
        let folder = Path::new(manifest).parent().context("a manifest lies in a folder")?;
        let text = text_of(folder)?;
        // Some crates bring no text of their own: the name and the licence's are what there is.
        out.push_str(text.as_deref().unwrap_or("(the crate brings no text of its own)\n"));
    }
    Ok(out)
}

/// A version of the compiler, as numbers; what is not said is 0.
fn release(version: &str) -> [u32; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// The shortest of the licences that a crate offers is enough: they are alternatives.
fn text_of(folder: &Path) -> Result<Option<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_text = ["LICENSE", "LICENCE", "COPYING"].iter().any(|begin| name.starts_with(begin));
        if is_text && entry.file_type()?.is_file() {
            found.push(std::fs::read_to_string(entry.path())?);
        }
    }
    found.sort_by_key(String::len);
    Ok(found.into_iter().find(|text| text.len() > 200))
}

/// Whether an SPDX expression leaves us a choice that is allowed. `/` is an old `OR`.
fn is_allowed(expression: &str, may: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any_of(&mut rest, may) && rest.is_empty()
}

fn any_of(rest: &mut &[&str], may: &dyn Fn(&str) -> bool) -> bool {
    let mut is_any = all_of(rest, may);
    while let Some((&"OR", more)) = rest.split_first() {
        *rest = more;
        is_any |= all_of(rest, may);
    }
    is_any
}

fn all_of(rest: &mut &[&str], may: &dyn Fn(&str) -> bool) -> bool {
    let mut are_all = one(rest, may);
    while let Some((&"AND", more)) = rest.split_first() {
        *rest = more;
        are_all &= one(rest, may);
    }
    are_all
}

fn one(rest: &mut &[&str], may: &dyn Fn(&str) -> bool) -> bool {
    let Some((&first, more)) = rest.split_first() else { return false };
    *rest = more;
    if first == "(" {
        let is_any = any_of(rest, may);
        let Some((&")", more)) = rest.split_first() else { return false };
        *rest = more;
        return is_any;
    }
    // An exception only allows more.
    if let [with, _, more @ ..] = *rest
        && *with == "WITH"
    {
        *rest = more;
    }
    may(first)
}

impl Graph {
    fn read(root: &Path) -> Result<Graph> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut command = Command::new(cargo);
        command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
        let output = command.arg(platform).current_dir(root).output().context("cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        }
        let all: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let (mut crates, mut ours) = (BTreeMap::new(), BTreeMap::new());
        let mut rust = String::new();
        for package in list(&all["packages"]) {
            let (id, name) = (text(&package["id"]), text(&package["name"]));
            let asks = text(&package["rust_version"]);
            if package["source"].is_null() {
                // Those of our crates that say it take it from the workspace.
                rust = std::cmp::max_by_key(rust, asks, |asks| release(asks));
                ours.insert(name, id);
                continue;
            }
            let found = Crate {
                name,
                version: text(&package["version"]),
                licence: text(&package["license"]),
                source: text(&package["source"]),
                manifest: text(&package["manifest_path"]),
                rust: asks,
            };
            crates.insert(id, found);
        }
        let is_linked = |dep: &Value| list(&dep["dep_kinds"]).iter().any(|k| k["kind"].is_null());
        let links = list(&all["resolve"]["nodes"]).into_iter().map(|node| {
            let deps = list(&node["deps"]);
            let linked = deps.iter().filter(|dep| is_linked(dep)).map(|dep| text(&dep["pkg"]));
            (text(&node["id"]), linked.collect())
        });
        Ok(Graph { crates, ours, links: links.collect(), rust })
    }

    /// All that is linked with crates of ours.
    fn linked_with(&self, names: &[&str]) -> Result<BTreeSet<String>> {
        let id = |name: &&str| self.ours.get(*name).with_context(|| format!("no crate {name}"));
        let mut open: Vec<&String> = names.iter().map(id).collect::<Result<_>>()?;
        let mut found = BTreeSet::new();
        while let Some(id) = open.pop() {
            if found.insert(id.clone()) {
                open.extend(self.links.get(id).into_iter().flatten());
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_if_one_choice_is() {
        let may = |licence: &str| ["MIT", "Unicode-3.0", "Apache-2.0"].contains(&licence);
        let rows = [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("GPL-3.0-only AND MIT", false),
            ("(GPL-3.0-only OR MIT) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", true),
            ("GPL-2.0-only WITH Classpath-exception-2.0", false),
            ("MIT/GPL-3.0-only", true),
            ("", false),
            ("(MIT", false),
            ("MIT )", false),
        ];
        for (expression, expected) in rows {
            assert_eq!(is_allowed(expression, &may), expected, "{expression}");
        }
    }

    #[test]
    fn compilers_are_compared_by_number() {
        for (older, newer) in [("1.9", "1.88"), ("1.88", "1.88.1"), ("", "1.0"), ("1.99.9", "2")] {
            assert!(release(older) < release(newer), "{older} {newer}");
        }
        assert_eq!(release("1.88"), release("1.88.0"));
    }

    #[test]
    fn all_that_is_linked_may_be_and_brings_its_notice() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root of the tree");
        assert!(check(root).expect("all may be linked") > 20);
        let notices = notices(root, &["weir-capi"]).expect("notices");
        for part in ["---- parking_lot ", "---- libc ", "Permission is hereby granted"] {
            assert!(notices.contains(part), "{part}");
        }
        assert!(!notices.contains("---- weir"), "ours are not other people's");
        assert!(super::notices(root, &["none"]).is_err());
    }
}
