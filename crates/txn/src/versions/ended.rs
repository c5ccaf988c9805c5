//! Transactions that have ended, in the order of their commit numbers, which have no gaps. A reader
//! may hold its snapshot while millions of others come and go: each is found by its number in one
//! step, and what is taken out leaves nothing but a few bytes for 256 of them.
use std::collections::VecDeque;
use std::sync::Arc;

use weir_base::TxnId;

use crate::record::txn_record::TxnRecord;

const CHUNK: usize = 256;

/// The list.
pub(crate) struct Ended {
    /// The number of the first place of the first chunk.
    first: u64,
    /// How many are in the list.
    live: u64,
    /// Bytes that they took when they were added.
    bytes: u64,
    /// In the first chunk no transaction is left before this place.
    head: usize,
    chunks: VecDeque<Chunk>,
}

struct Chunk {
    live: usize,
    /// Places given out.
    len: usize,
    /// Empty when no transaction is left of a full chunk.
    places: Vec<Place>,
}

struct Place {
    /// No transaction in this place or a later one, and none that is open, is below this number.
    floor: TxnId,
    bytes: u32,
    record: Option<Arc<TxnRecord>>,
}

impl Chunk {
    fn is_spent(&self) -> bool {
        self.live == 0 && self.len == CHUNK
    }
}

impl Ended {
    /// An empty list; the first to be added has commit number `first`.
    pub(crate) fn new(first: u64) -> Self {
        Ended { first, live: 0, bytes: 0, head: 0, chunks: VecDeque::new() }
    }

    /// How many are in it.
    pub(crate) fn len(&self) -> u64 {
        self.live
    }

    /// Bytes of memory that they took when they were added.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// No transaction behind this number, and none that is open, is below what is returned; `None`
    /// where nothing tells.
    pub(crate) fn floor_at(&self, number: u64) -> Option<TxnId> {
        let (chunk, place) = self.find(number)?;
        Some(self.chunks.get(chunk)?.places.get(place)?.floor)
    }

    /// No transaction in the list is below this number.
    pub(crate) fn floor(&self) -> Option<TxnId> {
        Some(self.chunks.front()?.places.get(self.head)?.floor)
    }

    /// Adds the next, which takes so many bytes. `floor`: the oldest transaction that was open when
    /// it ended.
    pub(crate) fn push(&mut self, record: Arc<TxnRecord>, floor: TxnId, bytes: u64) {
        if self.chunks.back().is_none_or(|chunk| chunk.len == CHUNK) {
            let places = Vec::with_capacity(CHUNK);
            self.chunks.push_back(Chunk { live: 0, len: 0, places });
        }
        if let Some(chunk) = self.chunks.back_mut() {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.bytes += u64::from(bytes);
            chunk.places.push(Place { floor, bytes, record: Some(record) });
            (chunk.len, chunk.live) = (chunk.len + 1, chunk.live + 1);
            self.live += 1;
        }
    }

    fn find(&self, number: u64) -> Option<(usize, usize)> {
        let at = number.checked_sub(self.first)? as usize;
        Some((at / CHUNK, at % CHUNK))
    }

    /// The one with this number, if it is in the list.
    pub(crate) fn get(&self, number: u64) -> Option<&Arc<TxnRecord>> {
        let (chunk, place) = self.find(number)?;
        self.chunks.get(chunk)?.places.get(place)?.record.as_ref()
    }

    /// Takes the one with this number out.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Arc<TxnRecord>> {
        let (at, place) = self.find(number)?;
        let chunk = self.chunks.get_mut(at)?;
        let place = chunk.places.get_mut(place)?;
        let record = place.record.take()?;
        self.bytes -= u64::from(place.bytes);
        chunk.live -= 1;
        self.live -= 1;
        if chunk.is_spent() {
            chunk.places = Vec::new();
        }
        while self.chunks.front().is_some_and(Chunk::is_spent) {
            self.chunks.pop_front();
            self.first += CHUNK as u64;
            self.head = 0;
        }
        let places = self.chunks.front().map_or(&[][..], |chunk| &chunk.places);
        while places.get(self.head).is_some_and(|place| place.record.is_none()) {
            self.head += 1;
        }
        Some(record)
    }

    /// The first in the list, with its number.
    pub(crate) fn front(&self) -> Option<(u64, &Arc<TxnRecord>)> {
        // A chunk of which no transaction is left is only before others while more are to come.
        let record = self.chunks.front()?.places.get(self.head)?.record.as_ref()?;
        Some((self.first + self.head as u64, record))
    }

    /// Up to `max` whose numbers are from `from` to `to`; and the number up to which it has looked.
    pub(crate) fn some(&self, from: u64, to: u64, max: usize) -> (Vec<Arc<TxnRecord>>, u64) {
        let mut some = Vec::new();
        // Places are looked at, not only those found: a step takes bounded time.
        let last = to.min(from.saturating_add(4 * max as u64));
        for number in from.max(self.first)..=last {
            some.extend(self.get(number).cloned());
            if some.len() == max {
                return (some, number);
            }
        }
        (some, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_taken_out_leaves_next_to_nothing() {
        let mut ended = Ended::new(2);
        for n in 0..100_000u64 {
            ended.push(Arc::new(TxnRecord::new(TxnId(n))), TxnId(n), 7);
            // The first stays, as when a snapshot is held.
            assert_eq!(ended.remove(n + 2).is_some(), n > 0 || ended.remove(2).is_none());
        }
        assert!(ended.chunks.iter().map(|chunk| chunk.places.capacity()).sum::<usize>() <= CHUNK);
    }

    proptest! {
        #[test]
        fn as_an_ordered_map(
            acts in prop::collection::vec((0u8..4, 0u64..3_000), 1..300),
            burst in 1u64..600,
        ) {
            let (mut ended, mut model) = (Ended::new(2), BTreeMap::new());
            let mut next = 2;
            for (act, pick) in acts {
                match act {
                    0 => for _ in 0..burst.min(pick + 1) {
                        ended.push(Arc::new(TxnRecord::new(TxnId(next))), TxnId(next), 7);
                        model.insert(next, TxnId(next));
                        next += 1;
                    },
                    1 => {
                        let pick = pick.min(next);
                        let id = ended.remove(pick).map(|record| record.id());
                        prop_assert_eq!(id, model.remove(&pick));
                    }
                    2 => if let Some((number, _)) = ended.front() {
                        ended.remove(number);
                        prop_assert_eq!(model.pop_first().map(|(n, _)| n), Some(number));
                    },
                    _ => {
                        let pick = pick.min(next);
                        let (some, to) = ended.some(pick, next, 7);
                        let all: Vec<_> = model.range(pick..=to).map(|(_, id)| *id).collect();
                        let got: Vec<_> = some.iter().map(|record| record.id()).collect();
                        prop_assert_eq!(got, all);
                    }
                }
                prop_assert_eq!(ended.len(), model.len() as u64);
                prop_assert_eq!(ended.bytes(), 7 * ended.len());
                prop_assert_eq!(ended.front().map(|(n, _)| n), model.keys().next().copied());
                if let (Some(floor), Some((_, first))) = (ended.floor(), model.first_key_value()) {
                    prop_assert!(floor <= *first);
                }
            }
        }
    }
}
