//! A store made again where its root or its map is lost: headers of chunks and blocks name pages,
//! and bear numbers that grow, so the newest block of each page is where the page lies. For a
//! salvage: nothing says that no newer block was lost together with the map.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use weir_base::{ALIGN, AlignedBuf, DbId, Lsn, PageNo, align_down};
use weir_device::{BlockFile, Volume};

use crate::checkpoint::MapPlaces;
use crate::codec::Packing;
use crate::core::SEGMENTS_FILE;
use crate::error::StoreError;
use crate::format::{BlockHead, ChunkHead, Entry, Kind, LEAF_PLACES, Root, RootSlot, SegmentHead};
use crate::ids::{Epoch, Place, Seq, UNIT, units_of};
use crate::map::Map;
use crate::recover::Reader;
use crate::root_file::{ROOT_FILE, RootFile};
use crate::segments::Segments;
use crate::store::{LogStore, LogStoreConfig};

/// Bytes that are looked through at a time for a segment's header.
const LOOK_BYTES: usize = 1 << 20;
/// The smallest page that a store may have.
const PAGE_BYTES_MIN: usize = 512;

/// What is known of a lost store from elsewhere.
#[derive(Clone, Copy, Default, Debug)]
pub struct Known {
    /// Bytes a page; `None`: as its blocks say.
    pub page_bytes: Option<usize>,
    /// Pages that it had at least.
    pub pages: u32,
}

/// A store that was made again.
pub struct Rebuilt {
    /// It lies in the volume that was given, with a new root; what was found is in its map.
    pub store: LogStore,
    /// Pages whose newest block is whole.
    pub pages: u64,
    /// Pages whose newest block is known to have been durable, and is damaged: so they are read.
    pub pages_damaged: u64,
}

impl LogStore {
    /// Makes a store again of what its segments say. The file of segments is read only, as far as
    /// it goes; another root is written. To be called on a layer that takes all writes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when nothing says how long segments or pages are;
    /// [`StoreError::OtherStore`], [`StoreError::OtherFormat`]; [`StoreError::Device`].
    pub fn rebuild(
        volume: &Arc<dyn Volume>,
        db: DbId,
        known: Known,
    ) -> Result<Rebuilt, StoreError> {
        let failed = |e| StoreError::device(format!("opening '{SEGMENTS_FILE}'"), e);
        let file = volume.open(SEGMENTS_FILE).map_err(failed)?;
        let root = match RootFile::open(volume, db) {
            Ok(root) => Some(root.durable),
            Err(e @ (StoreError::OtherStore { .. } | StoreError::OtherFormat(_))) => return Err(e),
            Err(_) => None,
        };
        let unknown = |what: &str, cause| {
            let what = what.to_owned();
            StoreError::Damaged { what, file: SEGMENTS_FILE, offset: 0, cause }
        };
        let segment_bytes = match &root {
            Some(root) => root.segment_bytes as usize,
            None => segment_bytes(&*file, db).ok_or_else(|| {
                unknown("every segment's header", "nothing says how long segments are")
            })?,
        };
        let mut found = Found::new(db, segment_bytes);
        found.look_through(&*file)?;
        found.judge();
        let first = found.root(root.as_ref(), known, file.len()).ok_or_else(|| {
            unknown("every block", "nothing is whole that would say how long pages are")
        })?;
        let whole = u64::from(first.segments) * segment_bytes as u64;
        if file.len() < whole {
            file.grow(whole).map_err(failed)?;
        }
        if volume.exists(ROOT_FILE).map_err(failed)? {
            volume.remove(ROOT_FILE).map_err(failed)?;
        }
        let map = Map::default();
        map.grow(first.pages);
        let mut table = Segments::new(first.segments, segment_bytes, first.life);
        (table.next_epoch, table.newest) = (first.next_epoch, first.newest);
        found.visit(&mut |page, place| {
            map.set(page, place);
            table.add_live(place);
        });
        table.adopt();
        let root = RootFile::create(volume, db, first)?;
        let reader = Reader { db, file, segment_bytes };
        let store = LogStore::of(reader, root, table, map, MapPlaces::default());
        Ok(Rebuilt { store, pages: found.count, pages_damaged: found.damaged })
    }

