//! Encrypted databases: nothing of what is in them is seen in a file, keys that are missing or
//! wrong, pages that were exchanged, creation cut short, copies and backups.
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex};

use weir::{
    Background, BackupBase, BackupOptions, Config, CopyOptions, Create, Db, Durability, Encryption,
    Error, KeyError, KeyName, KeyProvider, MasterKey, RestoreOptions, SimVolume, StoreKind,
    TxnOptions, Volume,
};
use weir_device::{BlockFile, Layer, ReadOp, WriteOp};

use crate::support::{assert_sound, assert_whole, populated_with, tiny};

/// Keys in memory: a version is a byte that fills the key.
#[derive(Default)]
pub(crate) struct Keys(Mutex<BTreeMap<u32, u8>>);

impl Keys {
    pub(crate) fn with(version: u32, fill: u8) -> Arc<Keys> {
        Arc::new(Keys(Mutex::new(BTreeMap::from([(version, fill)]))))
    }

    pub(crate) fn add(&self, version: u32, fill: u8) {
        self.0.lock().expect("held").insert(version, fill);
    }
}

impl KeyProvider for Keys {
    fn newest_version(&self, _id: u32) -> Result<u32, KeyError> {
        let newest = self.0.lock().expect("held").keys().max().copied();
        newest.ok_or_else(|| KeyError("there is none".into()))
    }

    fn key(&self, name: KeyName) -> Result<MasterKey, KeyError> {
        let keys = self.0.lock().expect("held");
        let fill = keys.get(&name.version).ok_or_else(|| KeyError("it is not here".into()))?;
        MasterKey::from_bytes(&[*fill; 32])
    }
}

pub(crate) fn with(keys: &Arc<Keys>) -> Config {
    Config { encryption: Some(Encryption::new(keys.clone())), ..tiny() }
}

fn open(volume: &SimVolume, config: Config) -> Result<Db, Error> {
    Db::open_on(Arc::new(volume.clone()), config)
}

/// What is in rows of [`fill`], names and keys, as far as it must not be seen.
const SECRETS: [&[u8]; 3] = [b"secret tree", b"secret key", b"secret value"];

fn seen_in(bytes: &[u8]) -> bool {
    SECRETS.iter().any(|secret| bytes.windows(secret.len()).any(|part| part == *secret))
}

/// The files that show something now.
fn files_that_show(volume: &SimVolume) -> Vec<String> {
    let mut names = volume.list().expect("listed");
    names.retain(|name| seen_in(&volume.read_raw(name).expect("a file")));
    names
}

/// A disk that notes to which files something that must not be seen was ever written: also to
/// those without a name.
struct Watch {
    below: SimVolume,
    shown: Arc<Mutex<BTreeSet<String>>>,
}

struct Watched {
    below: Arc<dyn BlockFile>,
    name: String,
    shown: Arc<Mutex<BTreeSet<String>>>,
}

impl Watched {
    fn look(&self, bytes: &[u8]) {
        if seen_in(bytes) {
            let kind = self.name.trim_end_matches(|c: char| c.is_ascii_digit());
            self.shown.lock().expect("held").insert(kind.to_owned());
        }
    }
}

impl Layer for Watch {
    fn below(&self) -> &dyn Volume {
        &self.below
    }

    fn wrap(&self, name: &str, below: Arc<dyn BlockFile>) -> Arc<dyn BlockFile> {
        Arc::new(Watched { below, name: name.to_owned(), shown: self.shown.clone() })
    }

    fn difference(&self) -> String {
        "watched".into()
    }
}

impl BlockFile for Watched {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.below.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.look(buf);
        self.below.write_at(offset, buf)
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.look(buf);
        self.below.write_durable_at(offset, buf)
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        self.below.read_many(reads)
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        writes.iter().for_each(|write| self.look(write.buf));
        self.below.write_many(writes)
    }

    fn sync(&self) -> io::Result<()> {
        self.below.sync()
    }

    fn len(&self) -> u64 {
        self.below.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.below.grow(len)
    }
}

