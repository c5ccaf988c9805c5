//! Backups made while the database works, and databases made of them.
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir::{
    BackedUp, Background, BackupBase, BackupOptions, Config, Create, Db, Durability, Error, Lsn,
    PlantedBug, RestoreOptions, RestorePoint, Restored, SimVolume, StoreKind, TxnOptions, Volume,
    restore, restore_onto,
};

use crate::support::{Rows, assert_sound, tiny};

pub(crate) const STORES: [StoreKind; 2] = [StoreKind::InPlace, StoreKind::Log];

pub(crate) fn config(store: StoreKind) -> Config {
    Config { store: Some(store), pages_max: 1 << 14, ..tiny() }
}

pub(crate) fn made(volume: &SimVolume, config: Config) -> Db {
    Db::open_on(Arc::new(volume.clone()), config).expect("made")
}

pub(crate) fn backed_up(db: &Db, since: Option<BackupBase>) -> (Vec<u8>, BackedUp) {
    let options = BackupOptions { since, ..BackupOptions::default() };
    let mut out = Vec::new();
    let done = db.backup(&mut out, &options, &mut |_| true).expect("backed up").expect("whole");
    assert_eq!(done.bytes, out.len() as u64);
    (out, done)
}

pub(crate) fn base(backup: &[u8]) -> BackupBase {
    BackupBase::read(backup).expect("its beginning")
}

pub(crate) fn restored_as(
    backups: &[&[u8]],
    options: &RestoreOptions,
) -> (SimVolume, Result<Option<Restored>, Error>) {
    let volume = SimVolume::new(99);
    let inputs = backups.iter().map(|b| Box::new(io::Cursor::new(b.to_vec())) as Box<dyn Read>);
    let inputs = inputs.collect();
    let done = restore_onto(Arc::new(volume.clone()), inputs, options, &mut |_| true);
    (volume, done)
}

pub(crate) fn restored(backups: &[&[u8]]) -> Db {
    let (volume, done) = restored_as(backups, &RestoreOptions::default());
    done.expect("restored").expect("whole");
    Db::open_on(Arc::new(volume), Config { create: Create::Never, ..config_any() }).expect("opened")
}

pub(crate) fn config_any() -> Config {
    Config { pages_max: 1 << 14, ..tiny() }
}

/// What is in a database: trees by name, with their rows.
pub(crate) fn contents(db: &Db) -> BTreeMap<String, Rows> {
    let names = db.tree_names().expect("listed");
    let rows = |name: &String| {
        let tree = db.tree(name).expect("read").expect("there");
        let mut cursor = tree.cursor();
        let mut rows = Rows::new();
        let mut on = cursor.seek_first().expect("read");
        while on {
            rows.insert(cursor.key().to_vec(), cursor.value().expect("read").to_vec());
            on = cursor.next().expect("read");
        }
        rows
    };
    names.iter().map(|name| (name.clone(), rows(name))).collect()
}

pub(crate) fn assert_alike(db: &Db, restored: &Db) {
    assert_sound(restored);
    let (one, other) = (contents(db), contents(restored));
    assert!(one == other, "{} trees, {} trees", one.len(), other.len());
}

/// Something that changes pages, makes some and frees some.
pub(crate) fn work(db: &Db, dice: &mut fastrand::Rng) {
    let name = format!("tree {}", dice.u8(..4));
    match dice.u8(..20) {
        0 => drop(db.drop_tree(&name).expect("dropped")),
        1 => {
            let tree = db.open_tree(&name).expect("opened");
            let mut txn = db.begin(TxnOptions::default());
            for number in 0..dice.u32(..100) {
                txn.put(&tree, &number.to_be_bytes(), &[1; 300]).expect("put");
            }
            if dice.bool() {
                txn.commit_durably(Durability::Lazy).expect("committed");
            }
        }
        2 => db.checkpoint().expect("a checkpoint"),
        3 => {
            let tree = db.open_tree(&name).expect("opened");
            for number in 0..200u32 {
                tree.delete(&number.to_be_bytes(), Durability::Lazy).expect("deleted");
            }
        }
        4..8 => db.step().expect("a step"),
        _ => {
            let tree = db.open_tree(&name).expect("opened");
            let bytes = if dice.u8(..10) == 0 { 9_000 } else { dice.usize(..600) };
            let value = vec![dice.u8(..); bytes];
            let key = dice.u32(..200).to_be_bytes();
            tree.put(&key, &value, Durability::Lazy).expect("put");
        }
    }
}

