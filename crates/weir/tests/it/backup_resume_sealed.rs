//! Backups of encrypted databases that were cut off, anywhere, and gone on with: what is in them,
//! and that nothing that was sealed is sealed otherwise under the same key and number.
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use weir::{
    BackedUp, BackupBase, BackupOptions, Config, Create, Db, Encryption, Error, FoundBackup,
    PartialBackup, RestoreOptions, SimVolume, found_backup,
};

use crate::backup::{STORES, assert_alike, config, made, restored_as, work};
use crate::encrypted::Keys;

const HEAD: usize = 80;
const SEAM: usize = 84;

fn sealed_with(keys: &Arc<Keys>) -> Option<Encryption> {
    Some(Encryption::new(keys.clone()))
}

fn made_encrypted(volume: &SimVolume, keys: &Arc<Keys>, seed: usize) -> Db {
    made(volume, Config { encryption: sealed_with(keys), ..config(STORES[seed % 2]) })
}

/// A file that knows after which bytes each write ended.
#[derive(Default, Clone)]
struct Written(Arc<Mutex<(Vec<u8>, Vec<usize>)>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().expect("held");
        written.0.extend_from_slice(bytes);
        let end = written.0.len();
        written.1.push(end);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn take(&self) -> (Vec<u8>, Vec<usize>) {
        self.0.lock().expect("held").clone()
    }
}

fn backed_up_at_work(
    db: &Db,
    since: Option<BackupBase>,
    dice: &mut fastrand::Rng,
) -> (Vec<u8>, Vec<usize>) {
    let out = Written::default();
    let options = BackupOptions { since, ..BackupOptions::default() };
    let mut progress = |_| {
        (0..dice.u32(..60)).for_each(|_| work(db, dice));
        true
    };
    db.backup(out.clone(), &options, &mut progress).expect("backed up").expect("whole");
    out.take()
}

/// Goes on with what there is, with work between any two reads. `None`: it is refused, and nothing
/// was asked to be written.
fn resumed(db: &Db, there: &[u8], dice: &mut fastrand::Rng) -> Result<(Vec<u8>, BackedUp), Error> {
    let (out, options) = (Written::default(), BackupOptions::default());
    let mut from = None;
    let begin = |at: u64| {
        from = Some(at as usize);
        Ok(out.clone())
    };
    let mut progress = |_| {
        (0..dice.u32(..30)).for_each(|_| work(db, dice));
        true
    };
    let done = db.resume_backup_from(there, begin, &options, &mut progress);
    let done = done.inspect_err(|_| assert_eq!(from, None, "it was to be written"))?;
    let from = from.unwrap_or(there.len());
    Ok(([&there[..from], &out.take().0].concat(), done.expect("not ended")))
}

fn restored(backups: &[&[u8]], keys: &Arc<Keys>) -> Db {
    let encryption = sealed_with(keys);
    let options = RestoreOptions { encryption: encryption.clone(), ..Default::default() };
    let (volume, done) = restored_as(backups, &options);
    done.expect("restored").expect("whole");
    let config = Config { create: Create::Never, encryption, ..config(STORES[0]) };
    Db::open_on(Arc::new(volume), Config { store: None, ..config }).expect("opened")
}

fn base(backup: &[u8], keys: &Arc<Keys>) -> BackupBase {
    let backup = weir::unseal(backup, sealed_with(keys).as_ref()).expect("unsealed");
    BackupBase::read(backup).expect("its beginning")
}

fn there(backup: &[u8], keys: &Arc<Keys>) -> PartialBackup {
    match found_backup(backup, sealed_with(keys).as_ref(), &mut |_| true) {
        Ok(Some(FoundBackup::Partial(there))) => *there,
        found => panic!("{found:?}"),
    }
}

/// All that was ever sealed of one backup: by its wrapped key and number.
#[derive(Default)]
struct SealedPieces {
    pieces: BTreeMap<(Vec<u8>, u64), Vec<u8>>,
    keys: BTreeSet<Vec<u8>>,
}

