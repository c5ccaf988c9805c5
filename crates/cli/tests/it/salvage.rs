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
    let tree = db.create_tree("rows").unwrap();
    for n in 0..3_000u32 {
        tree.put(&n.to_be_bytes(), &[7; 500], weir::Durability::Lazy).unwrap();
    }
    db.checkpoint().unwrap();
    let ran = expect(0, &["check", &dir]);
    assert!(ran.out.contains("pages verified by the process") && ran.out.contains("CHECK TABLE"));
    assert!(ran.out.ends_with("sound\n"), "{ran:?}");
    // A page that is in memory: it is reported, and written again.
    let pages = std::fs::OpenOptions::new().write(true).open(scratch.path("db").join("pages"));
    std::os::unix::fs::FileExt::write_all_at(&pages.unwrap(), b"damage", 40 * 8192 + 999).unwrap();
    let ran = expect(0, &["check", &dir]);
    assert!(ran.out.contains("page 40 in 'pages' at byte 327680 is damaged"), "{ran:?}");
    assert!(ran.out.ends_with("0 pages lost, 1 repaired\n"), "{ran:?}");
    let names = std::fs::read_dir(scratch.path("db")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with("check.")), "{names:?}");
    // One that does not answer: nothing but words, and the request is withdrawn.
    let quiet = weir::Config { background: weir::Background::Manual, ..weir::Config::default() };
    let other = weir::Db::open(&scratch.path("quiet"), quiet).unwrap();
    let ran = expect(2, &["check", &scratch.text("quiet")]);
    let pid = std::process::id().to_string();
    assert!(ran.err.contains("CHECK TABLE") && ran.err.contains(&pid), "{ran:?}");
    assert!(!scratch.path("quiet").join("check.request").exists());
    drop(other);
    let ran = expect(2, &["salvage", &dir, &scratch.text("saved")]);
    assert!(ran.err.contains("is in use") && ran.err.contains(&pid), "{ran:?}");
    db.close().unwrap();
    expect(0, &["check", &dir]);
}