/// Backs up while `work` goes on between any two reads.
pub(crate) fn backed_up_at_work(
    db: &Db,
    since: Option<BackupBase>,
    dice: &mut fastrand::Rng,
) -> Vec<u8> {
    let options = BackupOptions { since, ..BackupOptions::default() };
    let mut out = Vec::new();
    let mut progress = |_| {
        (0..dice.u32(..60)).for_each(|_| work(db, dice));
        true
    };
    db.backup(&mut out, &options, &mut progress).expect("backed up").expect("whole");
    out
}

#[test]
fn a_backup_made_at_work_holds_what_was_committed_when_it_ended() {
    for seed in 0..60 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let volume = SimVolume::new(seed);
        let db = made(&volume, config(STORES[seed as usize % 2]));
        (0..dice.u32(..400)).for_each(|_| work(&db, &mut dice));
        let mut chain = vec![backed_up_at_work(&db, None, &mut dice)];
        assert_alike(&db, &restored(&[&chain[0]]));
        for _ in 0..dice.u8(..3) {
            (0..dice.u32(..200)).for_each(|_| work(&db, &mut dice));
            let since = base(chain.last().expect("one"));
            chain.push(backed_up_at_work(&db, Some(since), &mut dice));
            let all: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
            assert_alike(&db, &restored(&all));
        }
    }
}

/// That a page which was freed since the checkpoint is needed is found: recovery applies to nothing
/// what the log has of it otherwise.
#[test]
fn a_backup_without_the_pages_that_were_freed_is_found() {
    let is_found = |seed| {
        let mut dice = fastrand::Rng::with_seed(seed);
        let volume = SimVolume::new(seed);
        let planted = PlantedBug::BackupWithoutFreed;
        let db = made(&volume, Config { planted, ..config(StoreKind::InPlace) });
        (0..400).for_each(|_| work(&db, &mut dice));
        let backup = backed_up_at_work(&db, None, &mut dice);
        let (volume, done) = restored_as(&[&backup], &RestoreOptions::default());
        done.expect("restored");
        let opened = Db::open_on(Arc::new(volume), config_any());
        let sound = opened.and_then(|db| {
            for _ in 0..200 {
                db.step()?;
            }
            db.checkpoint()?;
            db.check(&mut |_, _| ())
        });
        !sound.is_ok_and(|report| report.problems.is_empty())
    };
    assert!((0..40).any(is_found), "no test would tell");
}

#[test]
fn what_was_not_changed_is_not_in_the_next_backup() {
    for store in STORES {
        let volume = SimVolume::new(5);
        let db = made(&volume, config(store));
        let tree = db.create_tree("t").expect("made");
        for number in 0..4_000u32 {
            tree.put(&number.to_be_bytes(), &[7; 300], Durability::Lazy).expect("put");
        }
        db.checkpoint().expect("a checkpoint");
        let (full, first) = backed_up(&db, None);
        for number in (0..4_000u32).step_by(400) {
            tree.put(&number.to_be_bytes(), &[8; 300], Durability::Lazy).expect("put");
        }
        db.checkpoint().expect("a checkpoint");
        let (next, second) = backed_up(&db, Some(base(&full)));
        assert!(first.pages > 300 && second.pages < 40, "{first:?} {second:?}");
        assert_alike(&db, &restored(&[&full, &next]));
        // It is the state of another day without the one after it.
        assert_eq!(contents(&restored(&[&full])).len(), 1);
    }
}

