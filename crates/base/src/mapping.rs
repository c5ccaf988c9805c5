//! Large memory straight from the kernel, zero-filled and backed by real pages only where it is
//! touched. One of the few files with `unsafe`.
use std::alloc::{Layout, handle_alloc_error};
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::LazyLock;

/// The kernel maps pages of so many bytes (the least: others are multiples of it).
const ALIGN: usize = 4096;

/// The size in bytes of the pages that this kernel maps: 4 KiB on most machines, 16 or 64 KiB on
/// some with 64-bit ARM or POWER.
static KERNEL_PAGE: LazyLock<usize> = LazyLock::new(|| {
    // SAFETY: a question that has an answer everywhere.
    let said = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(said).unwrap_or(ALIGN).max(ALIGN)
});

/// Those of the kernel's pages, of `page` bytes, that lie wholly in a stretch: advice for a part of
/// one is refused, or taken for the whole of it, other bytes included.
fn whole_pages(stretch: &Range<usize>, page: usize) -> Range<usize> {
    let from = stretch.start.next_multiple_of(page);
    from..(stretch.end / page * page).max(from)
}

/// The size and alignment of a huge page.
pub const HUGE_PAGE: usize = 2 << 20;

/// Zero-filled memory that others than its owner may change, under rules of their own: it is had as
/// addresses.
pub struct Mapping {
    start: *mut u8,
    len: usize,
    /// What was mapped: more, so that the beginning could be aligned.
    mapped: (*mut u8, usize),
}

// SAFETY: plain memory; what is put into it (atomics, frames under latches) governs its sharing.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Memory that is never touched counts for nothing. Miri knows no such flag.
const NORESERVE: libc::c_int = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };

impl Mapping {
    /// Maps `len` bytes; `huge` asks for huge pages, which spare most of the TLB misses of random
    /// access, and nearly all of the page faults.
    ///
    /// # Errors
    /// What the kernel says: usually that there is no room for it.
    pub fn zeroed(len: usize, huge: bool) -> io::Result<Self> {
        let len = len.max(ALIGN);
        let spare = if huge && len >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        // SAFETY: an anonymous private mapping at an address of the kernel's choice.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len + spare,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped: *mut u8 = mapped.cast();
        let skipped = if spare > 0 { mapped.align_offset(HUGE_PAGE) } else { 0 };
        // SAFETY: less than a huge page on, and that much more was mapped.
        let start = unsafe { mapped.add(skipped) };
        // Miri knows no advice.
        if huge && !cfg!(miri) {
            // SAFETY: the range was just mapped. Advice only: a refusal costs speed, nothing else.
            unsafe { libc::madvise(start.cast(), len, libc::MADV_HUGEPAGE) };
        }
        Ok(Mapping { start, len, mapped: (mapped, len + spare) })
    }

    /// The address of the first byte, for an owner that keeps no more than that; of a mapping that
    /// did not ask for huge pages.
    pub(crate) fn into_start(self) -> *mut u8 {
        debug_assert!(self.start == self.mapped.0, "nothing was skipped");
        std::mem::ManuallyDrop::new(self).start
    }

    /// The mapping of `len` bytes again that [`Mapping::into_start`] gave the address of.
    ///
    /// # Safety
    /// It did, the mapping had `len` bytes, and there is no other owner.
    pub(crate) unsafe fn from_start(start: *mut u8, len: usize) -> Mapping {
        Mapping { start, len, mapped: (start, len) }
    }

    /// The address of the first byte.
    #[inline]
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// The address of a byte.
    ///
    /// # Panics
    /// When it lies outside.
    #[inline]
    #[must_use]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "inside the mapping");
        // SAFETY: inside the mapping, checked above.
        unsafe { self.start.add(offset) }
    }

    /// Has the kernel back a stretch with pages now, as touching each of them would; what is in
    /// them stays. Best effort: what it cannot do comes with the first touch.
    ///
    /// # Panics
    /// When the stretch lies outside, or does not begin and end at multiples of 4096.
    pub fn populate(&self, stretch: Range<usize>) {
        let stretch = self.whole_pages(&stretch);
        // Miri knows no advice.
        if stretch.is_empty() || cfg!(miri) {
            return;
        }
        let len = stretch.end - stretch.start;
        // SAFETY: inside the mapping; the call changes no byte of it.
        unsafe { libc::madvise(self.at(stretch.start).cast(), len, libc::MADV_POPULATE_WRITE) };
    }

    /// Gives the memory of a stretch back to the kernel; it stays mapped, and is zeros. Best
    /// effort: what the kernel does not take stays as it is, and so does what shares one of its
    /// pages with bytes outside.
    ///
    /// # Safety
    /// No reference to these bytes lives, and no thread relies on what is in them.
    ///
    /// # Panics
    /// When the stretch lies outside, or does not begin and end at multiples of 4096.
    pub unsafe fn give_back(&self, stretch: Range<usize>) {
        let stretch = self.whole_pages(&stretch);
        if stretch.is_empty() {
            return;
        }
        let len = stretch.end - stretch.start;
        // SAFETY: inside the mapping, which is private and anonymous; of no use to any thread by
        // the caller's promise.
        unsafe { libc::madvise(self.at(stretch.start).cast(), len, libc::MADV_DONTNEED) };
    }

    /// Where the kernel's page ends that a stretch up to `offset` ends in, or the mapping.
    #[must_use]
    pub fn end_of_page(&self, offset: usize) -> usize {
        offset.next_multiple_of(*KERNEL_PAGE).min(self.len)
    }

    fn whole_pages(&self, stretch: &Range<usize>) -> Range<usize> {
        assert!(stretch.start <= stretch.end && stretch.end <= self.len, "inside the mapping");
        assert!(stretch.start.is_multiple_of(ALIGN) && stretch.end.is_multiple_of(ALIGN));
        whole_pages(stretch, *KERNEL_PAGE)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `zeroed`, unmapped once; no reference outlives the owner.
        unsafe { libc::munmap(self.mapped.0.cast(), self.mapped.1) };
    }
}

