//! Frame memory and what is kept about each frame. One of the few files with `unsafe`.
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use weir_base::{Lsn, Mapping, PageNo};

/// What is known of the page in a frame.
pub(crate) struct FrameMeta {
    page: AtomicU32,
    /// First modification since the page was last written; 0 when clean. Changed under the
    /// page's exclusive latch only.
    first_lsn: AtomicU64,
    /// How often it was used lately, 0..=3.
    heat: AtomicU8,
    /// A copy of it is on its way to disk: it must not be evicted or written a second time.
    writing: AtomicBool,
}

impl FrameMeta {
    fn new() -> Self {
        FrameMeta {
            page: AtomicU32::new(PageNo::NONE.0),
            first_lsn: AtomicU64::new(0),
            heat: AtomicU8::new(0),
            writing: AtomicBool::new(false),
        }
    }
    pub(crate) fn page(&self) -> PageNo {
        PageNo(self.page.load(Relaxed))
    }
    pub(crate) fn set_page(&self, page: PageNo) {
        self.page.store(page.0, Relaxed);
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
        self.writing.load(Relaxed)
    }
    pub(crate) fn set_writing(&self, writing: bool) {
        self.writing.store(writing, Relaxed);
    }
}

/// All frames: one mapping of page-sized pieces, and their metadata beside it.
pub(crate) struct Frames {
    memory: Mapping,
    metas: Box<[FrameMeta]>,
    page_size: usize,
}

impl Frames {
    pub(crate) fn new(count: u32, page_size: usize) -> io::Result<Self> {
        Ok(Frames {
            memory: Mapping::zeroed(count as usize * page_size, true)?,
            metas: (0..count).map(|_| FrameMeta::new()).collect(),
            page_size,
        })
    }
    pub(crate) fn count(&self) -> u32 {
        self.metas.len() as u32
    }
    #[inline]
    pub(crate) fn meta(&self, frame: u32) -> &FrameMeta {
        &self.metas[frame as usize]
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