#[test]
fn a_restored_database_is_another_one() {
    let volume = SimVolume::new(6);
    let db = made(&volume, config(StoreKind::InPlace));
    db.open_tree("t").expect("made").put(b"k", b"v", Durability::Synced).expect("put");
    let (full, _) = backed_up(&db, None);
    let again = restored(&[&full]);
    again
        .tree("t")
        .expect("read")
        .expect("there")
        .put(b"k", b"w", Durability::Synced)
        .expect("put");
    again.checkpoint().expect("a checkpoint");
    // What was done in the one is not in a backup of the other.
    let options = BackupOptions { since: Some(base(&full)), ..BackupOptions::default() };
    let refused = again.backup(io::sink(), &options, &mut |_| true).expect_err("another database");
    assert!(refused.to_string().contains("make a full backup"), "{refused}");
    let (own, _) = backed_up(&again, None);
    assert_alike(&again, &restored(&[&own]));
}

#[test]
fn backups_that_do_not_belong_together_are_refused() {
    let volume = SimVolume::new(7);
    let db = made(&volume, config(StoreKind::InPlace));
    let tree = db.open_tree("t").expect("made");
    let put = |n: u8| {
        tree.put(&[n], &[n], Durability::Lazy).expect("put");
        db.checkpoint().expect("a checkpoint");
    };
    put(1);
    let (full, _) = backed_up(&db, None);
    put(2);
    let (one, _) = backed_up(&db, Some(base(&full)));
    put(3);
    let (two, _) = backed_up(&db, Some(base(&one)));
    let refusals: [(&[&[u8]], &str); 6] = [
        (&[], "no backup"),
        (&[&one], "give that one before it"),
        (&[&full, &two], "was not made since the one before"),
        (&[&full, &one, &one], "was not made since the one before"),
        (&[&full, &full], "is a full one"),
        (&[b"something else entirely"], "not a backup"),
    ];
    for (backups, expected) in refusals {
        let (volume, done) = restored_as(backups, &RestoreOptions::default());
        let told = done.expect_err("refused").to_string();
        assert!(told.contains(expected), "{told}");
        assert_eq!(volume.list().expect("listed"), Vec::<String>::new());
    }
    assert_alike(&db, &restored(&[&full, &one, &two]));
}

#[test]
fn a_restored_database_may_have_the_other_store() {
    for (from, to) in [(StoreKind::InPlace, StoreKind::Log), (StoreKind::Log, StoreKind::InPlace)] {
        let volume = SimVolume::new(8);
        let db = made(&volume, config(from));
        let mut dice = fastrand::Rng::with_seed(8);
        (0..300).for_each(|_| work(&db, &mut dice));
        let (full, _) = backed_up(&db, None);
        let options = RestoreOptions { store: Some(to), ..RestoreOptions::default() };
        let (volume, done) = restored_as(&[&full], &options);
        done.expect("restored").expect("whole");
        let again = Db::open_on(Arc::new(volume), config_any()).expect("opened");
        assert_eq!(again.stats().store, to);
        assert_alike(&db, &again);
    }
}

#[test]
fn a_backup_that_is_damaged_or_cut_short_is_refused_and_leaves_nothing() {
    let volume = SimVolume::new(9);
    let db = made(&volume, config(StoreKind::InPlace));
    let tree = db.open_tree("t").expect("made");
    for number in 0..40u32 {
        tree.put(&number.to_be_bytes(), &[7; 200], Durability::Lazy).expect("put");
    }
    let (full, _) = backed_up(&db, None);
    let refused = |bytes: &[u8]| {
        let (volume, done) = restored_as(&[bytes], &RestoreOptions::default());
        let told = done.expect_err("it is not whole");
        assert!(matches!(told, Error::Damaged(_) | Error::Config(_)), "{told:?}");
        assert_eq!(volume.list().expect("listed"), Vec::<String>::new(), "{told}");
    };
    for cut in (0..full.len()).step_by(997).chain(full.len() - 70..full.len()) {
        refused(&full[..cut]);
    }
    for at in (0..full.len()).step_by(641).chain(0..600) {
        let mut flipped = full.clone();
        flipped[at] ^= 1 << (at % 8);
        refused(&flipped);
    }
    refused(&[&full[..], b"x"].concat());
}

