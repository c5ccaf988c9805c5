//! Bytes of a small database flipped, one at a time: an error that names the place, or no effect.
//! Each place of a page, a block and a header is flipped somewhere; with `WEIR_ALL_BYTES=1` every
//! byte is (five minutes), of the log and the doublewrite area at least one in thirteen.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use weir::{Db, Error, SimVolume, StoreKind, Volume};
use weir_device::CrashMode;

use crate::encrypted::{Keys, with};
use crate::support::{
    Model, assert_sound, assert_whole, open, populated, populated_in, populated_with,
};

/// What flips did.
#[derive(Default)]
struct Seen {
    flips: AtomicU64,
    refused: AtomicU64,
    partly: AtomicU64,
}

/// Of an error: it must say where.
fn names_a_place(e: &Error, what: &str) {
    let text = e.to_string();
    let places = ["'control'", "redo-", "'pages'", "page ", "doublewrite-", "log position"];
    assert!(places.iter().any(|place| text.contains(place)), "{what}: no place named: {text}");
    assert!(matches!(e, Error::Damaged(_)), "{what}: {e:?}");
}

/// Reads every row one by one. Returns whether something could not be read; what can be is right.
fn read_rows(db: &Db, model: &Model, what: &str) -> bool {
    let (mut failed, mut read) = (0, 0);
    for (name, rows) in model {
        let tree = match db.tree(name) {
            Ok(Some(tree)) => tree,
            Ok(None) => panic!("{what}: tree '{name}' is gone without a word"),
            Err(e) => {
                names_a_place(&e, what);
                failed += rows.len();
                continue;
            }
        };
        for (key, value) in rows {
            match tree.get(key) {
                Ok(found) => {
                    read += 1;
                    assert!(found.as_ref() == Some(value), "{what}: a wrong answer for {key:?}");
                }
                Err(e) => {
                    names_a_place(&e, what);
                    failed += 1;
                }
            }
        }
        match tree.get(b"row 010 is not") {
            Ok(found) => assert_eq!(found, None, "{what}"),
            Err(e) => names_a_place(&e, what),
        }
        // Scanning meets the same rows, as far as it comes.
        let mut cursor = tree.cursor();
        let mut found = cursor.seek_first();
        while let Ok(true) = found {
            let expected = rows.get(cursor.key());
            assert!(expected.is_some(), "{what}: a row {:?} that was never written", cursor.key());
            match cursor.value() {
                Ok(value) => {
                    assert!(Some(value) == expected.map(|v| &v[..]), "{what}: a wrong row")
                }
                Err(e) => names_a_place(&e, what),
            }
            found = cursor.next();
        }
        if let Err(e) = found {
            names_a_place(&e, what);
        }
    }
    assert!(read + failed > 50);
    failed > 0
}

type Open<'a> = dyn Fn(&SimVolume) -> Result<Db, Error> + Sync + 'a;

fn flip(open: &Open<'_>, found: &SimVolume, model: &Model, (name, at): (&str, u64), seen: &Seen) {
    let volume = found.snapshot();
    let bit = 1 << (at.wrapping_mul(7) % 8);
    volume.corrupt(name, at, bit).expect("a flip");
    let what = format!("'{name}' byte {at} xor {bit:#x}");
    seen.flips.fetch_add(1, Ordering::Relaxed);
    let db = match open(&volume) {
        Ok(db) => db,
        Err(e) => {
            names_a_place(&e, &what);
            seen.refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
    };
    if read_rows(&db, model, &what) {
        seen.partly.fetch_add(1, Ordering::Relaxed);
        if at.is_multiple_of(41) {
            let report = db.check(&mut |_, _| {});
            let found = report.map_or(1, |r| r.problems.len());
            assert!(found > 0, "{what}: rows cannot be read, and the check finds nothing");
        }
    } else if at.is_multiple_of(41) {
        let report = db.check(&mut |_, _| {});
        // Nothing that is in use was hit, or only the map of pages: the check may say so.
        if let Err(e) = report {
            names_a_place(&e, &what);
        }
    }
}

/// All bytes of blocks that are not zero throughout; of the others one in 211. Of the files that
/// `sparse` names, one in so many beyond their first block.
fn bytes_to_flip(volume: &SimVolume, sparse: &[(&str, usize)]) -> Vec<(String, u64)> {
    let mut list = Vec::new();
    let fewer = if std::env::var_os("WEIR_ALL_BYTES").is_some() { 1 } else { 5 };
    for name in volume.list().expect("a list") {
        let bytes = volume.read_raw(&name).expect("a file");
        let step =
            sparse.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or(1, |s| s.1) * fewer;
        for (number, block) in bytes.chunks(512).enumerate() {
            let step = match number {
                _ if block.iter().all(|&byte| byte == 0) => 211,
                0 => 1,
                _ => step,
            };
            // The first differs from block to block: no place in a page is left out everywhere.
            let places = (number * 512 + number % step..number * 512 + block.len()).step_by(step);
            list.extend(places.map(|at| (name.clone(), at as u64)));
        }
    }
    list
}

fn flip_all(found: &SimVolume, model: &Model, places: &[(String, u64)]) -> Seen {
    flip_all_with(&open, found, model, places)
}

fn flip_all_with(
    open: &Open<'_>,
    found: &SimVolume,
    model: &Model,
    places: &[(String, u64)],
) -> Seen {
    let seen = Seen::default();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((name, at)) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                    flip(open, found, model, (name, *at), &seen);
                }
            });
        }
    });
    seen
}

