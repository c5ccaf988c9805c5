//! Sorted entries in files without names, and several such files read as one: what a sorter writes.
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

use weir_base::{ALIGN, AlignedBuf, varint};
use weir_device::{BlockFile, Volume};

use crate::error::Error;

/// How a run's file is named from its making to its opening, a moment later.
pub(crate) const FILE_PREFIX: &str = "sort-";
/// Read and written at once.
const BLOCK_BYTES: usize = 256 << 10;

/// A key and its value.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

fn failed(e: std::io::Error) -> Error {
    Error::io("sorting", e)
}

/// Sorted entries in a file.
pub(crate) struct Run {
    file: Arc<dyn BlockFile>,
    pub(crate) len: u64,
    pub(crate) generation: u32,
}

fn put_lengths(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    varint::put(out, key.len() as u64);
    varint::put(out, value.len() as u64);
}

pub(crate) fn put_entry(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    put_lengths(out, key, value);
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Key, value, and how many bytes they take together. `None`: the bytes end within it.
pub(crate) fn take_entry(bytes: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let mut rest = bytes;
    let (key, value) = (varint::take(&mut rest)?, varint::take(&mut rest)?);
    let (key, rest) = rest.split_at_checked(usize::try_from(key).ok()?)?;
    let (value, rest) = rest.split_at_checked(usize::try_from(value).ok()?)?;
    Some((key, value, bytes.len() - rest.len()))
}

pub(crate) struct RunWriter {
    run: Run,
    block: AlignedBuf,
    filled: usize,
    lengths: Vec<u8>,
}

impl RunWriter {
    /// `len`: so many bytes it will have at most.
    pub(crate) fn new(volume: &dyn Volume, len: u64, generation: u32) -> Result<RunWriter, Error> {
        let file = unnamed(volume).map_err(failed)?;
        file.grow(len.next_multiple_of(BLOCK_BYTES as u64)).map_err(failed)?;
        let run = Run { file, len: 0, generation };
        Ok(RunWriter {
            run,
            block: AlignedBuf::zeroed(BLOCK_BYTES),
            filled: 0,
            lengths: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut lengths = std::mem::take(&mut self.lengths);
        lengths.clear();
        put_lengths(&mut lengths, key, value);
        for part in [&lengths[..], key, value] {
            self.put(part)?;
        }
        self.lengths = lengths;
        Ok(())
    }

    fn put(&mut self, mut rest: &[u8]) -> Result<(), Error> {
        while !rest.is_empty() {
            let part = rest.len().min(BLOCK_BYTES - self.filled);
            self.block[self.filled..self.filled + part].copy_from_slice(&rest[..part]);
            self.filled += part;
            self.run.len += part as u64;
            rest = &rest[part..];
            if self.filled == BLOCK_BYTES {
                write_block(&mut self.run, &self.block, &mut self.filled)?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Run, Error> {
        if self.filled > 0 {
            write_block(&mut self.run, &self.block, &mut self.filled)?;
        }
        Ok(self.run)
    }
}

/// The block that the run's last bytes are in.
fn write_block(run: &mut Run, block: &AlignedBuf, filled: &mut usize) -> Result<(), Error> {
    let used = filled.next_multiple_of(ALIGN);
    run.file.write_at(run.len - *filled as u64, &block[..used]).map_err(failed)?;
    *filled = 0;
    Ok(())
}

/// A file that goes with its last handle.
fn unnamed(volume: &dyn Volume) -> std::io::Result<Arc<dyn BlockFile>> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let name = format!("{FILE_PREFIX}{}", NUMBER.fetch_add(1, atomic::Ordering::Relaxed));
        match volume.create(&name, 0) {
            Ok(file) => return volume.remove(&name).map(|()| file),
            // Of a process that ended just then.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// Removes what a crash has left between a file's making and its removal. Best effort: it is in
/// nothing's way.
pub(crate) fn remove_left(volume: &dyn Volume) {
    for name in volume.list().unwrap_or_default() {
        if name.starts_with(FILE_PREFIX) {
            let _ = volume.remove(&name);
        }
    }
}

struct RunReader {
    run: Run,
    read: u64,
    block: AlignedBuf,
    pending: Vec<u8>,
    at: usize,
}

/// An entry at the head of its run: where it lies in what the reader has read.
struct Head {
    key: Range<usize>,
    value: Range<usize>,
    reader: RunReader,
}

/// Several runs as one.
pub(crate) struct Merge {
    heads: BinaryHeap<Reverse<Head>>,
    begun: bool,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Head {}
impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.entry().cmp(&other.entry())
    }
}

impl Head {
    fn entry(&self) -> Pair<'_> {
        (&self.reader.pending[self.key.clone()], &self.reader.pending[self.value.clone()])
    }

    /// `false`: the run has ended.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            let reader = &mut self.reader;
            if let Some((key, value, used)) = take_entry(&reader.pending[reader.at..]) {
                let (key, value) = (key.len(), value.len());
                reader.at += used;
                self.value = reader.at - value..reader.at;
                self.key = self.value.start - key..self.value.start;
                return Ok(true);
            }
            if !reader.fill()? {
                return Ok(false);
            }
        }
    }
}

impl RunReader {
    fn fill(&mut self) -> Result<bool, Error> {
        let left = self.run.len - self.read;
        if left == 0 {
            return Ok(false);
        }
        let part = left.min(BLOCK_BYTES as u64) as usize;
        let block = &mut self.block[..part.next_multiple_of(ALIGN)];
        self.run.file.read_at(self.read, block).map_err(failed)?;
        self.pending.drain(..self.at);
        self.at = 0;
        self.pending.extend_from_slice(&block[..part]);
        self.read += part as u64;
        Ok(true)
    }
}

impl Merge {
    pub(crate) fn new(runs: Vec<Run>) -> Result<Merge, Error> {
        let mut heads = BinaryHeap::new();
        for run in runs {
            let block = AlignedBuf::zeroed(BLOCK_BYTES);
            let reader = RunReader { run, read: 0, block, pending: Vec::new(), at: 0 };
            let mut head = Head { key: 0..0, value: 0..0, reader };
            if head.advance()? {
                heads.push(Reverse(head));
            }
        }
        Ok(Merge { heads, begun: false })
    }

    pub(crate) fn step(&mut self) -> Result<Option<Pair<'_>>, Error> {
        if self.begun
            && let Some(mut top) = self.heads.peek_mut()
            && !top.0.advance()?
        {
            PeekMut::pop(top);
        }
        self.begun = true;
        Ok(self.heads.peek().map(|Reverse(head)| head.entry()))
    }
}
