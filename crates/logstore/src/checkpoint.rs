//! Map checkpoints: the dirty leaves of the map are written out of place, then a root that names
//! them. Fuzzy: writes go on meanwhile, and what they change is found in their chunks.
use std::collections::{BTreeMap, BTreeSet};

use weir_base::lock::Mutex;
use weir_base::{Lsn, rank};

use crate::core::Core;
use crate::error::StoreError;
use crate::format::{BLOCK_HEAD, Codec, Kind, LEAF_BYTES, LEAF_PLACES, Root, encode_leaf};
use crate::ids::{Place, SegmentNo, Seq};
use crate::segments::{Status, StreamKind};
use crate::stream::{Appended, Item, Landed, Packed};

/// Leaves that are encoded at a time.
const LEAVES_AT_ONCE: usize = 64;

/// Where the map's leaves lie, and the blocks that say so, as the durable root has it.
#[derive(Clone, Default)]
pub(crate) struct MapPlaces {
    pub(crate) leaves: Vec<Place>,
    pub(crate) index: Vec<Place>,
}

/// The map's places, changed by one map checkpoint at a time.
pub(crate) type Places = Mutex<rank::MapCheckpoint, MapPlaces>;

impl Core {
    /// Makes the map durable as it is now. Afterwards recovery looks only into what is newer, and
    /// segments with free records are free.
    ///
    /// # Errors
    /// [`StoreError::Full`] when no segment can be had for it, which the reserve prevents unless
    /// copies have used it; [`StoreError::Device`]: the store has halted.
    pub(crate) fn checkpoint_map(&self, places: &Places) -> Result<(), StoreError> {
        self.checkpoint_map_out_of(places, usize::MAX)
    }

    /// As [`Core::checkpoint_map`]; what of the map lies in the segment `from` or behind it is
    /// written again, elsewhere.
    pub(crate) fn checkpoint_map_out_of(
        &self,
        places: &Places,
        from: usize,
    ) -> Result<(), StoreError> {
        let mut at = places.lock();
        let mut next = at.clone();
        next.leaves.resize(self.map.leaves(), Place::NONE);
        next.index.resize(self.map.leaves().div_ceil(LEAF_PLACES), Place::NONE);
        let (mut index, ckpt_seq, dirty) = self.begin(&at, from);
        let mut landed = Vec::new();
        let written =
            self.write_leaves(&dirty, &mut next, &mut index, &mut landed).and_then(|appended| {
                match appended {
                    Appended::All => self.write_index(&index, &mut next, &mut landed),
                    no_room => Ok(no_room),
                }
            })?;
        // R6: leaves before the root.
        self.sync()?;
        self.publish(&landed);
        if matches!(written, Appended::NoRoom) {
            self.give_up(&dirty, &index, &landed);
            let segments = self.segments.lock();
            let (live, units) = (segments.live(), segments.units * segments.list.len() as u64);
            let bytes = |units: u64| units * crate::ids::UNIT as u64;
            return Err(StoreError::Full { live_bytes: bytes(live), bytes: bytes(units) });
        }
        let mut root = self.root.lock();
        let named = Root { index: next.index.clone(), ckpt_seq, ..root.durable.clone() };
        self.write_root(&mut root, named)?;
        drop(root);
        self.retire(&at, &next, ckpt_seq);
        *at = next;
        self.stats.map_checkpoints.add(1);
        Ok(())
    }

    /// From where on chunks are newer than this checkpoint, which leaves are dirty, and which index
    /// blocks are written in any case. Segments of leaves that are more than half dead are emptied,
    /// and those behind `from`.
    fn begin(&self, at: &MapPlaces, from: usize) -> (BTreeSet<u32>, Seq, Vec<u32>) {
        let mut segments = self.segments.lock();
        let half = segments.units / 2;
        let sparse: BTreeSet<SegmentNo> = (0..)
            .zip(&segments.list)
            .filter(|(_, s)| s.status == Status::Closed && s.is_meta)
            .filter(|(number, s)| s.live < half || *number as usize >= from)
            .map(|(number, _)| SegmentNo(number))
            .collect();
        let is_sparse = |(_, place): &(u32, &Place)| {
            !place.is_none() && sparse.contains(&segments.segment_of(**place))
        };
        let leaves = (0..).zip(&at.leaves).filter(is_sparse);
        leaves.for_each(|(leaf, _)| self.map.touch(leaf));
        let index = (0..).zip(&at.index).filter(is_sparse).map(|(number, _)| number).collect();
        // Under the lock under which the map changes: what is published after this is newer than
        // the watermark, and its leaf is dirty again.
        let ckpt_seq = segments.watermark().max(segments.ckpt_seq);
        (segments.pages_since, segments.opened_since) = (0, 0);
        (index, ckpt_seq, self.map.take_dirty())
    }