fn print_seen(name: &str, seen: &Seen) {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{name}: {} flips, {} refused to open, {} with rows that cannot be read",
        of(&seen.flips),
        of(&seen.refused),
        of(&seen.partly)
    );
}

#[test]
fn bytes_of_a_database_that_was_closed() {
    let volume = SimVolume::new(3);
    let (db, model) = populated(&volume);
    db.close().expect("closed");
    let found = volume.snapshot();
    let db = open(&found.snapshot()).expect("opened");
    assert_whole(&db, &model);
    assert_sound(&db);
    drop(db);
    // Of the log only the end is read; the doublewrite area counts only where a page was torn.
    let places = bytes_to_flip(&found, &[("redo-", 7), ("doublewrite-", 13)]);
    let seen = flip_all(&found, &model, &places);
    print_seen("closed", &seen);
    let partly = seen.partly.load(Ordering::Relaxed);
    assert!(places.len() > 5_000 && partly > 2_000, "{} places, {partly}", places.len());
}

#[test]
fn bytes_of_a_database_that_crashed() {
    let volume = SimVolume::new(4);
    let (db, model) = populated(&volume);
    let found = volume.snapshot();
    drop(db);
    let opened = found.snapshot();
    let db = open(&opened).expect("recovered");
    assert!(db.recovery_report().is_some());
    assert_whole(&db, &model);
    drop(db);
    // All bytes of the pages are flipped in the test above.
    let places = bytes_to_flip(&found, &[("pages", 3), ("doublewrite-", 13)]);
    let seen = flip_all(&found, &model, &places);
    print_seen("crashed", &seen);
    let refused = seen.refused.load(Ordering::Relaxed);
    assert!(places.len() > 5_000 && refused > 2_000, "{} places, {refused}", places.len());
}

/// The doublewrite area is needed only where a page was torn: there its copies count.
#[test]
fn bytes_of_the_copies_of_torn_pages() {
    for seed in 0..400 {
        let volume = SimVolume::new(seed);
        let (db, model) = populated(&volume);
        volume.set_crash_after(Some(3 + seed % 8));
        let _ = db.checkpoint();
        let found = volume.crash_with(CrashMode::Random, seed);
        drop(db);
        let opened = open(&found.snapshot()).expect("recovered");
        let repaired = opened.recovery_report().map_or(0, |report| report.pages_repaired);
        drop(opened);
        if repaired < 2 {
            continue;
        }
        let mut places = bytes_to_flip(&found, &[("doublewrite-", 3)]);
        places.retain(|(name, _)| name.starts_with("doublewrite-"));
        let seen = flip_all(&found, &model, &places);
        print_seen("torn", &seen);
        // Without its copy a torn page is a damaged one, and the rest can be read.
        let partly = seen.partly.load(Ordering::Relaxed);
        assert!(partly > 300, "{partly} of {}", places.len());
        return;
    }
    panic!("no crash tore enough pages");
}

/// Flips bytes of segments, of those blocks that hold anything, and of their root.
#[test]
fn bytes_of_segments_and_their_root() {
    for (seed, is_closed) in [(5, true), (6, false)] {
        let volume = SimVolume::new(seed);
        let (db, model) = populated_in(&volume, StoreKind::Log);
        if is_closed {
            db.close().expect("closed");
        } else {
            drop(volume.snapshot());
        }
        let found = volume.snapshot();
        let db = open(&found.snapshot()).expect("opened");
        assert_whole(&db, &model);
        assert_sound(&db);
        drop(db);
        let mut places = bytes_to_flip(&found, &[("segments", 5)]);
        places.retain(|(name, _)| name.starts_with("segments"));
        let raw = found.read_raw("segments").expect("segments");
        let holds = |at: u64| {
            let block = at as usize / 4096 * 4096;
            raw[block..block + 4096].iter().any(|&byte| byte != 0)
        };
        places.retain(|(name, at)| name != "segments" || holds(*at));
        let seen = flip_all(&found, &model, &places);
        print_seen("segments", &seen);
        let partly = seen.partly.load(Ordering::Relaxed);
        assert!(places.len() > 3_000 && partly > 50, "{} places, {partly}", places.len());
    }
}

/// Flips bytes of an encrypted database: each turns a sector, or a page, to noise.
#[test]
fn bytes_of_an_encrypted_database() {
    let keys = Keys::with(1, 7);
    let open = |volume: &SimVolume| Db::open_on(Arc::new(volume.clone()), with(&keys));
    for (seed, is_closed) in [(7, true), (8, false)] {
        let volume = SimVolume::new(seed);
        let (db, model) = populated_with(&volume, with(&keys));
        if is_closed {
            db.close().expect("closed");
        }
        let found = volume.snapshot();
        assert_whole(&open(&found.snapshot()).expect("opened"), &model);
        let mut places =
            bytes_to_flip(&found, &[("pages", 101), ("redo-", 61), ("doublewrite-", 301)]);
        places.retain(|(name, _)| name != "keys");
        let seen = flip_all_with(&open, &found, &model, &places);
        print_seen("encrypted", &seen);
        let (refused, partly) =
            (seen.refused.load(Ordering::Relaxed), seen.partly.load(Ordering::Relaxed));
        assert!(places.len() > 500 && refused + partly > 200, "{} places", places.len());
    }
}