/// Work that goes to each kind of file: rows, large values, many changes in a transaction, old
/// versions, sorting that memory does not hold.
fn fill(db: &Db, round: u32) {
    let tree = db.open_tree("secret tree").expect("made");
    for n in 0..60u32 {
        let value = b"secret value ".repeat(1 + (n as usize * 37) % 400);
        let key = [&b"secret key "[..], &n.to_be_bytes(), &round.to_be_bytes()].concat();
        tree.put(&key, &value, Durability::Synced).expect("put");
    }
    let snapshot = db.snapshot();
    let mut txn = db.begin(TxnOptions::default());
    for n in 0..400u32 {
        let key = [&b"secret key large "[..], &n.to_be_bytes()].concat();
        txn.put(&tree, &key, &b"secret value ".repeat(8)).expect("put");
    }
    txn.commit_durably(Durability::Synced).expect("committed");
    let mut sorter = db.sorter(1);
    for n in (0..20_000u32).rev() {
        sorter.push(&n.to_be_bytes(), b"secret value that is sorted").expect("added");
    }
    let mut sorted = sorter.sorted().expect("sorted");
    let mut count = 0;
    while sorted.step().expect("a step").is_some() {
        count += 1;
    }
    assert_eq!(count, 20_000);
    drop(snapshot);
    db.checkpoint().expect("a checkpoint");
}

#[test]
fn nothing_of_a_database_is_seen_in_its_files() {
    for store in [StoreKind::InPlace, StoreKind::Log] {
        let config = |config: Config| Config { store: Some(store), pages_max: 1 << 16, ..config };
        let open_watched = |volume: &SimVolume, config: Config| {
            let shown = Arc::default();
            let watch = Watch { below: volume.clone(), shown: Arc::clone(&shown) };
            (Db::open_on(Arc::new(watch), config).expect("opened"), shown)
        };
        // What is looked for is found where nothing is encrypted.
        let (db, shown) = open_watched(&SimVolume::new(1), config(tiny()));
        fill(&db, 0);
        db.close().expect("closed");
        let shown: Vec<String> = shown.lock().expect("held").iter().cloned().collect();
        let expected: &[&str] = match store {
            StoreKind::InPlace => &["doublewrite-", "pages", "redo-", "sort-"],
            StoreKind::Log => &["redo-", "segments", "sort-"],
        };
        assert_eq!(shown, expected, "{store:?}");

        let keys = Keys::with(1, 7);
        let mut volume = SimVolume::new(2);
        for round in 0..4 {
            let (db, shown) = open_watched(&volume, config(with(&keys)));
            fill(&db, round);
            let crashed = volume.crash(u64::from(round));
            drop(db);
            assert!(shown.lock().expect("held").is_empty(), "{shown:?}, {store:?}");
            volume = crashed;
        }
        let (db, shown) = open_watched(&volume, config(with(&keys)));
        let tree = db.tree("secret tree").expect("read").expect("there");
        assert_eq!(tree.check(&mut |_| {}).expect("sound").rows, 4 * 60 + 400);
        assert_sound(&db);
        db.close().expect("closed");
        assert!(shown.lock().expect("held").is_empty(), "{shown:?}, {store:?}");
        assert_eq!(files_that_show(&volume), Vec::<String>::new(), "{store:?}");
    }
}

#[test]
fn keys_that_are_missing_or_wrong_are_named_and_nothing_is_touched() {
    let keys = Keys::with(3, 7);
    let volume = SimVolume::new(1);
    let (db, model) = populated_with(&volume, with(&keys));
    db.close().expect("closed");
    let before = volume.writes_so_far();
    let told = |config: Config| match open(&volume, config).err().expect("no key") {
        Error::Key(e) => e.to_string(),
        e => panic!("{e:?}"),
    };
    assert!(told(tiny()).contains("key 1, version 3"), "{}", told(tiny()));
    assert!(told(Config { read_only: true, ..tiny() }).contains("key 1, version 3"));
    let other = told(with(&Keys::with(3, 8)));
    assert!(other.contains("another key"), "{other}");
    let none = told(with(&Keys::with(4, 7)));
    assert!(none.contains("key 1, version 3") && none.contains("not here"), "{none}");
    assert_eq!(volume.writes_so_far(), before);
    let alone = open(&volume, Config { read_only: true, ..with(&keys) }).expect("opened");
    assert_whole(&alone, &model);
    drop(alone);
    assert_eq!(volume.writes_so_far(), before);
    let db = open(&volume, with(&keys)).expect("opened");
    assert_eq!(db.key_name(), Some(KeyName { id: 1, version: 3 }));
    assert_whole(&db, &model);
}

#[test]
fn a_key_for_a_database_that_is_not_encrypted_is_refused() {
    let volume = SimVolume::new(1);
    let (db, model) = populated_with(&volume, tiny());
    assert_eq!(db.key_name(), None);
    assert!(matches!(db.rotate_key(), Err(Error::Config(_))));
    db.close().expect("closed");
    let told = open(&volume, with(&Keys::with(1, 7))).err().expect("refused");
    assert!(told.to_string().contains("not encrypted"), "{told}");
    assert_whole(&open(&volume, tiny()).expect("opened"), &model);
}

