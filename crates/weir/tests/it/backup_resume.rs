//! Backups that were cut off, anywhere, and gone on with while the database has gone on, too.
use std::sync::Arc;

use weir::{
    BackupOptions, Config, Create, Db, Durability, Error, FoundBackup, PartialBackup,
    RestoreOptions, SimVolume, found_backup,
};

use crate::backup::{
    STORES, assert_alike, backed_up, backed_up_at_work, base, config, made, restored, restored_as,
    work,
};

/// Where parts begin and end: behind the head and behind each.
fn borders(backup: &[u8]) -> Vec<usize> {
    let mut borders = vec![16];
    while let Some(&at) = borders.last()
        && at < backup.len()
    {
        let len: [u8; 4] = std::array::from_fn(|i| backup[at + 4 + i]);
        borders.push(at + 16 + u32::from_le_bytes(len) as usize);
    }
    borders
}

/// What there is of one whose end is missing.
fn there(backup: &[u8]) -> PartialBackup {
    match found_backup(backup, None, &mut |_| true).expect("its beginning").expect("not ended") {
        FoundBackup::Partial(there) => *there,
        FoundBackup::Whole(_) => panic!("it is whole"),
    }
}

/// Goes on with it, with work between any two reads: what it comes to be.
fn resumed(db: &Db, cut: &[u8], dice: &mut fastrand::Rng) -> Vec<u8> {
    let there = there(cut);
    let mut whole = cut[..there.place.at as usize].to_vec();
    let before = whole.len() as u64;
    let mut progress = |_| {
        (0..dice.u32(..30)).for_each(|_| work(db, dice));
        true
    };
    let options = BackupOptions::default();
    let done = db.resume_backup(&mut whole, there, &options, &mut progress);
    let done = done.expect("gone on with").expect("not ended");
    assert_eq!(done.bytes, whole.len() as u64);
    assert!(done.bytes > before);
    match found_backup(&whole[..], None, &mut |_| true).expect("sound").expect("not ended") {
        FoundBackup::Whole(verified) => assert_eq!(verified.end.end, done.end),
        FoundBackup::Partial(there) => panic!("it lacks what is behind {}", there.place.at),
    }
    whole
}

#[test]
fn one_that_was_cut_off_anywhere_is_gone_on_with() {
    let mut cuts = 0;
    for seed in 0..6 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let volume = SimVolume::new(seed);
        let db = made(&volume, config(STORES[seed as usize % 2]));
        (0..400).for_each(|_| work(&db, &mut dice));
        let backup = backed_up_at_work(&db, None, &mut dice);
        let borders = borders(&backup);
        assert!(borders.len() > 8 && borders.last() == Some(&backup.len()), "{borders:?}");
        // All pages are there when two parts are left: what it is consistent at, and the end.
        let last = borders[borders.len() - 3];
        // In the head, in the beginning: not even that is there.
        for cut in [0, 7, 16, 40, borders[1] - 1] {
            assert!(found_backup(&backup[..cut], None, &mut |_| true).is_err(), "{cut}");
        }
        for pair in borders[1..].windows(2) {
            for cut in [pair[0], pair[0] + 1, pair[0] + 16, pair[1] - 1] {
                if cut > last {
                    continue;
                }
                cuts += 1;
                (0..dice.u32(..40)).for_each(|_| work(&db, &mut dice));
                assert_eq!(there(&backup[..cut]).place.at as usize, pair[0]);
                assert_alike(&db, &restored(&[&resumed(&db, &backup[..cut], &mut dice)]));
            }
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 150, "{cuts}");
}

#[test]
fn a_part_that_is_damaged_ends_what_there_is() {
    let mut dice = fastrand::Rng::with_seed(3);
    let volume = SimVolume::new(3);
    let db = made(&volume, config(STORES[0]));
    (0..400).for_each(|_| work(&db, &mut dice));
    let backup = backed_up_at_work(&db, None, &mut dice);
    let borders = borders(&backup);
    for pair in borders[1..borders.len() - 3].windows(2) {
        let mut damaged = backup.clone();
        damaged[dice.usize(pair[0]..pair[1])] ^= 1 << dice.u8(..8);
        assert_eq!(there(&damaged).place.at as usize, pair[0]);
        assert_alike(&db, &restored(&[&resumed(&db, &damaged, &mut dice)]));
    }
}

