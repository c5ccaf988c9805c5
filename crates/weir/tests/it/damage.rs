//! Every file of a database cut short, zeroed in a block, exchanged with another database's, older
//! or newer than the others, and copied while it was written: an error that names a place, or no
//! effect. Never a wrong answer, never a state that the database did not go through, and never
//! without a commit that was said to be synced, but for one thing: the end of the log after a crash
//! is known from the log alone, as far as it goes beyond what the control file knows of it
//! (`docs/decisions/whose-page.md`).
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use weir::{Batch, Config, Db, Durability, Error, SimVolume, Tree, Volume};
use weir_device::CrashMode;

use crate::support::tiny;

const BLOCK: usize = 4096;
const TREES: [&str; 2] = ["herons", "weirs"];
const KEYS: u32 = 40;
const ROUNDS: u32 = 90;

fn config() -> Config {
    Config { contents_bytes: Some(24 << 10), ..tiny() }
}

/// A row: its tree's number and its own.
type Key = (usize, u32);
type Files = BTreeMap<String, Arc<Vec<u8>>>;

/// What was written to each row, in order, and in which round; version 0 is no row.
type Versions = BTreeMap<Key, Vec<(u32, Option<Vec<u8>>)>>;

/// The files at a moment, and which version each row has at least and at most.
#[derive(Clone)]
struct Moment {
    step: u64,
    files: Files,
    least: BTreeMap<Key, usize>,
    most: BTreeMap<Key, usize>,
    /// At least, as far as the control file knows.
    vouched: BTreeMap<Key, usize>,
}

fn name_of(key: Key) -> Vec<u8> {
    format!("row {:04}", key.1).into_bytes()
}

fn value_of(key: Key, round: u32) -> Option<Vec<u8>> {
    let number = round * 7 + key.1;
    // Some of them are long, some are no rows any more.
    let len = if number.is_multiple_of(17) { 6_000 } else { 60 + (number % 90) as usize };
    (number % 11 != 3).then(|| {
        let mut value = format!("{}/{}/{round} ", key.0, key.1).into_bytes();
        value.resize(len.max(value.len()), number as u8);
        value
    })
}

/// A database whose every change is synced before the next, and what is known of it.
struct History {
    sim: SimVolume,
    salt: u64,
    versions: Versions,
    least: BTreeMap<Key, usize>,
    most: BTreeMap<Key, usize>,
    vouched: BTreeMap<Key, usize>,
    control: Vec<u8>,
}

impl History {
    fn new(salt: u64) -> History {
        // The numbers that a database draws are the same each time.
        fastrand::seed(salt);
        History {
            sim: SimVolume::new(salt),
            salt,
            versions: Versions::new(),
            least: BTreeMap::new(),
            most: BTreeMap::new(),
            vouched: BTreeMap::new(),
            control: Vec::new(),
        }
    }

    fn open(&self) -> Result<Db, Error> {
        Db::open_on(Arc::new(self.sim.clone()), config())
    }

    /// One change of two rows, of one in each tree, together.
    fn change(&mut self, db: &Db, round: u32) -> Result<(), Error> {
        let number = (round + self.salt as u32).wrapping_mul(0x9e37_79b9) >> 8;
        let keys = [(0, number % KEYS), (1, number / 64 % KEYS)];
        let mut batch = Batch::new();
        let trees: Vec<Tree> = TREES.iter().map(|n| db.open_tree(n)).collect::<Result<_, _>>()?;
        for key in keys {
            match value_of(key, round) {
                Some(value) => batch.put(&trees[key.0], &name_of(key), &value),
                None => batch.delete(&trees[key.0], &name_of(key)),
            };
            let versions = self.versions.entry(key).or_insert_with(|| vec![(0, None)]);
            versions.push((round + 1, value_of(key, round)));
            self.most.insert(key, versions.len() - 1);
        }
        db.write(&batch, Durability::Synced)?;
        for key in keys {
            self.least.insert(key, self.most[&key]);
        }
        Ok(())
    }

