//! Sorting more entries than memory holds: runs are sorted in memory and written to files without
//! names, then merged. Nothing of it is logged or synced; after a crash nothing of it is there.
use std::sync::Arc;

use weir_device::Volume;

use crate::db::Db;
use crate::error::Error;
use crate::runs::{Merge, Pair, Run, RunWriter, put_entry, take_entry};

/// So many runs of one generation become one of the next.
const RUNS_MAX: usize = 64;
/// Entries brought from memory into the processor's cache together.
const TOUCHED: usize = 16;
/// Memory of all sorters of one use.
const MEMORY_TOGETHER_MAX: usize = 64 << 20;
/// Places in memory are 32 bits.
const MEMORY_MAX: usize = 1 << 30;
const MEMORY_MIN: usize = 64 << 10;

/// Collects entries, key and value, in any order.
pub struct Sorter {
    volume: Arc<dyn Volume>,
    memory_bytes: usize,
    batch: Batch,
    runs: Vec<Run>,
}

/// What is in memory: entries one after the other, and where each begins.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// An entry by the first bytes of its key, by which most comparisons are decided: so many that an
/// integer and the primary key behind it, or a word and the beginning of its row's, are among them.
#[derive(Clone, Copy)]
struct Place {
    head: [u64; 2],
    at: u32,
}

/// Bytes of a key in its place.
const HEAD_BYTES: usize = 16;

/// Entries in order, by key and then by value.
pub struct Sorted(From);

enum From {
    Memory { batch: Batch, next: usize, touched: u8 },
    Runs(Merge),
}

impl Db {
    /// One of `many` sorters that are in use together. They have an eighth of the pool's size, at
    /// most 64 MiB, as memory of their own; what is more lies in files of the database's directory
    /// meanwhile.
    #[must_use]
    pub fn sorter(&self, many: usize) -> Sorter {
        let pool = usize::try_from(self.engine.config.pool_bytes).unwrap_or(usize::MAX);
        let memory = (pool / 8).min(MEMORY_TOGETHER_MAX) / many.max(1);
        Sorter::new(self.engine.volume.clone(), memory)
    }
}

impl Sorter {
    pub(crate) fn new(volume: Arc<dyn Volume>, memory_bytes: usize) -> Sorter {
        let memory_bytes = memory_bytes.clamp(MEMORY_MIN, MEMORY_MAX);
        Sorter { volume, memory_bytes, batch: Batch::default(), runs: Vec::new() }
    }

    /// Takes an entry.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::DiskFull`].
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.batch.push(key, value);
        let used = self.batch.bytes.len() + self.batch.places.len() * size_of::<Place>();
        if used >= self.memory_bytes { self.spill() } else { Ok(()) }
    }

    /// All entries in order.
    ///
    /// # Errors
    /// As [`Sorter::push`].
    pub fn sorted(mut self) -> Result<Sorted, Error> {
        if self.runs.is_empty() {
            self.batch.sort();
            return Ok(Sorted(From::Memory { batch: self.batch, next: 0, touched: 0 }));
        }
        if !self.batch.places.is_empty() {
            self.spill()?;
        }
        Ok(Sorted(From::Runs(Merge::new(self.runs)?)))
    }

    /// Writes what is in memory to a run; merges runs where there are many.
    fn spill(&mut self) -> Result<(), Error> {
        self.batch.sort();
        let mut run = RunWriter::new(&*self.volume, self.batch.bytes.len() as u64, 0)?;
        let mut touched = 0;
        for places in self.batch.places.chunks(TOUCHED) {
            touched ^= self.batch.touch(places);
            for place in places {
                let (key, value) = self.batch.entry(place.at);
                run.push(key, value)?;
            }
        }
        std::hint::black_box(touched);
        self.runs.push(run.finish()?);
        self.batch.bytes.clear();
        self.batch.places.clear();
        loop {
            let generation = self.runs.last().map_or(0, |run| run.generation);
            let same = self.runs.iter().rev().take_while(|run| run.generation == generation);
            let first = self.runs.len() - same.count();
            if self.runs.len() - first < RUNS_MAX {
                return Ok(());
            }
            let old = self.runs.split_off(first);
            let len = old.iter().map(|run| run.len).sum();
            let mut run = RunWriter::new(&*self.volume, len, generation + 1)?;
            let mut merge = Merge::new(old)?;
            while let Some((key, value)) = merge.step()? {
                run.push(key, value)?;
            }
            self.runs.push(run.finish()?);
        }
    }
}

