//! The contents of a simulated file: chunks that clones share until one of them writes, so that a
//! crash test can copy a whole disk thousands of times.
use std::collections::BTreeSet;
use std::sync::Arc;

/// As small as the smallest page: with 32 KiB, copying made a crash test ten times slower.
const CHUNK_BYTES: usize = 4 << 10;

/// Bytes with a length. A chunk that was never written is absent and reads as zeros.
#[derive(Clone, Default)]
pub(crate) struct Image {
    chunks: Vec<Option<Arc<[u8; CHUNK_BYTES]>>>,
    /// The chunks that have no space on the disk.
    holes: BTreeSet<usize>,
    len: u64,
}

impl Image {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Makes the image longer by zeros, or shorter.
    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            // What is cut off must not show again when the image grows later.
            let tail = (len as usize).next_multiple_of(CHUNK_BYTES).min(self.len as usize);
            self.write(len, &vec![0; tail - len as usize]);
        }
        self.len = len;
        self.chunks.resize((len as usize).div_ceil(CHUNK_BYTES), None);
        self.holes.retain(|&chunk| chunk < self.chunks.len());
    }

    /// Makes holes of the chunks of a range that lies inside.
    pub(crate) fn punch(&mut self, offset: u64, len: u64) {
        for chunk in chunks(offset, len) {
            self.chunks[chunk] = None;
            self.holes.insert(chunk);
        }
    }

    /// Gives the chunks of a range space again.
    pub(crate) fn reserve(&mut self, offset: u64, len: u64) {
        for chunk in chunks(offset, len) {
            self.holes.remove(&chunk);
        }
    }

    /// How many bytes of a range have no space.
    pub(crate) fn hole_bytes(&self, offset: u64, len: u64) -> u64 {
        (self.holes.range(chunks(offset, len)).count() * CHUNK_BYTES) as u64
    }

    /// The bytes that have space.
    pub(crate) fn allocated(&self) -> u64 {
        self.len.saturating_sub((self.holes.len() * CHUNK_BYTES) as u64)
    }

    /// Fills `buf` from `offset`; the range lies inside.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) {
        debug_assert!(offset + buf.len() as u64 <= self.len);
        for (chunk, within, piece) in pieces(offset, buf.len()) {
            let to = &mut buf[piece];
            match &self.chunks[chunk] {
                Some(bytes) => to.copy_from_slice(&bytes[within..within + to.len()]),
                None => to.fill(0),
            }
        }
    }

    /// Overwrites from `offset`; what lies beyond the end is dropped.
    pub(crate) fn write(&mut self, offset: u64, buf: &[u8]) {
        let inside = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        for (chunk, within, piece) in pieces(offset, inside) {
            let from = &buf[piece];
            if !self.holes.is_empty() {
                self.holes.remove(&chunk);
            }
            let slot = &mut self.chunks[chunk];
            if slot.as_mut().is_none_or(|bytes| Arc::get_mut(bytes).is_none())
                && let Ok(whole) = <[u8; CHUNK_BYTES]>::try_from(from)
            {
                // Nothing of a shared chunk need be copied.
                *slot = Some(Arc::new(whole));
                continue;
            }
            let bytes = slot.get_or_insert_with(|| Arc::new([0; CHUNK_BYTES]));
            Arc::make_mut(bytes)[within..within + from.len()].copy_from_slice(from);
        }
    }

    /// All bytes.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(0, &mut bytes);
        bytes
    }
}

/// The chunks of a range of whole ones.
fn chunks(offset: u64, len: u64) -> std::ops::Range<usize> {
    offset as usize / CHUNK_BYTES..(offset + len) as usize / CHUNK_BYTES
}

/// A range as pieces within chunks: the chunk, where in it, and which part of the caller's buffer.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let position = offset as usize + done;
        let (chunk, within) = (position / CHUNK_BYTES, position % CHUNK_BYTES);
        let piece = done..len.min(done + CHUNK_BYTES - within);
        done = piece.end;
        (!piece.is_empty()).then_some((chunk, within, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_vector(
            steps in prop::collection::vec((0u8..6, 0u64..100_000, 0usize..70_000), 1..20)
        ) {
            let (mut image, mut model) = (Image::default(), Vec::new());
            let mut before = (image.clone(), model.clone());
            for (number, (step, at, len)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        image.set_len(at);
                        model.resize(at as usize, 0);
                    }
                    1 => before = (image.clone(), model.clone()),
                    2 | 3 => {
                        let chunk = CHUNK_BYTES as u64;
                        let from = (at / chunk * chunk).min(image.len() / chunk * chunk);
                        let len = (len as u64).min(image.len() - from) / chunk * chunk;
                        if step == 2 {
                            image.punch(from, len);
                            model[from as usize..(from + len) as usize].fill(0);
                            prop_assert_eq!(image.hole_bytes(from, len), len);
                        } else {
                            image.reserve(from, len);
                            prop_assert_eq!(image.hole_bytes(from, len), 0);
                        }
                    }
                    _ => {
                        let bytes = vec![number as u8 + 1; len];
                        image.write(at, &bytes);
                        let from = model.len().min(at as usize);
                        let to = model.len().min(at as usize + len);
                        model[from..to].copy_from_slice(&bytes[..to - from]);
                    }
                }
                prop_assert_eq!(&image.to_vec(), &model);
            }
            // The copy taken earlier shares chunks but does not see later writes.
            prop_assert_eq!(before.0.to_vec(), before.1);
        }
    }
}