    fn write_leaves(
        &self,
        dirty: &[u32],
        next: &mut MapPlaces,
        index: &mut BTreeSet<u32>,
        landed: &mut Vec<Landed>,
    ) -> Result<Appended, StoreError> {
        for part in dirty.chunks(LEAVES_AT_ONCE) {
            let encode = |leaf: u32, out: &mut [u8]| self.map.encode(leaf, out);
            let (appended, places) = self.write_map_blocks(Kind::Leaf, part, &encode, landed)?;
            if matches!(appended, Appended::NoRoom) {
                return Ok(appended);
            }
            for (leaf, place) in places {
                next.leaves[leaf as usize] = place;
                index.insert(leaf / LEAF_PLACES as u32);
            }
        }
        Ok(Appended::All)
    }

    fn write_index(
        &self,
        index: &BTreeSet<u32>,
        next: &mut MapPlaces,
        landed: &mut Vec<Landed>,
    ) -> Result<Appended, StoreError> {
        let numbers: Vec<u32> = index.iter().copied().collect();
        let leaves = next.leaves.clone();
        let encode = |number: u32, out: &mut [u8]| {
            let of = leaves.chunks(LEAF_PLACES).nth(number as usize).unwrap_or_default();
            encode_leaf(of.iter().copied(), out);
        };
        for part in numbers.chunks(LEAVES_AT_ONCE) {
            let (appended, places) = self.write_map_blocks(Kind::Index, part, &encode, landed)?;
            if matches!(appended, Appended::NoRoom) {
                return Ok(appended);
            }
            places.into_iter().for_each(|(i, place)| next.index[i as usize] = place);
        }
        Ok(Appended::All)
    }

    fn write_map_blocks(
        &self,
        kind: Kind,
        numbers: &[u32],
        encode: &dyn Fn(u32, &mut [u8]),
        landed: &mut Vec<Landed>,
    ) -> Result<(Appended, BTreeMap<u32, Place>), StoreError> {
        let block = |&number: &u32| {
            let mut bytes = vec![0; BLOCK_HEAD + LEAF_BYTES];
            encode(number, &mut bytes[BLOCK_HEAD..]);
            Item::Block(Packed::new(kind, number, Lsn::ZERO, Codec::Raw, bytes))
        };
        let mut items: Vec<Item> = numbers.iter().map(block).collect();
        let from = landed.len();
        let appended = self.append(StreamKind::Meta, &mut items, landed)?;
        let blocks = landed[from..].iter().flat_map(|chunk| &chunk.blocks);
        let places: BTreeMap<u32, Place> =
            blocks.map(|(head, place, _)| (head.number, *place)).collect();
        self.stats.map_bytes.add(places.values().map(|place| place.bytes() as u64).sum());
        Ok((appended, places))
    }

    /// There was no room for all of it: what was written is dead, and to be written again.
    fn give_up(&self, dirty: &[u32], index: &BTreeSet<u32>, landed: &[Landed]) {
        let mut segments = self.segments.lock();
        let blocks = landed.iter().flat_map(|chunk| &chunk.blocks);
        blocks.for_each(|(_, place, _)| segments.drop_live(*place));
        dirty.iter().for_each(|&leaf| self.map.touch(leaf));
        // Any leaf of an index block has the block written.
        index.iter().for_each(|&number| self.map.touch(number * LEAF_PLACES as u32));
        self.note_room(&segments);
    }

    /// R6: what only the root before named is dead now.
    fn retire(&self, old: &MapPlaces, new: &MapPlaces, ckpt_seq: Seq) {
        let mut segments = self.segments.lock();
        for (old, new) in [(&old.leaves, &new.leaves), (&old.index, &new.index)] {
            for (old, new) in old.iter().zip(new) {
                if old != new {
                    segments.drop_live(*old);
                }
            }
        }
        segments.checkpointed(ckpt_seq);
        self.note_room(&segments);
        drop(segments);
        self.published.notify_all();
    }
}