    /// The number of the database whose segments lie in a volume, as its roots and segments say it
    /// themselves.
    #[must_use]
    pub fn find_db(volume: &dyn Volume) -> Option<DbId> {
        let mut buf = AlignedBuf::zeroed(crate::format::ROOT_SLOT_BYTES);
        if let Ok(file) = volume.open(ROOT_FILE) {
            for at in (0..file.len()).step_by(buf.len()) {
                let is_read =
                    at + buf.len() as u64 <= file.len() && file.read_at(at, &mut buf).is_ok();
                // Looked at for no store, each one is another's.
                if is_read && let RootSlot::OtherStore(db) = Root::parse(DbId(0), &buf) {
                    return Some(db);
                }
            }
        }
        let file = volume.open(SEGMENTS_FILE).ok()?;
        each_head(&*file, None).map(|(_, _, db)| db)
    }
}

/// Bytes a segment: a header says which number a segment has, and lies where that begins. Where
/// only the first has one, the file is as long as it was made.
fn segment_bytes(file: &dyn BlockFile, db: DbId) -> Option<usize> {
    let bytes = match each_head(file, Some(db)) {
        Some((offset, head, _)) => offset / u64::from(head.segment.0),
        None => {
            SegmentHead::parse(db, &read_all(file, 0, ALIGN.min(file.len() as usize)))?;
            align_down(file.len() / u64::from(LogStoreConfig::SEGMENTS_MIN))
        }
    };
    usize::try_from(bytes).ok().filter(|bytes| (ALIGN..1 << 30).contains(bytes))
}

/// The first whole header of a segment, but for that of the first segment where the database is
/// known: that one lies at the beginning, however long segments are.
fn each_head(file: &dyn BlockFile, db: Option<DbId>) -> Option<(u64, SegmentHead, DbId)> {
    let end = align_down(file.len());
    for begin in (0..end).step_by(LOOK_BYTES) {
        let bytes = read_all(file, begin, (end - begin).min(LOOK_BYTES as u64) as usize);
        for (at, block) in (begin..).step_by(ALIGN).zip(bytes.chunks_exact(ALIGN)) {
            let said = DbId(u64::from_le_bytes(*block[16..].first_chunk()?));
            let Some(head) = SegmentHead::parse(db.unwrap_or(said), block) else { continue };
            let number = u64::from(head.segment.0);
            if db.is_none()
                || number > 0
                    && at.is_multiple_of(number)
                    && (at / number).is_multiple_of(ALIGN as u64)
            {
                return Some((at, head, said));
            }
        }
    }
    None
}

/// Bytes of a file; what cannot be read is zeros.
fn read_all(file: &dyn BlockFile, begin: u64, len: usize) -> AlignedBuf {
    let mut bytes = AlignedBuf::zeroed(len);
    if file.read_at(begin, &mut bytes).is_err() {
        for (at, block) in (begin..).step_by(ALIGN).zip(bytes.chunks_exact_mut(ALIGN)) {
            if file.read_at(at, block).is_err() {
                block.fill(0);
            }
        }
    }
    bytes
}

/// Where a page was last, as far as was found: the chunk, and the place; nowhere: it is no more.
type Last = (Seq, Place);

/// What was found in segments.
struct Found {
    db: DbId,
    segment_bytes: usize,
    /// By 512 pages.
    last: HashMap<u32, Vec<Last>>,
    /// Blocks that a chunk names and that are not whole.
    broken: Vec<(u32, Last)>,
    /// R9: of each life, up to here all chunks are known to have been durable.
    durable: BTreeMap<u64, Seq>,
    newest: Lsn,
    life: u64,
    epoch: Epoch,
    packing: Packing,
    page_bytes: Option<usize>,
    /// Pages that lie somewhere, and of these those whose block is damaged.
    count: u64,
    damaged: u64,
}

