//! `weir dump`: codes and words; what it prints of damage is tested where it is made (`weir-dump`).
use crate::{Scratch, expect};

#[test]
fn a_database_is_dumped_sound_and_damaged() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    expect(2, &["dump", "page", &dir]);
    assert!(!scratch.path("db").exists(), "looking made a directory");
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    assert!(expect(0, &["dump", "control", &dir]).out.contains("in order"));
    assert!(expect(0, &["dump", "catalog", &dir]).out.contains("'people': tree 2"));
    assert!(expect(0, &["dump", "log", &dir, "--limit", "3"]).out.contains("redo-00"));
    let pages = expect(0, &["dump", "page", &dir]).out;
    let leaf = pages.lines().find(|line| line.contains("leaf of tree 2")).expect("a leaf");
    let number = leaf.split([' ', ':']).nth(1).expect("its number").to_owned();
    let page = expect(0, &["dump", "page", &dir, &number]).out;
    assert!(page.contains("'ada' = 'countess'"), "{page}");
    expect(2, &["dump", "page", &dir, "--count", "3"]);

    // The size of its pages is in the control file; without that it is found out.
    std::fs::remove_file(scratch.path("db").join("control")).unwrap();
    expect(2, &["check", &dir]);
    let ran = expect(1, &["dump", "control", &dir]);
    assert!(ran.out.contains("there is no file 'control'"), "{ran:?}");
    assert!(expect(0, &["dump", "page", &dir, &number]).out.contains("'ada' = 'countess'"));
    let wrong = expect(1, &["dump", "page", &dir, &number, "--page-size", "4KiB"]);
    assert!(wrong.out.contains("DAMAGED"), "{wrong:?}");
}
