//! Reading a page while another thread may be writing it. The only unsafe code of this crate.
//!
//! # Hazard analysis
//! * **Unmapped memory.** `RawPage::new` asks that the range stay mapped and readable while the
//!   value and its copies are used. Frames of the pool are never unmapped while a reader can hold
//!   one; their contents may change at will.
//! * **Torn and stale reads.** Every load is a volatile load of at most eight bytes: the compiler
//!   neither repeats nor invents it, so a value once read is one value (no "read twice, checked
//!   once"). It may be garbage. Every offset and length computed from it is checked against the
//!   page before the next load (PAGE-5), and the caller throws the result away unless the page's
//!   version is unchanged afterwards.
//! * **The memory model.** A volatile load that races with a plain store is not blessed by the
//!   language's model; it is what every sequence lock does on today's compilers and machines, for
//!   want of an atomic memcpy (`docs/decisions/raw-pages.md`: what atomics cost). No reference
//!   to the changing bytes is ever made, so no aliasing promise is broken, and integers have no
//!   invalid bit patterns.
//! * **Long copies.** On x86-64 they are one string instruction (`rep movsb`), which no compiler
//!   looks into: bytes may be torn, as between volatile loads, and that is all. Its loads are
//!   ordered before later loads, as all are there (Linux copies by it under its sequence locks).
//! * **Ordering.** The loads here are relaxed. The caller's version check must put an acquire fence
//!   before its second read of the version.
use crate::bytes::{Bytes, clamp};
use std::cmp::Ordering;
use std::ptr;

/// From here on a string instruction copies faster than loads of eight bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const STRING_BYTES_MIN: usize = 512;

/// A page in memory that may change while it is read. What is read counts only if the page's
/// version turns out to be unchanged afterwards; until then it may be garbage, but nothing here
/// panics, loops or leaves the page.
#[derive(Clone, Copy)]
pub struct RawPage {
    start: *const u8,
    size_bytes: usize,
}

/// An integer at any address: a volatile load needs the alignment of its type, and this type's is
/// one.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Unaligned<T: Copy>(T);

impl RawPage {
    /// The page of `size_bytes` bytes at `start`.
    ///
    /// # Safety
    /// `start..start + size_bytes` must stay mapped and readable for as long as this value or a
    /// copy of it is used.
    #[must_use]
    pub unsafe fn new(start: *const u8, size_bytes: usize) -> RawPage {
        RawPage { start, size_bytes }
    }

