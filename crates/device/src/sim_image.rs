//! The contents of a simulated file: chunks that clones share until one of them writes, so that a
//! crash test can copy a whole disk thousands of times.
use std::sync::Arc;

/// As small as the smallest page: with 32 KiB, copying made a crash test ten times slower.
const CHUNK_BYTES: usize = 4 << 10;

/// Bytes with a length. A chunk that was never written is absent and reads as zeros.
#[derive(Clone, Default)]
pub(crate) struct Image {
    chunks: Vec<Option<Arc<[u8; CHUNK_BYTES]>>>,
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
            steps in prop::collection::vec((0u8..4, 0u64..100_000, 0usize..70_000), 1..20)
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