    /// What was synced before the control file was written is known to it.
    fn look_at_control(&mut self, before: &BTreeMap<Key, usize>) {
        let control = self.sim.read_raw("control").unwrap_or_default();
        if control != self.control {
            self.control = control;
            self.vouched = before.clone();
        }
    }

    /// Goes on to the end, or until the disk crashes.
    fn run(&mut self) -> Result<(), Error> {
        for part in 0..3 {
            let db = self.open()?;
            for round in part * ROUNDS / 3..(part + 1) * ROUNDS / 3 {
                let before = self.least.clone();
                self.change(&db, round)?;
                self.look_at_control(&before);
                if round % 13 == 12 {
                    db.checkpoint()?;
                    self.look_at_control(&self.least.clone());
                }
            }
            // In order, and then once not.
            if part == 1 {
                std::mem::forget(db);
            } else {
                db.close()?;
                self.look_at_control(&self.least.clone());
            }
        }
        Ok(())
    }

    fn moment(self, step: u64) -> (Moment, Versions) {
        let found = self.sim.crash_with(CrashMode::KeepAll, 0);
        let mut files = Files::new();
        for name in found.list().expect("a list") {
            let bytes = found.read_raw(&name).expect("a file");
            files.insert(name, Arc::new(bytes));
        }
        let History { least, most, vouched, versions, .. } = self;
        (Moment { step, files, least, most, vouched }, versions)
    }
}

/// The same history, looked at after some of its steps, and at its end.
fn moments(salt: u64, count: u64) -> (Vec<Moment>, Versions) {
    let mut whole = History::new(salt);
    whole.run().expect("nothing fails");
    let steps = whole.sim.writes_so_far();
    let (last, versions) = whole.moment(steps);
    let mut moments = Vec::new();
    for number in 1..count {
        // Not evenly: several stand within one checkpoint.
        let step = steps * number / count + number * 7 % 5;
        let mut part = History::new(salt);
        part.sim.set_crash_after(Some(step));
        if part.run().is_ok() {
            continue;
        }
        let (moment, _) = part.moment(step);
        // What is not yet a database, or has no rows, says nothing.
        if moment.least.len() > 10 && !moment.files.contains_key("creating") {
            moments.push(moment);
        }
    }
    moments.push(last);
    (moments, versions)
}

fn volume_of(files: &Files) -> SimVolume {
    let sim = SimVolume::new(0);
    for (name, bytes) in files {
        sim.write_raw(name, bytes).expect("a file");
    }
    sim
}

fn names_a_place(e: &Error, what: &str) {
    let text = e.to_string();
    let places =
        ["'control'", "redo-", "'pages'", "doublewrite-", "holds the position", "control file"];
    assert!(places.iter().any(|place| text.contains(place)), "{what}: no place named: {text}");
    let is_missing = matches!(e, Error::Io { cause, .. } if cause.kind() == ErrorKind::NotFound);
    let is_damage = matches!(e, Error::Damaged(_) | Error::Directory(_));
    assert!(is_damage || is_missing, "{what}: {e:?}");
}

/// What damages did.
#[derive(Default)]
struct Seen {
    opened: u32,
    refused: u32,
    partly: u32,
}

/// Which versions a row may have.
struct Allowed<'a> {
    least: &'a BTreeMap<Key, usize>,
    most: &'a BTreeMap<Key, usize>,
    versions: &'a Versions,
}

/// Opens what is there, reads all rows twice, with new rows in between, and returns whether all
/// could be read.
fn look(files: &Files, allowed: &Allowed<'_>, what: &str, seen: &mut Seen) {
    let db = match Db::open_on(Arc::new(volume_of(files)), config()) {
        Ok(db) => db,
        Err(e) => {
            names_a_place(&e, what);
            seen.refused += 1;
            return;
        }
    };
    let before = read_all(&db, allowed, what);
    // Pages that are handed out twice show now.
    let more = db.open_tree("more").and_then(|tree| {
        for i in 0..60u32 {
            tree.put(&i.to_be_bytes(), &[0xee; 300], Durability::Lazy)?;
        }
        db.checkpoint()
    });
    let after = read_all(&db, allowed, what);
    if before && after && more.is_ok() {
        seen.opened += 1;
    } else {
        seen.partly += 1;
    }
}

