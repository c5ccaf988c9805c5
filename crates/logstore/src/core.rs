//! What every part of the store works on: its files, its map, what is known of its segments. Here
//! are the two things that all of them do: publish what is durable, and write another root.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use weir_base::lock::{Condvar, Mutex};
use weir_base::{ALIGN, AlignedBuf, DbId, PageNo, align_down, align_up, rank};
use weir_device::BlockFile;

use crate::adapt::Adapt;
use crate::codec::Packing;
use crate::error::StoreError;
use crate::format::{BLOCK_HEAD, Kind, LEAF_BYTES, Root, Span};
use crate::ids::{Epoch, Place, SegmentNo, UNIT, units_of};
use crate::map::Map;
use crate::policy::LIVE_SHARE_MAX;
use crate::root_file::RootFile;
use crate::segments::{Segments, Status};
use crate::stats::LogStoreStats;
use crate::stream::{Landed, Stream};

/// The name of the file of segments.
pub const SEGMENTS_FILE: &str = "segments";
/// Segments that may be opened before another root is needed.
const PLAN_MAX: usize = 16;

/// The parts of a store.
pub(crate) struct Core {
    pub(crate) db: DbId,
    pub(crate) page_bytes: usize,
    pub(crate) segment_bytes: usize,
    pub(crate) file: Arc<dyn BlockFile>,
    pub(crate) root: Mutex<rank::SegmentRoots, RootFile>,
    pub(crate) map: Map,
    pub(crate) segments: Mutex<rank::SegmentTable, Segments>,
    /// A write was published: pages are not marked any more, segments may be free.
    pub(crate) published: Condvar,
    pub(crate) streams: [Mutex<rank::SegmentStream, Stream>; 3],
    /// Page numbers end here.
    pub(crate) pages: AtomicU32,
    /// Page writes that there is room for, as if none of them could be packed.
    pub(crate) room_pages: AtomicU64,
    /// The file could not be made larger when that was tried last.
    pub(crate) is_disk_full: AtomicBool,
    pub(crate) packing: Packing,
    pub(crate) adapt: Adapt,
    pub(crate) stats: LogStoreStats,
}

/// Free segments that are kept for the store's own work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reserve {
    /// For copies: one to copy into, and one more for the one that a crash leaves half full.
    pub(crate) clean: usize,
    /// For a map checkpoint of every leaf.
    pub(crate) meta: usize,
}

impl Core {
    /// The free segments that user writes leave alone.
    pub(crate) fn reserve(&self) -> Reserve {
        let leaf = units_of(BLOCK_HEAD + LEAF_BYTES) * UNIT + 16;
        // The leaves, and their index, an eighth of a hundredth of them.
        let map_bytes = self.map.leaves() * leaf + leaf;
        let usable = self.segment_bytes - 2 * ALIGN;
        Reserve { clean: 2, meta: 1 + map_bytes.div_ceil(usable) }
    }

    /// Bytes of blocks that the segments hold at most, so that one of them can always be cleaned:
    /// what is neither open nor in the reserve is closed, and its emptiest segment is no fuller
    /// than their mean. `count` segments.
    pub(crate) fn live_bytes_max(&self, count: usize) -> u64 {
        let reserve = self.reserve();
        // Segments of leaves may be half empty, and one of each stream is open.
        let kept = reserve.clean + 2 * reserve.meta + self.streams.len();
        // A segment's header, its footer, the end of a chunk, and the block that did not fit.
        let usable = self.segment_bytes - 3 * ALIGN - self.block_bytes_max();
        let most = (count.saturating_sub(kept) * usable) as f64 * LIVE_SHARE_MAX;
        most as u64
    }

    /// How many page writes there is room for, beside what is live and what is reserved.
    pub(crate) fn room(&self, segments: &Segments) -> u64 {
        let block = (self.block_bytes_max() / UNIT) as u64;
        let writes = segments.reserved;
        let used =
            Self::bytes_with_lines(segments.live() + writes * block, segments.live_blocks + writes);
        let left = self.live_bytes_max(segments.list.len()).saturating_sub(used);
        left / Self::bytes_with_lines(block, 1)
    }

    /// Says so to threads that hold no lock.
    pub(crate) fn note_room(&self, segments: &Segments) {
        self.room_pages.store(self.room(segments), Ordering::Relaxed);
    }

    /// Bytes that `blocks` blocks of `units` units take beside each other: each has a line in a
    /// chunk's header and one in the footer.
    pub(crate) fn bytes_with_lines(units: u64, blocks: u64) -> u64 {
        units * UNIT as u64 + blocks * 24
    }

    /// Bytes of the block of a page that cannot be packed.
    pub(crate) fn block_bytes_max(&self) -> usize {
        units_of(BLOCK_HEAD + self.page_bytes) * UNIT
    }

    /// # Errors
    /// [`StoreError::Halted`] when a device has failed.
    pub(crate) fn check_halted(&self) -> Result<(), StoreError> {
        match &self.segments.lock().halted {
            Some(why) => Err(StoreError::Halted(why.clone())),
            None => Ok(()),
        }
    }

