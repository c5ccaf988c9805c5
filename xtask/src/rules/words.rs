//! The subject of a comment's sentence is a noun of the glossary: a thread, a transaction, a page.

use super::Finding;
use crate::tree::{File, Tree};

/// Pronouns that leave open what they stand for.
const PRONOUNS: [&str; 7] =
    ["who", "whom", "whoever", "nobody", "somebody", "everybody", "anybody"];

/// Files whose comments may use them yet: the comparison with other stores, a workspace of its own,
/// and files of the plugin; to become fewer.
const MAY_YET: [&str; 4] = [
    "rivals/",
    "plugin/mariadb/src/alter_",
    "plugin/mariadb/src/handler_alter",
    "plugin/mariadb/src/handler_foreign",
];

/// No comment in Rust, C or C++ uses one of them.
pub fn pronouns(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_source = |path: &str| [".rs", ".c", ".h", ".cc"].iter().any(|end| path.ends_with(end));
    let may_yet = |path: &str| MAY_YET.iter().any(|start| path.starts_with(start));
    for file in tree.files.iter().filter(|file| is_source(&file.path) && !may_yet(&file.path)) {
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

/// The lines that end in a comment, with their numbers, from where it begins.
fn comments(file: &File) -> impl Iterator<Item = (usize, &str)> {
    // Of C there is no text without comments.
    let mut code = file.code.lines();
    file.text.lines().enumerate().filter_map(move |(number, text)| {
        let comment = match code.next() {
            Some(code) => comment_of_rust(text, code),
            None if !file.is_rust() => comment_of_c(text),
            None => None,
        };
        Some((number + 1, comment?))
    })
}

/// What stands behind the last of the code; what stands in a string has its quotes there.
fn comment_of_rust<'t>(text: &'t str, code: &str) -> Option<&'t str> {
    let end = code.trim_end().chars().count();
    let from = text.char_indices().nth(end).map(|(at, _)| at)?;
    let at = from + text[from..].find("//")?;
    Some(&text[at..])
}

/// From `//` or `/*` on, or a line within a block, which begins with an asterisk.
fn comment_of_c(text: &str) -> Option<&str> {
    if text.trim_start().starts_with("* ") {
        return Some(text);
    }
    let at = text.find("//").into_iter().chain(text.find("/*")).min()?;
    // An address.
    (!text[..at].ends_with(':')).then(|| &text[at..])
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

    #[test]
    fn a_pronoun_is_caught_in_comments_of_c() {
        let found = |path: &str, text: &str| pronouns(&Tree::of(&[(path, text)])).len();
        let text = "// Nobody waits.\nint who; /* for who asks\n * and whoever\n * does */\n";
        assert_eq!(found("crates/capi/include/x.h", text), 3);
        assert_eq!(found("plugin/mariadb/src/x.cc", "say(\"https://who\"); int nobody;\n"), 0);
        assert_eq!(found("plugin/mariadb/src/handler_alter.cc", text), 0);
        assert_eq!(found("docs/x.md", text), 0);
    }
}