fn read_all(db: &Db, allowed: &Allowed<'_>, what: &str) -> bool {
    let mut all = true;
    // The rounds after which the database was as it is found.
    let (mut from, mut to) = (0, u32::MAX);
    for (number, name) in TREES.iter().enumerate() {
        let tree = match db.tree(name) {
            Ok(Some(tree)) => tree,
            Ok(None) => panic!("{what}: tree '{name}' is gone without a word"),
            Err(e) => {
                names_a_place(&e, what);
                all = false;
                continue;
            }
        };
        for key in (0..KEYS).map(|row| (number, row)) {
            let (least, most) = (
                allowed.least.get(&key).copied().unwrap_or(0),
                allowed.most.get(&key).copied().unwrap_or(0),
            );
            match tree.get(&name_of(key)) {
                Ok(found) => {
                    let none = vec![(0, None)];
                    let versions = allowed.versions.get(&key).unwrap_or(&none);
                    let at = versions.iter().rposition(|(_, value)| *value == found);
                    let is_right = versions[least..=most].iter().any(|(_, value)| *value == found);
                    assert!(is_right, "{what}: {key:?} has version {at:?}, not {least}..={most}");
                    if let Some(at) = at.filter(|_| found.is_some()) {
                        from = from.max(versions[at].0);
                        to = to.min(versions.get(at + 1).map_or(u32::MAX, |next| next.0 - 1));
                    }
                }
                Err(e) => {
                    names_a_place(&e, what);
                    all = false;
                }
            }
        }
    }
    assert!(from <= to, "{what}: rows of round {from} beside others of before {}", to + 1);
    all
}

impl<'a> Allowed<'a> {
    fn of(now: &'a Moment, name: &str, versions: &'a Versions) -> Allowed<'a> {
        let is_log = name.starts_with("redo-");
        let least = if is_log { &now.vouched } else { &now.least };
        Allowed { least, most: &now.most, versions }
    }
}

fn with(files: &Files, name: &str, bytes: Vec<u8>) -> Files {
    let mut files = files.clone();
    files.insert(name.to_owned(), Arc::new(bytes));
    files
}

/// What the databases' numbers and the order of the changes are drawn from. Another one is tried
/// with `WEIR_DAMAGE_SALT`.
fn salt() -> u64 {
    std::env::var("WEIR_DAMAGE_SALT").ok().and_then(|salt| salt.parse().ok()).unwrap_or(5)
}

/// Every third of them, from the first on, and the last.
fn some(moments: &[Moment]) -> impl Iterator<Item = (usize, &Moment)> {
    let last = moments.len() - 1;
    moments.iter().enumerate().filter(move |(i, _)| i % 3 == 0 || *i == last)
}

fn report(seen: &Seen, refused_least: u32) {
    let Seen { opened, refused, partly } = seen;
    println!("{opened} without effect, {refused} refused, {partly} readable in part");
    assert!(*refused >= refused_least, "{refused} were refused");
}

#[test]
fn a_file_cut_short_or_missing() {
    let (moments, versions) = moments(salt(), 16);
    let mut seen = Seen::default();
    for (_, now) in some(&moments) {
        let allowed = Allowed::of(now, "", &versions);
        look(&now.files, &allowed, "undamaged", &mut seen);
        assert_eq!((seen.refused, seen.partly), (0, 0), "step {}", now.step);
    }
    for (_, now) in some(&moments) {
        for (name, bytes) in &now.files {
            let allowed = Allowed::of(now, name, &versions);
            let blocks = bytes.len() / BLOCK;
            for left in [0, 1, 2, blocks / 4, blocks / 2, blocks.saturating_sub(1)] {
                let cut = bytes[..left.min(blocks) * BLOCK].to_vec();
                let what = format!("step {}: '{name}' cut to {left} blocks", now.step);
                look(&with(&now.files, name, cut), &allowed, &what, &mut seen);
            }
            let mut without = now.files.clone();
            without.remove(name);
            look(&without, &allowed, &format!("step {}: no '{name}'", now.step), &mut seen);
        }
    }
    report(&seen, 40);
}

