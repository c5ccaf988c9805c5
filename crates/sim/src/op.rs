//! What a workload does, drawn from a seed.
use weir::Durability;

/// A value by its recipe: bytes follow from length and seed, and values whose seeds share the low
/// byte share most of their bytes, so that updates change a few of them only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Which.
    pub seed: u32,
    /// Bytes.
    pub len: u32,
}

/// Long values of a multiple of this length may differ in their first bytes only.
pub(crate) const FRONT_LEN: u32 = 9_000;

impl Value {
    /// The bytes.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        let low = self.seed as u8;
        let mut bytes: Vec<u8> =
            (0..self.len).map(|i| low.wrapping_mul(31).wrapping_add((i / 7) as u8)).collect();
        let stamp = self.seed.to_le_bytes();
        // Of the long ones that have few lengths, half differ in their first bytes only: then the
        // pages of such a row stay.
        let far = if self.len.is_multiple_of(FRONT_LEN) && low & 1 == 1 { 0 } else { bytes.len() };
        for at in [0, far / 3, far / 2, far.saturating_sub(4)] {
            for (to, from) in bytes[at..].iter_mut().zip(stamp) {
                *to = from;
            }
        }
        bytes
    }
}

/// One step of a workload. Trees and keys are numbers; what names a tree that is not there does
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Inserts or replaces a row.
    Put {
        /// Where.
        tree: u8,
        /// Which row.
        key: u16,
        /// Its new value.
        value: Value,
        /// How durable when it returns.
        durability: Durability,
    },
    /// Removes a row.
    Delete {
        /// Where.
        tree: u8,
        /// Which row.
        key: u16,
        /// How durable when it returns.
        durability: Durability,
    },
    /// Several at once: tree, key, new value or `None` to remove.
    Batch {
        /// What is changed.
        rows: Vec<(u8, u16, Option<Value>)>,
        /// How durable when it returns.
        durability: Durability,
    },
    /// Fills an empty tree with keys 0, `stride`, twice `stride`...
    Load {
        /// Where.
        tree: u8,
        /// Rows.
        count: u16,
        /// Between keys.
        stride: u16,
        /// The value of all of them.
        value: Value,
    },
    /// Makes a tree.
    Create(u8),
    /// Drops a tree.
    Drop(u8),
    /// Reads a row and compares.
    Look {
        /// Where.
        tree: u8,
        /// Which row.
        key: u16,
    },
    /// A step of the background work.
    Step,
    /// Makes a tree dense.
    Compact(u8),
    /// A full checkpoint.
    Checkpoint,
    /// A backup, restored elsewhere and compared.
    Backup,
    /// Another capacity of the log.
    LogBytes(u64),
    /// Time passes, in microseconds.
    Pass(u64),
    /// Closes in order and opens again.
    Reopen,
}

/// The bytes of key `number`: most are short, some as long as may be.
#[must_use]
pub fn key_bytes(number: u16, page_size: usize) -> Vec<u8> {
    let mut key = format!("row/{:02}/{number:05}", number % 7).into_bytes();
    if number % 37 == 5 {
        key.resize(if page_size < 8192 { 1200 } else { 3072 }, b'-');
    } else if number % 11 == 3 {
        key.resize(150, b'.');
    }
    key
}

/// Draws operations. Each generator has likings of its own, so that scenarios differ in kind.
pub struct Generator {
    random: fastrand::Rng,
    keys: u16,
    trees: u8,
    batches: u32,
    deletes: u32,
    large: u32,
    checkpoints: u32,
    trees_change: u32,
    synced: u32,
    value_max: u32,
    next_value: u32,
}

