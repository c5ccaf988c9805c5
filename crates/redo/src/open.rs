//! Creating a log, and going on with one after a scan.
//!
//! After a crash, blocks of writes that were in flight may lie behind the end that the scan found.
//! Written on from there, the log would reach them one day and take them for its own. So a resume
//! first marks the end with a new epoch, in one sector, then overwrites all that the scan saw
//! behind it, durably, and only then goes on (REDO-6). A crash at any point of this leaves the same
//! end to be found.
use crate::block::{Epoch, Seed, seal};
use crate::error::{RedoError, Result};
use crate::fill::create_file;
use crate::log::{Log, LogConfig};
use crate::position::{BLOCK, BLOCK_HEADER, PAGE, block_start, first_in_block, is_inside_block};
use crate::recycle::{CAPACITY_MIN, Segments, segment_payload};
use crate::scan::ScanEnd;
use crate::segment::{
    Files, SEGMENT_HEADER, Segment, SegmentHeader, load, slot_name, slot_numbers, write_header,
};
use crate::stats::RedoStats;
use std::sync::Arc;
use weir_base::{AlignedBuf, Lsn, align_down, align_up};
use weir_device::Volume;

/// Stale blocks are overwritten in writes of this size.
const ERASE_BYTES: u64 = 1 << 20;

impl Log {
    /// Creates a log in a volume that has none. It begins at the first place at or behind `start`
    /// that a file can begin at; [`Log::end`] says where.
    ///
    /// # Errors
    /// [`RedoError::Exists`] when redo files lie in the volume; what the device reports.
    pub fn create(volume: Arc<dyn Volume>, config: LogConfig, start: Lsn) -> Result<Log> {
        if let Some(&number) = slot_numbers(&*volume)?.first() {
            return Err(RedoError::Exists { file: slot_name(number) });
        }
        let capacity = config.capacity_bytes.max(CAPACITY_MIN);
        let start = align_up(start.0);
        let end = first_in_block(start);
        let payload = segment_payload(capacity);
        let slot = create_file(&*volume, 0, payload + SEGMENT_HEADER)?;
        let unsynced_max = config.unsynced_max();
        let header = SegmentHeader { seq: 1, start, payload, unsynced_max };
        // The first block goes before the header: a log always has a block at its end.
        let mut page = AlignedBuf::zeroed(PAGE as usize);
        let first = &mut page[..BLOCK as usize];
        seal(first, Seed::of(config.db), start / BLOCK, 0, Epoch::default(), end);
        let written = slot.file.write_durable_at(SEGMENT_HEADER, &page);
        written.map_err(|error| RedoError::io("write", &slot.name(), SEGMENT_HEADER, error))?;
        let segment = write_header(slot, config.db, header)?;
        let segments = Segments::new(
            volume,
            config.db,
            capacity,
            unsynced_max,
            vec![segment],
            Files::default(),
            Arc::new(RedoStats::default()),
        );
        let log = Log::assemble(&config, Epoch::default(), end, &[], end, segments);
        // All files now: a disk that fills up later must not stop a log that keeps to its capacity.
        log.segments.preallocate()?;
        while log.maintain()? {}
        Ok(log)
    }

    /// Removes every redo file of the volume: for a creation of a database that a crash cut off
    /// before anything was in it.
    ///
    /// # Errors
    /// What the device reports.
    pub fn remove_all(volume: &dyn Volume) -> Result<()> {
        for number in slot_numbers(volume)? {
            let name = slot_name(number);
            volume.remove(&name).map_err(|error| RedoError::io("remove", &name, 0, error))?;
        }
        volume.sync_directory().map_err(|error| RedoError::io("sync", ".", 0, error))
    }

