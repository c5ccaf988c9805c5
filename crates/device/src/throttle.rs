//! A disk of given IOPS, bandwidth and sync time in front of another volume.
//!
//! The real I/O is done first, then the caller sleeps until the moment at which such a disk would
//! have been done. All files of the volume share the one disk.
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Clock, SystemClock};

use crate::bucket::Bucket;
use crate::device::{BlockFile, ReadOp, Volume, WriteOp};
use crate::layer::Layer;
use crate::spec::DiskSpec;
use crate::sys;

/// A contiguous run costs one operation for each started piece of this size: the largest request
/// that disks and cloud volumes usually count as one.
const OP_BYTES_MAX: u64 = 256 << 10;

/// What creating a file writes at a time, so that others get their turn in between.
const CREATE_STEP_BYTES: u64 = 1 << 20;

/// A volume that is as slow as its [`DiskSpec`] says (DEVICE-7).
pub struct ThrottledVolume {
    inner: Arc<dyn Volume>,
    throttle: Arc<Throttle>,
}

impl ThrottledVolume {
    /// Makes `inner` as slow as `spec`, from now on. (Where `inner` is slower still, so is this.)
    #[must_use]
    pub fn new(inner: Arc<dyn Volume>, spec: DiskSpec) -> Self {
        Self::with_clock(inner, spec, Arc::new(SystemClock::new()))
    }

    /// As [`ThrottledVolume::new`], in the time of `clock`.
    #[must_use]
    pub fn with_clock(inner: Arc<dyn Volume>, spec: DiskSpec, clock: Arc<dyn Clock>) -> Self {
        let throttle = Throttle {
            bucket: Mutex::new(Bucket::new(&spec)),
            start_micros: clock.now_micros(),
            clock,
            spec,
            unlimited: AtomicBool::new(false),
        };
        ThrottledVolume { inner, throttle: Arc::new(throttle) }
    }

    /// Whether calls are as fast as the volume below from now on. They are not at first.
    pub fn set_unlimited(&self, unlimited: bool) {
        self.throttle.unlimited.store(unlimited, Ordering::Relaxed);
    }
}

impl Layer for ThrottledVolume {
    fn below(&self) -> &dyn Volume {
        &*self.inner
    }

    fn wrap(&self, _name: &str, inner: Arc<dyn BlockFile>) -> Arc<dyn BlockFile> {
        Arc::new(ThrottledFile { inner, throttle: Arc::clone(&self.throttle) })
    }

    fn difference(&self) -> String {
        let spec = &self.throttle.spec;
        let slices = match spec.slice_micros / 1000 {
            0 => String::new(),
            millis => format!(" in slices of {millis} ms"),
        };
        format!("throttled to {}{slices}", spec.rates())
    }

    fn create_wrapped(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        let file = self.inner.create(name, len)?;
        let mut left = len;
        while left > 0 {
            let step = left.min(CREATE_STEP_BYTES);
            self.throttle.wait(self.throttle.finish(Cost::of_runs([(0, step)]), false));
            left -= step;
        }
        Ok(self.wrap(name, file))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.throttle.slowly(Cost::default(), true, || self.inner.sync_directory())
    }
}

struct ThrottledFile {
    inner: Arc<dyn BlockFile>,
    throttle: Arc<Throttle>,
}

impl BlockFile for ThrottledFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let cost = self.throttle.read_cost([(offset, buf.len() as u64)]);
        self.throttle.slowly(cost, false, || self.inner.read_at(offset, buf))
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let cost = Cost::of_runs([(offset, buf.len() as u64)]);
        self.throttle.slowly(cost, false, || self.inner.write_at(offset, buf))
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let cost = Cost::of_runs([(offset, buf.len() as u64)]);
        self.throttle.slowly(cost, true, || self.inner.write_durable_at(offset, buf))
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        let ranges = reads.iter().map(|op| (op.offset, op.buf.len() as u64));
        let cost = self.throttle.read_cost(ranges);
        self.throttle.slowly(cost, false, || self.inner.read_many(reads))
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        let cost = Cost::of_runs(writes.iter().map(|op| (op.offset, op.buf.len() as u64)));
        self.throttle.slowly(cost, false, || self.inner.write_many(writes))
    }

    fn has_atomic_writes(&self, len: usize) -> bool {
        self.inner.has_atomic_writes(len)
    }

    fn write_many_atomically(&self, writes: &[WriteOp<'_>]) -> io::Result<bool> {
        let bytes = writes.iter().map(|op| op.buf.len() as u64).sum();
        // Neighbours do not merge.
        let cost = Cost { ops: writes.len() as u64, bytes };
        self.throttle.slowly(cost, false, || self.inner.write_many_atomically(writes))
    }

    fn sync(&self) -> io::Result<()> {
        self.throttle.slowly(Cost::default(), true, || self.inner.sync())
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        // Reserving space writes metadata only, and none where there is no space.
        self.inner.grow(len)?;
        self.throttle.slowly(Cost { ops: 1, bytes: 0 }, false, || Ok(()))
    }

    fn shrink(&self, len: u64) -> io::Result<()> {
        self.throttle.slowly(Cost { ops: 1, bytes: 0 }, false, || self.inner.shrink(len))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.throttle.slowly(Cost { ops: 1, bytes: 0 }, false, || self.inner.punch(offset, len))
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        self.throttle.slowly(Cost { ops: 1, bytes: 0 }, false, || self.inner.reserve(offset, len))
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }

    fn lock_alone(&self) -> io::Result<bool> {
        self.inner.lock_alone()
    }
}