/// A backup since another one, gone on with twice, after crashes of the database; and one since it.
#[test]
fn chains_and_crashes_and_several_times() {
    for seed in 0..30 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let volume = SimVolume::new(seed);
        let config = config(STORES[seed as usize % 2]);
        let mut db = made(&volume, config.clone());
        (0..dice.u32(100..400)).for_each(|_| work(&db, &mut dice));
        let (full, _) = backed_up(&db, None);
        (0..dice.u32(..200)).for_each(|_| work(&db, &mut dice));
        let mut next = backed_up_at_work(&db, Some(base(&full)), &mut dice);
        for _ in 0..dice.u8(1..4) {
            let borders = borders(&next);
            next.truncate(dice.usize(borders[1]..=borders[borders.len() - 3]));
            if dice.bool() {
                // What was not durable is lost, and no page of the backup has any of it.
                if dice.bool() {
                    db.sync().expect("durable");
                }
                let crashed = volume.crash(dice.u64(..));
                drop(db);
                db = Db::open_on(
                    Arc::new(crashed),
                    Config { create: Create::Never, ..config.clone() },
                )
                .expect("recovered");
                // From now on that would be the disk.
                (0..dice.u32(..100)).for_each(|_| work(&db, &mut dice));
                next = resumed(&db, &next, &mut dice);
                break;
            }
            (0..dice.u32(..200)).for_each(|_| work(&db, &mut dice));
            next = resumed(&db, &next, &mut dice);
        }
        assert_alike(&db, &restored(&[&full, &next]));
        (0..dice.u32(..200)).for_each(|_| work(&db, &mut dice));
        let last = backed_up_at_work(&db, Some(base(&next)), &mut dice);
        assert_alike(&db, &restored(&[&full, &next, &last]));
    }
}

#[test]
fn what_was_not_changed_is_not_written_again() {
    let volume = SimVolume::new(5);
    let db = made(&volume, config(STORES[0]));
    let tree = db.create_tree("t").expect("made");
    for number in 0..4_000u32 {
        tree.put(&number.to_be_bytes(), &[7; 300], Durability::Lazy).expect("put");
    }
    db.checkpoint().expect("a checkpoint");
    let (full, first) = backed_up(&db, None);
    let borders = borders(&full);
    let half = borders.iter().position(|&at| at > full.len() / 2).expect("one");
    let cut = &full[..borders[half]];
    let kept = there(cut).place.pages;
    for number in (0..4_000u32).step_by(400) {
        tree.put(&number.to_be_bytes(), &[8; 300], Durability::Lazy).expect("put");
    }
    db.checkpoint().expect("a checkpoint");
    let mut whole = cut.to_vec();
    let options = BackupOptions::default();
    let done = db.resume_backup(&mut whole, there(cut), &options, &mut |_| true);
    let written = done.expect("gone on with").expect("not ended").pages - kept;
    let rest = first.pages - kept;
    assert!(kept > 100 && written >= rest && written < rest + 40, "{kept} {written} {rest}");
    assert_alike(&db, &restored(&[&whole]));
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_before_anything_is_written() {
    let volume = SimVolume::new(6);
    let db = made(&volume, config(STORES[0]));
    let put = |db: &Db, n: u32| {
        let tree = db.open_tree("t").expect("made");
        for i in 0..400 {
            tree.put(&(n * 1_000 + i).to_be_bytes(), &[1; 300], Durability::Lazy).expect("put");
        }
        db.checkpoint().expect("a checkpoint");
    };
    put(&db, 1);
    let (old, _) = backed_up(&db, None);
    let older = volume.crash(1);
    put(&db, 2);
    let (full, _) = backed_up(&db, None);
    let borders = borders(&full);
    let cut = &full[..borders[borders.len() - 4]];
    let refused = |db: &Db, cut: &[u8], options: &BackupOptions, why: &str| {
        let mut out = Vec::new();
        let e = db.resume_backup(&mut out, there(cut), options, &mut |_| true).err();
        let e = e.expect("refused");
        assert!(matches!(e, Error::Config(_)) && e.to_string().contains(why), "{e}");
        assert!(out.is_empty(), "{why}");
    };
    let options = BackupOptions::default();
    let again = restored(&[&full]);
    refused(&again, cut, &options, "of the database");
    // Of a moment that has not been yet in this copy of the files.
    let before =
        Db::open_on(Arc::new(older), Config { create: Create::Never, ..config(STORES[0]) });
    refused(&before.expect("opened"), cut, &options, "older than");
    let since = BackupOptions { since: Some(base(&old)), ..options };
    refused(&db, cut, &since, "none is given");
    // All its pages are there: it has an end to be written, and is restored without.
    let all = &full[..full.len() - 1];
    let end = there(all).end().expect("all pages are there");
    refused(&db, all, &options, "has all its pages");
    let mut ended = full[..there(all).place.at as usize].to_vec();
    let writer = weir_backup::Writer::go_on(&mut ended, &there(all).place);
    writer.end(&end).expect("ended");
    assert_alike(&db, &restored(&[&ended]));
    let (_, done) = restored_as(&[cut], &RestoreOptions { incomplete: true, ..Default::default() });
    assert!(done.is_err(), "pages are missing");
}
