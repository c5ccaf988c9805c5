//! Deep queues by io_uring, and by plain calls where the kernel forbids it. One of the few files
//! with `unsafe`: the kernel reads and writes buffers after the submitting call has returned, so
//! [`Ring::run`] returns only when it has seen the completion of all that it submitted (DEVICE-4).
use std::io::{self, ErrorKind};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use weir_base::lock::Mutex;
use weir_base::rank;

use io_uring::{IoUring, opcode, types::Fd};

use crate::batch::{Batch, Direction};
use crate::sys;

/// Operations in flight per ring; longer batches are fed as completions arrive.
const RING_ENTRIES: u32 = 128;
/// Rings kept for the next caller. More exist while more threads are inside a batch.
const IDLE_RINGS_MAX: usize = 8;

/// The rings of a volume. A ring serves one batch at a time.
pub(crate) struct RingPool {
    idle: Mutex<rank::IdleRings, Vec<Ring>>,
    /// The kernel refused a ring, or the environment forbids it: plain calls from now on.
    refused: AtomicBool,
}

impl RingPool {
    /// A pool, empty and refusing when `WEIR_NO_URING=1` or when the kernel gives no ring.
    pub(crate) fn new() -> Self {
        let forbidden = std::env::var_os("WEIR_NO_URING").is_some_and(|value| value == "1");
        let first = if forbidden { None } else { Ring::new().ok() };
        let refused = AtomicBool::new(first.is_none());
        RingPool { idle: Mutex::new(first.into_iter().collect()), refused }
    }

    /// A pool that uses plain calls only.
    #[cfg(test)]
    pub(crate) fn refusing() -> Self {
        RingPool { idle: Mutex::new(Vec::new()), refused: AtomicBool::new(true) }
    }

    /// Whether batches go through rings.
    pub(crate) fn in_use(&self) -> bool {
        !self.refused.load(Relaxed)
    }

    /// Does the whole batch. On an error any part of it may be done, but nothing is in flight.
    pub(crate) fn run(&self, fd: RawFd, batch: &mut Batch<'_>) -> io::Result<()> {
        if batch.len() > 1 && self.in_use() {
            let idle = self.idle.lock().pop();
            // Without a ring just now (say, too many open files), plain calls do the same.
            if let Some(mut ring) = idle.or_else(|| Ring::new().ok()) {
                match ring.run(fd, batch) {
                    Ok(result) => {
                        let mut idle = self.idle.lock();
                        if idle.len() < IDLE_RINGS_MAX {
                            idle.push(ring);
                        }
                        return result;
                    }
                    Err(RingBroke) => self.refused.store(true, Relaxed),
                }
            }
        }
        (0..batch.len()).try_for_each(|index| batch.transfer(index, fd))
    }
}

/// The ring itself failed, not an operation. Nothing is in flight any more; the batch holds what
/// is left to do.
struct RingBroke;

struct Ring {
    ring: IoUring,
    /// How many more submissions succeed.
    #[cfg(test)]
    submissions_left: usize,
}

impl Ring {
    fn new() -> io::Result<Self> {
        // Completions are taken when we ask for them, so no thread need be interrupted for each.
        // Kernels before 5.19 do not know the flag.
        let quiet = IoUring::builder().dontfork().setup_coop_taskrun().build(RING_ENTRIES);
        let ring = match quiet {
            Err(e) if e.kind() == ErrorKind::InvalidInput => IoUring::new(RING_ENTRIES)?,
            other => other?,
        };
        Ok(Ring {
            ring,
            #[cfg(test)]
            submissions_left: usize::MAX,
        })
    }

    fn submit_and_wait(&mut self, want: usize) -> io::Result<usize> {
        #[cfg(test)]
        {
            if self.submissions_left == 0 {
                return Err(io::Error::from_raw_os_error(libc::EBADR));
            }
            self.submissions_left -= 1;
        }
        self.ring.submit_and_wait(want)
    }

    fn run(&mut self, fd: RawFd, batch: &mut Batch<'_>) -> Result<io::Result<()>, RingBroke> {
        // A stack, so that the remainder of a short transfer goes first.
        let mut waiting: Vec<usize> = (0..batch.len()).rev().collect();
        let mut in_flight = 0;
        let mut failure = None;
        loop {
            while failure.is_none() && in_flight < RING_ENTRIES as usize {
                let Some(index) = waiting.pop() else { break };
                if !self.push(fd, batch, index) {
                    waiting.push(index);
                    break;
                }
                in_flight += 1;
            }
            if in_flight == 0 {
                return Ok(failure.map_or(Ok(()), Err));
            }
            // Refill before the queue runs dry; with nothing left to feed, wait for all at once.
            let want = if waiting.is_empty() { in_flight } else { (in_flight / 4).max(1) };
            match self.submit_and_wait(want) {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if is_passing(&e) => std::thread::sleep(Duration::from_micros(50)),
                Err(_) => {
                    self.drain(batch, in_flight);
                    return Err(RingBroke);
                }
            }
            in_flight -= self.reap(batch, &mut waiting, &mut failure);
        }
    }