/// A fixed-size, zero-filled byte buffer; one that fills most of a huge page lies on such pages,
/// where the system has them.
#[derive(Default)]
pub struct LargeBuf(Option<Mapping>);

/// Filling a huge page with zeros costs more than the faults of fewer bytes.
const HUGE_FROM: usize = HUGE_PAGE / 2;

impl LargeBuf {
    /// A buffer of at least `len` bytes: as many as its pages hold.
    ///
    /// # Panics
    /// When `len` is larger than an address space can hold. When there is no memory the process
    /// ends, as it does wherever there is none.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let is_huge = len >= HUGE_FROM;
        let page = if is_huge { HUGE_PAGE } else { ALIGN };
        let len = len.next_multiple_of(page);
        let layout = Layout::from_size_align(len, page).expect("it fits the address space");
        let memory = Mapping::zeroed(len, is_huge);
        LargeBuf(Some(memory.unwrap_or_else(|_| handle_alloc_error(layout))))
    }
}

impl Deref for LargeBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let Some(memory) = &self.0 else { return &[] };
        // SAFETY: mapped and initialised for `len` bytes for as long as self lives; no other thread
        // has the mapping.
        unsafe { std::slice::from_raw_parts(memory.start, memory.len) }
    }
}

impl DerefMut for LargeBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        let Some(memory) = &self.0 else { return &mut [] };
        // SAFETY: as in `deref`; `&mut self` excludes every other view.
        unsafe { std::slice::from_raw_parts_mut(memory.start, memory.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_aligned_and_writable_to_its_end() {
        assert!(LargeBuf::default().is_empty());
        let sizes = [(1, 4096, 4096), (HUGE_FROM, HUGE_PAGE, HUGE_PAGE)];
        for (len, expected, page) in sizes.into_iter().chain([(5 << 20, 6 << 20, HUGE_PAGE)]) {
            let mut buf = LargeBuf::zeroed(len);
            assert_eq!((buf.len(), buf.as_ptr() as usize % page), (expected, 0));
            // At once: one by one it is minutes under Miri.
            assert!(buf[..] == vec![0; expected][..]);
            buf.fill(7);
        }
        let small = Mapping::zeroed(5, true).expect("memory");
        assert_eq!(small.at(4095) as usize - small.at(0) as usize, 4095);
    }

    #[test]
    fn what_is_populated_is_there_and_unchanged() {
        let size = *KERNEL_PAGE;
        let memory = Mapping::zeroed(4 * size, false).expect("memory");
        let byte = |page: usize| {
            // SAFETY: inside the mapping, which this thread alone uses.
            unsafe { &mut *memory.at(page * size) }
        };
        let is_there = |page: usize| {
            let mut there = 0;
            // SAFETY: a page of the mapping, and the answer for it is one byte.
            let asked = unsafe { libc::mincore(memory.at(page * size).cast(), size, &mut there) };
            asked == 0 && there & 1 == 1
        };
        *byte(1) = 7;
        memory.populate(size..3 * size);
        assert_eq!((*byte(1), *byte(2)), (7, 0));
        // Kernels before 5.14 do not know the advice.
        if !cfg!(miri) && is_there(1) {
            assert!(!is_there(0) && !is_there(3));
        }
        memory.populate(0..0);
    }

    #[test]
    fn advice_is_for_whole_pages_of_the_kernel() {
        const K: usize = 1 << 10;
        // (the kernel's page, the stretch, what of it is advised)
        let rows = [
            (4 * K, 8 * K..24 * K, 8 * K..24 * K),
            (4 * K, 0..0, 0..0),
            (16 * K, 16 * K..32 * K, 16 * K..32 * K),
            (16 * K, 8 * K..40 * K, 16 * K..32 * K),
            // A frame of 16 KiB in a page of 64 KiB: its neighbours stay.
            (64 * K, 64 * K..80 * K, 64 * K..64 * K),
            (64 * K, 16 * K..32 * K, 64 * K..64 * K),
            (64 * K, 48 * K..208 * K, 64 * K..192 * K),
        ];
        for (page, stretch, advised) in rows {
            assert_eq!(whole_pages(&stretch, page), advised, "{page} {stretch:?}");
        }
        assert!(KERNEL_PAGE.is_power_of_two() && KERNEL_PAGE.is_multiple_of(ALIGN));
    }

    #[test]
    #[should_panic(expected = "inside the mapping")]
    fn nothing_outside() {
        let _ = Mapping::zeroed(4096, false).expect("memory").at(4096);
    }
}
