//! `weir salvage`: codes and words; what is saved of which damage is tested in `weir-salvage`.
use crate::{Scratch, expect};

#[test]
fn a_database_without_its_control_file_is_saved() {
    let scratch = Scratch::new();
    let (dir, to) = (scratch.text("db"), scratch.text("saved"));
    expect(2, &["salvage", &dir, &to]);
    assert!(!scratch.path("db").exists() && !scratch.path("saved").exists());
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    expect(0, &["put", &dir, "people", "grace", "admiral"]);
    std::fs::remove_file(scratch.path("db").join("control")).unwrap();
    expect(2, &["get", &dir, "people", "ada"]);

    let ran = expect(0, &["salvage", &dir, &to]);
    assert!(ran.out.contains("tree people: 2 rows saved"), "{ran:?}");
    assert!(ran.out.contains("there is no file") || ran.out.contains("without the control"));
    assert_eq!(expect(0, &["get", &to, "people", "ada"]).out, "countess\n");
    expect(0, &["check", &to]);
    // What is there is never overwritten.
    let ran = expect(2, &["salvage", &dir, &to]);
    assert!(ran.err.contains("already"), "{ran:?}");
}

#[test]
fn what_is_missing_is_an_exit_code() {
    let scratch = Scratch::new();
    let (dir, to) = (scratch.text("db"), scratch.text("saved"));
    expect(0, &["put", &dir, "people", "ada", "countess"]);
    let pages = scratch.path("db").join("pages");
    let mut bytes = std::fs::read(&pages).unwrap();
    // The catalog's root: the name is lost, the row is not.
    bytes[8192 + 100] ^= 1;
    std::fs::write(&pages, bytes).unwrap();
    // While there is a copy of it, nothing is missing.
    let repaired = scratch.text("repaired");
    let ran = expect(0, &["salvage", &dir, &repaired]);
    assert!(ran.out.contains("1 repaired"), "{ran:?}");
    assert_eq!(expect(0, &["get", &repaired, "people", "ada"]).out, "countess\n");
    for entry in std::fs::read_dir(scratch.path("db")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("doublewrite-") {
            let len = std::fs::metadata(&path).unwrap().len() as usize;
            std::fs::write(&path, vec![0; len]).unwrap();
        }
    }
    let ran = expect(1, &["salvage", &dir, &to]);
    assert!(ran.out.contains("tree tree-2: 1 rows saved (its name is lost"), "{ran:?}");
    assert!(ran.out.contains("page 1 in 'pages' at byte 8192: checksum"), "{ran:?}");
    assert_eq!(expect(0, &["get", &to, "tree-2", "ada"]).out, "countess\n");
}

#[test]
fn one_that_is_open_is_left_to_its_process() {
    let scratch = Scratch::new();
    let dir = scratch.text("db");
    let config = weir::Config { pool_bytes: 8 << 20, ..weir::Config::default() };
    let db = weir::Db::open(&scratch.path("db"), config).unwrap();
    let ran = expect(2, &["check", &dir]);
    let pid = std::process::id().to_string();
    assert!(ran.err.contains("CHECK TABLE") && ran.err.contains(&pid), "{ran:?}");
    let ran = expect(2, &["salvage", &dir, &scratch.text("saved")]);
    assert!(ran.err.contains("is in use") && ran.err.contains(&pid), "{ran:?}");
    db.close().unwrap();
    expect(0, &["check", &dir]);
}
