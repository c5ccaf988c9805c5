//! A volume over another one that is only read: what is written lies in a scratch file that goes
//! with this process. So a database is recovered, and looked at, without a change to its files.
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, btree_map};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_base::ALIGN;
use weir_base::lock::{Mutex, RwLock};
use weir_base::rank;

use crate::device::{
    BlockFile, IoStats, ReadOp, Volume, WriteOp, check_len, check_name, check_read, check_write,
    context,
};
use crate::sys;

const BLOCK: u64 = ALIGN as u64;

/// What lies below, with changes that are seen nowhere else.
pub struct OverlayVolume {
    below: Arc<dyn Volume>,
    scratch: Arc<Scratch>,
    names: Mutex<rank::OverlayNames, Names>,
}

#[derive(Default)]
struct Names {
    /// Files that have been opened or created here.
    files: BTreeMap<String, Arc<OverlayFile>>,
    /// Files of the volume below that are gone here.
    removed: HashSet<String>,
}

impl OverlayVolume {
    /// Over `below`, of which nothing is changed. What is written is held in a file without a name
    /// where temporary files lie, or in memory where there can be none.
    ///
    /// # Errors
    /// When neither can be had.
    pub fn new(below: Arc<dyn Volume>) -> io::Result<Self> {
        let file = sys::nameless(&std::env::temp_dir())
            .map_err(|e| context(e, || "make a scratch file".to_owned()))?;
        let scratch = Arc::new(Scratch { file, end: AtomicU64::new(0) });
        Ok(OverlayVolume { below, scratch, names: Mutex::default() })
    }

    fn file(&self, below: Option<Arc<dyn BlockFile>>, len: u64) -> Arc<OverlayFile> {
        let below_len = below.as_ref().map_or(0, |file| file.len());
        let (scratch, changed) = (self.scratch.clone(), RwLock::default());
        Arc::new(OverlayFile { below, below_len, len: AtomicU64::new(len), scratch, changed })
    }
}