impl SealedPieces {
    /// Goes through what there is of one, by the lengths alone.
    fn note(&mut self, stream: &[u8]) {
        let (mut at, mut number) = (HEAD, 0);
        let Some(mut key) = stream.get(20..HEAD).map(<[u8]>::to_vec) else { return };
        self.keys.insert(key.clone());
        while let Some(length) = stream.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            let len = u32::from_le_bytes(*length) as usize;
            if len == u32::MAX as usize {
                let Some(seam) = stream.get(at..at + SEAM) else { return };
                key = seam[20..HEAD].to_vec();
                self.keys.insert(key.clone());
                at += SEAM;
                continue;
            }
            let Some(piece) = stream.get(at..at + 20 + len) else { return };
            let before = self.pieces.entry((key.clone(), number)).or_insert_with(|| piece.to_vec());
            assert!(before == piece, "piece {number} was another under the same key");
            (at, number) = (at + 20 + len, number + 1);
        }
    }
}

#[test]
fn one_that_was_cut_off_at_any_write_is_gone_on_with() {
    let keys = Keys::with(1, 5);
    let (mut cuts, mut last) = (0, 0);
    for seed in 0..4 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let volume = SimVolume::new(seed);
        let db = made_encrypted(&volume, &keys, seed as usize);
        (0..400).for_each(|_| work(&db, &mut dice));
        let (backup, writes) = backed_up_at_work(&db, None, &mut dice);
        let mut pieces = SealedPieces::default();
        pieces.note(&backup);
        for cut in writes.iter().flat_map(|&at| [at, at + 1, at - 1]) {
            let cut = &backup[..cut.min(backup.len())];
            // Not even its beginning is there.
            if found_backup(cut, sealed_with(&keys).as_ref(), &mut |_| true).is_err() {
                assert!(cut.len() < HEAD + 70_000, "{}", cut.len());
                assert!(resumed(&db, cut, &mut dice).is_err());
                continue;
            }
            let (whole, done) = resumed(&db, cut, &mut dice).expect("gone on with");
            pieces.note(&whole);
            let found = found_backup(&whole[..], sealed_with(&keys).as_ref(), &mut |_| true);
            let Ok(Some(FoundBackup::Whole(verified))) = found else { panic!("{found:?}") };
            assert_eq!((verified.end.end, verified.bytes), (done.end, done.bytes));
            if cut.len() < backup.len() * 9 / 10 {
                assert_alike(&db, &restored(&[&whole], &keys));
            }
            cuts += 1;
        }
        last += pieces.keys.len();
    }
    println!("{cuts} cuts, {last} keys");
    assert!(cuts > 100 && last > 90, "{cuts} {last}");
}

/// Behind the first piece: without it there is not even a beginning.
fn behind_first_piece(stream: &[u8]) -> usize {
    let mut at = HEAD;
    loop {
        let len: [u8; 4] = std::array::from_fn(|i| stream[at + i]);
        match u32::from_le_bytes(len) {
            u32::MAX => at += SEAM,
            len => return at + 20 + len as usize,
        }
    }
}

/// Backups since another one, gone on with several times, after crashes of the database and with
/// other versions of the master key; and one since what came of it.
#[test]
fn chains_and_crashes_and_rotations_and_several_times() {
    for seed in 0..12u64 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let keys = Keys::with(1, 5);
        let volume = SimVolume::new(seed);
        let mut db = made_encrypted(&volume, &keys, seed as usize);
        (0..dice.u32(100..400)).for_each(|_| work(&db, &mut dice));
        let (full, _) = backed_up_at_work(&db, None, &mut dice);
        (0..dice.u32(..200)).for_each(|_| work(&db, &mut dice));
        let (mut next, _) = backed_up_at_work(&db, Some(base(&full, &keys)), &mut dice);
        let mut pieces = SealedPieces::default();
        pieces.note(&next);
        for version in 2..dice.u32(3..6) {
            next.truncate(dice.usize(behind_first_piece(&next)..=next.len()));
            if dice.bool() {
                keys.add(version, 5 + version as u8);
            }
            if dice.u8(..4) == 0 {
                db.sync().expect("durable");
                let crashed = volume.crash(dice.u64(..));
                drop(db);
                let config = Config { create: Create::Never, ..config(STORES[seed as usize % 2]) };
                let config = Config { encryption: sealed_with(&keys), ..config };
                db = Db::open_on(Arc::new(crashed), config).expect("recovered");
                (0..dice.u32(..100)).for_each(|_| work(&db, &mut dice));
                next = resumed(&db, &next, &mut dice).expect("gone on with").0;
                pieces.note(&next);
                break;
            }
            (0..dice.u32(..200)).for_each(|_| work(&db, &mut dice));
            next = resumed(&db, &next, &mut dice).expect("gone on with").0;
            pieces.note(&next);
        }
        // Where only the end was missing it is of the state that it has.
        let (last, _) = backed_up_at_work(&db, Some(base(&next, &keys)), &mut dice);
        assert_alike(&db, &restored(&[&full, &next, &last], &keys));
    }
}

