//! The table against a model of it that a reader can check by eye: lists, loops, and a search of
//! the whole graph. One thread plays all transactions.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::locks::Edge;

/// Transactions that play at any time.
const SLOTS: usize = 6;
/// The keys, each the first of an interval; that of the last has no end.
const KEYS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];

#[derive(Clone, Debug)]
enum Act {
    Ask { slot: usize, area: Area, kind: Kind, writer: Option<usize>, may_wait: bool },
    Work { slot: usize, rows: u64 },
    End { slot: usize },
    Kill { slot: usize },
}

/// A key, or intervals that follow each other: one bit for each.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Area {
    is_key: bool,
    bits: u8,
}

impl Area {
    fn new(is_key: bool, from: usize, count: usize) -> Self {
        let count = if is_key { 1 } else { count };
        let all = (1 << KEYS.len()) - 1;
        Area { is_key, bits: (((1_u16 << count) - 1) << from & all) as u8 }
    }

    fn place(self) -> Place<'static> {
        let from = KEYS[self.bits.trailing_zeros() as usize];
        match self.is_key {
            true => Place::Key(from),
            false => {
                let to = 8 - self.bits.leading_zeros() as usize;
                Place::Range { from, to: KEYS.get(to).copied() }
            }
        }
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let slot = 0..SLOTS;
    let area = (any::<bool>(), 0..KEYS.len(), 1..5_usize)
        .prop_map(|(is_key, from, count)| Area::new(is_key, from, count));
    let kind = (0..2_usize).prop_map(|kind| Kind::ALL[kind]);
    let ask = (slot.clone(), area, kind, any::<Option<u8>>(), 0..4_u8).prop_map(
        |(slot, area, kind, writer, wait)| {
            // Every eighth request or so meets a row with an open writer.
            let writer = writer.filter(|w| w % 4 == 0 && area.is_key);
            let writer = writer.map(|w| (w / 4) as usize % SLOTS);
            Act::Ask { slot, area, kind, writer, may_wait: wait != 0 }
        },
    );
    let act = prop_oneof![
        12 => ask,
        2 => (slot.clone(), 0..3_u64).prop_map(|(slot, rows)| Act::Work { slot, rows }),
        3 => slot.clone().prop_map(|slot| Act::End { slot }),
        1 => slot.prop_map(|slot| Act::Kill { slot }),
    ];
    prop::collection::vec(act, 1..80)
}

fn conflict(one: Kind, other: Kind) -> bool {
    (one, other) != (S, S)
}

#[derive(Clone, Copy, PartialEq)]
struct Lock {
    id: u64,
    area: Area,
    kind: Kind,
}

#[derive(Clone, Copy)]
struct Wish {
    lock: Lock,
    first: bool,
}

#[derive(Default)]
struct Model {
    granted: Vec<Lock>,
    /// In the order in which they are served.
    waiting: Vec<Wish>,
}

impl Model {
    /// The intervals of which `id` has ranges of this kind.
    fn ranges(&self, id: u64, kind: Kind) -> u8 {
        let own = |g: &&Lock| g.id == id && g.kind == kind && !g.area.is_key;
        self.granted.iter().filter(own).fold(0, |bits, g| bits | g.area.bits)
    }

    fn has(&self, lock: Lock) -> bool {
        let suits = |kind: Kind| kind == X || lock.kind == S;
        let in_range = |kind| self.ranges(lock.id, kind) & lock.area.bits == lock.area.bits;
        let same = |g: &Lock| g.id == lock.id && g.area == lock.area && suits(g.kind);
        Kind::ALL.into_iter().any(|kind| suits(kind) && in_range(kind))
            || lock.area.is_key && self.granted.iter().any(same)
    }

    fn give(&mut self, lock: Lock) {
        if !self.has(lock) {
            self.granted.push(lock);
        }
    }

    /// The transactions that a wish waits for that has `earlier` wishes before it.
    fn before(&self, wish: Wish, earlier: &[Wish]) -> BTreeSet<u64> {
        let meets = |other: &Lock| {
            let Lock { id, area, kind } = wish.lock;
            other.area.bits & area.bits != 0 && other.id != id && conflict(kind, other.kind)
        };
        let holders = self.granted.iter().filter(|g| meets(g)).map(|g| g.id);
        let earlier = if wish.first { &[] } else { earlier };
        holders.chain(earlier.iter().map(|w| w.lock).filter(meets).map(|l| l.id)).collect()
    }