/// A database on a volume of a file system.
fn on_disk(dir: &std::path::Path) -> Db {
    let config = Config { pool_bytes: 4 << 20, log_bytes: 8 << 20, ..Config::default() };
    Db::open(dir, config).expect("opened")
}

#[test]
fn writers_go_on_beside_a_backup_and_it_is_of_one_moment() {
    let dirs = tempfile::tempdir().expect("a directory");
    let db = on_disk(&dirs.path().join("a"));
    let trees = ["one", "two"].map(|name| db.open_tree(name).expect("made"));
    for tree in &trees {
        tree.bulk_load((0..20_000u32).map(|n| (n.to_be_bytes(), [1; 200]))).expect("loaded");
    }
    let (stop, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    let backups = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3u32)
            .map(|writer| {
                let (db, trees, stop, committed) = (&db, &trees, &stop, &committed);
                scope.spawn(move || {
                    let mut dice = fastrand::Rng::with_seed(writer.into());
                    let mut round = 0u32;
                    while !stop.load(Ordering::Relaxed) {
                        round += 1;
                        // The same in both trees, or in none.
                        let mut txn = db.begin(TxnOptions::default());
                        let key = (dice.u32(..8_000) * 3 + writer).to_be_bytes();
                        for tree in trees {
                            txn.put(tree, &key, &round.to_be_bytes()).expect("put");
                        }
                        txn.put(
                            &trees[0],
                            format!("last of {writer}").as_bytes(),
                            &round.to_be_bytes(),
                        )
                        .expect("put");
                        txn.commit_durably(Durability::Written).expect("committed");
                        committed.fetch_add(1, Ordering::Relaxed);
                    }
                    round
                })
            })
            .collect();
        let wait = |more: u64| {
            let until = committed.load(Ordering::Relaxed) + more;
            while committed.load(Ordering::Relaxed) < until {
                std::thread::yield_now();
            }
        };
        wait(200);
        let (full, _) = fast(&db, None);
        wait(500);
        let (next, _) = fast(&db, Some(base(&full)));
        wait(200);
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| drop(writer.join()));
        [full, next]
    });
    for (name, chain) in [("b", &backups[..1]), ("c", &backups[..])] {
        let inputs = chain.iter().map(|b| Box::new(io::Cursor::new(b.clone())) as Box<dyn Read>);
        let at = dirs.path().join(name);
        restore(&at, inputs.collect(), &RestoreOptions::default(), &mut |_| true)
            .expect("restored")
            .expect("whole");
        let again = on_disk(&at);
        assert_sound(&again);
        let mut found = contents(&again);
        let mut one = found.remove("one").expect("there");
        let last: Vec<_> =
            (0..3).filter_map(|w| one.remove(format!("last of {w}").as_bytes())).collect();
        assert_eq!(last.len(), 3);
        let two = found.remove("two").expect("there");
        assert!(one == two, "a transaction is in one tree alone");
        again.close().expect("closed");
    }
}

/// As fast as it goes.
fn fast(db: &Db, since: Option<BackupBase>) -> (Vec<u8>, BackedUp) {
    let mut out = Vec::new();
    let options = BackupOptions { since, bytes_per_second: Some(1 << 40), follow: false };
    let done = db.backup(&mut out, &options, &mut |_| true).expect("backed up").expect("whole");
    (out, done)
}