impl Batch {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        let mut bytes = [0; HEAD_BYTES];
        let len = key.len().min(HEAD_BYTES);
        bytes[..len].copy_from_slice(&key[..len]);
        let head = u128::from_be_bytes(bytes);
        let head = [(head >> 64) as u64, head as u64];
        // Memory has a bound far below that, and one entry is at most a gibibyte.
        let at = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.places.push(Place { head, at });
        put_entry(&mut self.bytes, key, value);
    }

    fn entry(&self, at: u32) -> (&[u8], &[u8]) {
        take_entry(&self.bytes[at as usize..]).map_or((&[], &[]), |(key, value, _)| (key, value))
    }

    /// Entries lie anywhere in memory: several are waited for at once. What is returned only keeps
    /// the compiler from leaving that out.
    fn touch(&self, places: &[Place]) -> u8 {
        places.iter().fold(0, |sum, place| sum ^ self.bytes[place.at as usize])
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|a, b| {
            a.head.cmp(&b.head).then_with(|| self.entry(a.at).cmp(&self.entry(b.at)))
        });
        self.places = places;
    }
}

impl Sorted {
    /// The next entry. `None`: there are no more.
    ///
    /// # Errors
    /// [`Error::Io`].
    #[inline]
    pub fn step(&mut self) -> Result<Option<Pair<'_>>, Error> {
        match &mut self.0 {
            From::Memory { batch, next, touched } => {
                if next.is_multiple_of(TOUCHED) {
                    let end = (*next + TOUCHED).min(batch.places.len());
                    *touched ^= batch.touch(batch.places.get(*next..end).unwrap_or_default());
                }
                let place = batch.places.get(*next).copied();
                *next += 1;
                Ok(place.map(|place| batch.entry(place.at)))
            }
            From::Runs(merge) => merge.step(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::remove_left;
    use weir_device::SimVolume;

    fn all(mut sorted: Sorted) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some((key, value)) = sorted.step().expect("an entry") {
            out.push((key.to_vec(), value.to_vec()));
        }
        out
    }

    #[test]
    fn entries_come_back_in_order_however_many_runs_there_are() {
        let volume = Arc::new(SimVolume::new(1));
        let mut random = fastrand::Rng::with_seed(1);
        // In memory; a few runs; more than become one of the next generation.
        for (count, longest) in [(0, 9), (1, 9), (500, 9), (9_000, 60), (20_000, 900)] {
            let mut sorter = Sorter::new(volume.clone(), 0);
            let mut model = Vec::new();
            for _ in 0..count {
                let mut bytes = |most| {
                    let len = random.usize(0..most);
                    (0..len).map(|_| random.u8(0..3)).collect::<Vec<u8>>()
                };
                let entry = (bytes(longest / 3), bytes(longest));
                sorter.push(&entry.0, &entry.1).expect("taken");
                model.push(entry);
            }
            assert!(count < 20_000 || sorter.runs.iter().any(|run| run.generation > 0));
            model.sort();
            assert!(all(sorter.sorted().expect("sorted")) == model, "{count} entries");
            assert_eq!(volume.list().expect("listed"), Vec::<String>::new());
        }
    }

    #[test]
    fn one_entry_may_be_larger_than_memory_and_blocks() {
        let mut sorter = Sorter::new(Arc::new(SimVolume::new(2)), 0);
        let large = vec![7; 1 << 20];
        for key in [b"b", b"a", b"c"] {
            sorter.push(key, &large).expect("taken");
        }
        let keys: Vec<_> = all(sorter.sorted().expect("sorted")).into_iter().map(|e| e.0).collect();
        assert_eq!(keys, [b"a", b"b", b"c"]);
    }

    #[test]
    fn a_full_disk_is_an_error_and_what_a_crash_left_is_removed() {
        let volume = Arc::new(SimVolume::with_capacity(3, 1 << 20));
        // A run is larger than the disk.
        let mut sorter = Sorter::new(volume.clone(), 2 << 20);
        let full = (0..3_000u32).find_map(|n| sorter.push(&n.to_be_bytes(), &[0; 1_000]).err());
        assert!(matches!(full, Some(Error::DiskFull { .. })), "{full:?}");
        drop(sorter);
        volume.create("sort-99", 0).expect("made");
        remove_left(&*volume);
        assert_eq!(volume.list().expect("listed"), Vec::<String>::new());
    }
}
