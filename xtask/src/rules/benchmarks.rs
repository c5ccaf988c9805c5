//! The page of figures says what the JSON below `docs/benchmarks` says, and all of it.

use std::collections::BTreeSet;

use super::Finding;
use crate::figures::Set;
use crate::tree::Tree;

/// The page, and where the sets lie.
pub const PAGE: &str = "docs/benchmarks.md";
pub const SETS: &str = "docs/benchmarks/";
const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end of figures -->";

/// The page with the tables of today in it, and the sets that it shows.
///
/// # Errors
/// What is wrong with the page or a set.
pub fn page_with_tables(
    page: &str,
    set_text: &dyn Fn(&str) -> Option<String>,
) -> Result<(String, BTreeSet<String>), String> {
    let (mut out, mut shown) = (String::new(), BTreeSet::new());
    let mut rest = page;
    while let Some((before, from)) = rest.split_once(BEGIN) {
        let (name, from) = from.split_once(" -->").ok_or("a mark without its end")?;
        let (_, after) =
            from.split_once(END).ok_or_else(|| format!("{name}: needs the line `{END}`"))?;
        let path = format!("{SETS}{name}.json");
        let text = set_text(&path).ok_or_else(|| format!("there is no {path}"))?;
        let set = Set::read(&text).map_err(|error| format!("{path}: {error:#}"))?;
        out.push_str(&format!("{before}{BEGIN}{name} -->\n{}{END}", set.table()));
        if !shown.insert(path) {
            return Err(format!("shows {name} twice"));
        }
        rest = after;
    }
    out.push_str(rest);
    Ok((out, shown))
}

/// The page is what the sets make, and each set is on it.
pub fn page(tree: &Tree) -> Vec<Finding> {
    let finding = |what: String| vec![Finding::new(PAGE, 1, what)];
    let Some(file) = tree.file(PAGE) else { return finding("write it".to_string()) };
    let text_of = |path: &str| tree.file(path).map(|file| file.text.clone());
    let (wanted, shown) = match page_with_tables(&file.text, &text_of) {
        Err(what) => return finding(what),
        Ok(page) => page,
    };
    let mut findings = Vec::new();
    if wanted != file.text {
        findings.extend(finding("is older than its JSON: cargo run -p xtask -- benchmarks".into()));
    }
    let is_set = |path: &str| path.starts_with(SETS) && path.ends_with(".json");
    for file in tree.files.iter().filter(|file| is_set(&file.path) && !shown.contains(&file.path)) {
        findings.push(Finding::new(&file.path, 1, format!("is not shown on {PAGE}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = r#"{"transcribed": true, "run": {"date": "2026-01-02", "commit": null,
        "machine": "m", "command": "c", "beside": "nothing"}, "figures": [{"workload": "w",
        "weir": 12, "unit": "tps", "spread": "CV 0.1", "rivals": []}]}"#;

    #[test]
    fn a_page_that_is_older_than_its_json_is_caught() {
        let sets = [("docs/benchmarks/a.json", SET)];
        let found = |page: &str| {
            let mut files = vec![(PAGE, page)];
            files.extend(sets);
            super::page(&Tree::of(&files)).len()
        };
        let empty = format!("# Figures\n{BEGIN}a -->\n{END}\nmore\n");
        let text_of = |path: &str| (path == sets[0].0).then(|| SET.to_string());
        let (good, _) = page_with_tables(&empty, &text_of).expect("a page");
        assert!(good.contains("| w | **12 tps** | CV 0.1 |") && good.ends_with("\nmore\n"));
        assert_eq!(found(&good), 0);
        assert_eq!(found(&empty), 1, "not generated");
        assert_eq!(found(&good.replace("12 tps", "13 tps")), 1, "changed by hand");
        assert_eq!(found("# Figures\n"), 1, "a set that is not shown");
        assert_eq!(found(&good.replace("figures: a", "figures: b")), 1, "no such set");
        assert_eq!(found(&format!("{good}{BEGIN}a -->\n{END}")), 1, "shown twice");
        assert_eq!(found(&good.replace(END, "")), 1, "no end");
    }
}