    /// Goes on with the log whose end a complete scan found. All that the scan handed out is
    /// durable when this returns. The checkpoint stands where the scan began.
    ///
    /// # Errors
    /// What the device reports.
    ///
    /// # Panics
    /// When the scan was broken off before the end.
    pub fn resume(volume: Arc<dyn Volume>, config: LogConfig, scan_end: ScanEnd) -> Result<Log> {
        assert!(scan_end.complete, "only a complete scan knows the end");
        let mut files = load(&*volume, config.db)?;
        let mut chain = files.chain(scan_end.from)?;
        let unsynced_max = config.unsynced_max();
        let end = scan_end.end;
        let at = block_start(end);
        for segment in &mut chain {
            // Blocks that the scan read may be in a cache only. What will be sealed from now on
            // relies on their being durable.
            if segment.header.start <= scan_end.stale_until {
                let synced = segment.slot.file.sync();
                synced.map_err(|error| RedoError::io("sync", &segment.slot.name(), 0, error))?;
            }
            if segment.end() > at && segment.header.unsynced_max < unsynced_max {
                let header = SegmentHeader { unsynced_max, ..segment.header };
                *segment = write_header(segment.slot.clone(), config.db, header)?;
            }
        }
        let epoch = clear_behind_end(&chain, &config, &scan_end)?;
        let page = align_down(at);
        let mut tail = AlignedBuf::zeroed(PAGE as usize);
        read_page(holder(&chain, page)?, page, &mut tail)?;
        let kept = if is_inside_block(end) { end.0 - page } else { at - page };
        let segments = Segments::new(
            volume,
            config.db,
            config.capacity_bytes,
            unsynced_max,
            chain,
            files,
            Arc::new(RedoStats::default()),
        );
        Ok(Log::assemble(&config, epoch, end, &tail[..kept as usize], scan_end.from, segments))
    }
}

fn holder(chain: &[Segment], at: u64) -> Result<&Segment> {
    let what = "the log ends there";
    let found = chain.iter().find(|segment| segment.holds(at));
    found.ok_or(RedoError::Missing { lsn: Lsn(at), what })
}

fn read_page(segment: &Segment, page: u64, buf: &mut [u8]) -> Result<()> {
    let offset = segment.offset(page);
    let read = segment.slot.file.read_at(offset, buf);
    read.map_err(|error| RedoError::io("read", &segment.slot.name(), offset, error))
}

fn write_page(segment: &Segment, page: u64, buf: &[u8]) -> Result<()> {
    let offset = segment.offset(page);
    let written = segment.slot.file.write_durable_at(offset, buf);
    written.map_err(|error| RedoError::io("write", &segment.slot.name(), offset, error))
}

/// Leaves nothing of the present pass behind the end. Gives the epoch to go on with.
fn clear_behind_end(chain: &[Segment], config: &LogConfig, scan_end: &ScanEnd) -> Result<Epoch> {
    let end = scan_end.end;
    let at = block_start(end);
    let last_kept = if is_inside_block(end) { at + BLOCK } else { at };
    if scan_end.stale_until <= last_kept && end == scan_end.physical_end {
        return Ok(scan_end.epoch);
    }
    // An end that a resume had marked before it was cut off is marked already.
    let epoch = if scan_end.marked { scan_end.epoch } else { scan_end.epoch.next() };
    let page = align_down(at);
    let segment = holder(chain, page)?;
    let mut buf = AlignedBuf::zeroed(PAGE as usize);
    read_page(segment, page, &mut buf)?;
    let in_page = (at - page) as usize;
    let tail = &mut buf[in_page..in_page + BLOCK as usize];
    let used = end.0 % BLOCK - BLOCK_HEADER;
    tail[(end.0 % BLOCK) as usize..].fill(0);
    seal(tail, Seed::of(config.db), at / BLOCK, used, epoch, end);
    // First only the end's sector changes: a scan now ends here and, by the epoch, knows that what
    // lies behind is left over, not proof of damage. Then the rest goes, in any order.
    write_page(segment, page, &buf)?;
    buf[in_page + BLOCK as usize..].fill(0);
    write_page(segment, page, &buf)?;
    let mut from = page + PAGE;
    let zeros = AlignedBuf::zeroed(ERASE_BYTES as usize);
    while from < scan_end.stale_until {
        let segment = holder(chain, from)?;
        let upto = align_up(scan_end.stale_until).min(segment.end()).min(from + ERASE_BYTES);
        write_page(segment, from, &zeros[..(upto - from) as usize])?;
        from = upto;
    }
    Ok(epoch)
}
