//! Maps from numbers that we give out ourselves: of transactions, of trees.
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use weir_base::{TreeId, TxnId};

/// A map whose keys are given out one after another by ourselves: scattering them is enough, and
/// costs a tenth of a hash that strangers' keys would need.
pub(crate) type ByTxn<V> = HashMap<TxnId, V, BuildHasherDefault<NumberHasher>>;

/// As [`ByTxn`], from the numbers of trees.
pub(crate) type ByTree<V> = HashMap<TreeId, V, BuildHasherDefault<NumberHasher>>;

#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