#[test]
fn a_block_of_zeros() {
    let (moments, versions) = moments(salt(), 16);
    let mut seen = Seen::default();
    for (_, now) in some(&moments) {
        for (name, bytes) in &now.files {
            let allowed = Allowed::of(now, name, &versions);
            for (number, block) in bytes.chunks(BLOCK).enumerate() {
                if block.iter().all(|&byte| byte == 0) {
                    continue;
                }
                let mut zeroed = bytes.to_vec();
                zeroed[number * BLOCK..][..block.len()].fill(0);
                let what = format!("step {}: block {number} of '{name}' zeroed", now.step);
                look(&with(&now.files, name, zeroed), &allowed, &what, &mut seen);
            }
        }
    }
    report(&seen, 15);
}

#[test]
fn a_file_of_another_database() {
    let (moments, versions) = moments(salt(), 16);
    let (others, _) = self::moments(salt() + 1, 16);
    let mut seen = Seen::default();
    for (i, now) in some(&moments) {
        let other = &others[i.min(others.len() - 1)];
        for name in now.files.keys() {
            let Some(bytes) = other.files.get(name) else { continue };
            let allowed = Allowed::of(now, name, &versions);
            let what = format!("step {}: '{name}' of another database", now.step);
            look(&with(&now.files, name, bytes.to_vec()), &allowed, &what, &mut seen);
        }
    }
    report(&seen, 10);
}

/// A file that is older or newer than the others, from any other moment.
#[test]
fn an_older_or_newer_copy() {
    let (moments, versions) = moments(salt(), 28);
    let mut seen = Seen::default();
    for (i, now) in some(&moments) {
        for (j, other) in moments.iter().enumerate().filter(|(j, _)| *j != i) {
            // What is newer may be there, as far as it goes.
            let most = if j > i { &other.most } else { &now.most };
            for name in now.files.keys() {
                let Some(bytes) = other.files.get(name) else { continue };
                let allowed = Allowed { most, ..Allowed::of(now, name, &versions) };
                let what = format!("step {}: '{name}' of step {}", now.step, other.step);
                look(&with(&now.files, name, bytes.to_vec()), &allowed, &what, &mut seen);
            }
        }
    }
    report(&seen, 200);
}

/// `cp` of a database that is open: one file after the other, and each of them while it changes.
#[test]
fn a_copy_of_what_was_being_written() {
    let (moments, versions) = moments(salt(), 40);
    let mut seen = Seen::default();
    for from in 0..moments.len() - 1 {
        for stride in 1..4 {
            for order in 0..3 {
                let mut names: Vec<&String> = moments[from].files.keys().collect();
                match order {
                    0 => {}
                    1 => names.reverse(),
                    _ => names.rotate_left(2),
                }
                let mut files = Files::new();
                let mut at = from;
                for name in names {
                    let next = (at + stride / 2).min(moments.len() - 1);
                    let (first, second) = (&moments[at].files, &moments[next].files);
                    let (Some(first), Some(second)) = (first.get(name), second.get(name)) else {
                        continue;
                    };
                    // The reader overtakes the writer within a page.
                    let half = first.len().min(second.len()) / 2 / 512 * 512 + 512;
                    let cut = half.min(first.len()).min(second.len());
                    let mut bytes = first[..cut].to_vec();
                    bytes.extend_from_slice(&second[cut..]);
                    files.insert(name.clone(), Arc::new(bytes));
                    at = (next + stride.div_ceil(2)).min(moments.len() - 1);
                }
                let (least, most) = (&moments[from].least, &moments[at].most);
                let allowed = Allowed { least, most, versions: &versions };
                let what = format!(
                    "copied from step {} to {}, order {order}",
                    moments[from].step, moments[at].step
                );
                look(&files, &allowed, &what, &mut seen);
            }
        }
    }
    report(&seen, 50);
}
