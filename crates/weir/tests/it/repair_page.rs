//! Damaged pages made again from backups, in both stores, encrypted and not: pages in use and free
//! ones, and what is refused with nothing written.
use std::io::{Cursor, Read};
use std::sync::Arc;

use weir::{
    BackupBase, BackupOptions, Config, Create, Db, Durability, Encryption, Error, RepairedPage,
    SimVolume, StoreKind, Volume, repair_page_on,
};

use crate::encrypted::Keys;
use crate::support::{Rows, assert_sound, tiny};

const PAGE: u64 = 4096;
const FLIPPED: u8 = 16;

fn key(fill: u8) -> Option<Encryption> {
    Some(Encryption::new(Keys::with(1, fill)))
}

fn open(volume: &SimVolume, create: Create, case: &Case) -> Db {
    let Case { store, encryption, .. } = case;
    let encryption = encryption.clone();
    let config = Config { store: Some(*store), pages_max: 1 << 14, create, encryption, ..tiny() };
    Db::open_on(Arc::new(volume.clone()), config).expect("opened")
}

/// A database, and backups that follow it up to its last checkpoint.
struct Case {
    store: StoreKind,
    encryption: Option<Encryption>,
    found: SimVolume,
    backups: Vec<Vec<u8>>,
    rows: Rows,
}

fn rows(db: &Db) -> Rows {
    let tree = db.tree("kept").expect("read").expect("there");
    let mut cursor = tree.cursor();
    let mut rows = Rows::new();
    let mut on = cursor.seek_first().expect("read");
    while on {
        rows.insert(cursor.key().to_vec(), cursor.value().expect("read").to_vec());
        on = cursor.next().expect("read");
    }
    rows
}

impl Case {
    fn new(store: StoreKind, encryption: Option<Encryption>, seed: u64) -> Case {
        let volume = SimVolume::new(seed);
        let (found, backups) = (volume.clone(), Vec::new());
        let mut case = Case { store, encryption, found, backups, rows: Rows::new() };
        let db = open(&volume, Create::IfMissing, &case);
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut fill = |name: &str, numbers: std::ops::Range<u32>| {
            let tree = db.open_tree(name).expect("made");
            for number in numbers {
                let value: Vec<u8> = (0..300).map(|_| dice.u8(..)).collect();
                tree.put(&number.to_be_bytes(), &value, Durability::Lazy).expect("put");
            }
        };
        fill("kept", 0..500);
        fill("dropped", 0..300);
        db.checkpoint().expect("a checkpoint");
        let mut full = Vec::new();
        let options = BackupOptions::default();
        db.backup(&mut full, &options, &mut |_| true).expect("backed up").expect("whole");
        // Free pages that the full backup has, and others that no backup does.
        db.drop_tree("dropped").expect("dropped");
        let begin = weir::unseal(&full[..], case.encryption.as_ref()).expect("unsealed");
        let since = Some(BackupBase::read(begin).expect("its beginning"));
        let options = BackupOptions { since, follow: true, ..BackupOptions::default() };
        let (mut next, mut looks) = (Vec::new(), 0);
        let mut progress = |at: weir::BackupProgress| {
            looks += u32::from(at.follows);
            if at.follows {
                fill("kept", looks * 100..looks * 100 + 40);
                // Behind it the full backup alone does not say what pages held last.
                db.checkpoint().expect("a checkpoint");
                fill("kept", 600 + looks * 10..610 + looks * 10);
            }
            looks < 3
        };
        db.backup(&mut next, &options, &mut progress).expect("followed").expect("whole");
        // What comes behind is in the database's own log.
        fill("kept", 0..10);
        db.open_tree("kept").expect("there").put(b"k", b"v", Durability::Synced).expect("put");
        case.rows = rows(&db);
        case.found = volume.snapshot();
        case.backups = vec![full, next];
        case
    }

    fn file(&self) -> &'static str {
        if self.store == StoreKind::Log { "segments" } else { "pages" }
    }

    fn repair_with(
        &self,
        volume: &SimVolume,
        page: u32,
        backups: &[Vec<u8>],
        encryption: Option<&Encryption>,
    ) -> Result<RepairedPage, Error> {
        let input = |bytes: &Vec<u8>| Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>;
        let inputs = backups.iter().map(input).collect();
        repair_page_on(Arc::new(volume.clone()), page, inputs, encryption)
    }

    fn repair(&self, volume: &SimVolume, page: u32) -> Result<RepairedPage, Error> {
        self.repair_with(volume, page, &self.backups, self.encryption.as_ref())
    }

    fn is_sound(&self, volume: &SimVolume, page: u32) -> bool {
        let sound = |e: Error| e.to_string().contains("is sound");
        // Of no use where it is not: nothing must be written.
        self.repair_with(&volume.snapshot(), page, &[], self.encryption.as_ref()).is_err_and(sound)
    }

    /// Disks of which one byte is damaged, and the pages that are not sound for it: in segments
    /// they may be two, packed side by side in one block of a sealed file, and many where it is a
    /// head that leads to what was written since the last root.
    fn damaged(&self) -> Vec<(SimVolume, Vec<u32>)> {
        let sound: Vec<u32> = (0..160).filter(|page| self.is_sound(&self.found, *page)).collect();
        assert!(sound.len() > 40, "{} pages", sound.len());
        let flipped = |at| {
            let volume = self.found.snapshot();
            volume.corrupt(self.file(), at, FLIPPED).expect("flipped");
            volume
        };
        if self.store == StoreKind::InPlace {
            let at = |page: &u32| (flipped(u64::from(*page) * PAGE + 100), vec![*page]);
            return sound.iter().step_by(2).map(at).collect();
        }
        let bytes = self.found.read_raw(self.file()).expect("the file");
        let written: Vec<u64> =
            (0..bytes.len() as u64).step_by(61).filter(|at| bytes[*at as usize] != 0).collect();
        let mut damaged = Vec::new();
        for volume in written.iter().step_by(written.len() / 60).map(|at| flipped(*at)) {
            // In a segment's free room, or in what was written again since, there is no page.
            let is_hurt = |page: &u32| !self.is_sound(&volume, *page);
            let hurt: Vec<u32> = sound.iter().copied().filter(is_hurt).collect();
            if !hurt.is_empty() {
                damaged.push((volume, hurt));
            }
        }
        damaged
    }

    fn assert_whole(&self, volume: &SimVolume, page: u32) {
        let db = open(volume, Create::Never, self);
        assert_sound(&db);
        assert!(rows(&db) == self.rows, "page {page}");
    }
}