/// One that followed the database and was killed has all its pages, and gets the end that it lacks.
#[test]
fn one_that_lacks_its_end_alone_gets_it() {
    let keys = Keys::with(1, 5);
    let mut dice = fastrand::Rng::with_seed(9);
    let volume = SimVolume::new(9);
    let db = made_encrypted(&volume, &keys, 0);
    (0..400).for_each(|_| work(&db, &mut dice));
    let (out, options) = (Written::default(), BackupOptions { follow: true, ..Default::default() });
    let mut rounds = 0;
    let mut progress = |at: weir::BackupProgress| {
        rounds += u32::from(at.follows);
        rounds < 5
    };
    db.backup(out.clone(), &options, &mut progress).expect("backed up").expect("whole");
    let (full, writes) = out.take();
    let cut = &full[..writes[writes.len() - 2]];
    let end = there(cut, &keys).end().expect("all pages are there");
    let (whole, done) = resumed(&db, cut, &mut dice).expect("ended");
    assert_eq!(done.end, end.end);
    let mut pieces = SealedPieces::default();
    [&full, &whole].into_iter().for_each(|stream| pieces.note(stream));
    assert_eq!(pieces.keys.len(), 2);
    assert_alike(&restored(&[&full], &keys), &restored(&[&whole], &keys));
}

#[test]
fn without_its_keys_nothing_is_asked_to_be_written() {
    let keys = Keys::with(1, 5);
    let mut dice = fastrand::Rng::with_seed(7);
    let volume = SimVolume::new(7);
    let db = made_encrypted(&volume, &keys, 0);
    (0..400).for_each(|_| work(&db, &mut dice));
    let (full, writes) = backed_up_at_work(&db, None, &mut dice);
    let half = &full[..writes[writes.len() / 2]];
    // Gone on with under a version that is lost then, and cut off behind that.
    keys.add(2, 6);
    let (again, _) = resumed(&db, half, &mut dice).expect("gone on with");
    let end = there(&again[..again.len() - 1], &keys).file_at() as usize;
    let cut = &again[..end - 30_000.min(end - half.len() - SEAM - 100)];
    assert!(found_backup(cut, None, &mut |_| true).is_err(), "no keys are given");
    keys.add(2, 9);
    let wrong = resumed(&db, cut, &mut dice).expect_err("another key");
    assert!(wrong.to_string().contains("key 1, version 2"), "{wrong}");
    keys.add(1, 9);
    let wrong = resumed(&db, half, &mut dice).expect_err("another key");
    assert!(matches!(wrong, Error::Key(_)) && wrong.to_string().contains("version 1"), "{wrong}");
    keys.add(1, 5);
    keys.add(2, 6);
    let (whole, _) = resumed(&db, cut, &mut dice).expect("the right keys");
    assert_alike(&db, &restored(&[&whole], &keys));
    // Of another database; and as one that is not sealed.
    let other = made_encrypted(&SimVolume::new(8), &keys, 0);
    let e = resumed(&other, cut, &mut dice).expect_err("of another database");
    assert!(e.to_string().contains("of the database"), "{e}");
    let plain = PartialBackup { seal: None, ..there(cut, &keys) };
    let mut out = Vec::new();
    let e = db.resume_backup(&mut out, plain, &BackupOptions::default(), &mut |_| true);
    let e = e.expect_err("it would be plain from there on");
    assert!(matches!(e, Error::Config(_)) && out.is_empty(), "{e}");
}
