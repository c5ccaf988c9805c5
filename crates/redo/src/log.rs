//! The log that is open for writing: appending, waiting for durability, and what can be asked.
use crate::block::{Epoch, Seed};
use crate::claims::{Apart, CLAIM_MIN, Claims};
use crate::error::{RedoError, Result};
use crate::position::{BLOCK, PAGE, Span, block_start, lsn_of, sn_of};
use crate::recent::Recent;
use crate::recycle::Segments;
use crate::ring::Ring;
use crate::rounds::Rounds;
use crate::segment::SegmentInfo;
use crate::shrink::Limit;
use crate::stats::RedoStats;
use crate::write::Writer;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Clock, DbId, Lsn, SystemClock, varint};

/// No group's body is shorter: then a group with its length takes at least eight bytes.
pub const GROUP_BODY_MIN: usize = 7;
/// No group's body is longer.
pub const GROUP_BODY_MAX: usize = 256 << 20;
const _: () = assert!(GROUP_BODY_MIN as u64 + 1 == CLAIM_MIN, "two groups never share a link");

/// The smallest log buffer.
pub const BUFFER_MIN: u64 = 64 << 10;
/// The most that is ever written and not yet synced: it bounds how far a scan looks behind the end,
/// and has to stay below what a block's header can express (65,534 blocks).
const UNSYNCED_MAX: u64 = 16 << 20;
const _: () = assert!(UNSYNCED_MAX / BLOCK < u16::MAX as u64, "distances fit a block's header");
/// The largest single write.
const WRITE_MAX: u64 = 1 << 20;
/// Larger groups are published in pieces of this size.
const PIECE_MAX: u64 = 64 << 10;

/// How safe redo must be before a wait for it ends. MariaDB's
/// `innodb_flush_log_at_trx_commit` 1, 2 and 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Durability {
    /// On stable storage: survives a power failure.
    Synced,
    /// Handed to the operating system, whose cache may keep it for now: survives the death of the
    /// process.
    Written,
    /// In memory: the flusher writes it within a second.
    Lazy,
}

/// How far a round brings the redo that it writes, and what came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Into the system's cache, for commits that wait for no more: it costs no answer of the
    /// device.
    Cached,
    /// Past the cache, for the buffer's sake: the device is to have it before long.
    Direct,
    /// To the device, all of it.
    Device,
    /// To stable storage.
    Durable,
}

/// How a log is opened.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The database that the log belongs to.
    pub db: DbId,
    /// Bytes of disk that the log's files may take, headers included. Raised to the least possible
    /// (640 KiB) when smaller.
    pub capacity_bytes: u64,
    /// Bytes of the log buffer; rounded up to a power of two, at least [`BUFFER_MIN`]. 8 MiB is a
    /// good size.
    pub buffer_bytes: u64,
}

impl LogConfig {
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer_bytes.clamp(BUFFER_MIN, 1 << 30).next_power_of_two()
    }

    /// How far blocks are sealed ahead of what is durable.
    pub(crate) fn unsynced_max(&self) -> u64 {
        self.buffer().min(UNSYNCED_MAX)
    }
}

/// Why nothing is written any more.
#[derive(Default)]
struct Halt {
    flag: AtomicBool,
    cause: OnceLock<Arc<str>>,
}

