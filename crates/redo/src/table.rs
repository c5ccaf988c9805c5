//! The list of a log's files.
use std::collections::VecDeque;

use crate::segment::{Segment, Slot};

/// Which files there are, and what for.
pub(crate) struct Table {
    /// The log, in order.
    pub(crate) active: VecDeque<Segment>,
    /// Files that hold nothing needed.
    pub(crate) free: Vec<Slot>,
    /// The next free one, on its way: the slot of the file that is being filled.
    pub(crate) coming: Option<Slot>,
}

impl Table {
    pub(crate) fn files(&self) -> impl Iterator<Item = &Slot> {
        self.active.iter().map(|segment| &segment.slot).chain(&self.free)
    }
    /// Those, and the one that is on its way.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Slot> {
        self.files().chain(&self.coming)
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.all().map(|slot| slot.file.len()).sum()
    }
    /// The greatest age for which these files have room (without that of one number), whichever of
    /// them stand at the front and at the end: the largest may be filled up to its last block at
    /// the front, and room for one of the usual `payload` must be at the end.
    pub(crate) fn age_max(&self, payload: u64, without: Option<u32>) -> u64 {
        let kept = || self.files().filter(|slot| Some(slot.number) != without).map(Slot::payload);
        let largest = kept().max().unwrap_or(0);
        kept().sum::<u64>().saturating_sub(largest + largest.min(payload))
    }
}
