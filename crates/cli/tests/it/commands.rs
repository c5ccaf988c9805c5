//! The small helpers, check and stat.
use crate::{Scratch, expect, ran, signal, small_bench, wait_for_line, weir};
use std::path::{Path, PathBuf};

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
    assert!(check.out.contains("people: 1 rows") && check.out.ends_with("sound\n"), "{check:?}");
    let stat = expect(0, &["stat", &dir]);
    for word in ["people", "log", "files", "counters since opening", "payload_bytes", "MiB"] {
        assert!(stat.out.contains(word), "{word}: {}", stat.out);
    }
}

#[test]
fn a_second_process_is_kept_out() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let mut child = weir(small_bench("update", &dir)).spawn().unwrap();
    let (_, _rest) = wait_for_line(&mut child, " tps ");
    for words in [&["stat", &dir][..], &["put", &dir, "t", "k", "v"]] {
        let refused = expect(2, words);
        assert!(refused.err.contains(&dir), "{words:?}: {}", refused.err);
    }
    // A check is made by the process that has it open.
    let through = expect(0, &["check", &dir]);
    assert!(through.out.contains("by the process that has the database open"), "{through:?}");
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    expect(0, &["check", &dir]);
}

#[test]
fn a_flipped_bit_is_found_and_the_rest_stays_readable() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let mut command = weir(small_bench("read", &dir));
    // In small batches: the doublewrite area keeps a copy of the last one, from which opening would
    // repair the page, rightly.
    let options = ["--seconds", "1", "--doublewrite-pages", "8"];
    assert_eq!(ran(command.args(options)).code, Some(0));
    // A value begins with its key: find row 7000 where it lies on disk.
    let row = 7000u64.to_be_bytes();
    let (file, at) = find(&scratch.path("db"), &row).expect("row 7000 is on disk");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[at + 20] ^= 1;
    std::fs::write(&file, &bytes).unwrap();

    let check = expect(1, &["check", &dir]);
    assert!((check.out + &check.err).contains("page "), "it says where");
    let damaged = format!("0x{}", hex(&row));
    let get = expect(2, &["get", &dir, "bench-rows", &damaged]);
    assert!(get.out.is_empty() && get.err.contains("page "), "{get:?}");
    expect(0, &["get", &dir, "bench-rows", "0x0000000000000001"]);
    let verify = ran(&mut weir(["bench", "verify", "--dir", &dir]));
    assert_ne!(verify.code, Some(0), "{verify:?}");
}

/// The data file that holds `needle`, and where. The log and the doublewrite area may hold it too.
fn find(dir: &Path, needle: &[u8]) -> Option<(PathBuf, usize)> {
    let file = dir.join("pages");
    let bytes = std::fs::read(&file).ok()?;
    let at = bytes.windows(needle.len()).position(|window| window == needle)?;
    Some((file, at))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// After a run that filled its log, and after a crash, there is advice; before, it says why not.
#[test]
fn advice_on_the_size_of_the_log() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    let early = expect(1, &["advise", &dir]);
    assert!(early.out.contains("too little has been observed"), "{}", early.out);
    let mut words = crate::small_bench("update", &dir);
    let more = ["--seconds", "4", "--durability", "lazy", "--disk", "3000iops,64MiB"];
    words.extend(more.map(str::to_owned));
    let words = crate::with(words, "--log", "4MiB");
    let bench = crate::ran(&mut crate::weir(&words));
    assert_eq!(bench.code, Some(0), "{bench:#?}");
    for _ in 0..2 {
        let advice = expect(0, &["advise", &dir]);
        for part in ["2 MiB", "4 MiB", "as now", "8 MiB", "16 MiB", "pages/GiB", " %"] {
            assert!(advice.out.contains(part), "{part}: {}", advice.out);
        }
        let larger = advice.out.lines().find(|line| line.contains(" 8 MiB")).expect("a row");
        assert!(larger.contains('-'), "a larger log saves page writes: {larger}");
    }
    assert!(expect(0, &["stat", &dir]).out.contains("advice      a log of 2 MiB: +"));
}