impl Found {
    fn new(db: DbId, segment_bytes: usize) -> Found {
        Found {
            db,
            segment_bytes,
            last: HashMap::new(),
            broken: Vec::new(),
            durable: BTreeMap::new(),
            newest: Lsn::ZERO,
            life: 0,
            epoch: Epoch(0),
            packing: Packing::default(),
            page_bytes: None,
            count: 0,
            damaged: 0,
        }
    }

    fn look_through(&mut self, file: &dyn BlockFile) -> Result<(), StoreError> {
        if file.len() > Place::BYTES_MAX {
            return Err(StoreError::Config("the file of segments is longer than any"));
        }
        let end = align_down(file.len());
        for begin in (0..end).step_by(self.segment_bytes) {
            let len = (end - begin).min(self.segment_bytes as u64) as usize;
            self.segment(begin, &read_all(file, begin, len));
        }
        Ok(())
    }

    /// Chunks of a segment, and blocks where no chunk's header is whole.
    fn segment(&mut self, begin: u64, bytes: &[u8]) {
        let number = (begin / self.segment_bytes as u64) as u32;
        let head = SegmentHead::parse(self.db, bytes).filter(|head| head.segment.0 == number);
        if let Some(head) = head {
            (self.life, self.epoch) = (self.life.max(head.life), self.epoch.max(head.epoch));
        }
        let mut at = ALIGN;
        while at < bytes.len() {
            let chunk = ChunkHead::parse(self.db, &bytes[at..]);
            match chunk.filter(|chunk| chunk.segment.0 == number) {
                Some(chunk) => {
                    // What is left of an earlier use is dead.
                    if head.is_none_or(|head| head.epoch == chunk.epoch) {
                        self.chunk(&chunk, begin + at as u64, &bytes[at..]);
                    }
                    at += chunk.chunk_bytes();
                }
                None => {
                    (at..at + ALIGN).step_by(UNIT).for_each(|at| {
                        self.block(begin + at as u64, &bytes[at..]);
                    });
                    at += ALIGN;
                }
            }
        }
    }

    fn chunk(&mut self, chunk: &ChunkHead, offset: u64, bytes: &[u8]) {
        let (seq, life) = (chunk.seq, chunk.seq.life());
        (self.life, self.epoch) = (self.life.max(life), self.epoch.max(chunk.epoch));
        if chunk.durable.life() == life {
            let known = self.durable.entry(life).or_default();
            *known = chunk.durable.max(*known);
        }
        for (at, entry) in chunk.placed() {
            match *entry {
                Entry::Forget { first, count, .. } => {
                    let pages = first.0..first.0.saturating_add(u32::from(count));
                    pages.for_each(|page| self.take(page, (seq, Place::NONE)));
                }
                Entry::Block { kind: Kind::Page, number, units, .. } => {
                    let block = bytes.get(at..).unwrap_or_default();
                    let is_it = |(head, _): &(BlockHead, &[u8])| {
                        (head.kind, head.number, head.seq) == (Kind::Page, number, seq)
                    };
                    let sound = BlockHead::parse(self.db, block).filter(is_it);
                    if let Some((head, payload)) = sound {
                        self.page(offset + at as u64, &head, payload);
                    } else if self.is_within(offset + at as u64, units) {
                        let position = (offset + at as u64) / UNIT as u64;
                        let place = Place::new(position, usize::from(units), seq);
                        self.broken.push((number, (seq, place)));
                    }
                }
                Entry::Block { .. } => {}
            }
        }
    }

    /// Whether a block may be so long, and lies in one segment.
    fn is_within(&self, offset: u64, units: u16) -> bool {
        let (units, bytes) = (usize::from(units), self.segment_bytes as u64);
        (1..=Place::UNITS_MAX).contains(&units) && offset % bytes + (units * UNIT) as u64 <= bytes
    }

    /// The block at the front of `bytes`, if one is there.
    fn block(&mut self, offset: u64, bytes: &[u8]) {
        let Some((head, payload)) = BlockHead::parse(self.db, bytes) else { return };
        if head.kind == Kind::Page {
            self.page(offset, &head, payload);
        }
    }