    /// Queues what is left of a run; false when the queue has no room.
    fn push(&mut self, fd: RawFd, batch: &Batch<'_>, index: usize) -> bool {
        let vector = batch.vector(index);
        let (start, count, offset) =
            (vector.as_ptr(), vector.len() as u32, batch.run(index).offset);
        let entry = match batch.direction {
            Direction::Read => opcode::Readv::new(Fd(fd), start, count).offset(offset).build(),
            Direction::Write => opcode::Writev::new(Fd(fd), start, count).offset(offset).build(),
            Direction::AtomicWrite => {
                let write = opcode::Writev::new(Fd(fd), start, count).offset(offset);
                write.rw_flags(sys::RWF_ATOMIC).build()
            }
        };
        // SAFETY: the vector and its buffers are borrowed by `batch`, which `run` holds until it
        // has seen this entry's completion or dropped it unsubmitted with the ring (DEVICE-4); a
        // run in flight is not advanced.
        unsafe { self.ring.submission().push(&entry.user_data(index as u64)).is_ok() }
    }

    /// Takes the completions that are there, and returns how many.
    fn reap(
        &mut self,
        batch: &mut Batch<'_>,
        waiting: &mut Vec<usize>,
        failure: &mut Option<io::Error>,
    ) -> usize {
        let mut reaped = 0;
        for completion in self.ring.completion() {
            reaped += 1;
            let index = completion.user_data() as usize;
            let error = match usize::try_from(completion.result()) {
                Ok(0) => batch.stuck(),
                Ok(done) => {
                    batch.advance(index, done);
                    if batch.run(index).bytes > 0 {
                        waiting.push(index);
                    }
                    continue;
                }
                Err(_) => io::Error::from_raw_os_error(-completion.result()),
            };
            if error.kind() == ErrorKind::Interrupted || error.kind() == ErrorKind::WouldBlock {
                waiting.push(index);
            } else {
                failure.get_or_insert(error);
            }
        }
        reaped
    }

    /// After the ring broke: waits for all that the kernel has taken. What it has not taken, it
    /// never will, because the ring is dropped next.
    fn drain(&mut self, batch: &mut Batch<'_>, in_flight: usize) {
        let mut left = in_flight.saturating_sub(self.ring.submission().len());
        while left > 0 {
            left = left.saturating_sub(self.reap(batch, &mut Vec::new(), &mut None));
            // Not a wait in the kernel: that is what has just failed. Completions still arrive.
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Errors of the submitting call that go away when completions are taken.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{ReadOp, WriteOp};
    use std::fs::File;
    use std::os::fd::AsRawFd;

    const PIECE: usize = 512;

    /// Pieces in an order without contiguous neighbours, each filled with its number.
    fn pieces(count: usize) -> Vec<(u64, Vec<u8>)> {
        let numbers = (0..count).map(|i| i * 7 % count);
        numbers.map(|n| ((n * PIECE) as u64, vec![(n % 251) as u8 + 1; PIECE])).collect()
    }

    fn file_with(pieces: &[(u64, Vec<u8>)], pool: &RingPool) -> io::Result<File> {
        let file = tempfile::tempfile().unwrap();
        let ops: Vec<_> =
            pieces.iter().map(|(offset, buf)| WriteOp { offset: *offset, buf }).collect();
        pool.run(file.as_raw_fd(), &mut Batch::of_writes(&ops)).map(|()| file)
    }

    fn check_reads(file: &File, pieces: &[(u64, Vec<u8>)], pool: &RingPool) {
        let mut buffers = vec![vec![0; PIECE]; pieces.len()];
        let mut ops: Vec<_> = pieces
            .iter()
            .zip(&mut buffers)
            .map(|((offset, _), buf)| ReadOp { offset: *offset, buf })
            .collect();
        pool.run(file.as_raw_fd(), &mut Batch::of_reads(&mut ops)).unwrap();
        assert!(buffers.iter().zip(pieces).all(|(found, (_, written))| found == written));
    }

    #[test]
    fn a_broken_ring_is_drained_and_replaced_by_plain_calls() {
        let pieces = pieces(200);
        for submissions_left in [0, 1] {
            let pool = RingPool::new();
            let Some(mut ring) = pool.idle.lock().pop() else { return };
            ring.submissions_left = submissions_left;
            pool.idle.lock().push(ring);
            let file = file_with(&pieces, &pool).unwrap();
            assert!(!pool.in_use(), "submissions fail, and the pool must notice");
            check_reads(&file, &pieces, &pool);
        }
    }

    #[test]
    fn one_failure_among_many_leaves_the_ring_usable() {
        let (pool, many) = (RingPool::new(), pieces(300));
        let mut with_bad = many.clone();
        // No file can have a byte there.
        with_bad[17].0 = i64::MAX as u64 - 100;
        file_with(&with_bad, &pool).unwrap_err();
        let rings = pool.idle.lock().len();
        let file = file_with(&many, &pool).unwrap();
        check_reads(&file, &many, &pool);
        assert_eq!(pool.idle.lock().len(), rings, "the same ring served again");
    }

    #[test]
    fn the_environment_forbids_rings() {
        if std::env::var_os("WEIR_NO_URING").is_some_and(|value| value == "1") {
            assert!(!RingPool::new().in_use());
            return;
        }
        // Another process, because the environment of this one is shared by all its tests.
        let this = std::env::current_exe().unwrap();
        let name = "uring::tests::the_environment_forbids_rings";
        let mut again = std::process::Command::new(this);
        let output = again.args(["--exact", name]).env("WEIR_NO_URING", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}
