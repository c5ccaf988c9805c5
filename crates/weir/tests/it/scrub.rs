//! The scrub: what is damaged on disk is found, named and, where something has what it held,
//! repaired; what is sound is never taken for damaged.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use weir::{
    Background, Config, Db, Durability, FileVolume, Mended, PageFinding, SimVolume, StoreKind,
    Volume,
};

use crate::support::tiny;

const ROWS: u32 = 900;

fn key(n: u32) -> Vec<u8> {
    format!("row {n:06}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 200 + (n % 300) as usize]
}

/// A database of more pages than its memory has room for.
fn larger_than_memory(volume: &SimVolume, store: StoreKind) -> Db {
    let config = Config { store: Some(store), pages_max: 2_048, log_bytes: 4 << 20, ..tiny() };
    let db = Db::open_on(Arc::new(volume.clone()), config).expect("a database");
    let tree = db.create_tree("rows").expect("a tree");
    for n in 0..ROWS {
        tree.put(
            &key(n.wrapping_mul(7_919) % ROWS),
            &value(n.wrapping_mul(7_919) % ROWS),
            Durability::Lazy,
        )
        .expect("a put");
    }
    tree.put(b"last", b"", Durability::Synced).expect("a put");
    db
}

/// Whether all rows can be read, and are right.
fn is_whole(db: &Db) -> bool {
    let tree = db.tree("rows").expect("looked").expect("the tree");
    let mut is_whole = true;
    for n in 0..ROWS {
        match tree.get(&key(n)) {
            Ok(found) => assert_eq!(found, Some(value(n)), "row {n}"),
            Err(_) => is_whole = false,
        }
    }
    is_whole
}

fn count(findings: &[PageFinding], mended: Mended) -> usize {
    findings.iter().filter(|finding| finding.mended == mended).count()
}

/// A bit of each page in turn, while the database is open: within one pass it is found and named,
/// and what was written last is there again, or it is said that it is lost.
#[test]
fn a_flipped_byte_of_a_cold_page_is_found_within_a_pass() {
    let volume = SimVolume::new(61);
    let db = larger_than_memory(&volume, StoreKind::InPlace);
    let page_bytes = db.stats().page_size as u64;
    let pages = volume.read_raw("pages").expect("the file").len() as u64 / page_bytes;
    assert!(pages > 100, "{pages}");
    let (mut lost, mut found) = (0usize, Vec::new());
    // First the log has what made each page; then, behind a checkpoint, it has not.
    for page in (4..pages).step_by(2).chain((5..pages).step_by(2)) {
        if page == 5 {
            db.checkpoint().expect("written");
            db.step().expect("a step");
        }
        let at = page * page_bytes + 200 + page;
        volume.corrupt("pages", at, 1).expect("a flip");
        let before = db.stats().scrub.findings;
        let report = db.scrub(&mut |_, _| {}).expect("a pass");
        let after = db.stats().scrub.findings;
        if report.repaired + report.lost == 0 {
            // Not in use, or changed in memory and not written yet.
            assert_eq!(before, after, "page {page}");
            continue;
        }
        let finding = after[0].clone();
        assert_eq!((u64::from(finding.page.0), finding.offset), (page, page * page_bytes));
        let place = format!("page {page} in 'pages' at byte {}", page * page_bytes);
        assert!(finding.text.contains(&place), "{}", finding.text);
        if finding.mended == Mended::No {
            assert_eq!((report.repaired, report.lost), (0, 1));
            lost += 1;
            volume.corrupt("pages", at, 1).expect("flipped back");
        } else {
            assert_eq!((report.repaired, report.lost), (1, 0));
            // It is right on disk, too.
            let again = db.scrub(&mut |_, _| {}).expect("a pass");
            assert_eq!((again.repaired, again.lost), (0, 0), "page {page}");
        }
        found.push(finding);
    }
    assert!(is_whole(&db));
    let kinds = [Mended::FromMemory, Mended::FromCopy, Mended::FromLog];
    let counts = kinds.map(|kind| count(&found, kind));
    println!("{} found: {counts:?} mended, {lost} lost", found.len());
    let [memory, copy, log] = counts;
    assert!(memory > 0 && log > 0 && copy + lost > 0, "{counts:?}, {lost} lost");
    let report = db.check(&mut |_, _| {}).expect("checked");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    db.close().expect("closed");
}

/// Pages in segments: a bit here and there in the file.
#[test]
fn a_flipped_byte_in_a_segment_is_found_within_a_pass() {
    let volume = SimVolume::new(62);
    let db = larger_than_memory(&volume, StoreKind::Log);
    db.checkpoint().expect("written");
    let (mut repaired, mut lost) = (0, 0);
    let len = volume.read_raw("segments").expect("the file").len() as u64;
    for at in (0..len).step_by(3_001) {
        volume.corrupt("segments", at, 16).expect("a flip");
        let report = db.scrub(&mut |_, _| {}).expect("a pass");
        if report.repaired + report.lost == 0 {
            continue;
        }
        let finding = &report.findings[0];
        assert!(finding.text.contains("in 'segments' at byte"), "{}", finding.text);
        if report.lost > 0 {
            assert_eq!(finding.mended, Mended::No);
            volume.corrupt("segments", at, 16).expect("flipped back");
        } else {
            let again = db.scrub(&mut |_, _| {}).expect("a pass");
            assert_eq!((again.repaired, again.lost), (0, 0), "byte {at}");
        }
        repaired += report.repaired;
        lost += report.lost;
    }
    println!("{repaired} repaired, {lost} lost");
    assert!(repaired > 0, "{repaired} repaired, {lost} lost");
    assert!(is_whole(&db));
    db.close().expect("closed");
}

/// A step of the simulation's finds it as well, and a reader that was quicker has it repaired.
#[test]
fn steps_find_it_and_a_reader_repairs_it() {
    let volume = SimVolume::new(63);
    let db = larger_than_memory(&volume, StoreKind::InPlace);
    let passes = || {
        let mut passes = 0;
        db.visit_counters(&mut |name, _, _, value| {
            if name == "scrub.passes" {
                passes = value;
            }
        });
        passes
    };
    let pass = || {
        let until = passes() + 2;
        while passes() < until {
            db.step().expect("a step");
        }
    };
    pass();
    assert!(db.stats().scrub.findings.is_empty(), "{:?}", db.stats().scrub.findings);
    let page_bytes = db.stats().page_size as u64;
    let pages = volume.read_raw("pages").expect("the file").len() as u64 / page_bytes;
    for page in (10..pages).step_by(17) {
        volume.corrupt("pages", page * page_bytes + 99, 2).expect("a flip");
    }
    // The suspects' time has to pass: the clock is the system's.
    pass();
    std::thread::sleep(std::time::Duration::from_millis(250));
    pass();
    let stats = db.stats();
    assert!(!stats.scrub.findings.is_empty() && stats.halted.is_none());
    assert!(stats.scrub.last_pass_pages.is_some_and(|pages| pages > 50));
    let mended = stats.scrub.findings.iter().any(|finding| finding.mended != Mended::No);
    assert!(mended, "{:?}", stats.scrub.findings);
}

/// Threads that change rows, a pool too small for them, real files.
#[test]
fn beside_writers_nothing_sound_is_reported() {
    for store in [StoreKind::InPlace, StoreKind::Log] {
        let dir = tempfile::tempdir().expect("a directory");
        let volume = FileVolume::open(dir.path()).expect("a volume");
        let config = Config {
            store: Some(store),
            pool_bytes: 1 << 20,
            log_bytes: 4 << 20,
            background: Background::Threads,
            ..Config::default()
        };
        let db = Db::open_on(Arc::new(volume) as Arc<dyn Volume>, config).expect("opened");
        let tree = db.create_tree("rows").expect("a tree");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..2u64 {
                let (tree, stop) = (&tree, &stop);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(writer);
                    while !stop.load(Relaxed) {
                        let n = random.u32(0..20_000);
                        if random.u8(0..5) == 0 {
                            tree.delete(&key(n), Durability::Lazy).expect("a delete");
                        } else {
                            tree.put(&key(n), &value(n), Durability::Lazy).expect("a put");
                        }
                    }
                });
            }
            let began = std::time::Instant::now();
            let mut pages = 0;
            while began.elapsed().as_millis() < 3_000 {
                let report = db.scrub(&mut |_, _| {}).expect("a pass");
                assert_eq!((report.lost, report.repaired), (0, 0), "{:?}", report.findings);
                pages += report.pages;
            }
            stop.store(true, Relaxed);
            println!("{store}: {pages} pages verified");
        });
        assert!(db.stats().scrub.findings.is_empty());
        db.close().expect("closed");
    }
}