#[test]
fn a_provider_with_no_key_leaves_nothing() {
    let volume = SimVolume::new(1);
    let told = open(&volume, with(&Arc::default())).err().expect("no key");
    assert!(matches!(told, Error::Key(_)), "{told:?}");
    assert_eq!(volume.list().expect("listed"), Vec::<String>::new());
    let full = SimVolume::with_capacity(1, 64 << 10);
    let told = open(&full, with(&Keys::with(1, 7))).err().expect("no room");
    assert!(matches!(told, Error::DiskFull(_)), "{told:?}");
    assert_eq!(full.list().expect("listed"), Vec::<String>::new());
}

#[test]
fn a_creation_cut_short_at_any_write_is_begun_anew() {
    let keys = Keys::with(1, 7);
    let whole = SimVolume::new(1);
    open(&whole, with(&keys)).expect("made").close().expect("closed");
    for after in 0..whole.writes_so_far() {
        let volume = SimVolume::new(after);
        volume.set_crash_after(Some(after));
        let made = open(&volume, with(&keys));
        let left = volume.crash(after);
        drop(made);
        // With keys or without: nothing was there.
        let plain = left.snapshot();
        match open(&plain, tiny()) {
            Ok(db) => assert_eq!(db.key_name(), None, "after {after} writes"),
            Err(Error::Key(_)) => assert!(open(&left, with(&keys)).is_ok(), "{after}"),
            Err(e) => panic!("after {after} writes: {e}"),
        }
        let db = open(&left, with(&keys)).expect("made or opened");
        assert_eq!(db.key_name(), Some(KeyName { id: 1, version: 1 }), "after {after} writes");
        db.create_tree("a").expect("a tree");
        db.close().expect("closed");
        assert_sound(&open(&left, with(&keys)).expect("opened"));
    }
}

#[test]
fn pages_that_were_exchanged_or_come_from_elsewhere_are_damage() {
    let keys = Keys::with(1, 7);
    let volume = SimVolume::new(1);
    let (db, model) = populated_with(&volume, with(&keys));
    db.close().expect("closed");
    let other = SimVolume::new(2);
    populated_with(&other, with(&keys)).0.close().expect("closed");
    let page = 4096;
    let (bytes, others) =
        (volume.read_raw("pages").expect("read"), other.read_raw("pages").expect("read"));
    let pages = bytes.len().min(others.len()) / page;
    let mut found = 0;
    for one in 4..pages {
        if bytes[one * page..][..page].iter().all(|&byte| byte == 0) {
            continue;
        }
        let exchanged = |with: &[u8]| {
            let volume = volume.snapshot();
            let mut changed = bytes.clone();
            changed[one * page..][..page].copy_from_slice(with);
            volume.write_raw("pages", &changed).expect("written");
            volume
        };
        let next = (one + 1) * page;
        let next = if next < bytes.len() { &bytes[next..][..page] } else { &bytes[..page] };
        for volume in [exchanged(next), exchanged(&others[one * page..][..page])] {
            let Ok(db) = open(&volume, with(&keys)) else { continue };
            for (name, rows) in &model {
                let Ok(tree) = db.tree(name) else { continue };
                let tree = tree.expect("it is there");
                for (key, value) in rows {
                    match tree.get(key) {
                        Ok(read) => assert_eq!(read.as_ref(), Some(value), "page {one}"),
                        Err(Error::Damaged(_)) => found += 1,
                        Err(e) => panic!("page {one}: {e}"),
                    }
                }
            }
        }
    }
    assert!(found > 50, "{found}");
}

#[test]
fn a_rotation_while_all_goes_on_makes_the_old_key_useless() {
    let keys = Keys::with(1, 7);
    let volume = SimVolume::new(1);
    let (db, model) = populated_with(&volume, with(&keys));
    keys.add(2, 9);
    assert_eq!(db.rotate_key().expect("rotated"), KeyName { id: 1, version: 2 });
    assert_eq!(db.key_name(), Some(KeyName { id: 1, version: 2 }));
    assert_whole(&db, &model);
    let crashed = volume.crash(1);
    drop(db);
    assert!(matches!(open(&crashed, with(&Keys::with(1, 7))), Err(Error::Key(_))));
    assert_whole(&open(&crashed, with(&Keys::with(2, 9))).expect("opened"), &model);
}