/// A redo log open for appending. All methods may be called by any number of threads.
pub struct Log {
    pub(crate) seed: Seed,
    pub(crate) epoch: Epoch,
    pub(crate) claims: Claims,
    pub(crate) ring: Ring,
    /// Ring places before this disk position (a multiple of [`PAGE`]) have been given back: places
    /// up to the ring's length behind it may be filled.
    pub(crate) given_back: Apart<AtomicU64>,
    pub(crate) written: Apart<AtomicU64>,
    /// No cache of the system's keeps what is before; never behind `durable`.
    pub(crate) on_device: AtomicU64,
    /// Threads wait for the device, whose flush another file's sync brings: what the cache kept
    /// would cost a sync of the log's own each time, so it keeps nothing from then on.
    pub(crate) past_cache: AtomicBool,
    pub(crate) durable: Apart<AtomicU64>,
    /// Threads that came to wait for a sync, ever.
    pub(crate) arrived: Apart<AtomicU64>,
    /// How long a waiter stays awake before it sleeps, as the last leader saw it.
    pub(crate) linger_micros: AtomicU32,
    checkpoint: AtomicU64,
    pub(crate) rounds: Rounds,
    pub(crate) writer: Mutex<rank::LogWriter, Writer>,
    pub(crate) segments: Segments,
    pub(crate) recent: Arc<Recent>,
    limit: Limit,
    /// Of [`Log::age_limit_bytes`]; all ones: none.
    age_bound: AtomicU64,
    halt: Halt,
    pub(crate) unsynced_max: u64,
    pub(crate) stats: Arc<RedoStats>,
    pub(crate) clock: SystemClock,
}

impl Log {
    /// A log that goes on at `end`, with `tail` the bytes on disk from the start of its page.
    pub(crate) fn assemble(
        config: &LogConfig,
        epoch: Epoch,
        end: Lsn,
        tail: &[u8],
        checkpoint: Lsn,
        segments: Segments,
    ) -> Log {
        let ring = Ring::new(config.buffer());
        let page = block_start(end) / PAGE * PAGE;
        let mut at = page;
        for block in tail.chunks(BLOCK as usize) {
            ring.fill(Lsn(at + 12), block.get(12..).unwrap_or_default());
            at += BLOCK;
        }
        let stats = Arc::clone(&segments.stats);
        let end_sn = sn_of(end);
        Log {
            seed: Seed::of(config.db),
            epoch,
            claims: Claims::new(end_sn, ring.len()),
            given_back: Apart(AtomicU64::new(page)),
            written: Apart(AtomicU64::new(end.0)),
            on_device: AtomicU64::new(end.0),
            past_cache: AtomicBool::new(false),
            durable: Apart(AtomicU64::new(end.0)),
            arrived: Apart(AtomicU64::new(0)),
            linger_micros: AtomicU32::new(0),
            checkpoint: AtomicU64::new(checkpoint.0),
            rounds: Rounds::new(),
            writer: Mutex::new(Writer::new(WRITE_MAX.min(ring.len() / 2))),
            limit: Limit::new(),
            age_bound: AtomicU64::new(u64::MAX),
            halt: Halt::default(),
            unsynced_max: config.unsynced_max(),
            ring,
            segments,
            recent: Arc::default(),
            stats,
            clock: SystemClock::new(),
        }
    }

    /// Appends a group: `body` becomes redo as a whole or, when the log ends before its end, not at
    /// all. Calls `reserved` with the group's place before the group can become visible to a
    /// writer: a page put on the dirty list there is on it before its redo can be durable. May wait
    /// for room in the log buffer, and then writes the buffer out itself; it needs no page latch
    /// for that.
    ///
    /// # Errors
    /// [`RedoError::Halted`] after a failed write, [`RedoError::TooLarge`]. `reserved` may have
    /// been called before a halt was noticed.
    ///
    /// # Panics
    /// When `body` is shorter than [`GROUP_BODY_MIN`].
    #[inline]
    pub fn append(&self, body: &[u8], reserved: impl FnOnce(Span)) -> Result<Span> {
        self.append_parts(&[body], reserved)
    }