impl Volume for OverlayVolume {
    fn open(&self, name: &str) -> io::Result<Arc<dyn BlockFile>> {
        check_name(name)?;
        let mut names = self.names.lock();
        if let Some(file) = names.files.get(name) {
            return Ok(file.clone());
        }
        if names.removed.contains(name) {
            return Err(io::Error::new(ErrorKind::NotFound, format!("{name} has been removed")));
        }
        let below = self.below.open(name)?;
        let len = below.len();
        let file = self.file(Some(below), len);
        names.files.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn BlockFile>> {
        check_name(name)?;
        check_len(len)?;
        let mut names = self.names.lock();
        let is_below = !names.removed.contains(name) && self.below.exists(name)?;
        match names.files.entry(name.to_owned()) {
            btree_map::Entry::Vacant(place) if !is_below => {
                Ok(place.insert(self.file(None, len)).clone())
            }
            _ => Err(io::Error::new(ErrorKind::AlreadyExists, format!("{name} exists"))),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if !self.exists(name)? {
            return Err(io::Error::new(ErrorKind::NotFound, format!("there is no {name}")));
        }
        let mut names = self.names.lock();
        names.files.remove(name);
        names.removed.insert(name.to_owned());
        Ok(())
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        check_name(name)?;
        let names = self.names.lock();
        Ok(names.files.contains_key(name)
            || !names.removed.contains(name) && self.below.exists(name)?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = self.names.lock();
        let mut all: BTreeSet<String> = self.below.list()?.into_iter().collect();
        all.retain(|name| !names.removed.contains(name));
        all.extend(names.files.keys().cloned());
        Ok(all.into_iter().collect())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn close(&self) {
        self.below.close();
    }

    fn describe(&self) -> String {
        format!("only read, over {}", self.below.describe())
    }

    fn io_stats(&self) -> IoStats {
        self.below.io_stats()
    }
}

/// A file without a name that blocks are appended to.
struct Scratch {
    file: File,
    end: AtomicU64,
}

struct OverlayFile {
    below: Option<Arc<dyn BlockFile>>,
    below_len: u64,
    len: AtomicU64,
    scratch: Arc<Scratch>,
    /// Where in the scratch file the blocks lie that have been written.
    changed: RwLock<rank::OverlayBlocks, HashMap<u64, u64>>,
}

/// Where a block is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Scratch(u64),
    Below,
    /// Nowhere: zeros.
    Nowhere,
}

impl OverlayFile {
    fn place(&self, changed: &HashMap<u64, u64>, offset: u64) -> At {
        match changed.get(&(offset / BLOCK)) {
            Some(&at) => At::Scratch(at),
            None if offset < self.below_len => At::Below,
            None => At::Nowhere,
        }
    }

    /// Whether nothing of a range has been written: then it is read below as a whole.
    fn is_below(&self, changed: &HashMap<u64, u64>, offset: u64, len: usize) -> bool {
        let end = offset + len as u64;
        end <= self.below_len
            && (changed.is_empty()
                || (offset..end)
                    .step_by(ALIGN)
                    .all(|block| self.place(changed, block) == At::Below))
    }

    fn read(&self, changed: &HashMap<u64, u64>, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        for (block, part) in (offset..).step_by(ALIGN).zip(buf.chunks_mut(ALIGN)) {
            match (self.place(changed, block), &self.below) {
                (At::Scratch(at), _) => self.scratch.file.read_exact_at(part, at)?,
                (At::Below, Some(below)) => below.read_at(block, part)?,
                _ => part.fill(0),
            }
        }
        Ok(())
    }
}

impl BlockFile for OverlayFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        check_read(offset, buf, self.len())?;
        let changed = self.changed.read();
        match &self.below {
            Some(below) if self.is_below(&changed, offset, buf.len()) => below.read_at(offset, buf),
            _ => self.read(&changed, offset, buf),
        }
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        check_write(offset, buf, self.len())?;
        let mut changed = self.changed.write();
        for (block, part) in (offset / BLOCK..).zip(buf.chunks(ALIGN)) {
            let at = match changed.get(&block) {
                Some(&at) => at,
                None => self.scratch.end.fetch_add(BLOCK, Ordering::Relaxed),
            };
            let written = self.scratch.file.write_all_at(part, at);
            written.map_err(|e| context(e, || "write a scratch file".to_owned()))?;
            changed.insert(block, at);
        }
        Ok(())
    }

    fn write_durable_at(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        self.write_at(offset, buf)
    }

    fn read_many(&self, reads: &mut [ReadOp<'_>]) -> io::Result<()> {
        let len = self.len();
        reads.iter().try_for_each(|op| check_read(op.offset, op.buf, len))?;
        let changed = self.changed.read();
        let mut below = Vec::with_capacity(reads.len());
        for op in reads {
            if self.is_below(&changed, op.offset, op.buf.len()) {
                below.push(ReadOp { offset: op.offset, buf: &mut *op.buf });
            } else {
                self.read(&changed, op.offset, op.buf)?;
            }
        }
        match &self.below {
            Some(file) if !below.is_empty() => file.read_many(&mut below),
            _ => Ok(()),
        }
    }

    fn write_many(&self, writes: &[WriteOp<'_>]) -> io::Result<()> {
        let len = self.len();
        writes.iter().try_for_each(|op| check_write(op.offset, op.buf, len))?;
        writes.iter().try_for_each(|op| self.write_at(op.offset, op.buf))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        check_len(len)?;
        let old_len = self.len.fetch_max(len, Ordering::AcqRel);
        if len < old_len {
            let text = format!("a file cannot shrink from {old_len} to {len} bytes");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        Ok(())
    }

    // `punch` stays what it is: nothing of what lies below is changed.

    fn allocated_bytes(&self) -> Option<u64> {
        self.below.as_ref()?.allocated_bytes()
    }

    fn lock_alone(&self) -> io::Result<bool> {
        self.below.as_ref().map_or(Ok(true), |below| below.lock_alone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimVolume;
    use proptest::prelude::*;
    use weir_base::AlignedBuf;

    #[derive(Clone, Debug)]
    enum Step {
        Write { block: u64, blocks: u64, with: u8 },
        Grow { blocks: u64 },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let write = (0..12u64, 1..4u64, 1..255u8).prop_map(|(block, blocks, with)| Step::Write {
            block,
            blocks,
            with,
        });
        let grow = (0..16u64).prop_map(|blocks| Step::Grow { blocks });
        prop::collection::vec(prop_oneof![4 => write, 1 => grow], 0..30)
    }

    fn filled(len: u64, with: u8) -> AlignedBuf {
        let mut buf = AlignedBuf::zeroed(len as usize);
        buf.fill(with);
        buf
    }

    proptest! {
        #[test]
        fn a_file_reads_as_it_was_written_and_the_one_below_stays(steps in steps()) {
            let sim = SimVolume::new(1);
            sim.create("f", 8 * BLOCK).unwrap().write_at(0, &filled(6 * BLOCK, 7)).unwrap();
            let (before, writes) = (sim.read_raw("f").unwrap(), sim.writes_so_far());
            let mut model = before.clone();
            let over = OverlayVolume::new(Arc::new(sim.clone())).unwrap();
            let file = over.open("f").unwrap();
            for step in steps {
                match step {
                    Step::Write { block, blocks, with } => {
                        let (from, to) = (block * BLOCK, (block + blocks) * BLOCK);
                        let done = file.write_at(from, &filled(to - from, with));
                        prop_assert_eq!(done.is_ok(), to <= model.len() as u64);
                        if done.is_ok() {
                            model[from as usize..to as usize].fill(with);
                        }
                    }
                    Step::Grow { blocks } => {
                        let done = file.grow(blocks * BLOCK);
                        prop_assert_eq!(done.is_ok(), blocks * BLOCK >= model.len() as u64);
                        model.resize(model.len().max((blocks * BLOCK) as usize), 0);
                    }
                }
                let again = over.open("f").unwrap();
                let mut all = AlignedBuf::zeroed(model.len());
                again.read_at(0, &mut all).unwrap();
                prop_assert!(all[..] == model[..]);
                let mut parts: Vec<AlignedBuf> =
                    model.chunks(2 * ALIGN).map(|part| AlignedBuf::zeroed(part.len())).collect();
                let mut reads: Vec<ReadOp<'_>> = (0..)
                    .zip(&mut parts)
                    .map(|(i, buf)| ReadOp { offset: i * 2 * BLOCK, buf: &mut buf[..] })
                    .collect();
                file.read_many(&mut reads).unwrap();
                let parts: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                prop_assert!(parts == model);
            }
            prop_assert_eq!(sim.writes_so_far(), writes);
            prop_assert!(sim.read_raw("f").unwrap() == before);
        }
    }

    #[test]
    fn names_come_and_go_above_only() {
        let sim = SimVolume::new(1);
        for name in ["a", "b"] {
            sim.create(name, BLOCK).unwrap();
        }
        let over = OverlayVolume::new(Arc::new(sim.clone())).unwrap();
        assert_eq!(over.create("a", 0).err().unwrap().kind(), ErrorKind::AlreadyExists);
        over.remove("a").unwrap();
        assert_eq!(over.open("a").err().unwrap().kind(), ErrorKind::NotFound);
        assert_eq!(over.remove("a").err().unwrap().kind(), ErrorKind::NotFound);
        over.create("a", 2 * BLOCK).unwrap();
        over.create("c", BLOCK).unwrap();
        assert_eq!(over.create("c", 0).err().unwrap().kind(), ErrorKind::AlreadyExists);
        assert_eq!(over.list().unwrap(), ["a", "b", "c"]);
        assert_eq!(over.open("a").unwrap().len(), 2 * BLOCK);
        over.remove("b").unwrap();
        assert_eq!(over.list().unwrap(), ["a", "c"]);
        assert_eq!(sim.list().unwrap(), ["a", "b"]);
        assert_eq!(sim.open("a").unwrap().len(), BLOCK);
    }
}