    /// Whether the wish at position `at` waits for something that `id` holds, or behind such a one.
    fn is_behind(&self, at: usize, id: u64) -> bool {
        let wish = self.waiting[at];
        let on_holders = self.before(Wish { first: true, ..wish }, &[]);
        let earlier = self.before(wish, &self.waiting[..at]);
        on_holders.contains(&id)
            || !wish.first
                && (0..at).any(|e| {
                    let Lock { id: other, area, kind } = self.waiting[e].lock;
                    let meets = area.bits & wish.lock.area.bits != 0;
                    let is_earlier = meets && conflict(kind, wish.lock.kind);
                    is_earlier && earlier.contains(&other) && self.is_behind(e, id)
                })
    }

    /// Whether it would wait for a transaction that waits for it.
    fn goes_first(&self, lock: Lock) -> bool {
        (0..self.waiting.len()).any(|at| {
            let other = self.waiting[at].lock;
            let meets = other.area.bits & lock.area.bits != 0 && other.id != lock.id;
            meets && conflict(lock.kind, other.kind) && self.is_behind(at, lock.id)
        })
    }

    fn blocks(&self, lock: Lock) -> bool {
        let wish = Wish { lock, first: self.goes_first(lock) };
        !self.before(wish, &self.waiting).is_empty()
    }

    fn wait(&mut self, lock: Lock) {
        let first = self.goes_first(lock);
        let last = self.waiting.len();
        let at = self.waiting.iter().position(|w| !w.first).filter(|_| first).unwrap_or(last);
        self.waiting.insert(at, Wish { lock, first });
    }

    fn waits(&self, id: u64) -> bool {
        self.waiting.iter().any(|w| w.lock.id == id)
    }

    fn edges(&self) -> Vec<(u64, BTreeSet<u64>)> {
        let all = self.waiting.iter().enumerate();
        all.map(|(i, w)| (w.lock.id, self.before(*w, &self.waiting[..i]))).collect()
    }

    /// The transactions that `id` waits for, directly or not.
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

    /// Grants what can be granted; returns which got something.
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

    /// Releases what `id` holds, key by key and all ranges at once, in the order in which it came
    /// to them. Between, a transaction that goes first may get what another that goes first would
    /// get at the end.
    fn end(&mut self, id: u64) -> BTreeSet<u64> {
        let mut got = BTreeSet::new();
        while let Some(next) = self.granted.iter().find(|g| g.id == id).map(|g| g.area) {
            let goes = |area: Area| if next.is_key { area == next } else { !area.is_key };
            self.granted.retain(|g| g.id != id || !goes(g.area));
            got.append(&mut self.promote());
        }
        got
    }

