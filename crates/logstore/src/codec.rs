//! Packing pages: zstd at level 1, or not at all where that saves less than a sixteenth.
use weir_base::lock::Mutex;
use weir_base::rank;
use zstd_safe::{CCtx, DCtx};

use crate::format::Codec;

/// What fast pages need; higher levels gain 2 % for more than twice the time.
const LEVEL: i32 = 1;

/// What packs and unpacks; threads borrow it, since it is half a megabyte.
struct Tools {
    packer: CCtx<'static>,
    unpacker: DCtx<'static>,
}

/// Packs and unpacks, from as many threads as there are.
#[derive(Default)]
pub struct Packing {
    idle: Mutex<rank::IdlePackers, Vec<Tools>>,
}

impl Packing {
    /// Packs `from` into `to` when that saves a sixteenth at least; how, and into how many bytes.
    /// `to` is as long as `from`; raw bytes are copied.
    pub fn pack(&self, from: &[u8], to: &mut [u8]) -> (Codec, usize) {
        let worthwhile = from.len() - from.len() / 16;
        let mut tools = self.take();
        let packed = tools.packer.compress(&mut to[..worthwhile], from, LEVEL);
        self.idle.lock().push(tools);
        match packed {
            Ok(len) => (Codec::Zstd, len),
            // It does not fit: not worth it.
            Err(_) => {
                to[..from.len()].copy_from_slice(from);
                (Codec::Raw, from.len())
            }
        }
    }

    /// Unpacks `from` into all of `to`; `false` when that is not what was packed.
    #[must_use]
    pub fn unpack(&self, codec: Codec, from: &[u8], to: &mut [u8]) -> bool {
        match codec {
            Codec::Raw => {
                let is_whole = from.len() == to.len();
                if is_whole {
                    to.copy_from_slice(from);
                }
                is_whole
            }
            Codec::Zstd => {
                let mut tools = self.take();
                let len = tools.unpacker.decompress(&mut *to, from);
                self.idle.lock().push(tools);
                len == Ok(to.len())
            }
        }
    }

    fn take(&self) -> Tools {
        let idle = self.idle.lock().pop();
        let fresh = || Tools { packer: CCtx::create(), unpacker: DCtx::create() };
        idle.unwrap_or_else(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_packed_where_that_saves_a_sixteenth() {
        let packing = Packing::default();
        let mut dice = fastrand::Rng::with_seed(5);
        for random in [0usize, 4000, 7000, 7600, 7700, 8192] {
            let mut page = vec![7; 8192];
            page[..random].fill_with(|| dice.u8(..));
            let mut packed = vec![0; page.len()];
            let (codec, len) = packing.pack(&page, &mut packed);
            assert_eq!(codec == Codec::Raw, random >= 7700, "{random} bytes at random: {len}");
            assert!(len <= if codec == Codec::Raw { 8192 } else { 7680 });
            let mut again = vec![0; page.len()];
            assert!(packing.unpack(codec, &packed[..len], &mut again));
            assert!(again == page);
            assert!(!packing.unpack(codec, &packed[..len - 1], &mut again));
            assert!(!packing.unpack(codec, &packed[..len], &mut again[1..]));
        }
    }
}
