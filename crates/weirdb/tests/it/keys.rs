//! Encrypted databases.
use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weirdb::{
    BackupOptions, Error, KeyError, KeyFile, KeyProvider, OpenError, RestoreOptions, restore,
};

use crate::config;

/// A vault that has so many versions.
struct Vault(Arc<AtomicU32>);

impl KeyProvider for Vault {
    fn newest_version(&self) -> Result<u32, KeyError> {
        match self.0.load(Ordering::Relaxed) {
            0 => Err(KeyError("the vault is closed".into())),
            newest => Ok(newest),
        }
    }

    fn key(&self, version: u32) -> Result<Vec<u8>, KeyError> {
        if version > self.newest_version()? {
            return Err(KeyError("the vault does not have it".into()));
        }
        Ok(vec![version as u8; 32])
    }
}

#[test]
fn a_key_file_opens_what_it_encrypted() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    let keys = KeyFile::generate(at("keys")).expect("made");
    assert!(KeyFile::generate(at("keys")).is_err(), "it is not written over");
    let db = config().key_file(&keys).open(at("db")).expect("made");
    db.open_tree("birds").expect("made").insert(b"heron", b"grey").expect("inserted");
    let mut full = Vec::new();
    let whole = db.write_backup(&mut full, &BackupOptions::new(), |_| true).expect("backed up");
    assert!(whole.is_some());
    let not = BackupOptions::new().since(&full[..]).expect_err("it is sealed");
    assert!(matches!(not, Error::InvalidInput(_)), "{not:?}");
    let since = BackupOptions::new().since_sealed(&full[..], &keys).expect("opened");
    let mut next = Vec::new();
    db.write_backup(&mut next, &since, |_| true).expect("backed up").expect("whole");
    db.close().expect("closed");

    let e = config().open(at("db")).expect_err("no key");
    assert!(matches!(e, OpenError::Key { .. }) && e.source().is_some(), "{e:?}");
    assert!(e.to_string().contains("key 1, version 1"), "{e}");
    let other = KeyFile::generate(at("other")).expect("made");
    let e = config().key_file(&other).open(at("db")).expect_err("another key");
    assert!(e.to_string().contains("another key"), "{e}");
    let shown = format!("{:?}", config().key_file(&keys));
    assert!(shown.contains("Keys(..)"), "{shown}");

    let backups = || -> Vec<Box<dyn std::io::Read>> {
        vec![
            Box::new(std::io::Cursor::new(full.clone())),
            Box::new(std::io::Cursor::new(next.clone())),
        ]
    };
    let e = restore(at("again"), backups(), &RestoreOptions::new(), |_| true).expect_err("no key");
    assert!(matches!(e, OpenError::Key { .. }), "{e:?}");
    let options = RestoreOptions::new().key_file(&keys);
    assert!(restore(at("again"), backups(), &options, |_| true).expect("restored"));
    let db = config().key_file(&keys).open(at("again")).expect("opened");
    let heron = db.open_tree("birds").expect("there").get(b"heron").expect("read");
    assert_eq!(heron.as_deref(), Some(&b"grey"[..]));
}

#[test]
fn a_provider_that_has_no_key_now_says_why() {
    let dir = tempfile::tempdir().expect("a directory");
    let newest = Arc::new(AtomicU32::new(0));
    let open = || config().key_provider(Vault(newest.clone())).open(dir.path());
    let e = open().expect_err("closed");
    assert!(e.to_string().contains("the vault is closed"), "{e}");
    assert_eq!(
        std::fs::read_dir(dir.path())
            .expect("listed")
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name() != "LOCK")
            .count(),
        0
    );
    newest.store(5, Ordering::Relaxed);
    open().expect("made").close().expect("closed");
    newest.store(4, Ordering::Relaxed);
    let e = open().expect_err("gone");
    assert!(
        e.to_string().contains("version 5") && e.to_string().contains("does not have it"),
        "{e}"
    );
    newest.store(6, Ordering::Relaxed);
    open().expect("older versions open").close().expect("closed");
}
