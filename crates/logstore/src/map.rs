//! The map from page numbers to places, all of it in memory: 8 bytes a page, in leaves as they are
//! written.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_base::PageNo;
use weir_base::lock::RwLock;
use weir_base::rank;

use crate::format::{LEAF_PLACES, encode_leaf};
use crate::ids::Place;

struct Leaf {
    places: [AtomicU64; LEAF_PLACES],
    /// Changed since it was encoded.
    is_dirty: AtomicBool,
}

impl Default for Leaf {
    fn default() -> Self {
        let places = std::array::from_fn(|_| AtomicU64::new(0));
        Leaf { places, is_dirty: AtomicBool::new(false) }
    }
}

/// Where each page lies. Read by all; changed only under the lock of the segments, so that a map
/// checkpoint sees a change and that its leaf is dirty, or neither.
#[derive(Default)]
pub(crate) struct Map {
    leaves: RwLock<rank::PageMap, Vec<Arc<Leaf>>>,
}

impl Map {
    /// Room for so many pages.
    pub(crate) fn grow(&self, pages: u32) {
        let wanted = (pages as usize).div_ceil(LEAF_PLACES);
        let mut leaves = self.leaves.write();
        while leaves.len() < wanted {
            leaves.push(Arc::new(Leaf::default()));
        }
    }

    pub(crate) fn leaves(&self) -> usize {
        self.leaves.read().len()
    }

    pub(crate) fn get(&self, page: PageNo) -> Place {
        // A look at one number: shorter than to count another user of the leaf.
        let leaves = self.leaves.read();
        let Some(leaf) = leaves.get(page.0 as usize / LEAF_PLACES) else { return Place::NONE };
        Place::from_bits(leaf.places[page.0 as usize % LEAF_PLACES].load(Ordering::Acquire))
    }

    /// Sets a page's place and returns the one before. A page beyond the map's end stays nowhere.
    pub(crate) fn set(&self, page: PageNo, place: Place) -> Place {
        let leaves = self.leaves.read();
        let Some(leaf) = leaves.get(page.0 as usize / LEAF_PLACES) else { return Place::NONE };
        leaf.is_dirty.store(true, Ordering::Relaxed);
        let old = &leaf.places[page.0 as usize % LEAF_PLACES];
        Place::from_bits(old.swap(place.bits(), Ordering::AcqRel))
    }

    /// Has a leaf written by the next map checkpoint.
    pub(crate) fn touch(&self, leaf: u32) {
        if let Some(leaf) = self.leaves.read().get(leaf as usize) {
            leaf.is_dirty.store(true, Ordering::Relaxed);
        }
    }

    /// The dirty leaves, which are not so any more.
    pub(crate) fn take_dirty(&self) -> Vec<u32> {
        let leaves = self.leaves.read();
        let dirty = |(_, leaf): &(u32, &Arc<Leaf>)| leaf.is_dirty.swap(false, Ordering::Relaxed);
        (0..).zip(leaves.iter()).filter(dirty).map(|(number, _)| number).collect()
    }

    /// A leaf as bytes.
    pub(crate) fn encode(&self, leaf: u32, out: &mut [u8]) {
        let leaf = self.leaves.read().get(leaf as usize).cloned().unwrap_or_default();
        let load = |place: &AtomicU64| Place::from_bits(place.load(Ordering::Acquire));
        encode_leaf(leaf.places.iter().map(load), out);
    }

    /// Calls `visit` with every page that has a place.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(PageNo, Place)) {
        for (number, leaf) in (0..).zip(self.leaves.read().iter()) {
            for (i, place) in (0..).zip(&leaf.places) {
                let place = Place::from_bits(place.load(Ordering::Relaxed));
                if !place.is_none() {
                    visit(PageNo(number * LEAF_PLACES as u32 + i), place);
                }
            }
        }
    }
}
