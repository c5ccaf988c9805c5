//! Turns drawn from a seed.
use std::collections::VecDeque;

use weir::{Durability, Isolation};

use super::turn::{How, Row, Turn};
use crate::op::{FRONT_LEN, Value};

/// Draws turns. Each has likings of its own, so that workloads differ in kind.
pub struct Draw {
    random: fastrand::Rng,
    sessions: u8,
    trees: u8,
    keys: u16,
    /// Of a hundred values, so many are long.
    long: u32,
    /// Of a hundred turns of a session, so many end it.
    ends: u32,
    /// Of a hundred batches, so many are of long values only: the log goes round quickly.
    floods: u32,
    prepares: bool,
    deletes: u32,
    value_max: u32,
    level: Option<Isolation>,
    /// Draws which session is serialisable; by itself, so that histories without are what they
    /// always were.
    serial: fastrand::Rng,
    /// Of ten transactions, so many are.
    serialisable: u32,
    /// Draws changes of trees; by itself, for the same reason.
    definitions: fastrand::Rng,
    /// Of a hundred turns, so many are.
    defines: u32,
    /// What comes next, whatever is drawn.
    next: VecDeque<Turn>,
    next_value: u32,
    /// Whether each is likely to be under way.
    open: Vec<bool>,
}

const LEVELS: [Isolation; 4] = [
    Isolation::ReadUncommitted,
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Snapshot,
];

