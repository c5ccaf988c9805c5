//! Rules about documents: the "Where is...?" table of ARCHITECTURE.md must be true.

use super::Finding;
use crate::lexer::lines_with_word;
use crate::tree::Tree;

const PATH: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Where is";

/// Each row names a file that exists, and symbols that stand in it.
pub fn where_is(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return vec![Finding::new(PATH, 1, "write it")];
    };
    let mut findings = Vec::new();
    let (mut inside, mut rows) = (false, 0);
    for (number, line) in file.text.lines().enumerate() {
        if line.starts_with("## ") {
            inside = line.starts_with(HEADING);
        }
        let is_row = inside && line.starts_with('|') && !line.starts_with("|---");
        if !is_row || line.contains("| there |") {
            continue;
        }
        rows += 1;
        if let Some(what) = row_fault(tree, line) {
            findings.push(Finding::new(PATH, number + 1, what));
        }
    }
    if rows == 0 {
        findings.push(Finding::new(PATH, 1, format!("has no table under `{HEADING}...`")));
    }
    findings
}

fn row_fault(tree: &Tree, line: &str) -> Option<String> {
    // The question may quote something too; the place is the last cell.
    let place = line.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or(line);
    let quoted: Vec<&str> = place.split('`').skip(1).step_by(2).collect();
    let [path, symbols @ ..] = &quoted[..] else {
        return Some("name a path and a symbol in backticks".to_string());
    };
    let Some(file) = tree.file(path) else {
        return Some(format!("{path} does not exist"));
    };
    if symbols.is_empty() {
        return Some("name a symbol in backticks".to_string());
    }
    // In code where there is code: a mention in a comment is not the place.
    let text = if file.is_rust() { &file.code } else { &file.text };
    let missing = symbols.iter().find(|symbol| lines_with_word(text, symbol).is_empty())?;
    Some(format!("{path} has no {missing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(row: &str) -> usize {
        let text =
            format!("# A\n## Where is...?\n| Where is | there |\n|---|---|\n{row}\n## B\n|x|");
        let code = "//! lost\nfn decide() {}\nfn other_decide_2() {}";
        where_is(&Tree::of(&[(PATH, &text), ("crates/a/src/p.rs", code)])).len()
    }

    #[test]
    fn a_row_that_is_not_true_is_caught() {
        assert_eq!(findings("| it decided? | `crates/a/src/p.rs` `decide` |"), 0);
        assert_eq!(findings("| `it` decided? | `crates/a/src/p.rs` `decide` |"), 0);
        assert_eq!(findings("| it decided? | `crates/a/src/q.rs` `decide` |"), 1);
        assert_eq!(findings("| it decided? | `crates/a/src/p.rs` `other` |"), 1);
        assert_eq!(findings("| it decided? | `crates/a/src/p.rs` `lost` |"), 1);
        assert_eq!(findings("| it decided? | `crates/a/src/p.rs` |"), 1);
        assert_eq!(findings("| it decided? | somewhere |"), 1);
    }

    #[test]
    fn a_missing_page_or_table_is_caught() {
        assert_eq!(where_is(&Tree::of(&[])).len(), 1);
        assert_eq!(where_is(&Tree::of(&[(PATH, "# A\n| a | b |")])).len(), 1);
    }
}
