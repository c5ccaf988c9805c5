//! The table against a model of it that a reader can check by eye: lists, loops, and a search of
//! the whole graph. One thread plays all transactions.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::locks::Edge;

/// Transactions that play at any time.
const SLOTS: usize = 6;
const PLACES: [Place<'static>; 4] =
    [Place::Key(b"a"), Place::Key(b"b"), Place::Key(b"c"), Place::End];

#[derive(Clone, Debug)]
enum Act {
    Ask { slot: usize, place: usize, kind: usize, writer: Option<usize>, may_wait: bool },
    Work { slot: usize, rows: u64 },
    End { slot: usize },
    Kill { slot: usize },
    Split { new: usize, next: usize },
    Join { removed: usize, next: usize },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (slot, place) = (0..SLOTS, 0..PLACES.len());
    let ask = (slot.clone(), place.clone(), 0..4_usize, any::<Option<u8>>(), 0..4_u8).prop_map(
        |(slot, place, kind, writer, wait)| {
            // Every eighth request or so meets a row that someone has written.
            let writer = writer.filter(|w| w % 4 == 0).map(|w| (w / 4) as usize % SLOTS);
            Act::Ask { slot, place, kind, writer, may_wait: wait != 0 }
        },
    );
    let act = prop_oneof![
        12 => ask,
        2 => (slot.clone(), 0..3_u64).prop_map(|(slot, rows)| Act::Work { slot, rows }),
        3 => slot.clone().prop_map(|slot| Act::End { slot }),
        1 => slot.prop_map(|slot| Act::Kill { slot }),
        1 => (0..3_usize, place.clone()).prop_map(|(new, next)| Act::Split { new, next }),
        1 => (0..3_usize, place).prop_map(|(removed, next)| Act::Join { removed, next }),
    ];
    prop::collection::vec(act, 1..80)
}

fn conflict(one: Kind, other: Kind) -> bool {
    matches!(
        (one, other),
        (Kind::RowShare, Kind::RowExclusive)
            | (Kind::RowExclusive, Kind::RowShare | Kind::RowExclusive)
            | (Kind::Gap, Kind::InsertIntention)
            | (Kind::InsertIntention, Kind::Gap)
    )
}

#[derive(Clone, Copy, PartialEq)]
struct Lock {
    id: u64,
    place: usize,
    kind: Kind,
}

#[derive(Clone, Copy)]
struct Wish {
    lock: Lock,
    upgrade: bool,
}

#[derive(Default)]
struct Model {
    granted: Vec<Lock>,
    /// Of all places together, in the order in which they are served.
    waiting: Vec<Wish>,
}

impl Model {
    fn has(&self, lock: Lock) -> bool {
        let covers = Lock { kind: X, ..lock };
        self.granted.contains(&lock) || lock.kind == S && self.granted.contains(&covers)
    }

    fn give(&mut self, lock: Lock) {
        if !self.has(lock) {
            self.granted.push(lock);
        }
    }

    fn upgrades(&self, lock: Lock) -> bool {
        let same = |g: &&Lock| g.id == lock.id && g.place == lock.place;
        self.granted.iter().filter(same).any(|g| g.kind.is_row() == lock.kind.is_row())
    }

    /// Whom a wish waits for that has `earlier` wishes before it.
    fn before(&self, wish: Wish, earlier: &[Wish]) -> BTreeSet<u64> {
        let meets = |other: &Lock| {
            let Lock { id, place, kind } = wish.lock;
            other.place == place && other.id != id && conflict(kind, other.kind)
        };
        let holders = self.granted.iter().filter(|g| meets(g)).map(|g| g.id);
        let earlier = if wish.upgrade { &[] } else { earlier };
        holders.chain(earlier.iter().map(|w| w.lock).filter(meets).map(|l| l.id)).collect()
    }

    fn blocks(&self, lock: Lock) -> bool {
        let wish = Wish { lock, upgrade: self.upgrades(lock) };
        !self.before(wish, &self.waiting).is_empty()
    }

    fn wait(&mut self, lock: Lock) {
        let upgrade = self.upgrades(lock);
        let last = self.waiting.len();
        let not_upgrade = |w: &Wish| w.lock.place == lock.place && !w.upgrade;
        let at = self.waiting.iter().position(not_upgrade).filter(|_| upgrade).unwrap_or(last);
        self.waiting.insert(at, Wish { lock, upgrade });
    }

    fn waits(&self, id: u64) -> bool {
        self.waiting.iter().any(|w| w.lock.id == id)
    }

    fn edges(&self) -> Vec<(u64, BTreeSet<u64>)> {
        let all = self.waiting.iter().enumerate();
        all.map(|(i, w)| (w.lock.id, self.before(*w, &self.waiting[..i]))).collect()
    }

    /// Whom `id` waits for, directly or not.
    fn reach(&self, id: u64) -> BTreeSet<u64> {
        let edges = self.edges();
        let (mut found, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(next) = open.pop() {
            for to in edges.iter().filter(|(from, _)| *from == next).flat_map(|(_, to)| to) {
                if found.insert(*to) {
                    open.push(*to);
                }
            }
        }
        found
    }

    /// Grants what can be granted; who got something.
    fn promote(&mut self) -> BTreeSet<u64> {
        let mut got = BTreeSet::new();
        while let Some(at) = (0..self.waiting.len())
            .find(|&i| self.before(self.waiting[i], &self.waiting[..i]).is_empty())
        {
            let wish = self.waiting.remove(at);
            self.give(wish.lock);
            got.insert(wish.lock.id);
        }
        got
    }

    fn give_up(&mut self, id: u64) {
        self.waiting.retain(|w| w.lock.id != id);
    }

    fn inherit(&mut self, from: usize, kinds: &[Kind], to: usize) {
        let heirs = self.granted.iter().filter(|g| g.place == from && kinds.contains(&g.kind));
        for id in heirs.map(|g| g.id).collect::<Vec<_>>() {
            self.give(Lock { id, place: to, kind: GAP });
        }
    }
}

/// The table and the model, side by side.
struct Both {
    stage: Stage,
    model: Model,
    /// The number of the transaction that plays in each slot.
    ids: [u64; SLOTS],
    next: u64,
}

impl Both {
    fn new() -> Self {
        let mut stage = Stage::new(0);
        let ids = std::array::from_fn(|slot| slot as u64 + 1);
        ids.iter().for_each(|&id| drop(stage.register(id)));
        Both { stage, model: Model::default(), ids, next: SLOTS as u64 + 1 }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Work { slot, rows } => self.stage.table.add_work(TxnId(self.ids[slot]), rows),
            Act::Ask { slot, place, kind, writer, may_wait } => {
                let lock = Lock { id: self.ids[slot], place, kind: Kind::ALL[kind] };
                let writer = writer.map(|w| self.ids[w]).filter(|_| lock.kind.is_row());
                if !self.model.waits(lock.id) && writer != Some(lock.id) {
                    self.ask(lock, writer, may_wait);
                }
            }
            Act::End { slot } if !self.model.waits(self.ids[slot]) => {
                let id = std::mem::replace(&mut self.ids[slot], self.next);
                self.next += 1;
                self.stage.end(id);
                self.model.granted.retain(|g| g.id != id);
                self.compare(BTreeSet::new(), Vec::new());
                drop(self.stage.register(self.ids[slot]));
            }
            Act::Kill { slot } if self.model.waits(self.ids[slot]) => {
                let id = self.ids[slot];
                self.stage.table.kill(TxnId(id));
                assert_eq!(self.stage.answer(id), Answer::Refused(Refused::Killed));
                self.model.give_up(id);
                self.compare(BTreeSet::new(), Vec::new());
            }
            Act::Split { new, next } => {
                let Place::Key(key) = PLACES[new] else { unreachable!() };
                self.stage.table.gap_split(TREE, key, PLACES[next]);
                self.model.inherit(next, &[GAP], new);
                self.compare(BTreeSet::new(), Vec::new());
            }
            Act::Join { removed, next } => {
                let Place::Key(key) = PLACES[removed] else { unreachable!() };
                self.stage.table.gap_join(TREE, key, PLACES[next]);
                self.model.inherit(removed, &[GAP, S, X], next);
                self.compare(BTreeSet::new(), Vec::new());
            }
            _ => {}
        }
    }

    fn ask(&mut self, lock: Lock, writer: Option<u64>, may_wait: bool) {
        let place = PLACES[lock.place];
        let mut answer = self.stage.ask_at(lock.id, place, lock.kind, writer, may_wait);
        if let Some(writer) = writer {
            self.model.give(Lock { id: writer, kind: X, ..lock });
        }
        let (mut told, mut victims) = (BTreeSet::new(), Vec::new());
        if !self.model.blocks(lock) {
            assert_eq!(answer, Got);
            self.model.give(lock);
        } else if !may_wait {
            let Answer::Refused(Refused::WouldWait { holder }) = answer else {
                panic!("told not to wait: {answer:?}");
            };
            let wish = Wish { lock, upgrade: self.model.upgrades(lock) };
            assert!(self.model.before(wish, &self.model.waiting).contains(&holder.0));
        } else {
            self.model.wait(lock);
            if answer == Got {
                // A victim before it gave up: `compare` sees whether that was so.
                told.insert(lock.id);
                answer = Waits;
            }
            if let Answer::Refused(Refused::Deadlock { cycle }) = answer {
                victims.push((lock.id, cycle));
            } else {
                assert_eq!(answer, Waits);
            }
        }
        self.compare(told, victims);
    }

    /// `id` was told that it is the victim of this circle.
    fn check_victim(&self, id: u64, cycle: &[Edge]) {
        let members: Vec<u64> = cycle.iter().map(|e| e.waiter.0).collect();
        assert_eq!(members[0], id);
        let work = |id: u64| (self.stage.owners[&id].work(), std::cmp::Reverse(id));
        assert_eq!(members.iter().copied().min_by_key(|&m| work(m)), Some(id));
        for (i, edge) in cycle.iter().enumerate() {
            assert_eq!(edge.holder.0, members[(i + 1) % members.len()]);
            assert!(edge.wanted.conflicts_with(edge.held));
        }
        assert!(self.model.reach(id).contains(&id), "{id} is in no circle");
    }

    /// Hears what the table tells the waiters (`told`, `victims`: what was heard already) and
    /// compares all that can be seen.
    fn compare(&mut self, mut told: BTreeSet<u64>, mut victims: Vec<(u64, Vec<Edge>)>) {
        let waiting: Vec<u64> = self.model.waiting.iter().map(|w| w.lock.id).collect();
        let heard = |id: &u64| told.contains(id) || victims.iter().any(|(v, _)| v == id);
        let (_, waiting): (Vec<u64>, Vec<u64>) = waiting.into_iter().partition(heard);
        for id in waiting {
            match self.stage.answer(id) {
                Waits => {}
                Got => drop(told.insert(id)),
                Answer::Refused(Refused::Deadlock { cycle }) => victims.push((id, cycle)),
                other => panic!("{id} was told {other:?}"),
            }
        }
        // All were in circles before any of them gave up; each may have been in that of another.
        victims.iter().for_each(|(id, cycle)| self.check_victim(*id, cycle));
        victims.iter().for_each(|(id, _)| self.model.give_up(*id));
        assert_eq!(told, self.model.promote(), "who got what it waited for");
        for (id, before) in self.model.edges() {
            assert!(!before.is_empty());
            assert!(!self.model.reach(id).contains(&id), "{id} waits in a circle");
        }
        for (place, &at) in PLACES.iter().enumerate() {
            for id in self.ids {
                for kind in Kind::ALL {
                    let blocks = self.stage.table.blocks(TxnId(id), TREE, at, kind);
                    let expected = self.model.blocks(Lock { id, place, kind });
                    assert_eq!(blocks, expected, "{kind} of {id} at {at:?}");
                }
            }
        }
        let pairs: BTreeSet<_> = self.model.granted.iter().map(|g| (g.id, g.place)).collect();
        let gaps = self.model.granted.iter().filter(|g| g.kind == GAP).count();
        let stats = self.stage.table.stats();
        let seen = (stats.held, stats.waiting, stats.gaps);
        assert_eq!(seen, (pairs.len() as u64, self.model.waiting.len() as u64, gaps as u64));
    }

    /// Everyone ends, one after the other, whoever can.
    fn finish(mut self) {
        while let Some(slot) = (0..SLOTS).find(|&s| {
            self.stage.owners.contains_key(&self.ids[s]) && !self.model.waits(self.ids[s])
        }) {
            let id = self.ids[slot];
            self.stage.end(id);
            self.model.granted.retain(|g| g.id != id);
            self.compare(BTreeSet::new(), Vec::new());
        }
        self.stage.all_end();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_table_does_what_the_model_does(acts in acts()) {
        let mut both = Both::new();
        acts.iter().for_each(|act| both.act(act));
        both.finish();
    }
}
