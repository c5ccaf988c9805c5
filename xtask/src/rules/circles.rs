//! Files of a crate that import each other in a circle: none of them can be read, tested or changed
//! without the others.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::lexer::is_word;
use crate::tree::{File, Tree};

/// A circle may have so many files: a folder's `mod.rs` and what it is made of.
pub const FILES_MAX: usize = 3;

/// No circle of more than [`FILES_MAX`] files.
pub fn circles(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in tree.crates() {
        let too_great = |circle: &Vec<&str>| circle.len() > FILES_MAX;
        for circle in circles_of(tree, folder).into_iter().filter(too_great) {
            let what = format!(
                "a circle of {} files that import each other, and {FILES_MAX} are allowed: {}",
                circle.len(),
                circle.join(", ")
            );
            findings.push(Finding::new(&format!("crates/{folder}/src/{}", circle[0]), 1, what));
        }
    }
    findings
}

/// A module's path within its crate; of the root, empty.
type Module = Vec<String>;

/// The modules of a crate: its files, what they import, and what they pass on under their name.
struct Modules<'a> {
    files: BTreeMap<Module, &'a str>,
    imports: BTreeMap<Module, Vec<Module>>,
    passed_on: BTreeMap<(Module, String), Module>,
}

/// The circles among a crate's files, greatest first, each sorted.
fn circles_of<'a>(tree: &'a Tree, folder: &str) -> Vec<Vec<&'a str>> {
    let modules = Modules::of(tree, folder);
    let edges = modules.edges();
    let reaches: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|file| (*file, reached(&edges, file))).collect();
    let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (file, others) in reaches.iter().filter(|(file, others)| others.contains(*file)) {
        let back = |other: &&&str| reaches.get(**other).is_some_and(|all| all.contains(file));
        circles.insert(others.iter().filter(back).copied().collect());
    }
    let mut circles: Vec<Vec<&str>> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// All that `file` imports, over any number of steps.
fn reached<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, file: &str) -> BTreeSet<&'a str> {
    let (mut all, mut next) = (BTreeSet::new(), vec![file]);
    while let Some(file) = next.pop() {
        for other in edges.get(file).into_iter().flatten() {
            if all.insert(*other) {
                next.push(other);
            }
        }
    }
    all
}

impl<'a> Modules<'a> {
    fn of(tree: &'a Tree, folder: &str) -> Self {
        let root = format!("crates/{folder}/src/");
        let mut modules = Modules {
            files: BTreeMap::new(),
            imports: BTreeMap::new(),
            passed_on: BTreeMap::new(),
        };
        let under = |file: &&File| file.path.starts_with(&root) && file.is_rust();
        let all: Vec<&File> = tree.files.iter().filter(under).collect();
        for file in &all {
            let path = &file.path[root.len()..];
            modules.files.insert(module_of(path), path);
        }
        for file in &all {
            let own = module_of(&file.path[root.len()..]);
            modules.read(&own, &file.shipped);
        }
        modules
    }

    /// What each file imports, by file.
    fn edges(&self) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, imports) in &self.imports {
            let Some(own) = self.files.get(module) else { continue };
            let all = edges.entry(own).or_default();
            let targets = imports.iter().filter_map(|path| self.file_of(path));
            all.extend(targets.filter(|target| target != own));
        }
        edges
    }

    /// The file in which a path ends, through what others pass on.
    fn file_of(&self, path: &[String]) -> Option<&'a str> {
        let mut path = path.to_vec();
        // What is passed on is passed on a few times at most.
        for _ in 0..8 {
            let depth = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]))?;
            let passed = path
                .get(depth)
                .and_then(|name| self.passed_on.get(&(path[..depth].to_vec(), name.clone())));
            match passed {
                Some(to) => path = to.iter().chain(&path[depth + 1..]).cloned().collect(),
                None => return self.files.get(&path[..depth]).copied(),
            }
        }
        None
    }

    fn read(&mut self, own: &Module, code: &str) {
        let tokens = tokens(code);
        let (mut at, mut names) = (0, BTreeSet::new());
        while at < tokens.len() {
            let start = at;
            if tokens[at] == "use" {
                let passes_on = start > 0 && matches!(tokens[start - 1], "pub" | ")");
                let mut leaves = Vec::new();
                at = use_tree(&tokens, at + 1, &[], &mut leaves);
                for (path, name) in leaves {
                    let Some(path) = self.absolute(own, &path) else { continue };
                    if passes_on {
                        self.passed_on.insert((own.clone(), name), path);
                    } else {
                        self.imports.entry(own.clone()).or_default().push(path);
                    }
                }
                continue;
            }
            names.insert(tokens[at]);
            let mut path = vec![tokens[at]];
            at += 1;
            while tokens.get(at) == Some(&"::") && tokens.get(at + 1).is_some_and(|t| is_name(t)) {
                path.push(tokens[at + 1]);
                at += 2;
            }
            let follows = start > 0 && matches!(tokens[start - 1], "::" | ".");
            if path.len() > 1
                && !follows
                && let Some(path) = self.absolute(own, &path)
            {
                self.imports.entry(own.clone()).or_default().push(path);
            }
        }
        // What it passes on and uses itself as well.
        let passed = self.passed_on.iter().filter(|((from, _), _)| from == own);
        let used = passed.filter(|((_, name), _)| names.contains(name.as_str()));
        let used: Vec<Module> = used.map(|(_, path)| path.clone()).collect();
        self.imports.entry(own.clone()).or_default().extend(used);
    }

    /// A path as written in `own`, from the crate's root; `None`: it leads elsewhere.
    fn absolute(&self, own: &Module, path: &[&str]) -> Option<Module> {
        let mut base = own.clone();
        let mut rest = path;
        match rest.first()? {
            &"crate" => base.clear(),
            &"self" => {}
            &"super" => {
                base.pop();
            }
            child => {
                base.push((*child).to_string());
                return self.files.contains_key(&base).then(|| {
                    base.extend(path[1..].iter().map(|name| (*name).to_string()));
                    base
                });
            }
        }
        rest = &rest[1..];
        while rest.first() == Some(&"super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend(rest.iter().map(|name| (*name).to_string()));
        Some(base)
    }
}

fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let mut parts: Module = path.split('/').map(str::to_string).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// Reads what `use` brings in, from `at` to its end: each path, and the name that it has here.
fn use_tree<'t>(
    tokens: &[&'t str],
    mut at: usize,
    before: &[&'t str],
    leaves: &mut Vec<(Vec<&'t str>, String)>,
) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        match *token {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = use_tree(tokens, at, &path, leaves);
                    if tokens.get(at) == Some(&",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                let name = tokens.get(at + 1).copied().unwrap_or_default();
                leaves.push((path, name.to_string()));
                return at + 2;
            }
            name if is_name(name) => {
                path.push(name);
                at += 1;
            }
            _ => break,
        }
    }
    // `use a::{self}` is `a`.
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    let name = path.last().copied().unwrap_or_default().to_string();
    leaves.push((path, name));
    if tokens.get(at) == Some(&"*") { at + 1 } else { at }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| is_word(c) && !c.is_ascii_digit())
}

/// Names, `::`, and every other character that is no blank by itself.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARGO: (&str, &str) = ("crates/a/Cargo.toml", "");

    fn greatest(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![CARGO];
        all.extend(files);
        let tree = Tree::of(&all);
        let found = circles_of(&tree, "a").into_iter().next().unwrap_or_default();
        found.into_iter().map(str::to_string).collect()
    }

    #[test]
    fn a_circle_of_four_is_caught_and_one_of_three_is_not() {
        let three = [
            ("crates/a/src/x.rs", "use crate::y::Y;"),
            ("crates/a/src/y.rs", "fn f() { crate::z::f() }"),
            ("crates/a/src/z.rs", "use crate::{x::X, other::O};"),
        ];
        assert_eq!(greatest(&three), ["x.rs", "y.rs", "z.rs"]);
        let mut all = vec![CARGO];
        all.extend(three);
        assert!(circles(&Tree::of(&all)).is_empty());
        all[3] = ("crates/a/src/z.rs", "use crate::w::{self, W};");
        all.push(("crates/a/src/w.rs", "use super::x::X as Y;"));
        let found = circles(&Tree::of(&all));
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("w.rs, x.rs, y.rs, z.rs"), "{}", found[0].what);
    }

    #[test]
    fn what_a_module_passes_on_is_imported_from_where_it_is() {
        let files = [
            ("crates/a/src/lib.rs", "mod x; mod f; pub use x::X; pub(crate) use f::g::Y;"),
            ("crates/a/src/x.rs", "use crate::Y;"),
            ("crates/a/src/f/mod.rs", "mod g; pub use g::Y as Z;"),
            ("crates/a/src/f/g.rs", "use crate::X; fn f(_: super::Z) {}"),
        ];
        assert_eq!(greatest(&files), ["f/g.rs", "x.rs"]);
    }

    #[test]
    fn tests_comments_and_other_crates_make_no_circle() {
        let files = [
            (
                "crates/a/src/x.rs",
                "use weir_y::y; // crate::y\n#[cfg(test)]\nmod tests { use crate::y::Y; }",
            ),
            ("crates/a/src/y.rs", "use crate::x::X;"),
        ];
        assert!(greatest(&files).is_empty());
    }

    #[test]
    fn a_folder_and_its_parts_are_one_circle_where_they_use_each_other() {
        let files = [
            ("crates/a/src/f/mod.rs", "mod g; mod h; use g::G; struct F(h::H);"),
            ("crates/a/src/f/g.rs", "use super::F;"),
            ("crates/a/src/f/h.rs", "use super::g::G;"),
        ];
        assert_eq!(greatest(&files), ["f/g.rs", "f/h.rs", "f/mod.rs"]);
        let used = ("crates/a/src/f/mod.rs", "mod g; mod h; pub use g::G; struct F(h::H, G);");
        assert_eq!(greatest(&[used, files[1], files[2]]), ["f/g.rs", "f/h.rs", "f/mod.rs"]);
        let passed = ("crates/a/src/f/mod.rs", "mod g; mod h; pub use g::G; struct F(h::H);");
        assert!(greatest(&[passed, ("crates/a/src/f/g.rs", "use super::F;")]).is_empty());
    }
}
