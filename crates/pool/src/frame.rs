//! Frame memory and what is kept about each frame. One of the few files with `unsafe`.
use std::io;
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

use weir_base::{HUGE_PAGE, Lsn, Mapping, PageNo};

/// What is known of the page in a frame.
pub(crate) struct FrameMeta {
    /// The page's number, each bit inverted: memory that was never touched says that there is none.
    page: AtomicU32,
    /// First modification since the page was last written; 0 when clean. Changed under the
    /// page's exclusive latch only.
    first_lsn: AtomicU64,
    /// How often it was used lately, 0..=3.
    heat: AtomicU8,
    /// A copy of it is on its way to disk: it must not be evicted or written a second time.
    writing: AtomicBool,
    /// POOL-13: what of a dirty page is counted as coming back when it is written; 0 when clean.
    gives_back: AtomicU16,
}

impl FrameMeta {
    pub(crate) fn page(&self) -> PageNo {
        PageNo(!self.page.load(Relaxed))
    }
    pub(crate) fn set_page(&self, page: PageNo) {
        self.page.store(!page.0, Relaxed);
    }
    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        match self.first_lsn.load(Relaxed) {
            0 => None,
            lsn => Some(Lsn(lsn)),
        }
    }
    pub(crate) fn set_first_lsn(&self, lsn: Option<Lsn>) {
        weir_base::lines::wrote("a frame's first-modification LSN");
        self.first_lsn.store(lsn.map_or(0, |l| l.0), Relaxed);
    }
    /// Notes a use; a store only while the frame is still warming up, so hot pages stay unshared.
    #[inline]
    pub(crate) fn touch(&self) {
        let heat = self.heat.load(Relaxed);
        if heat < 3 {
            weir_base::lines::wrote("a cold frame's heat");
            self.heat.store(heat + 1, Relaxed);
        }
    }
    pub(crate) fn heat(&self) -> u8 {
        self.heat.load(Relaxed)
    }
    pub(crate) fn set_heat(&self, heat: u8) {
        self.heat.store(heat, Relaxed);
    }
    pub(crate) fn writing(&self) -> bool {
        self.writing.load(Acquire)
    }
    /// Once it says no again, where the store has the page can be seen.
    pub(crate) fn set_writing(&self, writing: bool) {
        self.writing.store(writing, Release);
    }
    pub(crate) fn gives_back(&self) -> u16 {
        self.gives_back.load(Relaxed)
    }
    /// Returns what was counted before.
    pub(crate) fn set_gives_back(&self, share: u16) -> u16 {
        self.gives_back.swap(share, SeqCst)
    }
}

const _: () = assert!(size_of::<FrameMeta>() == 16, "four to a line of the cache");

const _: () = assert!(!PageNo::NONE.0 == 0, "zeros are a frame without a page");

/// All frames: one mapping of page-sized pieces, and their metadata in another. Both have address
/// space for more frames than there are, which the kernel fills where it is touched.
pub(crate) struct Frames {
    memory: Mapping,
    metas: Mapping,
    page_size: usize,
    /// Frames that there is address space for.
    room: u32,
    count: AtomicU32,
}

impl Frames {
    /// `count` frames, and address space for `room`, if it can be had.
    pub(crate) fn new(count: u32, room: u32, page_size: usize) -> io::Result<Self> {
        let of = |room: u32| {
            let memory = Mapping::zeroed(room as usize * page_size, true)?;
            let metas = Mapping::zeroed(room as usize * size_of::<FrameMeta>(), false)?;
            Ok(Frames { memory, metas, page_size, room, count: AtomicU32::new(count) })
        };
        of(room.max(count)).or_else(|_: io::Error| of(count))
    }
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Relaxed)
    }
    pub(crate) fn room(&self) -> u32 {
        self.room
    }
    /// There are so many now, at most [`Frames::room`].
    pub(crate) fn set_count(&self, count: u32) {
        assert!(count <= self.room, "there is no address space for more");
        self.count.store(count, Relaxed);
    }
    #[inline]
    pub(crate) fn meta(&self, frame: u32) -> &FrameMeta {
        let at = self.metas.at(frame as usize * size_of::<FrameMeta>());
        // SAFETY: inside the mapping, which has room for whole ones and lives as long as self;
        // aligned, as mappings are to pages and the size of one is a multiple of its alignment;
        // zeros are valid, and it is only ever accessed as atomics.
        unsafe { &*at.cast::<FrameMeta>() }
    }
    /// How many of them lie in a huge page, at least one.
    pub(crate) fn in_huge_page(&self) -> u32 {
        (HUGE_PAGE / self.page_size).max(1) as u32
    }
    /// Has the kernel clear memory for them now.
    pub(crate) fn populate(&self, frames: Range<u32>) {
        let [from, to] = [frames.start, frames.end].map(|frame| frame as usize * self.page_size);
        self.memory.populate(from..to);
    }
    /// Gives back the memory of frames from `from` up to `to`, those after which are gone.
    ///
    /// # Safety
    /// They, and those after them, are on no list of free frames and in no page word, and no thread
    /// has taken one.
    pub(crate) unsafe fn give_back(&self, from: u32, to: u32) {
        let (from, to) = (from as usize * self.page_size, to as usize * self.page_size);
        // Where a page of the kernel's holds several frames, the rest of what an earlier call had
        // to leave goes with this one.
        let to = self.memory.end_of_page(to);
        // SAFETY: no page is in them, so that no guard lends their bytes; a reader that looks at
        // one from before learns from the page's word that what it saw counts for nothing.
        unsafe { self.memory.give_back(from..to) };
    }
    /// Where the frame's bytes begin. Mapped for as long as the pool lives: a reader that races
    /// with an eviction reads bytes of another page, and learns so from the page word.
    #[inline]
    pub(crate) fn start(&self, frame: u32) -> *mut u8 {
        self.memory.at(frame as usize * self.page_size)
    }
    /// The frame's bytes as another thread may be changing them.
    #[inline]
    pub(crate) fn raw(&self, frame: u32) -> weir_page::RawPage {
        // SAFETY: `start` stays mapped and readable until the pool is dropped, and the thread that
        // looks borrows the pool.
        unsafe { weir_page::RawPage::new(self.start(frame), self.page_size) }
    }

    /// The frame's bytes, to be read by the thread that holds the page's exclusive latch.
    ///
    /// # Safety
    /// The caller holds the exclusive latch of the page in this frame, or owns the frame outright
    /// (taken from the free list), until the returned borrow ends, and has no borrow of
    /// [`Frames::bytes_mut`] meanwhile. Optimistic readers may look at the bytes, too.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: u32) -> &[u8] {
        // SAFETY: in range, and not changed meanwhile by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start(frame), self.page_size) }
    }

    /// The frame's bytes, to be changed by the thread that holds the page's exclusive latch.
    ///
    /// # Safety
    /// As [`Frames::bytes`], and the caller has no other borrow of the bytes, of either kind.
    /// Optimistic readers may look at the bytes meanwhile; they use volatile copies and validate
    /// (see weir-page's raw module, and `docs/decisions/raw-pages.md`).
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn bytes_mut(&self, frame: u32) -> &mut [u8] {
        // SAFETY: in range and exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start(frame), self.page_size) }
    }
}