#[test]
fn a_restore_that_crashed_is_no_database() {
    let source = SimVolume::new(10);
    let db = made(&source, config(StoreKind::InPlace));
    let mut dice = fastrand::Rng::with_seed(10);
    (0..150).for_each(|_| work(&db, &mut dice));
    let (full, _) = backed_up(&db, None);
    let (mut refused, mut absent, mut opened) = (0, 0, 0);
    let writes = restored_as(&[&full], &RestoreOptions::default()).0.writes_so_far();
    for after in 0..writes + 10 {
        let volume = SimVolume::new(after);
        volume.set_crash_after(Some(after));
        let input: Box<dyn Read> = Box::new(io::Cursor::new(full.clone()));
        let options = RestoreOptions::default();
        let done = restore_onto(Arc::new(volume.clone()), vec![input], &options, &mut |_| true);
        let left: Arc<dyn Volume> = Arc::new(volume.crash(after));
        match Db::open_on(left, Config { create: Create::Never, ..config_any() }) {
            Ok(again) => {
                assert_alike(&db, &again);
                opened += 1;
            }
            Err(Error::Directory(e)) if e.contains("not finished") => {
                assert!(done.is_err(), "of {after} writes");
                refused += 1;
            }
            Err(Error::Directory(_)) => absent += 1,
            Err(e) => panic!("of {after} writes: {e}"),
        }
    }
    assert!(refused > 10 && opened > 0, "{refused} {absent} {opened}");
}

#[test]
fn a_full_disk_and_a_broken_pipe_are_errors_and_the_database_goes_on() {
    struct Pipe(usize);
    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let now = bytes.len().min(self.0);
            self.0 -= now;
            Ok(now)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let volume = SimVolume::new(11);
    let db = made(&volume, config(StoreKind::InPlace));
    let tree = db.open_tree("t").expect("made");
    for number in 0..400u32 {
        tree.put(&number.to_be_bytes(), &[7; 200], Durability::Lazy).expect("put");
    }
    for room in [0, 5, 1000, 60_000] {
        let failed = db.backup(Pipe(room), &BackupOptions::default(), &mut |_| true);
        let told = failed.expect_err("the pipe is broken").to_string();
        assert!(told.contains("byte") && told.contains("pipe"), "{told}");
    }
    let stopped = db.backup(io::sink(), &BackupOptions::default(), &mut |_| false);
    assert!(stopped.expect("no error").is_none());
    let (full, _) = backed_up(&db, None);
    let small = SimVolume::with_capacity(4, 1 << 20);
    let input: Box<dyn Read> = Box::new(io::Cursor::new(full));
    let full_disk =
        restore_onto(Arc::new(small.clone()), vec![input], &RestoreOptions::default(), &mut |_| {
            true
        });
    assert!(matches!(full_disk, Err(Error::DiskFull(_))), "{full_disk:?}");
    assert_eq!(small.list().expect("listed"), Vec::<String>::new());
    tree.put(b"more", b"rows", Durability::Synced).expect("put");
}

#[test]
fn a_point_that_is_not_in_the_backup_is_refused() {
    let volume = SimVolume::new(12);
    let db = made(&volume, config(StoreKind::InPlace));
    db.open_tree("t").expect("made").put(b"k", b"v", Durability::Synced).expect("put");
    let (full, done) = backed_up(&db, None);
    let to = |to| RestoreOptions { to: Some(to), ..RestoreOptions::default() };
    let end = done.end;
    for point in [
        RestorePoint::Lsn(Lsn(end.0 + 1)),
        RestorePoint::Lsn(Lsn(end.0 - 1)),
        RestorePoint::Micros(1),
        RestorePoint::Micros(u64::MAX),
    ] {
        let (volume, done) = restored_as(&[&full], &to(point));
        let told = done.expect_err("not in it").to_string();
        assert!(told.contains("not in the backup"), "{told}");
        assert_eq!(volume.list().expect("listed"), Vec::<String>::new());
    }
    let (_, done) = restored_as(&[&full], &to(RestorePoint::Lsn(end)));
    assert_eq!(done.expect("restored").expect("whole").end, end);
}

