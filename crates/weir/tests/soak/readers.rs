//! A thread that holds snapshots for long, and reads from each what it has read there before.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir::{Db, Error, Snapshot};

use super::plan::Plan;
use super::watch::{Shared, fail};
use super::workers::{Trees, key_of};

const SNAPSHOTS_MAX: usize = 3;
/// Rows that a scan comes to, at most.
const SCANNED: usize = 400;

struct Held {
    snapshot: Snapshot,
    until: Instant,
    /// What was read.
    seen: BTreeMap<[u8; 12], Option<Vec<u8>>>,
    /// What a scan from somewhere has come to.
    scanned: Option<([u8; 12], Vec<u8>)>,
}

pub(super) struct Reader<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) db: &'a Db,
    pub(super) trees: Trees,
    pub(super) actor: usize,
}

impl Reader<'_> {
    pub(super) fn run(&self) {
        let mut random = self.plan.random(100 + self.actor as u64);
        let mut held: Vec<Held> = Vec::new();
        while !self.shared.stops() {
            if held.len() < SNAPSHOTS_MAX && random.u32(0..10) == 0 {
                let millis = random.u64(10..10_000);
                let until = Instant::now() + Duration::from_millis(millis);
                let snapshot = self.db.snapshot();
                held.push(Held { snapshot, until, seen: BTreeMap::new(), scanned: None });
            }
            held.retain(|held| held.until > Instant::now());
            for held in &mut held {
                self.shared.actors[self.actor].begins("reads of a snapshot");
                if let Err(e) = self.read(held, &mut random) {
                    fail(self.plan, &format!("a snapshot cannot be read: {e}"));
                }
            }
            self.shared.pause(random.u64(0..20));
        }
        self.shared.actors[self.actor].ends();
    }

    fn read(&self, held: &mut Held, random: &mut fastrand::Rng) -> Result<(), Error> {
        let any = |random: &mut fastrand::Rng| {
            key_of(random.u32(0..self.plan.threads), random.u64(0..u64::from(self.plan.rows)))
        };
        let before = held.seen.keys().nth(random.usize(0..held.seen.len().max(1))).copied();
        let key = before.filter(|_| held.seen.len() > 50).unwrap_or_else(|| any(random));
        let mut value = Vec::new();
        let is_there = self.trees.rows.get_at(&held.snapshot, &key, &mut value)?;
        let read = is_there.then_some(value);
        if *held.seen.entry(key).or_insert_with(|| read.clone()) != read {
            fail(self.plan, &format!("a snapshot shows row {key:?} otherwise than before"));
        }
        if random.u32(0..20) == 0 {
            let from = held.scanned.as_ref().map_or_else(|| any(random), |(from, _)| *from);
            let mut keys = Vec::new();
            let mut cursor = self.trees.rows.cursor_at(&held.snapshot)?;
            let mut on = cursor.seek(&from)?;
            for _ in 0..SCANNED {
                if !on {
                    break;
                }
                keys.extend_from_slice(cursor.key());
                keys.push(cursor.value()?.last().copied().unwrap_or(0));
                on = cursor.next()?;
            }
            let (_, before) = held.scanned.get_or_insert_with(|| (from, keys.clone()));
            if *before != keys {
                fail(self.plan, "a snapshot's scan differs from the one before");
            }
        }
        Ok(())
    }
}
