//! Many reads or writes as the kernel takes them: runs of contiguous operations, one vector each.
//! One of the few files with `unsafe`, because vectors hold raw addresses.
use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;

use crate::device::{ReadOp, WriteOp};
use crate::sys;

/// Operations merge until a run is this long; a longer one would fill a disk's queue alone.
const RUN_BYTES_MAX: usize = 512 << 10;
/// Operations merge until a run has this many parts (the kernel copies the vector each time).
const RUN_PARTS_MAX: usize = 64;

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
    /// Each run is found whole or not at all (`RWF_ATOMIC`).
    AtomicWrite,
}

/// What is left to do of one contiguous run.
pub(crate) struct Run {
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    first_part: usize,
    parts: usize,
}

/// A batch of runs. Lives as long as the buffers it points to, so that its holder may hand
/// addresses to the kernel.
pub(crate) struct Batch<'a> {
    pub(crate) direction: Direction,
    runs: Vec<Run>,
    parts: Vec<libc::iovec>,
    buffers: PhantomData<&'a mut [u8]>,
}

impl<'a> Batch<'a> {
    /// All of `reads`.
    pub(crate) fn of_reads(reads: &'a mut [ReadOp<'_>]) -> Self {
        let parts = reads.iter_mut().map(|op| (op.offset, op.buf.as_mut_ptr(), op.buf.len()));
        Self::merged(Direction::Read, parts)
    }

    /// All of `writes`.
    pub(crate) fn of_writes(writes: &'a [WriteOp<'_>]) -> Self {
        let parts = writes.iter().map(|op| (op.offset, op.buf.as_ptr().cast_mut(), op.buf.len()));
        Self::merged(Direction::Write, parts)
    }

    /// All of `writes`, each a run of its own: together they would be too long, or in no place for
    /// such a write.
    pub(crate) fn of_atomic_writes(writes: &'a [WriteOp<'_>]) -> Self {
        let part = |op: &WriteOp<'_>| libc::iovec {
            iov_base: op.buf.as_ptr().cast_mut().cast(),
            iov_len: op.buf.len(),
        };
        let run = |(first_part, op): (usize, &WriteOp<'_>)| Run {
            offset: op.offset,
            bytes: op.buf.len(),
            first_part,
            parts: 1,
        };
        Batch {
            direction: Direction::AtomicWrite,
            runs: writes.iter().enumerate().map(run).collect(),
            parts: writes.iter().map(part).collect(),
            buffers: PhantomData,
        }
    }

    fn merged(
        direction: Direction,
        ops: impl ExactSizeIterator<Item = (u64, *mut u8, usize)>,
    ) -> Self {
        let mut runs: Vec<Run> = Vec::with_capacity(ops.len());
        let mut parts = Vec::with_capacity(ops.len());
        for (offset, start, len) in ops.filter(|&(_, _, len)| len > 0) {
            let part = libc::iovec { iov_base: start.cast(), iov_len: len };
            match runs.last_mut() {
                Some(run)
                    if run.offset + run.bytes as u64 == offset
                        && run.bytes + len <= RUN_BYTES_MAX
                        && run.parts < RUN_PARTS_MAX =>
                {
                    run.bytes += len;
                    run.parts += 1;
                }
                _ => runs.push(Run { offset, bytes: len, first_part: parts.len(), parts: 1 }),
            }
            parts.push(part);
        }
        Batch { direction, runs, parts, buffers: PhantomData }
    }

    /// The number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// A run by its index.
    pub(crate) fn run(&self, index: usize) -> &Run {
        &self.runs[index]
    }

    /// What is left of a run, as the kernel wants it. The vector must not be used once `self` is
    /// gone or was advanced.
    pub(crate) fn vector(&self, index: usize) -> &[libc::iovec] {
        let run = &self.runs[index];
        &self.parts[run.first_part..run.first_part + run.parts]
    }

    /// Takes note that the first `done` bytes left of a run were transferred.
    pub(crate) fn advance(&mut self, index: usize, done: usize) {
        let run = &mut self.runs[index];
        let mut done = done.min(run.bytes);
        run.offset += done as u64;
        run.bytes -= done;
        while done > 0 {
            let part = &mut self.parts[run.first_part];
            if done < part.iov_len {
                part.iov_base = part.iov_base.cast::<u8>().wrapping_add(done).cast();
                part.iov_len -= done;
                return;
            }
            done -= part.iov_len;
            run.first_part += 1;
            run.parts -= 1;
        }
    }

    /// Transfers what is left of a run with plain system calls.
    pub(crate) fn transfer(&mut self, index: usize, fd: RawFd) -> io::Result<()> {
        while self.runs[index].bytes > 0 {
            let (offset, vector) = (self.runs[index].offset as libc::off_t, self.vector(index));
            let (start, count) = (vector.as_ptr(), vector.len() as libc::c_int);
            // SAFETY: the vector lists buffers that `self` borrows (exclusively where they are read
            // into), and the call is over before `self` can go away.
            let done = unsafe {
                match self.direction {
                    Direction::Read => libc::preadv(fd, start, count, offset),
                    Direction::Write => libc::pwritev(fd, start, count, offset),
                    Direction::AtomicWrite => {
                        libc::pwritev2(fd, start, count, offset, sys::RWF_ATOMIC)
                    }
                }
            };
            match usize::try_from(done) {
                Ok(0) => return Err(self.stuck()),
                Ok(done) => self.advance(index, done),
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        }
        Ok(())
    }

    /// The error for a transfer of no bytes.
    pub(crate) fn stuck(&self) -> io::Error {
        match self.direction {
            Direction::Read => {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was")
            }
            Direction::Write | Direction::AtomicWrite => {
                io::Error::new(io::ErrorKind::WriteZero, "the device took no bytes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(batch: &Batch<'_>) -> Vec<(u64, usize, usize)> {
        let runs = batch.runs.iter();
        runs.map(|run| (run.offset, run.bytes, run.parts)).collect()
    }

    #[test]
    fn contiguous_neighbours_merge() {
        let data = vec![7u8; 4096];
        let op = |page: u64| WriteOp { offset: page * 4096, buf: &data };
        let ops: Vec<_> = [3, 4, 5, 9, 8, 10].into_iter().map(op).collect();
        let batch = Batch::of_writes(&ops);
        let page = 4096;
        let expected = [(3 * page, 3), (9 * page, 1), (8 * page, 1), (10 * page, 1)]
            .map(|(o, n)| (o, n * 4096, n));
        assert_eq!(shape(&batch), expected);
    }

    #[test]
    fn atomic_writes_stay_apart() {
        let data = vec![7u8; 4096];
        let ops: Vec<_> = (0..3).map(|i| WriteOp { offset: i * 4096, buf: &data }).collect();
        let batch = Batch::of_atomic_writes(&ops);
        assert_eq!(shape(&batch), [(0, 4096, 1), (4096, 4096, 1), (8192, 4096, 1)]);
        assert_eq!(batch.vector(2)[0].iov_base.cast_const().cast(), data.as_ptr());
    }

    #[test]
    fn runs_have_limits() {
        let data = vec![7u8; 256 << 10];
        let ops: Vec<_> = (0..5).map(|i| WriteOp { offset: i << 18, buf: &data }).collect();
        assert_eq!(Batch::of_writes(&ops).len(), 3);
        let ops: Vec<_> = (0..130).map(|i| WriteOp { offset: i << 9, buf: &data[..512] }).collect();
        assert_eq!(Batch::of_writes(&ops).len(), 3);
    }

    #[test]
    fn advancing_passes_parts() {
        let data = vec![7u8; 4096];
        let ops: Vec<_> = (0..3).map(|i| WriteOp { offset: i * 4096, buf: &data }).collect();
        let mut batch = Batch::of_writes(&ops);
        batch.advance(0, 5000);
        assert_eq!(shape(&batch), [(5000, 3 * 4096 - 5000, 2)]);
        assert_eq!(batch.vector(0)[0].iov_len, 2 * 4096 - 5000);
        assert_eq!(batch.vector(0)[0].iov_base as usize, data.as_ptr() as usize + 904);
        batch.advance(0, 2 * 4096 - 5000);
        assert_eq!(shape(&batch), [(8192, 4096, 1)]);
        batch.advance(0, usize::MAX);
        assert_eq!(shape(&batch), [(12288, 0, 0)]);
    }
}
