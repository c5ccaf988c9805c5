//! The subject of a comment's sentence is a noun of the glossary: a thread, a transaction, a page.

use super::Finding;
use crate::tree::{File, Tree};

/// Pronouns that leave open what they stand for.
const PRONOUNS: [&str; 7] =
    ["who", "whom", "whoever", "nobody", "somebody", "everybody", "anybody"];

/// No comment in Rust uses one of them; the comparison with other stores, a workspace of its own,
/// may yet.
pub fn pronouns(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.path.starts_with("rivals/")) {
        for (number, comment) in comments(file) {
            let mut words = comment.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(word) = words.find(|word| is_pronoun(word)) {
                let what = format!("{word}: name the thread, the transaction, the page");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// As written, or at the beginning of a sentence; not the name of a constant.
fn is_pronoun(word: &str) -> bool {
    let is_sentence =
        word.starts_with(char::is_uppercase) && !word.chars().skip(1).any(char::is_uppercase);
    let word = if is_sentence { word.to_lowercase() } else { word.to_owned() };
    PRONOUNS.contains(&word.as_str())
}

/// The lines that end in a comment, with their numbers, from its slashes on.
fn comments(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let lines = file.text.lines().zip(file.code.lines()).enumerate();
    lines.filter_map(|(number, (text, code))| {
        // Behind the last of the code; what stands in a string has its quotes there.
        let end = code.trim_end().chars().count();
        let from = text.char_indices().nth(end).map(|(at, _)| at)?;
        let at = from + text[from..].find("//")?;
        Some((number + 1, &text[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[("crates/a/src/x.rs", text)]);
        pronouns(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_pronoun_is_caught_in_comments_only() {
        assert_eq!(lines("//! Nobody waits.\nfn f() {}\n    /// For who asks.\n"), [1, 3]);
        assert_eq!(lines("fn who() {} // somebody's\nlet nobody = \"who\";\n"), [1]);
        assert!(lines("// Those that wait; whole, NOBODY, who_waits.\n").is_empty());
        assert!(lines("let a = \"// who\"; let b = 1;\n").is_empty());
    }
}
