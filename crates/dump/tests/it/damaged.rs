//! What is printed of databases that are damaged: each file in turn, by hand and at random.
use crate::{PAGE_SIZE, change_and_crash, dump, line, make};
use std::collections::BTreeMap;
use std::path::Path;
use weir_dump::Sound;

fn damage(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(file).unwrap();
    change(&mut bytes);
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn one_copy_of_the_control_file_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    damage(&dir.path().join("control"), |bytes| bytes[20] ^= 1);
    let (sound, control) = dump(dir.path(), "control");
    assert_eq!(sound, Sound::No);
    assert!(line(&control, "copy at byte 0").contains("damaged"), "{control}");
    assert!(line(&control, "copy at byte 4096").contains("sound"), "{control}");
    assert!(control.contains("page size"), "{control}");
}

#[test]
fn without_a_control_file_the_rest_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    std::fs::remove_file(dir.path().join("control")).unwrap();
    let (sound, control) = dump(dir.path(), "control");
    assert_eq!(sound, Sound::No);
    assert!(control.contains("there is no file 'control'"), "{control}");
    // How large a page is and whose the files are is found out from the files.
    let (sound, pages) = dump(dir.path(), "full");
    assert_eq!(sound, Sound::Yes, "{pages}");
    assert!(pages.contains("to have 4096 bytes") && pages.contains("'carp'"), "{pages}");
    let (_, catalog) = dump(dir.path(), "catalog");
    assert!(line(&catalog, "'birds'").contains("2 levels"), "{catalog}");
    let (_, log) = dump(dir.path(), "log");
    assert!(log.contains("without the control file") && log.contains("redo-00"), "{log}");
}

#[test]
fn a_damaged_page_is_named_and_the_others_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let (_, before) = dump(dir.path(), "pages");
    let leaf = line(&before, "leaf of tree 2");
    let number: usize = leaf.split([' ', ':']).nth(1).unwrap().parse().unwrap();
    damage(&dir.path().join("pages"), |bytes| bytes[number * PAGE_SIZE + 100] ^= 0x10);
    let (sound, pages) = dump(dir.path(), "full");
    assert_eq!(sound, Sound::No);
    let damaged = line(&pages, "DAMAGED");
    assert!(damaged.starts_with(&format!("page {number}: ")), "{damaged}");
    assert!(damaged.contains("checksum"), "{damaged}");
    assert_eq!(pages.matches("DAMAGED").count(), 1);
    assert!(pages.contains("'carp'"), "the others are there");
}

#[test]
fn the_catalog_is_found_without_its_root() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    // Names enough for several leaves.
    let db = weir::Db::open(dir.path(), crate::config()).unwrap();
    for i in 0..200 {
        db.open_tree(&format!("one of many trees, number {i}")).unwrap();
    }
    db.close().unwrap();
    damage(&dir.path().join("pages"), |bytes| bytes[PAGE_SIZE..2 * PAGE_SIZE].fill(0xaa));
    let (sound, catalog) = dump(dir.path(), "catalog");
    assert_eq!(sound, Sound::No);
    assert!(line(&catalog, "page 1 of the catalog").contains("DAMAGED"), "{catalog}");
    assert!(catalog.contains("'birds': tree 2"), "{catalog}");
    assert_eq!(catalog.matches("one of many").count(), 200, "{catalog}");
}

#[test]
fn damage_in_the_log_ends_the_groups_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    change_and_crash(dir.path());
    let dir = dir.path().join("crashed");
    let (_, log) = dump(&dir, "log");
    let group: u64 = line(&log, "group ").split(' ').nth(1).unwrap().parse().unwrap();
    let (mut file, mut offset) = ("", 0);
    for line in log.lines().filter(|line| line.contains(", positions ")) {
        let words: Vec<&str> = line.split([' ', ':']).collect();
        let [start, end] = [words.len() - 3, words.len() - 1].map(|at| words[at].parse().unwrap());
        if (start..end).contains(&group) {
            (file, offset) = (words[0], 4096 + group - start);
        }
    }
    damage(&dir.join(file), |bytes| bytes[offset as usize] ^= 4);
    let (sound, damaged) = dump(&dir, "log");
    assert_eq!(sound, Sound::No);
    assert!(line(&damaged, "then DAMAGED").contains(&format!("damaged in {file} at")), "{damaged}");
    assert!(line(&damaged, "blocks DAMAGED").contains(": 1 blocks"), "{damaged}");
}

#[test]
fn short_files_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    damage(&dir.path().join("pages"), |bytes| bytes.truncate(5 * PAGE_SIZE + 17));
    damage(&dir.path().join("redo-00"), |bytes| bytes.truncate(3 * 4096));
    let (sound, pages) = dump(dir.path(), "pages");
    assert_eq!(sound, Sound::No);
    assert!(pages.contains("in the middle of page 5"), "{pages}");
    let (sound, catalog) = dump(dir.path(), "catalog");
    assert_eq!(sound, Sound::Yes, "{catalog}");
    assert!(line(&catalog, "'fish'").contains("beyond the end"), "{catalog}");
    let (sound, log) = dump(dir.path(), "log");
    assert_eq!(sound, Sound::No);
    assert!(log.contains("the file is truncated"), "{log}");
}

/// DUMP-1, DUMP-2: whatever the bytes, it ends, names no page as sound that is not, and writes
/// nothing.
#[test]
fn any_bytes_are_printed() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    change_and_crash(dir.path());
    let dir = dir.path().join("crashed");
    let read_all = || -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(&dir).unwrap().map(Result::unwrap);
        let name = |file: &std::fs::DirEntry| file.file_name().into_string().unwrap();
        files.map(|file| (name(&file), std::fs::read(file.path()).unwrap())).collect()
    };
    let sound = read_all();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..10 {
        for (name, bytes) in &sound {
            let mut bytes = bytes.clone();
            match random.u32(..4) {
                0 if !bytes.is_empty() => {
                    for _ in 0..random.u32(1..40) {
                        let at = random.usize(..bytes.len());
                        bytes[at] = random.u8(..);
                    }
                }
                1 if bytes.len() > 8192 => {
                    let at = random.usize(..bytes.len() - 8192);
                    bytes[at..at + 8192].fill_with(|| random.u8(..));
                }
                2 => bytes.truncate(random.usize(..=bytes.len())),
                _ => {}
            }
            std::fs::write(dir.join(name), bytes).unwrap();
        }
        let damaged = read_all();
        for what in ["control", "log", "catalog", "pages", "full"] {
            let (_, printed) = dump(&dir, what);
            assert!(!printed.is_empty(), "round {round}: {what}");
        }
        assert_eq!(read_all(), damaged, "round {round}: a file was changed");
    }
}
