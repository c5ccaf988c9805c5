//! Backups of pages and log by the interface: full, since, followed, restored.
use std::io::{Cursor, Read, Seek};

use weirdb::{
    BackupOptions, Config, Create, Durability, Error, KeyFile, OpenError, RestoreOptions, restore,
};

fn input(bytes: &[u8]) -> Box<dyn Read> {
    Box::new(Cursor::new(bytes.to_vec()))
}

#[test]
fn a_backup_and_what_was_changed_since_make_the_database_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config::new().durability(Durability::Lazy);
    let db = config.open(dir.path().join("store")).expect("opened");
    let birds = db.open_tree("birds").expect("made");
    for number in 0..500u32 {
        birds.put(number.to_be_bytes(), "grey").expect("put");
    }
    let mut full = Vec::new();
    let options = BackupOptions::new().bytes_per_second(1 << 40);
    let done = db.write_backup(&mut full, &options, |_| true).expect("made").expect("whole");
    assert_eq!(done.bytes, full.len() as u64);
    birds.put("heron", "white").expect("put");
    let mut next = Vec::new();
    let since = options.since(&full[..]).expect("a backup").follow();
    let mut looks = 0;
    let followed = db.write_backup(&mut next, &since, |at| {
        looks += u32::from(at.follows);
        if looks == 1 && at.follows {
            birds.put("egret", "white").expect("put");
        }
        looks < 3
    });
    let followed = followed.expect("made").expect("whole");
    assert!(followed.position > done.position);

    let again = dir.path().join("again");
    let options = RestoreOptions::new().to_position(followed.position);
    assert!(restore(&again, vec![input(&full), input(&next)], &options, |_| true).expect("made"));
    let copy = config.clone().create(Create::Never).open(&again).expect("opened");
    let birds = copy.open_tree("birds").expect("there");
    assert_eq!(birds.len().expect("counted"), 502);
    assert!(copy.check(|_, _| {}).expect("checked").problems.is_empty());

    let open = restore(&again, vec![input(&full)], &RestoreOptions::new(), |_| true);
    assert!(matches!(open, Err(OpenError::DatabaseLocked { .. })), "{open:?}");
    copy.close().expect("closed");
    let taken = restore(&again, vec![input(&full)], &RestoreOptions::new(), |_| true);
    assert!(matches!(taken, Err(OpenError::Directory { .. })), "{taken:?}");
    let alone = dir.path().join("alone");
    let half = restore(&alone, vec![input(&next)], &RestoreOptions::new(), |_| true);
    assert!(matches!(half, Err(OpenError::Config(_))), "{half:?}");
    let cut = restore(&alone, vec![input(&full[..5000])], &RestoreOptions::new(), |_| true);
    assert!(matches!(cut, Err(OpenError::Damaged { .. })), "{cut:?}");
    let ended = restore(&alone, vec![input(&full)], &RestoreOptions::new(), |_| false);
    assert!(matches!(ended, Ok(false)), "{ended:?}");
    let none = BackupOptions::new().since(&b"something else"[..]);
    assert!(matches!(none, Err(Error::InvalidInput(_))), "{none:?}");
    db.close().expect("closed");
    let closed = db_closed(&dir.path().join("store"), &config);
    assert!(matches!(closed, Error::Closed), "{closed:?}");
}

fn db_closed(dir: &std::path::Path, config: &Config) -> Error {
    let db = config.open(dir).expect("opened");
    let other = db.clone();
    db.close().expect("closed");
    let made = other.write_backup(std::io::sink(), &BackupOptions::new(), |_| true);
    made.expect_err("it has been closed")
}