    /// [`Log::append`] with the body in several parts.
    ///
    /// # Errors
    /// As [`Log::append`].
    ///
    /// # Panics
    /// As [`Log::append`].
    #[inline]
    pub fn append_parts(&self, parts: &[&[u8]], reserved: impl FnOnce(Span)) -> Result<Span> {
        let body: usize = parts.iter().map(|part| part.len()).sum();
        assert!(body >= GROUP_BODY_MIN, "the caller pads a group to {GROUP_BODY_MIN} bytes");
        if body > GROUP_BODY_MAX {
            let limit = GROUP_BODY_MAX as u64;
            return Err(RedoError::TooLarge { bytes: body as u64, limit });
        }
        self.check()?;
        let (prefix, prefix_len) = length_prefix(body as u64);
        let prefix = &prefix[..prefix_len];
        let bytes = (prefix_len + body) as u64;
        let start = self.claims.claim(bytes);
        let span = Span { start: lsn_of(start), end: lsn_of(start + bytes) };
        reserved(span);
        if bytes > self.piece_max() {
            self.fill_in_pieces(start, start + bytes, prefix, parts)?;
            return Ok(span);
        }
        self.have_room(span.end)?;
        let mut at = self.ring.fill(span.start, prefix);
        for part in parts {
            at = self.ring.fill(at, part);
        }
        debug_assert_eq!(at, span.end);
        self.claims.publish(start, start + bytes);
        Ok(span)
    }

    fn piece_max(&self) -> u64 {
        PIECE_MAX.min(self.ring.len() / 4)
    }

