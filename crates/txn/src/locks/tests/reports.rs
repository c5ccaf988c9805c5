//! Waiters that report to a listener for which transactions they wait: one that comes into their
//! way later makes them look again.
use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Transactions that play at any time.
const SLOTS: usize = 7;
const PLACES: [&str; 8] = ["a", "a", "b", "c", "a..b", "b..d", "a..", "c"];

#[derive(Clone, Debug)]
enum Act {
    /// `writer` wrote the row before.
    Ask {
        slot: usize,
        place: usize,
        kind: Kind,
        writer: Option<usize>,
    },
    /// One that was notified, or naps, looks.
    Look {
        slot: usize,
    },
    End {
        slot: usize,
    },
    Kill {
        slot: usize,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let slot = 0..SLOTS;
    let kind = prop_oneof![1 => Just(S), 3 => Just(X)];
    let writer = prop_oneof![3 => Just(None), 1 => slot.clone().prop_map(Some)];
    let ask =
        (slot.clone(), 0..PLACES.len(), kind, writer).prop_map(|(slot, place, kind, writer)| {
            let writer = writer.filter(|_| !PLACES[place].contains(".."));
            Act::Ask { slot, place, kind, writer }
        });
    let act = prop_oneof![
        8 => ask,
        2 => slot.clone().prop_map(|slot| Act::Look { slot }),
        3 => slot.clone().prop_map(|slot| Act::End { slot }),
        1 => slot.prop_map(|slot| Act::Kill { slot }),
    ];
    prop::collection::vec(act, 1..80)
}

/// The table, the transaction in each slot, and what the listener knows.
struct World {
    stage: Stage,
    ids: [u64; SLOTS],
    reported: HashMap<u64, HashSet<TxnId>>,
    spinning: HashSet<u64>,
}

impl World {
    fn new() -> World {
        let ids = std::array::from_fn(|slot| slot as u64 + 1);
        let (reported, spinning) = (HashMap::new(), HashSet::new());
        let mut world = World { stage: Stage::new(0), ids, reported, spinning };
        ids.iter().for_each(|&id| world.begin(id));
        world
    }

    fn begin(&mut self, id: u64) {
        self.stage.register(id).set_reports(true);
    }

    fn owner(&self, id: u64) -> &Arc<Owner> {
        &self.stage.owners[&id]
    }

    fn report(&mut self, id: u64) {
        let mut found = Vec::new();
        self.stage.table.blockers_of(self.owner(id), &mut found);
        self.reported.insert(id, found.iter().map(|blocker| blocker.owner.id()).collect());
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Ask { slot, place: at, kind, writer } => {
                let id = self.ids[slot];
                if self.owner(id).waits_on().is_some() {
                    return;
                }
                let writer = writer.filter(|&w| w != slot);
                let writer = writer.map(|w| Arc::clone(self.owner(self.ids[w])));
                let (place, writer) = (place(PLACES[at]), writer.as_ref());
                let request = Request { tree: TREE, place, kind, writer };
                let asked = self.stage.table.request(self.owner(id), &request, true);
                if matches!(asked, Ok(Some(_))) {
                    self.report(id);
                }
            }
            Act::Look { slot } => self.look(self.ids[slot]),
            Act::End { slot } => {
                let id = self.ids[slot];
                if self.owner(id).waits_on().is_none() {
                    self.stage.end_unseen(id);
                    self.ids[slot] = id + SLOTS as u64;
                    self.begin(self.ids[slot]);
                }
            }
            Act::Kill { slot } => self.stage.table.kill(TxnId(self.ids[slot])),
        }
        self.ids.iter().filter(|&&id| self.owner(id).waits_on().is_none()).for_each(|&id| {
            drop(self.owner(id).take_outcome());
        });
    }

    fn look(&mut self, id: u64) {
        let owner = self.owner(id);
        let Some(target) = owner.waits_on() else { return };
        let was_notified = owner.take_notice();
        if was_notified || self.spinning.remove(&id) {
            match self.stage.table.look(self.owner(id), &target, false) {
                Next::Ended => {}
                Next::Nap => drop(self.spinning.insert(id)),
                Next::Sleep => self.report(id),
            }
        }
    }

    /// The transaction that sleeps has reported all for which it waits.
    fn check(&self) -> Result<(), TestCaseError> {
        for &id in &self.ids {
            let owner = self.owner(id);
            let Some(target) = owner.waits_on() else { continue };
            if owner.is_notified() || self.spinning.contains(&id) {
                continue;
            }
            let shard = self.stage.table.shards.lock(TREE);
            let locks = shard.find(TREE).expect("a waiter");
            let (waiter, place) = locks.find_waiter(TxnId(id), &target).expect("it waits");
            for (blocker, ..) in locks.blockers_of(waiter, place) {
                let is_reported = self.reported[&id].contains(&blocker.id());
                prop_assert!(
                    is_reported,
                    "{id} waits for {} and that was not reported",
                    blocker.id()
                );
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn every_sleeping_waiter_has_reported_for_which_it_waits(acts in acts()) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
            world.check()?;
            world.stage.check_indexes();
        }
    }
}