fn assert_untouched(volume: &SimVolume, before: &[(String, Vec<u8>)], after_what: &str) {
    let after = files(volume);
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&after), names(before), "{after_what}");
    for (after, before) in after.iter().zip(before) {
        assert!(after == before, "{after_what}: '{}' has changed", before.0);
    }
}

/// All that is in the files.
fn files(volume: &SimVolume) -> Vec<(String, Vec<u8>)> {
    let names = volume.list().expect("listed");
    names
        .into_iter()
        .map(|name| {
            let bytes = volume.read_raw(&name).expect("a file");
            (name, bytes)
        })
        .collect()
}

#[test]
fn pages_in_use_and_free_ones_in_both_stores_encrypted_or_not() {
    for (seed, store) in [(71, StoreKind::InPlace), (73, StoreKind::Log)] {
        for (more, encryption) in [(0, None), (1, key(7))] {
            let case = Case::new(store, encryption, seed + more);
            let (mut repaired, mut refused) = (0, 0);
            for (volume, hurt) in case.damaged() {
                for &page in &hurt {
                    let before = files(&volume);
                    match case.repair(&volume, page) {
                        Ok(_) => {
                            repaired += 1;
                            assert!(case.is_sound(&volume, page), "page {page} of {hurt:?}");
                        }
                        // It was never in use while backups were made: nothing is in it.
                        Err(e) => {
                            refused += 1;
                            let words = e.to_string();
                            assert!(words.contains("in none of the backups"), "{page}: {e}");
                            assert_untouched(&volume, &before, &format!("page {page}"));
                        }
                    }
                }
                if !hurt.iter().any(|page| (2..4).contains(page)) {
                    case.assert_whole(&volume, hurt[0]);
                }
            }
            println!("seed {}: {repaired} repaired, {refused} refused", seed + more);
            assert!(repaired > 8, "{repaired} repaired, {refused} refused");
        }
    }
}

/// Backups, the keys that are given, and words of the refusal.
type Refusal<'b> = (&'b [Vec<u8>], Option<Encryption>, &'static str);

#[test]
fn what_says_nothing_of_the_page_is_refused_and_nothing_written() {
    for store in [StoreKind::InPlace, StoreKind::Log] {
        let case = Case::new(store, key(7), 75);
        let other = Case::new(store, key(7), 76);
        let plain = Case::new(store, None, 77);
        let sealed_otherwise = Case::new(store, key(9), 78);
        let can_be_made = |(volume, hurt): (SimVolume, Vec<u32>)| {
            let &[page] = &hurt[..] else { return None };
            case.repair(&volume.snapshot(), page).is_ok().then_some((volume, page))
        };
        let found = case.damaged().into_iter().find_map(can_be_made);
        let (volume, page) = found.expect("one that can be made again");
        let before = files(&volume);
        let refusals: [Refusal<'_>; 7] = [
            (&case.backups, None, "key 1, version 1"),
            (&case.backups, key(8), "key"),
            (&other.backups, key(7), "is of the database"),
            (&plain.backups, key(7), "is of the database"),
            (&sealed_otherwise.backups, key(7), "key"),
            (&case.backups[..1], key(7), "nothing says what page"),
            (&case.backups[1..], key(7), "before it"),
        ];
        for (backups, encryption, expected) in refusals {
            let told = case.repair_with(&volume, page, backups, encryption.as_ref());
            let told = told.expect_err(expected).to_string();
            assert!(told.contains(expected), "{told}");
            assert_untouched(&volume, &before, &told);
        }
        // Cut short or changed on the way: what is in front of that may be enough, or is refused.
        for cut in (0..case.backups[1].len()).step_by(9_973) {
            let volume = volume.snapshot();
            let short = [case.backups[0].clone(), case.backups[1][..cut].to_vec()];
            match case.repair_with(&volume, page, &short, case.encryption.as_ref()) {
                Ok(_) => case.assert_whole(&volume, page),
                Err(e) => assert_untouched(&volume, &before, &format!("cut at {cut}: {e}")),
            }
        }
        case.repair(&volume, page).expect("made again");
        case.assert_whole(&volume, page);
    }
}