    /// Fills and publishes piece by piece, so that a group may be larger than the buffer.
    #[cold]
    fn fill_in_pieces(&self, start: u64, end: u64, prefix: &[u8], parts: &[&[u8]]) -> Result<()> {
        let piece_end = |piece: u64| {
            let next = piece + self.piece_max();
            if next + CLAIM_MIN > end { end } else { next }
        };
        let (mut piece, mut sn) = (start, start);
        self.have_room(lsn_of(piece_end(piece)))?;
        for mut rest in std::iter::once(prefix).chain(parts.iter().copied()) {
            while !rest.is_empty() {
                let room = (piece_end(piece) - sn) as usize;
                let (now, later) = rest.split_at(room.min(rest.len()));
                self.ring.fill(lsn_of(sn), now);
                sn += now.len() as u64;
                rest = later;
                if sn == piece_end(piece) {
                    self.claims.publish(piece, sn);
                    piece = sn;
                    if piece < end {
                        self.have_room(lsn_of(piece_end(piece)))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Just behind the last group reserved: where the next one will start.
    pub fn end(&self) -> Lsn {
        lsn_of(self.claims.next())
    }

    /// All groups that end here or before are in the log buffer as a whole, and their `reserved`
    /// calls have returned.
    pub fn published(&self) -> Lsn {
        lsn_of(self.follow())
    }

    /// Moves the published point as far as it goes.
    pub(crate) fn follow(&self) -> u64 {
        let (point, groups) = self.claims.advance();
        if groups > 0 {
            self.stats.groups.add(groups);
        }
        point
    }

    /// Everything before is handed to the operating system.
    pub fn written(&self) -> Lsn {
        Lsn(self.written.0.load(Ordering::Acquire))
    }

    /// Everything before was given to the device, which may keep it where a power failure takes it.
    pub fn on_device(&self) -> Lsn {
        Lsn(self.on_device.load(Ordering::Acquire))
    }

    /// Everything before is on stable storage.
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.0.load(Ordering::Acquire))
    }

    /// Bytes in the log buffer that are not written yet. A flusher that writes when this passes a
    /// quarter of the buffer spares appenders the work.
    pub fn backlog_bytes(&self) -> u64 {
        self.end().bytes_since(self.written())
    }

    /// What [`Log::set_checkpoint`] was given last.
    pub fn checkpoint(&self) -> Lsn {
        Lsn(self.checkpoint.load(Ordering::Acquire))
    }

    /// Says that the log before `lsn` is needed no more. The caller has made durable that recovery
    /// will start at `lsn` or behind it, and `lsn` is the start of a group or the end of the log.
    /// Never moves back.
    pub fn set_checkpoint(&self, lsn: Lsn) {
        assert!(lsn <= self.durable(), "a checkpoint lies in the durable log");
        self.checkpoint.fetch_max(lsn.0, Ordering::AcqRel);
    }

    /// The capacity asked for, in bytes of disk.
    pub fn capacity_bytes(&self) -> u64 {
        self.segments.capacity()
    }

    /// The greatest age (end minus checkpoint, in bytes) that the files have room for. Callers must
    /// not append beyond it; the log would then take more disk than its capacity. Follows
    /// [`Log::set_capacity`]: up as soon as a file could be made, down by one byte for every two
    /// appended, so that no thread has to stop for it.
    pub fn limit_bytes(&self) -> u64 {
        let slack = self.ring.len().min(self.segments.capacity() / 64);
        let target = self.segments.limit().saturating_sub(slack);
        let limit = self.limit.now(target, self.end(), self.checkpoint());
        limit.min(self.segments.held().saturating_sub(slack))
    }

    /// The age that the checkpoint is kept below: [`Log::limit_bytes`], or less where opening after
    /// a crash must be quick or has little memory. What holds the checkpoint must have moved on
    /// before the age gets there: writers are held back from then on.
    pub fn age_limit_bytes(&self) -> u64 {
        self.limit_bytes().min(self.age_bound.load(Ordering::Relaxed))
    }

    /// What bounds the age besides the files, bytes; `None`: nothing does.
    pub fn age_bound(&self) -> Option<u64> {
        Some(self.age_bound.load(Ordering::Relaxed)).filter(|bytes| *bytes != u64::MAX)
    }

    /// Bounds the age from now on; `None`: the files alone do.
    pub fn set_age_bound(&self, bytes: Option<u64>) {
        self.age_bound.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Where the log may have to stop: while no file can be created it must not be appended to
    /// beyond, or it halts for want of one.
    pub fn room_until(&self) -> Lsn {
        match self.segments.held() {
            u64::MAX => Lsn(u64::MAX),
            _ => self.checkpoint().advanced(self.limit_bytes()),
        }
    }

    /// Changes the capacity. The files follow as [`Log::maintain`] is called.
    pub fn set_capacity(&self, bytes: u64) {
        let before = self.limit_bytes();
        self.segments.set_capacity(bytes);
        self.limit.start(before, self.end());
    }

    /// One step of keeping files ready; called by a background thread until it gives `false`, and
    /// then every few milliseconds (a writer that finds no file ready prepares one itself).
    ///
    /// # Errors
    /// Another file cannot be had ([`RedoError::is_lack_of_space`]): the log goes on with those
    /// that there are, [`Log::limit_bytes`] falls to what they hold, and a later call tries again.
    /// Any other failure halts the log.
    pub fn maintain(&self) -> Result<bool> {
        self.check()?;
        let limit = self.limit_bytes();
        let stepped = self.segments.step(self.end(), self.checkpoint(), limit);
        stepped.inspect_err(|error| {
            if !error.is_lack_of_space() {
                self.halt(error);
            }
        })
    }

    /// One row for each file.
    pub fn segment_infos(&self) -> Vec<SegmentInfo> {
        self.segments.infos()
    }

    /// What the log has counted since it was opened.
    pub fn stats(&self) -> &RedoStats {
        &self.stats
    }

    /// Fails once the log has halted.
    ///
    /// # Errors
    /// [`RedoError::Halted`] with the cause.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_halted() { Err(self.halted_error()) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn is_halted(&self) -> bool {
        self.halt.flag.load(Ordering::Acquire)
    }

    #[cold]
    fn halted_error(&self) -> RedoError {
        let cause = self.halt.cause.get().cloned().unwrap_or_default();
        RedoError::Halted { cause }
    }

    /// Ends all writing, for good: after a failed write or sync what is on disk is unknown.
    #[cold]
    pub(crate) fn halt(&self, error: &RedoError) {
        self.halt_for(error.to_string());
    }

    /// As [`Log::halt`], for this reason.
    pub(crate) fn halt_for(&self, cause: String) {
        self.halt.cause.get_or_init(|| cause.into());
        self.halt.flag.store(true, Ordering::Release);
        self.rounds.wake_all();
    }

    /// Microseconds, for measuring writes.
    pub(crate) fn micros(&self) -> u64 {
        self.clock.now_micros()
    }
}

/// A group's length as it stands before the body.
#[inline]
fn length_prefix(mut value: u64) -> ([u8; varint::LEN_MAX], usize) {
    let mut bytes = [0; varint::LEN_MAX];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    (bytes, len + 1)
}