    /// A page's block.
    fn page(&mut self, offset: u64, head: &BlockHead, payload: &[u8]) {
        let units = units_of(crate::format::BLOCK_HEAD + payload.len());
        let place = Place::new(offset / UNIT as u64, units, head.seq);
        self.newest = self.newest.max(head.lsn);
        self.life = self.life.max(head.seq.life());
        self.take(head.number, (head.seq, place));
        if self.page_bytes.is_none() {
            let mut buf = vec![0; LogStoreConfig::PAGE_BYTES_MAX];
            let sizes = std::iter::successors(Some(PAGE_BYTES_MIN), |size| Some(size * 2));
            self.page_bytes = sizes
                .take_while(|size| *size <= LogStoreConfig::PAGE_BYTES_MAX)
                .find(|&size| self.packing.unpack(head.codec, payload, &mut buf[..size]));
        }
    }

    /// Notes where a page was, if it was not elsewhere later.
    fn take(&mut self, page: u32, found: Last) {
        let leaf = self.last.entry(page / LEAF_PLACES as u32);
        let leaf = leaf.or_insert_with(|| vec![Last::default(); LEAF_PLACES]);
        let last = &mut leaf[page as usize % LEAF_PLACES];
        if found.0 > last.0 {
            *last = found;
        }
    }

    /// A block that is not whole, and was, is its page's all the same (R4): an older one of the
    /// page is not what it was last.
    fn judge(&mut self) {
        for (page, (seq, place)) in std::mem::take(&mut self.broken) {
            if self.durable.get(&seq.life()).is_some_and(|durable| seq <= *durable) {
                self.take(page, (seq, place));
                self.broken.push((page, (seq, place)));
            }
        }
        self.count =
            self.last.values().flatten().filter(|(_, place)| !place.is_none()).count() as u64;
        let is_last = |(page, last): &&(u32, Last)| {
            self.last
                .get(&(page / LEAF_PLACES as u32))
                .is_some_and(|leaf| leaf[*page as usize % LEAF_PLACES] == *last)
        };
        self.damaged = self.broken.iter().filter(is_last).count() as u64;
        self.count -= self.damaged;
    }

    /// The root of a store that begins with what was found, without a map. `None`: nothing says how
    /// long pages are.
    fn root(&self, lost: Option<&Root>, known: Known, file_bytes: u64) -> Option<Root> {
        let page_bytes = lost.map(|root| root.page_bytes as usize);
        let page_bytes = page_bytes.or(known.page_bytes).or(self.page_bytes)?;
        let of_file = file_bytes.div_ceil(self.segment_bytes as u64) as u32;
        let least = lost.map_or(LogStoreConfig::SEGMENTS_MIN, |root| root.segments);
        let pages = lost.map_or(0, |root| root.pages).max(known.pages);
        let life = lost.map_or(0, |root| root.life).max(self.life);
        let epoch = lost.map_or(Epoch(0), |root| root.next_epoch).max(self.epoch);
        Some(Root {
            generation: 0,
            life: life.saturating_add(1),
            page_bytes: page_bytes as u32,
            segment_bytes: self.segment_bytes as u32,
            segments: of_file.max(least).max(LogStoreConfig::SEGMENTS_MIN),
            pages: pages.max(self.end()),
            next_epoch: Epoch(epoch.0.saturating_add(1)),
            ckpt_seq: Seq(0),
            newest: self.newest,
            index: Vec::new(),
            scan: Vec::new(),
        })
    }

    /// Page numbers end here.
    fn end(&self) -> u32 {
        let last = self.last.keys().max().map_or(0, |leaf| leaf * LEAF_PLACES as u32);
        let leaf = self.last.get(&(last / LEAF_PLACES as u32));
        let used = leaf.and_then(|leaf| leaf.iter().rposition(|(seq, _)| seq.0 > 0));
        used.map_or(0, |used| last.saturating_add(used as u32 + 1))
    }

    fn visit(&self, visit: &mut dyn FnMut(PageNo, Place)) {
        for (leaf, places) in &self.last {
            for (at, (_, place)) in places.iter().enumerate().filter(|(_, last)| !last.1.is_none())
            {
                visit(PageNo(leaf * LEAF_PLACES as u32 + at as u32), *place);
            }
        }
    }
}
