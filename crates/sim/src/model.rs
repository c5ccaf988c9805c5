//! What the database must hold: the simplest thing that can say so.
use std::collections::BTreeMap;

use weir_base::checksum;

use crate::op::{Op, Value, key_bytes};

/// A value as far as comparing needs it: checksum and length.
pub type Digest = (u32, u32);

/// All rows of all trees.
pub type Contents = BTreeMap<u8, BTreeMap<Vec<u8>, Digest>>;

/// Of a value's bytes.
#[must_use]
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    (checksum(bytes), bytes.len() as u32)
}

/// The contents after some operations, and a number that tells two contents apart.
#[derive(Clone, Debug)]
pub struct Model {
    contents: Contents,
    mark: u64,
    page_size: usize,
}

pub(crate) fn mix(tree: u8, key: &[u8], value: Option<Digest>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ u64::from(tree);
    let (crc, len) = value.unwrap_or((u32::MAX, u32::MAX));
    for word in [u64::from(checksum(key)), key.len() as u64, u64::from(crc), u64::from(len)] {
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    hash
}

/// A number that tells contents apart.
#[must_use]
pub(crate) fn mark(contents: &Contents) -> u64 {
    let mut sum = 0u64;
    for (tree, rows) in contents {
        sum = sum.wrapping_add(mix(*tree, b"", None));
        for (key, value) in rows {
            sum = sum.wrapping_add(mix(*tree, key, Some(*value)));
        }
    }
    sum
}

impl Model {
    /// Nothing, not even a tree.
    #[must_use]
    pub fn new(page_size: usize) -> Self {
        Model { contents: Contents::new(), mark: 0, page_size }
    }

    /// Everything.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The number of these contents.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Whether there is such a tree.
    #[must_use]
    pub fn has(&self, tree: u8) -> bool {
        self.contents.contains_key(&tree)
    }

    /// A row's value.
    #[must_use]
    pub fn get(&self, tree: u8, key: u16) -> Option<Digest> {
        self.contents.get(&tree)?.get(&key_bytes(key, self.page_size)).copied()
    }

    fn set(&mut self, tree: u8, key: u16, value: Option<Value>) {
        let Some(rows) = self.contents.get_mut(&tree) else { return };
        let key = key_bytes(key, self.page_size);
        let value = value.map(|v| digest(&v.bytes()));
        if let Some(value) = value {
            self.mark = self.mark.wrapping_add(mix(tree, &key, Some(value)));
        }
        let was = match value {
            Some(value) => rows.insert(key.clone(), value),
            None => rows.remove(&key),
        };
        if let Some(was) = was {
            self.mark = self.mark.wrapping_sub(mix(tree, &key, Some(was)));
        }
    }

    /// What `op` makes of the contents.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Put { tree, key, value, .. } => self.set(*tree, *key, Some(*value)),
            Op::Delete { tree, key, .. } => self.set(*tree, *key, None),
            Op::Batch { rows, .. } => {
                for (tree, key, value) in rows {
                    self.set(*tree, *key, *value);
                }
            }
            Op::Load { tree, count, stride, value }
                if self.contents.get(tree).is_some_and(BTreeMap::is_empty) =>
            {
                for i in 0..*count {
                    self.set(*tree, i.wrapping_mul(*stride), Some(*value));
                }
            }
            Op::Create(tree) if !self.has(*tree) => {
                self.contents.insert(*tree, BTreeMap::new());
                self.mark = self.mark.wrapping_add(mix(*tree, b"", None));
            }
            Op::Drop(tree) => {
                if let Some(rows) = self.contents.remove(tree) {
                    let gone = Contents::from([(*tree, rows)]);
                    self.mark = self.mark.wrapping_sub(mark(&gone));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Generator;

    #[test]
    fn the_mark_follows_the_contents() {
        for seed in 0..20 {
            let mut model = Model::new(4096);
            for op in Generator::new(seed).take(400) {
                let before = model.mark();
                let was = model.contents().clone();
                model.apply(&op);
                assert_eq!(model.mark(), mark(model.contents()), "seed {seed}: {op:?}");
                assert_eq!(before == model.mark(), was == *model.contents(), "{op:?}");
            }
        }
    }
}