impl Draw {
    /// With this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut serial = fastrand::Rng::with_seed(seed ^ 0x5e1c);
        let sessions = random.u8(2..7);
        let mut definitions = fastrand::Rng::with_seed(seed ^ 0xdef1);
        Draw {
            sessions,
            trees: random.u8(1..3),
            floods: if random.u8(0..4) == 0 { 30 } else { 0 },
            keys: *random.choice(&[5, 20, 90, 300]).unwrap_or(&20),
            long: *random.choice(&[0, 6, 15, 30]).unwrap_or(&6),
            ends: *random.choice(&[2, 6, 15]).unwrap_or(&6),
            prepares: random.bool(),
            deletes: random.u32(3..40),
            value_max: *random.choice(&[40, 400, 900]).unwrap_or(&400),
            level: random.bool().then(|| LEVELS[random.usize(0..4)]),
            serialisable: *serial.choice(&[0, 0, 3, 9]).unwrap_or(&0),
            serial,
            defines: *definitions.choice(&[0, 0, 3, 10]).unwrap_or(&0),
            definitions,
            next: VecDeque::new(),
            next_value: 0,
            open: vec![false; usize::from(sessions)],
            random,
        }
    }

    /// How many trees there are.
    #[must_use]
    pub fn trees(&self) -> u8 {
        self.trees
    }

    /// The next `count` turns.
    #[must_use]
    pub fn take(&mut self, count: usize) -> Vec<Turn> {
        (0..count).map(|_| self.draw()).collect()
    }

    fn durability(&mut self) -> Durability {
        match self.random.u8(0..4) {
            0 => Durability::Synced,
            1 => Durability::Written,
            _ => Durability::Lazy,
        }
    }

    fn value(&mut self) -> Value {
        self.next_value += 1;
        let seed = self.next_value << 8 | u32::from(self.random.u8(0..4));
        let len = if self.random.u32(0..100) < self.long {
            match self.random.u8(0..6) {
                4 | 5 => FRONT_LEN,
                0 => self.random.u32(600..5_000),
                1 => self.random.u32(20_000..60_000),
                _ => self.random.u32(4_000..20_000),
            }
        } else {
            // Equal lengths are common: such a change is logged by the bytes that differ.
            self.random.u32(0..self.value_max) / 40 * 40
        };
        Value { seed, len }
    }

    fn row(&mut self) -> Row {
        (self.random.u8(0..self.trees), self.random.u16(0..self.keys))
    }

    /// A change of trees. Most are committed at once; others stand in the way for a while.
    fn define(&mut self) {
        let random = &mut self.definitions;
        let session = random.u8(0..self.sessions);
        // One name more than there were trees at first.
        let (tree, to) = (random.u8(0..=self.trees), random.u8(0..=self.trees));
        let of_session = usize::from(session);
        if !self.open[of_session] {
            let isolation = self.level.unwrap_or(LEVELS[random.usize(0..4)]);
            self.next.push_back(Turn::Begin { session, isolation, at_once: false, share: false });
        }
        self.next.push_back(match random.u8(0..6) {
            0 | 1 => Turn::Create { session, tree },
            2 => Turn::Drop { session, tree },
            3 | 4 => Turn::Truncate { session, tree },
            _ => Turn::Rename { session, tree, to },
        });
        self.open[of_session] = random.u8(0..3) == 0;
        if !self.open[of_session] {
            let durability = if random.bool() { Durability::Synced } else { Durability::Lazy };
            self.next.push_back(match random.u8(0..8) {
                0 => Turn::Rollback { session, by_drop: random.bool() },
                1 if self.prepares => Turn::Prepare { session },
                _ => Turn::Commit { session, how: How::Durably(durability) },
            });
        }
    }

    fn draw(&mut self) -> Turn {
        if self.next.is_empty() && self.definitions.u32(0..100) < self.defines {
            self.define();
        }
        if let Some(next) = self.next.pop_front() {
            return next;
        }
        match self.random.u32(0..100) {
            0..4 => Turn::Step,
            4 => Turn::Pass(self.random.u64(0..3_000_000)),
            5 if self.random.u8(0..3) == 0 => Turn::Checkpoint,
            6 if self.random.u8(0..12) == 0 => {
                self.open.fill(false);
                Turn::Reopen
            }
            7 if self.random.bool() => Turn::Hold,
            8..11 => Turn::Look { row: self.row() },
            11 if self.random.bool() => Turn::Walk { tree: self.random.u8(0..self.trees) },
            11 => {
                let commit = (self.random.u8(0..3) > 0).then(|| self.durability());
                Turn::Decide { which: self.random.u8(..), commit }
            }
            12..19 => {
                let row = self.row();
                let value = self.maybe_value();
                Turn::Single { row, value, durability: self.durability() }
            }
            19..22 => {
                let count = self.random.usize(1..8);
                if self.random.u32(0..100) < self.floods {
                    return self.flood(count);
                }
                let rows = (0..count).map(|_| (self.row(), self.maybe_value())).collect();
                Turn::Batch { rows, durability: self.durability() }
            }
            _ => self.of_session(),
        }
    }

    fn flood(&mut self, count: usize) -> Turn {
        let mut long = || {
            let (row, value) = (self.row(), self.value());
            (row, Some(Value { len: self.random.u32(30_000..60_000), ..value }))
        };
        Turn::Batch { rows: (0..count).map(|_| long()).collect(), durability: Durability::Lazy }
    }

    fn maybe_value(&mut self) -> Option<Value> {
        (self.random.u32(0..100) >= self.deletes).then(|| self.value())
    }

    fn of_session(&mut self) -> Turn {
        let session = self.random.u8(0..self.sessions);
        if !self.open[usize::from(session)] {
            self.open[usize::from(session)] = true;
            let mut isolation = self.level.unwrap_or(LEVELS[self.random.usize(0..4)]);
            if self.serial.u32(0..10) < self.serialisable {
                isolation = Isolation::Serializable;
            }
            let (at_once, share) = (self.random.u8(0..3) == 0, self.random.u8(0..4) == 0);
            return Turn::Begin { session, isolation, at_once, share };
        }
        // The first session is in no hurry: its transactions grow old.
        let ends = if session == 0 { self.ends / 3 } else { self.ends };
        if self.random.u32(0..100) < ends {
            self.open[usize::from(session)] = false;
            return match self.random.u8(0..8) {
                0 | 1 => Turn::Rollback { session, by_drop: self.random.bool() },
                2 if self.prepares => Turn::Prepare { session },
                2 | 3 => Turn::Commit { session, how: How::Ticket },
                _ => Turn::Commit { session, how: How::Durably(self.durability()) },
            };
        }
        let row = self.row();
        match self.random.u32(0..100) {
            0..14 => Turn::Get { session, row },
            14..20 => Turn::Lock { session, row, shared: self.random.bool() },
            20..40 => Turn::Put { session, row, value: self.value() },
            40..50 => Turn::Insert { session, row, value: self.value() },
            50..60 => {
                let value = (self.random.u8(0..5) > 0).then(|| self.value());
                Turn::Update { session, row, value }
            }
            60..70 => Turn::Delete { session, row },
            70..80 => Turn::Scan {
                session,
                tree: row.0,
                from: self.random.bool().then_some(row.1),
                up: self.random.bool(),
                limit: if self.random.bool() { 8 } else { u8::MAX },
            },
            80..83 => Turn::Place {
                session,
                tree: row.0,
                from: self.random.bool().then_some(row.1),
                up: self.random.bool(),
            },
            83..89 => Turn::Move { session, up: self.random.u8(0..4) > 0 },
            89..95 => Turn::Savepoint { session },
            _ => Turn::Back { session, which: self.random.u8(..) },
        }
    }
}