    /// Nothing more is written: what a failed write or sync left on the device is unknown.
    pub(crate) fn halt(&self, error: StoreError) -> StoreError {
        self.segments.lock().halted.get_or_insert_with(|| error.to_string());
        self.published.notify_all();
        error
    }

    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        let synced = self.file.sync();
        synced.map_err(|e| self.halt(StoreError::device("syncing 'segments'", e)))
    }

    /// Reads the bytes of a block, or of anything that lies in the file of segments: those before
    /// and behind it, to multiples of 4096, are read, too. Returns where within the buffer it
    /// begins.
    pub(crate) fn read_around(
        &self,
        offset: u64,
        len: usize,
    ) -> Result<(AlignedBuf, usize), StoreError> {
        let begin = align_down(offset);
        let mut buf = AlignedBuf::zeroed((align_up(offset + len as u64) - begin) as usize);
        let read = self.file.read_at(begin, &mut buf);
        read.map_err(|e| StoreError::device("reading 'segments'", e))?;
        Ok((buf, (offset - begin) as usize))
    }

    /// What was written is durable: the map says so, and what it takes the place of is dead.
    pub(crate) fn publish(&self, landed: &[Landed]) {
        let mut segments = self.segments.lock();
        for chunk in landed {
            for (head, place, source) in &chunk.blocks {
                if head.kind == Kind::Page {
                    segments.newest = segments.newest.max(head.lsn);
                    self.publish_page(&mut segments, PageNo(head.number), *place, *source);
                } else {
                    segments.add_live(*place);
                }
            }
            for &(first, count) in &chunk.forgets {
                for page in first.0..first.0 + u32::from(count) {
                    segments.unmark(page);
                    let old = self.map.set(PageNo(page), Place::NONE);
                    segments.drop_live(old);
                }
            }
            segments.end_chunk(chunk.segment, chunk.seq);
        }
        self.note_room(&segments);
        drop(segments);
        self.published.notify_all();
    }

    fn publish_page(
        &self,
        segments: &mut Segments,
        page: PageNo,
        place: Place,
        source: Option<Place>,
    ) {
        segments.unmark(page.0);
        let is_moved = source.is_some_and(|source| source != self.map.get(page));
        debug_assert!(!is_moved, "R2: one write of a page at a time");
        if !is_moved {
            segments.add_live(place);
            let old = self.map.set(page, place);
            segments.drop_live(old);
        }
    }

    /// R2: marks `pages`, if none of them has a write under way.
    pub(crate) fn try_mark(&self, pages: &[u32]) -> bool {
        self.segments.lock().mark_all(pages)
    }

    /// R2: waits until none of `pages` has a write under way, and marks them.
    pub(crate) fn mark(&self, pages: &[u32]) -> Result<(), StoreError> {
        let mut segments = self.segments.lock();
        while !segments.mark_all(pages) {
            if let Some(why) = &segments.halted {
                return Err(StoreError::Halted(why.clone()));
            }
            self.published.wait(&mut segments);
        }
        Ok(())
    }

    /// The pages are not written after all.
    pub(crate) fn unmark(&self, pages: &[u32]) {
        let mut segments = self.segments.lock();
        pages.iter().for_each(|&page| segments.unmark(page));
        drop(segments);
        self.published.notify_all();
    }

    /// Writes another root of the same map checkpoint, if that is what it takes to open a segment.
    pub(crate) fn refresh_root(&self) -> Result<(), StoreError> {
        let mut root = self.root.lock();
        if !self.segments.lock().plan.is_empty() {
            return Ok(());
        }
        let same = root.durable.clone();
        self.write_root(&mut root, same)
    }

    /// Writes the same map's root again, with what else has changed.
    pub(crate) fn write_same_root(&self) -> Result<(), StoreError> {
        let mut root = self.root.lock();
        let same = root.durable.clone();
        self.write_root(&mut root, same)
    }

    /// Whether a map checkpoint would free a segment: one with free records, or with leaves.
    pub(crate) fn has_meta_to_free(&self) -> bool {
        let segments = self.segments.lock();
        segments.list.iter().any(|s| s.status == Status::Closed && s.is_meta)
    }

    /// Makes `next` durable, with all that is not its map taken from the memory of today: which
    /// segments may hold chunks newer than its map checkpoint, and which may be opened (R3).
    pub(crate) fn write_root(&self, root: &mut RootFile, next: Root) -> Result<(), StoreError> {
        let (next, fresh) = {
            let mut segments = self.segments.lock();
            let fresh = segments.plan_more(PLAN_MAX);
            let span = |&(segment, epoch): &(SegmentNo, Epoch)| {
                let end = segments.blocks;
                Span { segment, epoch, end }
            };
            let mut scan = segments.spans_since(next.ckpt_seq);
            scan.extend(fresh.iter().map(span));
            let next = Root {
                life: segments.life,
                segments: segments.list.len() as u32,
                pages: self.pages.load(Ordering::Acquire),
                next_epoch: segments.next_epoch,
                newest: segments.newest,
                scan,
                ..next
            };
            (next, fresh)
        };
        root.write(next).map_err(|e| self.halt(e))?;
        self.stats.roots_written.add(1);
        self.segments.lock().plan.extend(fresh);
        Ok(())
    }
}