    fn give_up(&mut self, id: u64) {
        self.waiting.retain(|w| w.lock.id != id);
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
            Act::Ask { slot, area, kind, writer, may_wait } => {
                let lock = Lock { id: self.ids[slot], area, kind };
                let writer = writer.map(|w| self.ids[w]);
                if !self.model.waits(lock.id) && writer != Some(lock.id) {
                    self.ask(lock, writer, may_wait);
                }
            }
            Act::End { slot } if !self.model.waits(self.ids[slot]) => {
                let id = std::mem::replace(&mut self.ids[slot], self.next);
                self.next += 1;
                self.stage.end(id);
                let got = self.model.end(id);
                self.compare_after(got, BTreeSet::new(), Vec::new());
                drop(self.stage.register(self.ids[slot]));
            }
            Act::Kill { slot } if self.model.waits(self.ids[slot]) => {
                let id = self.ids[slot];
                self.stage.table.kill(TxnId(id));
                assert_eq!(self.stage.answer(id), Answer::Refused(LockError::Killed));
                self.model.give_up(id);
                self.compare(BTreeSet::new(), Vec::new());
            }
            _ => {}
        }
    }

    fn ask(&mut self, lock: Lock, writer: Option<u64>, may_wait: bool) {
        let place = lock.area.place();
        let mut answer = self.stage.ask_at(lock.id, place, lock.kind, writer, may_wait);
        if let Some(writer) = writer {
            self.model.give(Lock { id: writer, kind: X, ..lock });
        }
        let (mut told, mut victims) = (BTreeSet::new(), Vec::new());
        if !self.model.blocks(lock) {
            assert_eq!(answer, Got);
            self.model.give(lock);
        } else if !may_wait {
            let Answer::Refused(LockError::WouldWait { holder }) = answer else {
                panic!("told not to wait: {answer:?}");
            };
            let wish = Wish { lock, first: self.model.goes_first(lock) };
            assert!(self.model.before(wish, &self.model.waiting).contains(&holder.0));
        } else {
            self.model.wait(lock);
            if answer == Got {
                // A victim before it gave up: `compare` sees whether that was so.
                told.insert(lock.id);
                answer = Waits;
            }
            if let Answer::Refused(LockError::Deadlock { cycle }) = answer {
                victims.push((lock.id, cycle));
            } else {
                assert_eq!(answer, Waits);
            }
        }
        self.compare(told, victims);
    }

    /// `id` has learnt that it is the victim of this circle.
    fn check_victim(&self, id: u64, cycle: &[Edge]) {
        let members: Vec<u64> = cycle.iter().map(|e| e.waiter.0).collect();
        assert_eq!(members[0], id);
        // Of several it is the one whose wait has closed the circle: one that asks, or that was
        // made to wait for one that asks and goes before it.
        let work = |id: u64| self.stage.owners[&id].work();
        assert_eq!(members.iter().copied().map(work).min(), Some(work(id)));
        for (i, edge) in cycle.iter().enumerate() {
            assert_eq!(edge.holder.0, members[(i + 1) % members.len()]);
            assert!(edge.wanted.conflicts_with(edge.held));
        }
        assert!(self.model.reach(id).contains(&id), "{id} is in no circle");
    }

    /// Collects what the table tells the waiters (`told`, `victims`: what it has said already) and
    /// compares all that can be seen.
    fn compare(&mut self, told: BTreeSet<u64>, victims: Vec<(u64, Vec<Edge>)>) {
        self.compare_after(BTreeSet::new(), told, victims);
    }

    /// As `compare`, when these have got something already.
    fn compare_after(
        &mut self,
        mut got: BTreeSet<u64>,
        mut told: BTreeSet<u64>,
        mut victims: Vec<(u64, Vec<Edge>)>,
    ) {
        let waiting = self.model.waiting.iter().map(|w| w.lock.id);
        let waiting: Vec<u64> = waiting.chain(got.iter().copied()).collect();
        let heard = |id: &u64| told.contains(id) || victims.iter().any(|(v, _)| v == id);
        let (_, waiting): (Vec<u64>, Vec<u64>) = waiting.into_iter().partition(heard);
        for id in waiting {
            match self.stage.answer(id) {
                Waits => {}
                Got => drop(told.insert(id)),
                Answer::Refused(LockError::Deadlock { cycle }) => victims.push((id, cycle)),
                other => panic!("{id} was told {other:?}"),
            }
        }
        // All were in circles before any of them gave up; each may have been in that of another.
        victims.iter().for_each(|(id, cycle)| self.check_victim(*id, cycle));
        victims.iter().for_each(|(id, _)| self.model.give_up(*id));
        got.append(&mut self.model.promote());
        assert_eq!(told, got, "which got what it waited for");
        for (id, before) in self.model.edges() {
            assert!(!before.is_empty());
            assert!(!self.model.reach(id).contains(&id), "{id} waits in a circle");
        }
        for (at, key) in KEYS.iter().enumerate() {
            for id in self.ids {
                for kind in Kind::ALL {
                    let blocks = self.stage.table.blocks(TxnId(id), TREE, key, kind);
                    let area = Area::new(true, at, 1);
                    let expected = self.model.blocks(Lock { id, area, kind });
                    assert_eq!(blocks, expected, "{kind} of {id} at {at}");
                }
            }
        }
        self.stage.check_indexes();
        let keys = self.model.granted.iter().filter(|g| g.area.is_key);
        let keys: BTreeSet<_> = keys.map(|g| (g.id, g.area.bits)).collect();
        // Each run of ones is a range.
        let runs = |bits: u8| (bits & !(bits << 1)).count_ones();
        let ranges: u32 = (self.ids.iter())
            .flat_map(|&id| Kind::ALL.map(|kind| runs(self.model.ranges(id, kind))))
            .sum();
        let stats = self.stage.table.stats();
        let expected = (keys.len() as u64, self.model.waiting.len() as u64, u64::from(ranges));
        assert_eq!((stats.held, stats.waiting, stats.ranges), expected);
    }

    /// All transactions end, one after the other, as soon as they can.
    fn finish(mut self) {
        while let Some(slot) = (0..SLOTS).find(|&s| {
            self.stage.owners.contains_key(&self.ids[s]) && !self.model.waits(self.ids[s])
        }) {
            let id = self.ids[slot];
            self.stage.end(id);
            let got = self.model.end(id);
            self.compare_after(got, BTreeSet::new(), Vec::new());
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
