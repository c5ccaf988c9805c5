//! The small helpers, check and stat.
use crate::{Scratch, expect};

#[test]
fn entries_come_and_go() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let dir = dir.as_str();
    for (key, value) in [("ada", "countess"), ("0x00ff", "0x0102"), ("grace", "admiral")] {
        expect(0, &["put", dir, "people", key, value]);
    }
    assert_eq!(expect(0, &["get", dir, "people", "ada"]).out, "countess\n");
    assert_eq!(expect(0, &["get", dir, "people", "0x00ff"]).out, "0x0102\n");
    assert_eq!(expect(0, &["trees", dir]).out, "people\n");
    let all = "0x00ff\t0x0102\nada\tcountess\ngrace\tadmiral\n";
    assert_eq!(expect(0, &["scan", dir, "people"]).out, all);
    let down = expect(0, &["scan", dir, "people", "--reverse", "--limit", "2"]);
    assert_eq!(down.out, "grace\tadmiral\nada\tcountess\n");
    let part = expect(0, &["scan", dir, "people", "--from", "a", "--to", "grace"]);
    assert_eq!(part.out, "ada\tcountess\n");
    let part = expect(0, &["scan", dir, "people", "--reverse", "--from", "grace", "--to", "ada"]);
    assert_eq!(part.out, "ada\tcountess\n");
    expect(0, &["put", dir, "people", "ada", "enchantress of number"]);
    assert_eq!(expect(0, &["get", dir, "people", "ada"]).out, "enchantress of number\n");
    expect(0, &["delete", dir, "people", "ada"]);

    let gone = expect(1, &["get", dir, "people", "ada"]);
    assert!(gone.out.is_empty() && gone.err.contains("no key ada"), "{gone:?}");
    expect(1, &["delete", dir, "people", "ada"]);
    let no_tree = expect(2, &["get", dir, "planets", "ada"]);
    assert!(no_tree.err.contains("'planets'") && no_tree.err.contains("people"), "{no_tree:?}");
    let odd = expect(2, &["get", dir, "people", "0x123"]);
    assert!(odd.err.contains("odd number"), "{odd:?}");
}

#[test]
fn check_and_stat_of_a_sound_database() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    let check = expect(0, &["check", &dir]);
    assert!(check.out.contains('0') || check.out.contains("sound"), "{check:?}");
    let stat = expect(0, &["stat", &dir]);
    for word in ["people", "log", "files", "counters since opening", "redo_bytes", "MiB"] {
        assert!(stat.out.contains(word), "{word}: {}", stat.out);
    }
}
