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

/// No comment, script or page uses one of them.
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

/// No comment, script or page says in everyday speech what the field has a word for.
pub fn phrases(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
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
    let is_one_of = |ends: &[&str]| ends.iter().any(|end| file.path.ends_with(end));
    let lines = || file.text.lines().enumerate();
    if is_exempt(&file.path) {
        Vec::new()
    } else if file.is_rust() || is_one_of(&[".c", ".h", ".cc", ".js"]) {
        comments(file).map(|(number, text)| (number, text.to_owned())).collect()
    } else if is_one_of(&[".md"]) {
        prose(&file.text)
    } else if is_one_of(&[".sh", ".pl", ".py", "Makefile"]) || file.text.starts_with("#!") {
        // Comments, what is printed, and names, in parts.
        lines().map(|(number, line)| (number + 1, line.replace('_', " "))).collect()
    } else if is_one_of(&[".txt", ".sql", ".diff", ".toml", ".cnf"]) {
        let is_comment = |line: &str| line.starts_with('#') || line.starts_with("-- ");
        lines()
            .filter(|(_, line)| is_comment(line.trim_start()))
            .map(|(number, line)| (number + 1, line.to_owned()))
            .collect()
    } else {
        Vec::new()
    }
}

/// What was written once and stays so: the notebook, and the texts of licences.
fn is_exempt(path: &str) -> bool {
    path.starts_with("docs/notebook/")
        || path.ends_with("COPYING.md")
        || path.contains("/proptest-regressions/")
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

/// Words before the name of an item, in Rust.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];

/// No item of Rust, no name in C or C++ and no file is named by a word that its sentences must
/// not have. (What a test is named says the rule that it tests.)
pub fn names(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !is_exempt(&file.path)) {
        if is_story(file.path.rsplit('/').next().unwrap_or_default()) {
            findings.push(Finding::new(&file.path, 1, "the file's name: say what is in it"));
        }
        let is_c = [".c", ".h", ".cc"].iter().any(|end| file.path.ends_with(end));
        if !file.is_rust() && !is_c {
            continue;
        }
        let text = if is_c { &file.text } else { &file.code };
        for (number, line) in text.lines().enumerate() {
            let code = if is_c { code_of_c(line) } else { line.to_owned() };
            let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            for (at, &word) in words.iter().enumerate() {
                let before = at.checked_sub(1).map(|at| words[at]).unwrap_or_default();
                if (is_c || ITEMS.contains(&before)) && is_story(word) {
                    let what = format!("{word}: name the rule, or what it does");
                    findings.push(Finding::new(&file.path, number + 1, what));
                }
            }
        }
    }
    findings
}

/// Whether a name has such a word as a part. A constant's, which may name a user of the system, is
/// left alone.
fn is_story(name: &str) -> bool {
    let mut parts = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !parts.ends_with(char::is_uppercase) {
            parts.push(' ');
        }
        parts.push(c);
    }
    let parts: Vec<&str> = parts.split(|c: char| !c.is_alphanumeric()).collect();
    let has = |first: &str, second: &str| {
        parts.windows(2).any(|pair| pair[0] == first && pair[1] == second)
    };
    parts.iter().any(|part| is_pronoun(part) || ["told", "Told"].contains(part))
        || has("taken", "back")
        || ["tell", "Tell"].contains(&name)
}

/// What stands before a comment, without what is in quotes.
fn code_of_c(line: &str) -> String {
    let line = match comment_of_c(line) {
        Some(comment) => &line[..line.len() - comment.len()],
        None => line,
    };
    line.split('"').step_by(2).collect::<Vec<_>>().join(" ")
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

    #[test]
    fn a_name_that_tells_a_story_is_caught() {
        let found = |path: &str, text: &str| names(&Tree::of(&[(path, text)])).len();
        let rust = |text: &str| found("crates/a/src/x.rs", text);
        assert_eq!(rust("fn a_client_is_told() {}\nfn who_waits() {}\nstruct ToldOf;\n"), 3);
        assert_eq!(rust("fn one_is_taken_back() {}\nfn tell() {}\nmod nobody;\n"), 3);
        assert_eq!(
            rust("// fn told() {}\nconst NOBODY: u32 = 1; fn whole() {}\nlet told = 1;\n"),
            0
        );
        assert_eq!(rust("fn ordered_locking_never_deadlocks() {}\n"), 0);
        let c = "bool is_told(int);\nint x; // told_of\nsay(\"who told\");\n";
        assert_eq!(found("plugin/mariadb/src/x.cc", c), 1);
        assert_eq!(found("plugin/mariadb/test/told.sh", ""), 1);
        assert_eq!(found("crates/a/src/told.rs", ""), 1);
        assert_eq!(found("docs/notebook/told.md", ""), 0);
    }

    #[test]
    fn scripts_are_held_to_the_words_in_comments_messages_and_names() {
        let found = |path: &str, text: &str| {
            let tree = Tree::of(&[(path, text)]);
            (pronouns(&tree).len(), phrases(&tree).len())
        };
        let text = "#!/bin/bash\n# Nobody waits.\necho \"who waits\"\nis_told() { :; }\n";
        assert_eq!(found("plugin/mariadb/test/x.sh", text), (2, 1));
        assert_eq!(found("plugin/mariadb/tools/weir-x", text), (2, 1));
        assert_eq!(found("plugin/mariadb/test/x.pl", "sub told {\n# whoever\n"), (1, 1));
        let session = "# Who waits, taken back.\na: INSERT INTO t(who) VALUES (1)\n";
        assert_eq!(found("plugin/mariadb/test/sessions/x.txt", session), (1, 1));
        assert_eq!(found("plugin/mariadb/src/x.cc", "// It is told.\nint told;\n"), (0, 1));
    }
}
