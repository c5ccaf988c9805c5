//! Packing pages: by zstd at level 1, by LZ4, or not at all where that saves less than a sixteenth.
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
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
    table: CompressTable,
    /// LZ4 asks for room for the worst case before it begins.
    spare: Vec<u8>,
}

/// Packs and unpacks, from as many threads as there are.
#[derive(Default)]
pub struct Packing {
    idle: Mutex<rank::IdlePackers, Vec<Tools>>,
}

impl Packing {
    /// Packs `from` into `to` by `codec` when that saves a sixteenth at least; how, and into how
    /// many bytes. `to` is as long as `from`; raw bytes are copied.
    pub fn pack(&self, codec: Codec, from: &[u8], to: &mut [u8]) -> (Codec, usize) {
        let worthwhile = from.len() - from.len() / 16;
        let len = match codec {
            Codec::Raw => None,
            Codec::Zstd => self.with_tools(|tools| {
                // What does not fit is not worth it.
                tools.packer.compress(&mut to[..worthwhile], from, LEVEL).ok()
            }),
            Codec::Lz4 => self.with_tools(|tools| {
                tools.spare.resize(get_maximum_output_size(from.len()), 0);
                let packed = compress_into_with_table(from, &mut tools.spare, &mut tools.table);
                let len = packed.ok().filter(|len| *len <= worthwhile)?;
                to[..len].copy_from_slice(&tools.spare[..len]);
                Some(len)
            }),
        };
        match len {
            Some(len) => (codec, len),
            None => {
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
                self.with_tools(|tools| tools.unpacker.decompress(&mut *to, from)) == Ok(to.len())
            }
            Codec::Lz4 => decompress_into(from, to).is_ok_and(|len| len == to.len()),
        }
    }

    fn with_tools<T>(&self, act: impl FnOnce(&mut Tools) -> T) -> T {
        let idle = self.idle.lock().pop();
        let mut tools = idle.unwrap_or_else(|| Tools {
            packer: CCtx::create(),
            unpacker: DCtx::create(),
            table: CompressTable::small(),
            spare: Vec::new(),
        });
        let done = act(&mut tools);
        self.idle.lock().push(tools);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_packed_where_that_saves_a_sixteenth() {
        let packing = Packing::default();
        let mut dice = fastrand::Rng::with_seed(5);
        for wanted in [Codec::Zstd, Codec::Lz4, Codec::Raw] {
            for random in [0usize, 4000, 7000, 7600, 7700, 8192] {
                let mut page = vec![7; 8192];
                page[..random].fill_with(|| dice.u8(..));
                let mut packed = vec![0; page.len()];
                let (codec, len) = packing.pack(wanted, &page, &mut packed);
                let is_raw = wanted == Codec::Raw || random >= 7700;
                let expected = if is_raw { Codec::Raw } else { wanted };
                assert_eq!(codec, expected, "{random} bytes at random: {len}");
                assert!(len <= if is_raw { 8192 } else { 7680 });
                let mut again = vec![0; page.len()];
                assert!(packing.unpack(codec, &packed[..len], &mut again));
                assert!(again == page);
                assert!(!packing.unpack(codec, &packed[..len - 1], &mut again));
                assert!(!packing.unpack(codec, &packed[..len], &mut again[1..]));
                let mut longer = vec![0; page.len() + 1];
                assert!(!packing.unpack(codec, &packed[..len], &mut longer));
            }
        }
    }

    #[test]
    fn any_bytes_are_unpacked_or_refused() {
        let packing = Packing::default();
        let mut dice = fastrand::Rng::with_seed(6);
        let mut page = vec![0; 4096];
        for _ in 0..3000 {
            let mut bytes = vec![0; dice.usize(..600)];
            bytes.fill_with(|| dice.u8(..));
            let _ = packing.unpack(Codec::Lz4, &bytes, &mut page);
            let _ = packing.unpack(Codec::Zstd, &bytes, &mut page);
        }
    }
}