#[test]
fn a_closed_database_and_one_backup_too_many_are_refused() {
    let volume = SimVolume::new(13);
    let db = made(&volume, Config { background: Background::Manual, ..config(StoreKind::InPlace) });
    fn nested(db: &Db, depth: u32) -> Result<(), Error> {
        let mut inner = Ok(());
        let mut progress = |_| {
            if inner.is_ok() && depth < 4 {
                inner = nested(db, depth + 1);
            }
            true
        };
        db.backup(io::sink(), &BackupOptions::default(), &mut progress)?;
        inner
    }
    let told = nested(&db, 0).expect_err("four at most").to_string();
    assert!(told.contains("too many backups"), "{told}");
    nested(&db, 4).expect("they have ended");
}

#[test]
fn a_backup_that_follows_can_be_restored_to_any_moment() {
    for store in STORES {
        let volume = SimVolume::new(14);
        let db = made(&volume, config(store));
        let mut dice = fastrand::Rng::with_seed(14);
        (0..200).for_each(|_| work(&db, &mut dice));
        let options = BackupOptions { follow: true, ..BackupOptions::default() };
        let (mut out, mut states) = (Vec::new(), Vec::new());
        let mut progress = |at: weir::BackupProgress| {
            (0..dice.u32(..30)).for_each(|_| work(&db, &mut dice));
            if at.follows {
                states.push((Lsn(db.stats().log_end), unix_micros(), contents(&db)));
            }
            states.len() < 12
        };
        let done = db.backup(&mut out, &options, &mut progress).expect("followed").expect("whole");
        assert_eq!(states.len(), 12);
        assert_eq!(done.end, states[11].0, "it ends with what was last");
        let restored_to = |point, incomplete, bytes: &[u8]| {
            let options = RestoreOptions { to: point, incomplete, ..RestoreOptions::default() };
            let (volume, done) = restored_as(&[bytes], &options);
            done.map(|done| {
                let done = done.expect("whole");
                (done.end, Db::open_on(Arc::new(volume), config_any()).expect("opened"))
            })
        };
        for (end, _, rows) in &states {
            let point = Some(RestorePoint::Lsn(*end));
            let (at, again) = restored_to(point, false, &out).expect("restored");
            assert_eq!(at, *end);
            assert_sound(&again);
            assert!(contents(&again) == *rows, "at {end}");
        }
        // A moment in time: what had been written down of the log by then.
        for (end, micros, _) in &states[2..10] {
            let point = Some(RestorePoint::Micros(*micros));
            let (at, again) = restored_to(point, false, &out).expect("restored");
            assert!(at <= *end, "{at} {end}");
            assert_sound(&again);
        }
        // The follower ended with a crash: what it has counts, if it was asked for.
        let mut opened = 0;
        for cut in (0..out.len()).step_by(out.len() / 150) {
            assert!(restored_to(None, false, &out[..cut]).is_err());
            if let Ok((at, again)) = restored_to(None, true, &out[..cut]) {
                opened += 1;
                assert_sound(&again);
                let known = states.iter().find(|(end, ..)| *end == at);
                assert!(known.is_none_or(|(_, _, rows)| contents(&again) == *rows));
            }
        }
        assert!(opened > 3, "{opened}");
    }
}

