//! Rules about locks: the page of ranks is what the table in `weir_base::rank` says, and no lock
//! stands outside it.

use std::fmt::Write as _;

use weir_base::rank::RANKS;

use super::Finding;
use crate::lexer::lines_with_word;
use crate::tree::Tree;

/// The page, and the lines between which the table stands.
pub const PAGE: &str = "docs/locks.md";
const BEGIN: &str = "<!-- ranks: cargo run -p xtask -- locks -->";
const END: &str = "<!-- end of ranks -->";

/// The only file that may name the locks without ranks.
const WRAPPER: &str = "crates/base/src/lock.rs";
/// What stands beside or above the engine has locks of its own.
const ABOVE: &[&str] = &[
    "crates/bench/",
    "crates/capi/",
    "crates/cli/",
    "crates/history/",
    "crates/lab/",
    "crates/sim/",
    "crates/weirdb/",
];

/// The table as Markdown.
pub fn table() -> String {
    let mut text =
        String::from("| rank | lock | crate | what it guards; what is done under it |\n");
    text.push_str("|--:|---|---|---|\n");
    for (number, rank) in RANKS.iter().enumerate() {
        let several = if rank.is_many { " (several)" } else { "" };
        let (name, owner, guards) = (rank.name, rank.owner, rank.guards);
        writeln!(text, "| {} | `{name}`{several} | {owner} | {guards} |", number + 1)
            .expect("a string takes everything");
    }
    text
}

/// The page with the table of today in it; `None` when it has no place for one.
pub fn page_with_table(page: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}{END}{after}", table()))
}

/// The page says what the table says.
pub fn page(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(PAGE) else { return vec![Finding::new(PAGE, 1, "write it")] };
    match page_with_table(&file.text) {
        None => vec![Finding::new(PAGE, 1, format!("needs the lines `{BEGIN}` and `{END}`"))],
        Some(wanted) if wanted != file.text => {
            vec![Finding::new(PAGE, 1, "is older than the ranks: cargo run -p xtask -- locks")]
        }
        Some(_) => Vec::new(),
    }
}

/// Every lock has a rank.
pub fn ranked(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let concerned = |path: &str| {
        path.starts_with("crates/")
            && path != WRAPPER
            && !ABOVE.iter().any(|place| path.starts_with(place))
    };
    for file in tree.rust().filter(|file| concerned(&file.path)) {
        for word in ["parking_lot", "std::sync::Mutex", "std::sync::RwLock"] {
            for line in lines_with_word(&file.shipped, word) {
                let what =
                    format!("{word} has no rank; use weir_base::lock, with a row in its rank");
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_older_than_the_table_is_caught() {
        let good = page_with_table(&format!("# Locks\n{BEGIN}\n{END}\nmore\n")).expect("a place");
        assert_eq!(page(&Tree::of(&[(PAGE, &good)])), []);
        assert!(good.contains("`PageLatch` (several)") && good.ends_with("more\n"), "{good}");
        let older = good.replace("| `LogFiles` |", "| `LogFile` |");
        assert_eq!(page(&Tree::of(&[(PAGE, &older)])).len(), 1);
        assert_eq!(page(&Tree::of(&[(PAGE, "# Locks")])).len(), 1);
        assert_eq!(page(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn a_lock_without_a_rank_is_caught() {
        let text = "use parking_lot::Mutex;";
        assert_eq!(ranked(&Tree::of(&[("crates/pool/src/x.rs", text)])).len(), 1);
        assert_eq!(ranked(&Tree::of(&[(WRAPPER, text)])), []);
        let tested = "#[cfg(test)]\nmod tests { use std::sync::Mutex; }";
        assert_eq!(ranked(&Tree::of(&[("crates/pool/src/x.rs", tested)])), []);
    }
}
