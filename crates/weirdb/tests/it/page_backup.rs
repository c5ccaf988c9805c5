//! Backups of pages and log by the interface: full, since, followed, restored.
use std::io::{Cursor, Read};

use weirdb::{
    BackupOptions, Config, Create, Durability, Error, OpenError, RestoreOptions, restore,
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