/// What a call takes of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    ops: u64,
    bytes: u64,
}

impl Cost {
    /// The cost of ranges (offset, length); contiguous neighbours merge, as the block layer merges.
    fn of_runs(ranges: impl IntoIterator<Item = (u64, u64)>) -> Cost {
        let (mut cost, mut run_bytes, mut run_end) = (Cost::default(), 0u64, None);
        for (offset, len) in ranges {
            if run_end != Some(offset) {
                cost.ops += run_bytes.div_ceil(OP_BYTES_MAX);
                run_bytes = 0;
            }
            run_bytes += len;
            run_end = offset.checked_add(len);
            cost.bytes += len;
        }
        cost.ops += run_bytes.div_ceil(OP_BYTES_MAX);
        cost
    }
}

struct Throttle {
    bucket: Mutex<rank::ThrottleBudget, Bucket>,
    clock: Arc<dyn Clock>,
    start_micros: u64,
    spec: DiskSpec,
    unlimited: AtomicBool,
}

impl Throttle {
    /// The cost of reads of these ranges (offset, length): nothing where reads are free.
    fn read_cost(&self, ranges: impl IntoIterator<Item = (u64, u64)>) -> Cost {
        if self.spec.reads_are_free { Cost::default() } else { Cost::of_runs(ranges) }
    }

    /// Does `real`, and returns when such a disk would have done it, or failed: a caller that gets
    /// its errors at once, and tries again, would have the disk owe more and more.
    fn slowly<T>(
        &self,
        cost: Cost,
        synced: bool,
        real: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let finish = self.finish(cost, synced);
        let result = real();
        self.wait(finish);
        result
    }

    fn now(&self) -> u64 {
        self.clock.now_micros() - self.start_micros
    }

    /// Queues the work, and says when it is done.
    fn finish(&self, cost: Cost, synced: bool) -> u64 {
        let mut finish = 0;
        if self.unlimited.load(Ordering::Relaxed) {
            return finish;
        }
        if cost.ops > 0 {
            let mut bucket = self.bucket.lock();
            // Read inside the lock, so that times reach the bucket in order.
            finish = bucket.serve(self.now(), cost.ops, cost.bytes);
        }
        if synced && self.spec.sync_micros > 0 {
            finish = finish.max(self.now()) + self.spec.sync_micros;
        }
        finish
    }