#[test]
fn a_new_version_is_taken_by_a_database_that_is_open() {
    let keys = Keys::with(1, 7);
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config { background: Background::Threads, ..with(&keys) };
    let db = Db::open(dir.path(), config).expect("made");
    keys.add(2, 9);
    let began = std::time::Instant::now();
    while db.key_name().map(|name| name.version) != Some(2) {
        assert!(began.elapsed().as_secs() < 300, "it was not taken");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    db.close().expect("closed");
    Db::open(dir.path(), with(&Keys::with(2, 9))).expect("the old one is not needed");
}

fn input(bytes: &[u8]) -> Box<dyn Read> {
    Box::new(Cursor::new(bytes.to_vec()))
}

#[test]
fn backups_are_sealed_and_restored_with_keys_alone() {
    let keys = Keys::with(1, 7);
    let volume = SimVolume::new(1);
    let db = open(&volume, Config { pages_max: 1 << 16, ..with(&keys) }).expect("made");
    fill(&db, 0);
    let back_up = |since| {
        let mut out = Vec::new();
        let options = BackupOptions { since, ..BackupOptions::default() };
        db.backup(&mut out, &options, &mut |_| true).expect("backed up").expect("whole");
        assert!(!seen_in(&out) && out.starts_with(b"WEIRSEAL"));
        out
    };
    let full = back_up(None);
    let encryption = Encryption::new(keys.clone());
    let unsealed = weir::unseal(&full[..], Some(&encryption)).expect("opened");
    let base = BackupBase::read(unsealed).expect("a beginning");
    fill(&db, 1);
    // Older backups need older keys.
    keys.add(2, 9);
    let next = back_up(Some(base));
    let restore = |encryption: Option<Encryption>| {
        let options = RestoreOptions { encryption, ..RestoreOptions::default() };
        let volume = SimVolume::new(9);
        let inputs = vec![input(&full), input(&next)];
        let done = weir::restore_onto(Arc::new(volume.clone()), inputs, &options, &mut |_| true);
        (volume, done)
    };
    let (left, told) = restore(None);
    assert!(matches!(told, Err(Error::Key(_))), "{told:?}");
    assert_eq!(left.list().expect("listed"), Vec::<String>::new());
    let (left, told) = restore(Some(Encryption::new(Keys::with(2, 9))));
    assert!(matches!(told, Err(Error::Key(_))), "{told:?}");
    assert_eq!(left.list().expect("listed"), Vec::<String>::new());
    let (restored, done) = restore(Some(encryption));
    done.expect("restored").expect("whole");
    assert_eq!(files_that_show(&restored), Vec::<String>::new());
    let config = Config { pages_max: 1 << 16, ..with(&keys) };
    let restored = open(&restored, config).expect("opened");
    let tree = restored.tree("secret tree").expect("read").expect("there");
    assert_eq!(tree.check(&mut |_| {}).expect("sound").rows, 2 * 60 + 400);
    assert_sound(&restored);
    for at in (0..full.len()).step_by(full.len() / 200) {
        let mut changed = full.clone();
        changed[at] ^= 4;
        let encryption = Some(Encryption::new(keys.clone()));
        let options = RestoreOptions { encryption, ..RestoreOptions::default() };
        let volume = Arc::new(SimVolume::new(9));
        let done = weir::restore_onto(volume, vec![input(&changed)], &options, &mut |_| true);
        assert!(done.is_err(), "byte {at}");
    }
}

#[test]
fn a_copy_is_encrypted_as_its_source_or_as_configured() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    let (one, two) = (Keys::with(1, 7), Keys::with(1, 9));
    let db = Db::open(&at("a"), with(&one)).expect("made");
    db.open_tree("t").expect("made").put(b"k", b"v", Durability::Synced).expect("put");
    let copy = |db: &Db, to: &str, options: CopyOptions| {
        let mut txn = db.begin(TxnOptions::default());
        db.copy_to_as(&mut txn, &at(to), &options).expect("copied");
    };
    copy(&db, "same", CopyOptions::default());
    let other = Some(Encryption::new(two.clone()));
    copy(&db, "other", CopyOptions { encryption: other.clone(), ..CopyOptions::default() });
    copy(&db, "plain", CopyOptions { is_plain: true, ..CopyOptions::default() });
    let never = |config: Config| Config { create: Create::Never, page_size: 0, ..config };
    let holds = |name: &str, config: Config| {
        let db = Db::open(&at(name), never(config)).expect("opened");
        let tree = db.tree("t").expect("read").expect("there");
        assert_eq!(tree.get(b"k").expect("read").as_deref(), Some(&b"v"[..]));
        db
    };
    drop(holds("same", with(&one)));
    drop(holds("other", with(&two)));
    let plain = holds("plain", tiny());
    copy(&plain, "again", CopyOptions { encryption: other, ..CopyOptions::default() });
    drop(holds("again", with(&two)));
    assert!(Db::open(&at("same"), never(with(&two))).is_err());
}