    /// Asks the processor to bring the page nearer, without waiting for it.
    pub fn prefetch(self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for off in (0..self.size_bytes).step_by(64) {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: a hint, which touches nothing; the address lies inside the page.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(self.start.add(off).cast()) };
        }
    }

    /// Loads a `T` at `off`, or `None` when it does not lie inside the page.
    #[inline(always)]
    fn load<T: Copy>(self, off: usize) -> Option<T> {
        if off > self.size_bytes || self.size_bytes - off < size_of::<T>() {
            return None;
        }
        // SAFETY: the bytes lie inside the page (checked above), which `new` was promised to stay
        // readable; `T` is an integer here, valid for every bit pattern; the packed wrapper has
        // alignment one.
        Some(unsafe { self.load_unchecked(off) })
    }

    /// # Safety
    /// `off + size_of::<T>()` must not exceed the page, and `T` must be valid for every bit
    /// pattern.
    #[inline(always)]
    unsafe fn load_unchecked<T: Copy>(self, off: usize) -> T {
        // SAFETY: in range by the caller's promise, readable by the promise made to `new`,
        // alignment one.
        unsafe { ptr::read_volatile(self.start.add(off).cast::<Unaligned<T>>()) }.0
    }

    /// Copies `len` bytes out: many at once, few eight at a time.
    ///
    /// # Safety
    /// `off + len` must not exceed the page; `out` must be writable for `len` bytes and must not
    /// lie in the page.
    #[inline]
    unsafe fn copy_unchecked(self, off: usize, out: *mut u8, len: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if len >= STRING_BYTES_MIN {
            // SAFETY: both sides are in range by the caller's promise, and do not overlap; the
            // direction flag is clear wherever Rust code runs.
            unsafe {
                std::arch::asm!(
                    "rep movsb",
                    inout("rcx") len => _,
                    inout("rsi") self.start.add(off) => _,
                    inout("rdi") out => _,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        let mut done = 0;
        while len - done >= 8 {
            // SAFETY: `done + 8 <= len`, so both sides are in range by the caller's promise.
            unsafe {
                let word = self.load_unchecked::<u64>(off + done);
                ptr::write_unaligned(out.add(done).cast::<u64>(), word);
            }
            done += 8;
        }
        while done < len {
            // SAFETY: `done < len`, so both sides are in range by the caller's promise.
            unsafe { out.add(done).write(self.load_unchecked::<u8>(off + done)) };
            done += 1;
        }
    }
}

impl Bytes for RawPage {
    #[inline]
    fn size(self) -> usize {
        self.size_bytes
    }
    #[inline(always)]
    fn u8_at(self, off: usize) -> u8 {
        self.load::<u8>(off).unwrap_or(0)
    }
    #[inline(always)]
    fn u16_at(self, off: usize) -> u16 {
        u16::from_le(self.load(off).unwrap_or(0))
    }
    #[inline(always)]
    fn u32_at(self, off: usize) -> u32 {
        u32::from_le(self.load(off).unwrap_or(0))
    }
    #[inline(always)]
    fn u64_at(self, off: usize) -> u64 {
        u64::from_le(self.load(off).unwrap_or(0))
    }

    #[inline]
    fn copy_to(self, off: usize, out: &mut [u8]) {
        let (off, len) = clamp(off, out.len(), self.size_bytes);
        let (have, missing) = out.split_at_mut(len);
        // SAFETY: `clamp` keeps `off + len` inside the page; `have` is `len` bytes of another
        // allocation.
        unsafe { self.copy_unchecked(off, have.as_mut_ptr(), len) };
        missing.fill(0);
    }

    #[inline]
    fn append_to(self, off: usize, len: usize, out: &mut Vec<u8>) {
        let (off, len) = clamp(off, len, self.size_bytes);
        out.reserve(len);
        let old_len = out.len();
        // SAFETY: `clamp` keeps `off + len` inside the page; `reserve` made `len` writable bytes
        // behind the vector's end, and the copy fills every one of them before the length says so.
        unsafe {
            self.copy_unchecked(off, out.as_mut_ptr().add(old_len), len);
            out.set_len(old_len + len);
        }
    }

    #[inline]
    fn compare(self, off: usize, len: usize, other: &[u8]) -> Ordering {
        let (off, len) = clamp(off, len, self.size_bytes);
        let common = len.min(other.len());
        let mut words = other[..common].chunks_exact(8);
        let mut at = off;
        for word in &mut words {
            let theirs = u64::from_le_bytes(word.try_into().unwrap_or_default());
            let ours = self.u64_at(at);
            if ours != theirs {
                return ours.swap_bytes().cmp(&theirs.swap_bytes());
            }
            at += 8;
        }
        for &theirs in words.remainder() {
            let ours = self.u8_at(at);
            if ours != theirs {
                return ours.cmp(&theirs);
            }
            at += 1;
        }
        len.cmp(&other.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_slice() {
        let mut rng = fastrand::Rng::with_seed(1);
        let page: Vec<u8> = (0..200).map(|_| rng.u8(0..3)).collect();
        // SAFETY: `page` outlives `raw` and no thread writes it.
        let raw = unsafe { RawPage::new(page.as_ptr(), page.len()) };
        let held = page.as_slice();
        for _ in 0..20_000 {
            let (off, len) = (rng.usize(0..220), rng.usize(0..40));
            assert_eq!(raw.u8_at(off), held.u8_at(off));
            assert_eq!(raw.u16_at(off), held.u16_at(off));
            assert_eq!(raw.u32_at(off), held.u32_at(off));
            assert_eq!(raw.u64_at(off), held.u64_at(off));
            let (mut a, mut b) = (vec![9; len], vec![9; len]);
            raw.copy_to(off, &mut a);
            held.copy_to(off, &mut b);
            assert_eq!(a, b);
            raw.append_to(off, len, &mut a);
            held.append_to(off, len, &mut b);
            assert_eq!(a, b);
            // Something alike, so that the comparison gets past the first bytes.
            let mut other = page[off.min(180)..].to_vec();
            other.truncate(rng.usize(0..30));
            if let Some(byte) = other.last_mut().filter(|_| rng.bool()) {
                *byte = rng.u8(..);
            }
            assert_eq!(raw.compare(off, len, &other), held.compare(off, len, &other));
        }
        assert_eq!(raw.u64_at(usize::MAX), 0);
        assert_eq!(raw.compare(usize::MAX, usize::MAX, b"x"), Ordering::Less);
    }
}
