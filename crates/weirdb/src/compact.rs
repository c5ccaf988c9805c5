//! Trees made dense while others read and write them.
use crate::error::Error;
use crate::tree::Tree;

/// How to make a tree [dense](Tree::compact).
#[derive(Clone, Default, Debug)]
#[must_use]
pub struct CompactOptions {
    raw: weir::CompactOptions,
}

impl CompactOptions {
    /// From the first row on, at a pace that leaves the work nine tenths of the disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on where another call was ended: [`Compacted::next`].
    pub fn from(mut self, key: impl AsRef<[u8]>) -> Self {
        self.raw.from = key.as_ref().to_vec();
        self
    }

    /// Reads and changes so many bytes of pages per second at most, whatever else is going on;
    /// [`u64::MAX`]: as fast as can be.
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.raw.bytes_per_second = Some(bytes);
        self
    }
}

/// What a compaction has done so far.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Compacted {
    /// Leaves that are as full as can be.
    pub leaves: u64,
    /// Pages that are free.
    pub pages_freed: u64,
    /// Pages whose content has moved to the front of the file.
    pub pages_moved: u64,
    /// Where another call goes on ([`CompactOptions::from`]); `None`: all of the tree was gone
    /// through.
    pub next: Option<Vec<u8>>,
}

impl Compacted {
    fn of(raw: &weir::Compacted) -> Self {
        let weir::Compacted { leaves, pages_freed, pages_moved, ref next } = *raw;
        Compacted { leaves, pages_freed, pages_moved, next: next.clone() }
    }
}

impl Tree {
    /// Makes the tree dense: leaves that removals have left half empty are joined, and lie at the
    /// beginning of the file, as far as there is room. Other threads read and write meanwhile.
    /// What is free goes back to the file system some seconds after the next checkpoint. Long
    /// values stay where they are. `progress` is asked after each step, and ends it by `false`:
    /// what is done stays, and [`Compacted::next`] says where to go on.
    ///
    /// # Errors
    /// [`Error::NoTree`] when the tree is dropped meanwhile; as [`Tree::put`]. The tree has the
    /// same rows in any case.
    pub fn compact(
        &self,
        options: &CompactOptions,
        mut progress: impl FnMut(&Compacted) -> bool,
    ) -> Result<Compacted, Error> {
        let mut shown = |done: &weir::Compacted| progress(&Compacted::of(done));
        let done = self.raw.compact(&options.raw, &mut shown);
        done.map(|done| Compacted::of(&done)).map_err(|e| self.db.fails(e))
    }
}
