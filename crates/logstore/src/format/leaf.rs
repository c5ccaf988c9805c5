//! A leaf of the map, and a block of places of leaves: 512 places.
use crate::ids::Place;

/// Places in a leaf.
pub const LEAF_PLACES: usize = 512;
/// Bytes of a leaf.
pub const LEAF_BYTES: usize = LEAF_PLACES * 8;

/// As bytes.
///
/// # Panics
/// When `out` is not [`LEAF_BYTES`] long.
pub fn encode_leaf(places: impl IntoIterator<Item = Place>, out: &mut [u8]) {
    assert_eq!(out.len(), LEAF_BYTES, "a leaf's bytes");
    out.fill(0);
    for (to, place) in out.chunks_exact_mut(8).zip(places) {
        to.copy_from_slice(&place.bits().to_le_bytes());
    }
}

/// The places in a leaf's bytes; `None` when they are not so many.
#[must_use]
pub fn decode_leaf(bytes: &[u8]) -> Option<Vec<Place>> {
    if bytes.len() != LEAF_BYTES {
        return None;
    }
    let place = |bytes: &[u8]| {
        let bits = u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        // Nowhere, or somewhere with a length.
        let place = Place::from_bits(bits);
        (place.is_none() || place.units() > 0).then_some(place)
    };
    bytes.chunks_exact(8).map(place).collect()
}
