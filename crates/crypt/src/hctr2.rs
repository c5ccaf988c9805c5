//! HCTR2: a cipher for whole units of a disk, as long in as out.
//!
//! Each bit of a unit depends on every bit of what is enciphered, and on where the unit lies: what
//! was changed, cut or moved by a hand without the key deciphers to noise, which the checksum, the
//! number and the name that every page and every block of the log carry do not survive (encode
//! then encipher: Bellare and Rogaway 2000). It needs no nonce and no room for a tag, so a unit
//! lies where it would lie without it, and a write that tears tears at the same place.
//!
//! Source: Crowley, Huckleberry, Biggers: Length-preserving encryption with HCTR2, 2021 (IACR
//! ePrint 2021/1441). AES and POLYVAL are the `aes` and `polyval` crates', which use the
//! processor's instructions; the mode is here because the crate that has it takes six times as long
//! (`docs/decisions/encryption.md`).
use aes::Aes256;
use aes::cipher::typenum::U16;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;

type Block = Array<u8, U16>;

/// A unit's length is a multiple of this many bytes.
pub const UNIT_STEP: usize = 16;
/// Blocks whose key stream is made at once: as many as processors work on side by side, several
/// times.
const WIDE: usize = 32;

/// The cipher with its key. Copies of the key are overwritten when it is dropped.
pub struct Hctr2 {
    aes: Aes256,
    /// The hash of a tweak's length, where each hash goes on.
    hash: Polyval,
    mask: u128,
}

impl Hctr2 {
    /// Prepares the cipher for a key.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Hctr2 {
        let aes = Aes256::new(&(*key).into());
        let derive = |number: u128| {
            let mut block: Block = number.to_le_bytes().into();
            aes.encrypt_block(&mut block);
            block
        };
        let (hash_key, mask) = (derive(0), number_of(&derive(1)));
        let mut hash = Polyval::new(&hash_key);
        // A tweak has 128 bits, and a unit a whole number of blocks.
        hash.update(&[(2u128 * 128 + 2).to_le_bytes().into()]);
        Hctr2 { aes, hash, mask }
    }

    /// Enciphers `unit` in place: one or more blocks of 16 bytes.
    ///
    /// # Panics
    /// When its length is no multiple of [`UNIT_STEP`], or zero.
    pub fn encrypt(&self, tweak: u128, unit: &mut [u8]) {
        self.convert(tweak, unit, |aes, block| aes.encrypt_block(block));
    }

    /// Deciphers `unit` in place.
    ///
    /// # Panics
    /// As [`Hctr2::encrypt`].
    pub fn decrypt(&self, tweak: u128, unit: &mut [u8]) {
        self.convert(tweak, unit, |aes, block| aes.decrypt_block(block));
    }

    fn convert(&self, tweak: u128, unit: &mut [u8], one: impl Fn(&Aes256, &mut Block)) {
        let (blocks, odd) = Block::slice_as_chunks_mut(unit);
        assert!(odd.is_empty(), "a unit of {} bytes over", odd.len());
        let Some((first, rest)) = blocks.split_first_mut() else { panic!("a unit of no bytes") };
        let tweak: Block = tweak.to_le_bytes().into();
        let before = number_of(first) ^ self.hash_of(tweak, rest);
        let mut block: Block = before.to_le_bytes().into();
        one(&self.aes, &mut block);
        let after = number_of(&block);
        self.stream(before ^ after ^ self.mask, rest);
        *first = (after ^ self.hash_of(tweak, rest)).to_le_bytes().into();
    }

    fn hash_of(&self, tweak: Block, rest: &[Block]) -> u128 {
        let mut hash = self.hash.clone();
        hash.update(&[tweak]);
        hash.update(rest);
        number_of(&hash.finalize())
    }

    /// XCTR: adds the key stream that begins with `start`.
    fn stream(&self, start: u128, rest: &mut [Block]) {
        let mut stream = [Block::default(); WIDE];
        let mut number = 0;
        for part in rest.chunks_mut(WIDE) {
            let stream = &mut stream[..part.len()];
            for block in stream.iter_mut() {
                number += 1;
                *block = (start ^ number).to_le_bytes().into();
            }
            self.aes.encrypt_blocks(stream);
            for (block, stream) in part.iter_mut().zip(stream.iter()) {
                *block = (number_of(block) ^ number_of(stream)).to_le_bytes().into();
            }
        }
    }
}

fn number_of(block: &Block) -> u128 {
    u128::from_le_bytes((*block).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    /// Vectors that the authors of HCTR2 publish, those with a tweak of 16 bytes and whole blocks:
    /// key, tweak, plaintext, ciphertext.
    const VECTORS: &[[&str; 4]] = &include!("hctr2_vectors.in");

    #[test]
    fn published_vectors_come_out() {
        assert!(VECTORS.len() >= 4);
        for [key, tweak, plain, cipher] in VECTORS {
            let hctr2 = Hctr2::new(&bytes(key).try_into().expect("32 bytes"));
            let tweak = u128::from_le_bytes(bytes(tweak).try_into().expect("16 bytes"));
            let mut unit = bytes(plain);
            hctr2.encrypt(tweak, &mut unit);
            assert_eq!(unit, bytes(cipher));
            hctr2.decrypt(tweak, &mut unit);
            assert_eq!(unit, bytes(plain));
        }
    }

    #[test]
    fn a_changed_bit_changes_the_whole_unit() {
        let hctr2 = Hctr2::new(&[7; 32]);
        for len in [16, 512, 528, 8192, 16384] {
            let plain: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let mut cipher = plain.clone();
            hctr2.encrypt(5, &mut cipher);
            for bit in (0..len * 8).step_by(len * 8 / 13) {
                let mut changed = cipher.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                hctr2.decrypt(5, &mut changed);
                let alike = changed.iter().zip(&plain).filter(|(a, b)| a == b).count();
                assert!(alike <= len / 64 + 4, "{alike} of {len} bytes are alike, bit {bit}");
            }
            let mut elsewhere = cipher.clone();
            hctr2.decrypt(6, &mut elsewhere);
            assert_ne!(elsewhere, plain);
        }
    }
}
