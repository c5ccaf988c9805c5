//! Tests of the lock table: scripted ones on one thread, which ask without sleeping; a model; real
//! threads; and loom.
#[cfg(not(loom))]
mod deadlocks;
#[cfg(loom)]
mod hand_off;
#[cfg(not(loom))]
mod model;
#[cfg(not(loom))]
mod queues;
#[cfg(not(loom))]
mod ranges;
#[cfg(not(loom))]
mod reports;
#[cfg(not(loom))]
mod steps;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
mod unfair;
#[cfg(not(loom))]
mod waits;

#[cfg(not(loom))]
use std::{collections::HashMap, sync::Arc};

use weir_base::TreeId;
#[cfg(not(loom))]
use weir_base::TxnId;

use super::{Kind, LockError, LockTable};
#[cfg(not(loom))]
use super::{Owner, Place, owner::Outcome, table::Request, waits::Next};

const TREE: TreeId = TreeId(3);
#[cfg(not(loom))]
const S: Kind = Kind::Share;
const X: Kind = Kind::Exclusive;

/// What a request has come to.
#[cfg(not(loom))]
#[derive(Clone, PartialEq, Eq, Debug)]
enum Answer {
    Got,
    Waits,
    Refused(LockError),
}
#[cfg(not(loom))]
use Answer::{Got, Waits};

/// A table whose transactions are all played by one thread.
#[cfg(not(loom))]
struct Stage {
    table: LockTable,
    owners: HashMap<u64, Arc<Owner>>,
}

#[cfg(not(loom))]
impl Stage {
    /// With transactions `1..=count`, each of which has changed as many rows as its number says
    /// times ten.
    fn new(count: u64) -> Self {
        let mut stage = Stage { table: LockTable::new(), owners: HashMap::new() };
        for id in 1..=count {
            stage.register(id).add_work(id * 10);
        }
        stage
    }

    fn register(&mut self, id: u64) -> Arc<Owner> {
        let owner = self.table.register(TxnId(id));
        self.owners.insert(id, Arc::clone(&owner));
        owner
    }

    /// Asks for a key, or for a range ("a..c"), and is ready to wait.
    fn ask(&self, id: u64, key: &str, kind: Kind) -> Answer {
        self.ask_at(id, place(key), kind, None, true)
    }

    fn ask_at(
        &self,
        id: u64,
        place: Place<'_>,
        kind: Kind,
        writer: Option<u64>,
        may_wait: bool,
    ) -> Answer {
        let (owner, writer) = (&self.owners[&id], writer.and_then(|w| self.owners.get(&w)));
        let request = Request { tree: TREE, place, kind, writer };
        let asked = self.table.request(owner, &request, may_wait);
        self.all_look();
        match asked {
            Ok(None) => Got,
            Ok(Some(_)) => self.answer(id),
            Err(refused) => Answer::Refused(refused),
        }
    }

    /// Every transaction that has been notified looks, at once.
    fn all_look(&self) {
        while self.owners.keys().any(|&id| self.look(id) == Some(Next::Ended)) {}
    }

    /// What comes of it when `id` looks, if it has been notified.
    fn look(&self, id: u64) -> Option<Next> {
        let owner = &self.owners[&id];
        let target = owner.waits_on()?;
        owner.take_notice().then(|| self.table.look(owner, &target, false))
    }

    /// How the wait of `id` stands; one that is over is shown once.
    fn answer(&self, id: u64) -> Answer {
        let waited = std::time::Duration::ZERO;
        self.all_look();
        match self.owners[&id].take_outcome() {
            None => Waits,
            Some(Outcome::Granted) => Got,
            Some(Outcome::TimedOut { holder }) => {
                Answer::Refused(LockError::TimedOut { holder, waited })
            }
            Some(Outcome::Deadlock { cycle }) => Answer::Refused(LockError::Deadlock { cycle }),
            Some(Outcome::Killed) => Answer::Refused(LockError::Killed),
        }
    }

    fn end(&mut self, id: u64) {
        self.end_unseen(id);
        self.all_look();
    }

    /// Ends it; those that are notified by that have not looked yet.
    fn end_unseen(&mut self, id: u64) {
        self.table.end(TxnId(id));
        self.owners.remove(&id);
    }

    fn blocks(&self, id: u64, key: &str, kind: Kind) -> bool {
        self.table.blocks(TxnId(id), TREE, key.as_bytes(), kind)
    }

    /// Asserts that what is kept beside the rows, to find them, is what they say.
    fn check_indexes(&self) {
        let shard = self.table.shards.lock(TREE);
        let Some(locks) = shard.find(TREE) else { return };
        let rows = || locks.rows.iter();
        let held = rows().flat_map(|(key, row)| row.granted.iter().map(move |h| (h, key)));
        let held = held.map(|(held, key)| (held.id, held.kind, Arc::clone(key)));
        assert_eq!(locks.own_keys.all(), held.collect());
        let waited = rows().filter(|(_, row)| !row.waiting.is_empty());
        assert!(locks.waited.iter().eq(waited.map(|(key, _)| key)));
    }

    /// Asserts that nothing is left when all have ended.
    fn all_end(mut self) {
        let ids: Vec<u64> = self.owners.keys().copied().collect();
        for id in &ids {
            assert!(self.owners[id].waits_on().is_none(), "{id} still waits");
        }
        ids.into_iter().for_each(|id| self.end(id));
        let stats = self.table.stats();
        assert_eq!((stats.held, stats.waiting, stats.ranges), (0, 0, 0));
        assert!(self.table.shards.is_empty());
    }
}

#[cfg(not(loom))]
fn place(text: &str) -> Place<'_> {
    match text.split_once("..") {
        None => Place::Key(text.as_bytes()),
        Some((from, to)) => {
            let to = (!to.is_empty()).then_some(to.as_bytes());
            Place::Range { from: from.as_bytes(), to }
        }
    }
}
