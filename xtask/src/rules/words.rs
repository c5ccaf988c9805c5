//! The subject of a comment's sentence is a noun of the glossary: a thread, a transaction, a page.

use super::Finding;
use crate::lexer::lines_with_word;
use crate::tree::{File, Tree};

/// Pronouns that leave open what they stand for.
const PRONOUNS: [&str; 11] = [
    "who",
    "whom",
    "whoever",
    "whomever",
    "nobody",
    "somebody",
    "everybody",
    "anybody",
    "someone",
    "everyone",
    "anyone",
];

/// Two words that say in everyday speech what the field has a word for, and that word.
const PHRASES: [(&str, &str, &str); 5] = [
    ("taken", "back", "rolled back"),
    ("takes", "back", "rolls back"),
    ("take", "back", "roll back"),
    ("taking", "back", "rolling back"),
    ("told", "of", "reported, notified, acknowledged"),
];

/// What may follow `told`, which otherwise says that something is reported, acknowledged, refused.
const AFTER_TOLD: [&str; 4] = ["apart", "from", "to", "otherwise"];

/// Names of code that have become the field's (`docs/glossary.md`), and what they are now.
const OLD_NAMES: [(&str, &str); 30] = [
    ("Past", "TxnRecord"),
    ("Todo", "PurgeTask"),
    ("Cleanup", "PurgeTask"),
    ("Fate", "RecoveredState"),
    ("Looker", "Reader"),
    ("is_everybodys", "is_visible_to_all"),
    ("bring_forward", "apply_pending"),
    ("carry_forward", "relog"),
    ("restate", "relog"),
    ("make_way", "reserve_log"),
    ("Shelf", "UndoCache"),
    ("Cohort", "SnapshotGroup"),
    ("OldView", "OldReadView"),
    ("let_loose", "released unfairly"),
    ("Roused", "notified"),
    ("Napping", "spinning"),
    ("Bars", "fair"),
    ("Tell", "an observer, Steps"),
    ("lets_go", "settle"),
    ("insist", "lock_current"),
    ("set_guessing", "semi-consistent"),
    ("look_before", "check the directory"),
    ("sees_up_to", "the snapshot's number"),
    ("kill_wait", "cancel the wait"),
    ("stand_in_line", "enqueue"),
    ("Patience", "backoff"),
    ("take_back", "roll_back"),
    ("TakeBack", "RollBack"),
    ("taken_back", "rolled_back"),
    ("step_back", "roll_back"),
];

/// No comment in Rust, C or C++ uses one of them, and no page.
pub fn pronouns(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, text) in sentences(file) {
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(word) = words.find(|word| is_pronoun(word)) {
                let what = format!("{word}: name the thread, the transaction, the page");
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

/// No comment in Rust and no page says in everyday speech what the field has a word for.
pub fn phrases(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Of the wheel, a workspace of its own, not yet; nor of the plugin.
    let is_checked = |file: &&File| {
        file.is_rust() && !file.path.starts_with("python/") || file.path.ends_with(".md")
    };
    for file in tree.files.iter().filter(is_checked) {
        for (number, text) in sentences(file) {
            if let Some(what) = phrase_in(&text) {
                findings.push(Finding::new(&file.path, number, what));
            }
        }
    }
    findings
}

fn phrase_in(text: &str) -> Option<String> {
    let text = without_names(text).to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    for (at, &word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let known = PHRASES.iter().find(|(first, second, _)| (*first, *second) == (word, next));
        if let Some((_, _, instead)) = known {
            return Some(format!("{word} {next}: {instead}"));
        }
        if word == "told" && !AFTER_TOLD.contains(&next) {
            return Some("told: reported, acknowledged, refused, gets".to_owned());
        }
    }
    None
}

/// Names of code stand in backticks.
fn without_names(text: &str) -> String {
    let text: Vec<&str> = text.split('`').step_by(2).collect();
    text.join(" code ")
}

/// What is written for people in a file: the lines, with their numbers.
fn sentences(file: &File) -> Vec<(usize, String)> {
    let is_c = [".c", ".h", ".cc"].iter().any(|end| file.path.ends_with(end));
    if file.is_rust() || is_c {
        return comments(file).map(|(number, text)| (number, text.to_owned())).collect();
    }
    if file.path.ends_with(".md") && !is_exempt(&file.path) { prose(&file.text) } else { vec![] }
}

/// What was written once and stays so: the notebook, and the texts of licences.
fn is_exempt(path: &str) -> bool {
    path.starts_with("docs/notebook/") || path.ends_with("COPYING.md")
}

/// The lines of a page that are not code.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((number + 1, without_names(line)));
        }
    }
    lines
}

/// No code has a name again that has become the field's.
pub fn old_names(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // This file names them in strings, which are no code.
    for file in tree.rust() {
        for (name, now) in OLD_NAMES {
            for line in lines_with_word(&file.code, name) {
                findings.push(Finding::new(&file.path, line, format!("{name}: say {now}")));
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
    fn a_phrase_of_everyday_speech_is_caught_in_comments_only() {
        let found = |text: &str| phrases(&Tree::of(&[("crates/a/src/x.rs", text)])).len();
        let text = "// It is taken back.\nlet s = \"taken back\"; // Taking  back one.\n";
        assert_eq!(found(text), 2);
        assert_eq!(found("/// Its owner is told.\n/// Is told\n/// Told of each.\n"), 3);
        assert_eq!(found("// Told apart, told from it, as told to; unless told otherwise.\n"), 0);
        assert_eq!(found("// Calls `told`; it takes one and gives it back. [`Told::of`]\n"), 0);
    }

    #[test]
    fn an_old_name_is_caught_in_code_only() {
        let found = |text: &str| old_names(&Tree::of(&[("crates/a/src/x.rs", text)])).len();
        assert_eq!(found("struct Cohort;\nfn lets_go(past: Past) {}\n"), 3);
        assert_eq!(found("// A Cohort of old.\nlet s = \"Cohort\"; fn lets_go_2() {}\n"), 0);
    }

    #[test]
    fn a_pronoun_is_caught_in_comments_of_c() {
        let found = |path: &str, text: &str| pronouns(&Tree::of(&[(path, text)])).len();
        let text = "// Nobody waits.\nint who; /* for who asks\n * and whoever\n * does */\n";
        assert_eq!(found("crates/capi/include/x.h", text), 3);
        assert_eq!(found("plugin/mariadb/src/x.cc", "say(\"https://who\"); int nobody;\n"), 0);
    }

    #[test]
    fn pages_are_held_to_the_words_but_for_code_and_the_notebook() {
        let found = |path: &str| {
            let text = "# Who waits\n`nobody` is told to\n```\nwho is told\n```\nIt is told.\n";
            let tree = Tree::of(&[(path, text)]);
            let lines = |found: Vec<Finding>| found.iter().map(|f| f.line).collect::<Vec<_>>();
            (lines(pronouns(&tree)), lines(phrases(&tree)))
        };
        assert_eq!(found("docs/decisions/x.md"), (vec![1], vec![6]));
        assert_eq!(found("crates/a/README.md"), (vec![1], vec![6]));
        assert_eq!(found("docs/notebook/x.md"), (vec![], vec![]));
        assert_eq!(found("plugin/mariadb/COPYING.md"), (vec![], vec![]));
    }
}