impl Generator {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Generator {
            keys: *random.choice(&[12, 60, 300, 900]).unwrap_or(&60),
            trees: random.u8(1..4),
            batches: random.u32(2..40),
            deletes: random.u32(0..45),
            large: *random.choice(&[0, 3, 12, 30]).unwrap_or(&3),
            checkpoints: *random.choice(&[0, 1, 4]).unwrap_or(&1),
            trees_change: *random.choice(&[1, 2, 8]).unwrap_or(&1),
            synced: random.u32(1..10),
            value_max: *random.choice(&[40, 400, 900]).unwrap_or(&400),
            next_value: 0,
            random,
        }
    }

    /// The first `count` operations: trees are made first.
    #[must_use]
    pub fn take(mut self, count: usize) -> Vec<Op> {
        let mut ops: Vec<Op> = (0..self.trees).map(Op::Create).collect();
        while ops.len() < count {
            let op = self.draw();
            ops.push(op);
        }
        ops.truncate(count);
        ops
    }

    fn durability(&mut self) -> Durability {
        match self.random.u32(0..10) {
            n if n < self.synced => Durability::Synced,
            n if n % 2 == 0 => Durability::Written,
            _ => Durability::Lazy,
        }
    }

    fn value(&mut self) -> Value {
        self.next_value += 1;
        let seed = self.next_value << 8 | u32::from(self.random.u8(0..4));
        let len = if self.random.u32(0..100) < self.large {
            match self.random.u8(0..7) {
                0 => self.random.u32(900..5_000),
                // Around what leaves and chains of pages hold, of all page sizes.
                1 | 2 => {
                    let usable = (*self.random.choice(&[4096, 8192, 16384]).unwrap_or(&4096)) - 48;
                    let part = *self.random.choice(&[1, 2, 3, 4]).unwrap_or(&2);
                    usable / part - 90 + self.random.u32(0..120)
                }
                3 => self.random.u32(20_000..60_000),
                6 => FRONT_LEN * self.random.u32(1..3),
                _ => self.random.u32(4_000..20_000),
            }
        } else if self.random.u8(0..20) == 0 {
            0
        } else {
            // Equal lengths are common: an update in place, then, changes a few bytes only.
            self.random.u32(0..self.value_max) / 40 * 40 + 8
        };
        Value { seed, len }
    }

    fn row(&mut self) -> (u8, u16) {
        (self.random.u8(0..self.trees), self.random.u16(0..self.keys))
    }

    fn draw(&mut self) -> Op {
        if self.random.u32(0..100) < self.checkpoints {
            return match self.random.u8(0..8) {
                0 => Op::Reopen,
                1 | 2 => Op::LogBytes(640 * 1024 + self.random.u64(0..6) * 160 * 1024),
                3 => Op::Backup,
                _ => Op::Checkpoint,
            };
        }
        if self.random.u32(0..400) < self.trees_change {
            let tree = self.random.u8(0..self.trees);
            return match self.random.u8(0..5) {
                0 | 1 => Op::Drop(tree),
                2 => Op::Load {
                    tree,
                    count: self.random.u16(0..200),
                    stride: self.random.u16(1..4),
                    value: self.value(),
                },
                _ => Op::Create(tree),
            };
        }
        let pick = self.random.u32(0..100);
        match pick {
            0..5 => return Op::Step,
            5 => return Op::Compact(self.random.u8(0..self.trees)),
            _ => {}
        }
        if pick < 9 {
            return Op::Pass(self.random.u64(0..3_000_000));
        }
        let (tree, key) = self.row();
        if pick < 15 {
            return Op::Look { tree, key };
        }
        let durability = self.durability();
        if self.random.u32(0..100) < self.batches {
            let mut rows = Vec::new();
            for _ in 0..self.random.usize(1..12) {
                let (tree, key) = self.row();
                let delete = self.random.u32(0..100) < self.deletes;
                rows.push((tree, key, (!delete).then(|| self.value())));
            }
            return Op::Batch { rows, durability };
        }
        if self.random.u32(0..100) < self.deletes {
            return Op::Delete { tree, key, durability };
        }
        Op::Put { tree, key, value: self.value(), durability }
    }
}