    fn wait(&self, finish: u64) {
        loop {
            let now = self.now();
            if now >= finish {
                return;
            }
            sys::sleep_precisely(&*self.clock, finish - now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimVolume;
    use weir_base::{ALIGN, AlignedBuf, ManualClock};

    #[test]
    fn costs() {
        let (page, piece) = (16 << 10, 256 << 10);
        let cost = |ranges: &[(u64, u64)]| {
            let cost = Cost::of_runs(ranges.iter().copied());
            (cost.ops, cost.bytes)
        };
        assert_eq!(cost(&[]), (0, 0));
        assert_eq!(cost(&[(0, page)]), (1, page));
        assert_eq!(cost(&[(0, piece)]), (1, piece));
        assert_eq!(cost(&[(0, piece + 4096)]), (2, piece + 4096));
        let row: Vec<_> = (0..32).map(|i| (i * page, page)).collect();
        assert_eq!(cost(&row), (2, 32 * page));
        assert_eq!(cost(&[(0, page), (2 * page, page), (page, page)]), (3, 3 * page));
        assert_eq!(cost(&[(u64::MAX, page), (0, page)]), (2, 2 * page));
    }

    #[test]
    fn reads_that_are_free_take_no_time() {
        let (clock, _volume, file) = manual("1000iops,16MiB,free-reads");
        let mut page = AlignedBuf::zeroed(ALIGN);
        file.write_at(0, &page).unwrap();
        for _ in 0..100 {
            file.read_at(0, &mut page).unwrap();
            file.read_many(&mut [ReadOp { offset: 4096, buf: &mut page }]).unwrap();
        }
        assert_eq!(clock.now_micros(), 1000, "the write alone");
        file.write_at(0, &page).unwrap();
        assert_eq!(clock.now_micros(), 2000, "the next one as before");
    }

    /// A volume of a file of 1 MiB in manual time, created before the throttling.
    fn manual(spec: &str) -> (Arc<ManualClock>, ThrottledVolume, Arc<dyn BlockFile>) {
        manual_over(&Arc::new(SimVolume::new(0)), spec)
    }

    fn manual_over(
        sim: &Arc<SimVolume>,
        spec: &str,
    ) -> (Arc<ManualClock>, ThrottledVolume, Arc<dyn BlockFile>) {
        sim.create("data", 1 << 20).unwrap();
        let clock = Arc::new(ManualClock::default());
        let volume = ThrottledVolume::with_clock(sim.clone(), spec.parse().unwrap(), clock.clone());
        let file = volume.open("data").unwrap();
        (clock, volume, file)
    }

    #[test]
    fn calls_take_the_time_of_the_disk() {
        let (clock, volume, file) = manual("1000iops,16MiB,sync=200us");
        let mut page = AlignedBuf::zeroed(ALIGN);
        let expect = |what: &str, micros: u64| {
            assert_eq!(clock.now_micros(), micros, "after {what}");
        };
        file.write_at(0, &page).unwrap();
        expect("a write", 1000);
        file.read_at(0, &mut page).unwrap();
        expect("a read", 2000);
        file.sync().unwrap();
        expect("a sync", 2200);
        file.write_durable_at(0, &page).unwrap();
        expect("a durable write, with 200 us of credit", 3200);
        let ops: Vec<_> = (0..10).map(|i| WriteOp { offset: i * 8192, buf: &page }).collect();
        file.write_many(&ops).unwrap();
        expect("ten scattered writes, again with credit", 13_000);
        let ops: Vec<_> = (0..4).map(|i| WriteOp { offset: i * 4096, buf: &page }).collect();
        file.write_many(&ops).unwrap();
        expect("four contiguous writes", 14_000);
        volume.sync_directory().unwrap();
        expect("a sync of the directory", 14_200);
        let large = AlignedBuf::zeroed(1 << 20);
        file.write_at(0, &large).unwrap();
        expect("1 MiB at 16 MiB/s, with up to 2 ms of credit", 12_200 + 62_500);
        volume.create("new", 2 << 20).unwrap();
        assert!(clock.now_micros() > 12_200 + 3 * 62_500 - 2000, "zeros are written too");
    }

    #[test]
    fn it_can_be_as_fast_as_what_is_below_for_a_while() {
        let (clock, volume, file) = manual("1000iops,16MiB,sync=200us");
        let page = AlignedBuf::zeroed(ALIGN);
        volume.set_unlimited(true);
        (0..100).for_each(|_| file.write_durable_at(0, &page).unwrap());
        volume.create("new", 2 << 20).unwrap();
        assert_eq!(clock.now_micros(), 0);
        volume.set_unlimited(false);
        file.write_at(0, &page).unwrap();
        assert_eq!(clock.now_micros(), 1000, "nothing of it is owed");
    }

    #[test]
    fn failures_are_passed_on() {
        let sim = Arc::new(SimVolume::new(0));
        let (clock, volume, file) = manual_over(&sim, "1000iops,32MiB");
        assert!(file.write_at(1 << 20, &AlignedBuf::zeroed(ALIGN)).is_err());
        assert!(volume.open("none").is_err());
        assert_eq!(clock.now_micros(), 1000, "an error takes as long as a write");
        sim.set_capacity(Some(0));
        for _ in 0..1000 {
            assert!(file.grow(1 << 30).is_err());
        }
        assert_eq!(clock.now_micros(), 1000, "there is nothing to write");
        file.write_at(0, &AlignedBuf::zeroed(ALIGN)).unwrap();
        assert_eq!(clock.now_micros(), 2000, "and nothing is owed");
        let text = volume.describe();
        assert_eq!(text, "throttled to 1000 iops 32 MiB/s, over simulated disk in memory");
    }

    /// Never more, on any machine; and no less where the machine has a processor to spare, which
    /// one try of a few is taken to find.
    #[test]
    fn two_thousand_a_second_in_real_time() {
        let rates: Vec<f64> = (0..8).map(|_| rate_in_real_time()).collect();
        assert!(rates.iter().all(|&rate| rate <= 2100.0), "{rates:?} operations a second");
        let best = rates.iter().copied().fold(0.0, f64::max);
        assert!(best >= 1000.0, "{rates:?} operations a second");
    }

    fn rate_in_real_time() -> f64 {
        let sim = Arc::new(SimVolume::new(0));
        sim.create("data", 1 << 20).unwrap();
        let volume = ThrottledVolume::new(sim.clone(), "2000iops".parse().unwrap());
        let file = volume.open("data").unwrap();
        let clock = SystemClock::new();
        let page = AlignedBuf::zeroed(ALIGN);
        let (batch_ops, batches, threads) = (10, 20, 4);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..batches {
                        let offsets = (0..batch_ops).map(|i| i * 8192);
                        let ops: Vec<_> =
                            offsets.map(|offset| WriteOp { offset, buf: &page }).collect();
                        file.write_many(&ops).unwrap();
                    }
                });
            }
        });
        let done = (batch_ops * batches * threads) as f64;
        let rate = done / (clock.now_micros() as f64 / 1e6);
        assert_eq!(sim.io_stats().writes as f64, done);
        rate
    }
}