/// Each page of a database damaged in turn, and made again from backups that reach far enough.
#[test]
fn a_damaged_page_is_made_again_from_backups() {
    for seed in 15..18 {
        let volume = SimVolume::new(seed);
        let db = made(&volume, config(StoreKind::InPlace));
        let mut dice = fastrand::Rng::with_seed(seed);
        (0..300).for_each(|_| work(&db, &mut dice));
        let (full, _) = backed_up(&db, None);
        (0..100).for_each(|_| work(&db, &mut dice));
        let options =
            BackupOptions { since: Some(base(&full)), follow: true, ..BackupOptions::default() };
        let (mut next, mut looks) = (Vec::new(), 0);
        let mut progress = |at: weir::BackupProgress| {
            looks += u32::from(at.follows);
            (0..dice.u32(..40)).for_each(|_| work(&db, &mut dice));
            looks < 3
        };
        db.backup(&mut next, &options, &mut progress).expect("followed").expect("whole");
        // What comes behind is in the database's own log.
        let tree = db.open_tree("behind").expect("made");
        tree.put(b"k", b"v", Durability::Synced).expect("put");
        let expected = contents(&db);
        let found = volume.snapshot();
        db.checkpoint().expect("a checkpoint");
        tree.put(b"k", b"w", Durability::Synced).expect("put");
        db.checkpoint().expect("a checkpoint");
        let later = volume.snapshot();
        drop(db);
        let inputs = || vec![input(&full), input(&next)];
        let repaired = |volume: &SimVolume, page| {
            weir::repair_page_on(Arc::new(volume.clone()), page, inputs(), None)
        };
        let sound = repaired(&found.snapshot(), 1).expect_err("it is sound").to_string();
        assert!(sound.contains("is sound"), "{sound}");
        let (mut tried, mut refused) = (0, 0);
        for page in 0..200 {
            let Some(damaged) = damaged(&found, page) else { continue };
            match repaired(&damaged, page) {
                Ok(_) => {
                    tried += 1;
                    let db = Db::open_on(Arc::new(damaged), config_any()).expect("opened");
                    assert_sound(&db);
                    assert!(contents(&db) == expected, "page {page}");
                }
                Err(e) => {
                    // Not in use, or made since.
                    assert!(e.to_string().contains("in none of the backups"), "{page}: {e}");
                    refused += 1;
                }
            }
            // Where the database has gone on behind the end of the backups, nothing says so.
            if let Some(damaged) = self::damaged(&later, page) {
                let told = repaired(&damaged, page).expect_err("too old").to_string();
                assert!(told.contains("nothing says what page"), "{told}");
            }
        }
        assert!(tried > 10, "{tried} made again, {refused} not");
    }
}

/// The log is not kept for a backup whatever it takes: the work goes on, and the backup says why it
/// is none.
#[test]
fn a_backup_that_is_too_slow_ends_and_the_work_does_not() {
    let volume = SimVolume::new(16);
    let db = made(&volume, config(StoreKind::InPlace));
    let tree = db.open_tree("t").expect("made");
    let mut dice = fastrand::Rng::with_seed(16);
    let mut progress = |_| {
        for number in 0..4_000u32 {
            let value: [u8; 400] = std::array::from_fn(|_| dice.u8(..));
            tree.put(&(number % 300).to_be_bytes(), &value, Durability::Lazy).expect("put");
            if number % 100 == 0 {
                db.step().expect("a step");
            }
        }
        true
    };
    let told = db.backup(io::sink(), &BackupOptions::default(), &mut progress);
    let told = told.expect_err("it is too slow").to_string();
    assert!(told.contains("before they had been copied"), "{told}");
    let files = volume.list().expect("listed");
    let logs = files.iter().filter(|name| name.starts_with("redo-")).count();
    assert!(logs < 100, "{logs} files of log");
    tree.put(b"more", b"rows", Durability::Synced).expect("put");
    assert_alike(&db, &restored(&[&backed_up(&db, None).0]));
}

fn input(bytes: &[u8]) -> Box<dyn Read> {
    Box::new(io::Cursor::new(bytes.to_vec()))
}

/// The disk with a byte of that page flipped, if it lies there.
fn damaged(volume: &SimVolume, page: u32) -> Option<SimVolume> {
    let damaged = volume.snapshot();
    let file = damaged.open("pages").ok()?;
    let at = u64::from(page) * 4096;
    let mut bytes = weir_base::AlignedBuf::zeroed(4096);
    file.read_at(at, &mut bytes).ok()?;
    if bytes.iter().all(|&byte| byte == 0) || page == 2 || page == 3 {
        return None;
    }
    bytes[100] ^= 4;
    file.write_at(at, &bytes).ok()?;
    // A copy in the doublewrite area would do as well.
    Some(damaged)
}

fn unix_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_micros() as u64
}