/// A file that is cut off at each of some places, by its progress and by hand.
#[test]
fn a_backup_that_was_cut_off_is_gone_on_with() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config::new().durability(Durability::Lazy);
    let db = config.open(dir.path().join("store")).expect("opened");
    let birds = db.open_tree("birds").expect("made");
    for number in 0..5_000u32 {
        birds.put(number.to_be_bytes(), [7; 500]).expect("put");
    }
    db.checkpoint().expect("written");
    let options = BackupOptions::new().bytes_per_second(1 << 40);
    let mut part = Vec::new();
    let ended = db.write_backup(&mut part, &options, |at| at.pages < 100);
    assert!(ended.expect("made").is_none() && part.len() > 100 * 4096, "{}", part.len());
    birds.put("heron", "white").expect("put");

    let file = dir.path().join("backup");
    let resume = |db: &weirdb::Db, options: &BackupOptions, pages_max: u64| {
        let there = std::fs::File::open(&file).expect("a file");
        let out = |offset| {
            let mut file = std::fs::OpenOptions::new().append(true).open(&file)?;
            file.set_len(offset)?;
            file.seek(std::io::SeekFrom::End(0))?;
            Ok(file)
        };
        db.resume_backup(there, out, options, |at| at.pages < pages_max)
    };
    std::fs::write(&file, &part).expect("written");
    let len = || file.metadata().expect("there").len();
    // Ended while what is there is verified, or between pages; then to the end.
    assert!(resume(&db, &options, 0).expect("ended").is_none() && len() == part.len() as u64);
    assert!(resume(&db, &options, 200).expect("ended").is_none() && len() > part.len() as u64);
    let done = resume(&db, &options, u64::MAX).expect("made").expect("whole");
    assert_eq!(done.bytes, len());
    let again = resume(&db, &options, u64::MAX).expect("made").expect("whole");
    assert_eq!(again, done, "nothing is missing");
    let whole = std::fs::read(&file).expect("read");
    std::fs::write(&file, &whole[..whole.len() - 1]).expect("cut");
    let ended = resume(&db, &options, u64::MAX).expect("made").expect("whole");
    assert_eq!((ended.position, len()), (done.position, whole.len() as u64), "the end alone");

    let restored = dir.path().join("restored");
    assert!(restore(&restored, vec![input(&whole)], &RestoreOptions::new(), |_| true).expect("it"));
    let copy = config.clone().create(Create::Never).open(&restored).expect("opened");
    assert_eq!(copy.open_tree("birds").expect("there").len().expect("counted"), 5_001);
    assert!(copy.check(|_, _| {}).expect("checked").problems.is_empty());

    // Of another database, since another one, of nothing: the file stays as it is.
    std::fs::write(&file, &part).expect("written");
    let foreign = resume(&copy, &options, u64::MAX);
    assert!(matches!(foreign, Err(Error::InvalidInput(_))), "{foreign:?}");
    let since = options.since(&whole[..]).expect("a backup");
    let since = resume(&db, &since, u64::MAX);
    assert!(matches!(since, Err(Error::InvalidInput(_))), "{since:?}");
    assert!(std::fs::read(&file).expect("read") == part);
    std::fs::write(&file, &part[..100]).expect("written");
    let cut = resume(&db, &options, u64::MAX);
    assert!(matches!(cut, Err(Error::Damaged { .. })), "{cut:?}");
    std::fs::write(&file, b"something else").expect("written");
    let other = resume(&db, &options, u64::MAX);
    assert!(matches!(other, Err(Error::InvalidInput(_))), "{other:?}");
}

#[test]
fn one_of_an_encrypted_database_is_gone_on_with() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = KeyFile::generate(dir.path().join("keys")).expect("a key");
    let db = Config::new().key_file(&keys).open(dir.path().join("store"));
    let db = db.expect("opened");
    let birds = db.create_tree("birds").expect("a tree");
    for n in 0..3_000u32 {
        birds.put(n.to_be_bytes(), [7; 200]).expect("put");
    }
    let mut full = Vec::new();
    let options = BackupOptions::new();
    db.write_backup(&mut full, &options, |_| true).expect("made").expect("whole");
    birds.put("heron", "white").expect("put");
    let cut = &full[..full.len() / 2];
    let (mut rest, mut from) = (Vec::new(), 0);
    let done = db.resume_backup(
        cut,
        |at| {
            from = at as usize;
            Ok(&mut rest)
        },
        &options,
        |_| true,
    );
    done.expect("made").expect("whole");
    let whole = [&cut[..from], &rest].concat();
    let restored = dir.path().join("restored");
    let how = RestoreOptions::new().key_file(&keys);
    assert!(restore(&restored, vec![input(&whole)], &how, |_| true).expect("it"));
    let copy = Config::new().key_file(&keys).create(Create::Never).open(&restored);
    let copy = copy.expect("opened");
    assert_eq!(copy.open_tree("birds").expect("there").len().expect("counted"), 3_001);
    // Without the key, nothing is asked to be written.
    let other = KeyFile::generate(dir.path().join("other")).expect("a key");
    std::fs::copy(dir.path().join("other"), dir.path().join("keys")).expect("another key");
    drop(other);
    let out = |_| -> std::io::Result<Vec<u8>> { panic!("nothing is written") };
    let done = db.resume_backup(cut, out, &options, |_| true);
    assert!(done.is_err(), "{done:?}");
}
