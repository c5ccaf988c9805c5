//! What is printed of a database that has no fault.
use crate::{EVERYTHING, change_and_crash, dump, line, make};
use weir_base::PageNo;
use weir_dump::{Files, LogQuery, Sound};

#[test]
fn a_closed_database_is_printed_whole() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let (sound, control) = dump(dir.path(), "control");
    assert_eq!(sound, Sound::Yes, "{control}");
    assert!(line(&control, "page size").ends_with("4096 bytes"), "{control}");
    assert!(line(&control, "closed").contains("in order"), "{control}");

    let (sound, catalog) = dump(dir.path(), "catalog");
    assert_eq!(sound, Sound::Yes, "{catalog}");
    assert!(line(&catalog, "'birds'").contains("2 levels"), "{catalog}");
    assert!(line(&catalog, "'fish'").contains("1 levels"), "{catalog}");

    let (sound, pages) = dump(dir.path(), "full");
    assert_eq!(sound, Sound::Yes, "{pages}");
    assert!(line(&pages, "'carp'").contains("= 'in the pond'"), "{pages}");
    assert!(line(&pages, "'long'").contains("(chain "), "{pages}");
    for what in
        ["space map", "era 2", "inner node of tree", "leaf of tree 1", "overflow, ", "zeros, never"]
    {
        assert!(pages.contains(what), "{what}: {pages}");
    }
    let (_, lines) = dump(dir.path(), "pages");
    assert!(!lines.contains("'carp'") && lines.contains("leaf of tree 1,"), "{lines}");

    let (sound, log) = dump(dir.path(), "log");
    assert_eq!(sound, Sound::Yes, "{log}");
    assert!(log.ends_with('\n') && log.contains(" to the end at "), "{log}");
}

#[test]
fn after_a_crash_the_log_says_what_the_pages_lack() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    change_and_crash(dir.path());
    let dir = dir.path().join("crashed");
    let before = std::fs::read(dir.join("control")).unwrap();
    let (sound, pages) = dump(&dir, "full");
    assert_eq!(sound, Sound::Yes, "{pages}");
    assert!(pages.contains("not closed in order") && !pages.contains("'pike'"), "{pages}");
    let (sound, log) = dump(&dir, "log");
    assert_eq!(sound, Sound::Yes, "{log}");
    let insert = line(&log, "insert page");
    assert!(insert.contains("'pike' = 'hungry'"), "{log}");

    // By page and by transaction.
    let page: u32 = insert.split([' ', ':']).find_map(|word| word.parse().ok()).unwrap();
    let files = Files::open(&dir, None).unwrap();
    let count = |query: LogQuery| {
        let mut out = Vec::new();
        weir_dump::log(&files, query, &mut out).unwrap();
        String::from_utf8(out).unwrap().matches("'pike' = 'hungry'").count()
    };
    assert_eq!(count(LogQuery { page: Some(PageNo(page)), ..EVERYTHING }), 1);
    assert_eq!(count(LogQuery { page: Some(PageNo(page + 1)), ..EVERYTHING }), 0);
    assert_eq!(count(LogQuery { txn: Some(weir::TxnId(1 << 40)), ..EVERYTHING }), 0);
    assert_eq!(count(LogQuery { limit: 0, ..EVERYTHING }), 0);
    assert_eq!(std::fs::read(dir.join("control")).unwrap(), before, "nothing was recovered");
}
