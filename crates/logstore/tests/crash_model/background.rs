//! The cleaner and the map checkpoint, in steps between which anything may happen.
use crate::disk::{Cell, LEAF_PAGES, Root, Spot};
use crate::engine::{Checkpoint, Engine, LEAVES, PAGES, SEGMENTS, State, Stream, What, is_victim};
use crate::rules::Flaw;

impl Engine {
    /// The first half of a step: choose a victim, mark its live pages, read them. Its leaves are
    /// written anew by the next map checkpoint.
    pub(crate) fn clean_pick(&mut self) {
        let victims: Vec<usize> = (0..SEGMENTS).filter(|&s| is_victim(&self.segments[s])).collect();
        if victims.is_empty() || !self.picked.is_empty() {
            return;
        }
        let victim = victims[self.dice.usize(..victims.len())];
        for page in 0..PAGES {
            let Some(spot) = self.map[page].filter(|spot| spot.segment == victim) else { continue };
            let is_ignoring = self.flaw == Flaw::TwoInFlight;
            if self.is_marked[page] && !is_ignoring {
                continue;
            }
            let Cell::Page { lsn, .. } = *self.disk.slot(spot.segment, spot.slot) else { continue };
            if self.flaw != Flaw::MarkedLate && !is_ignoring {
                self.is_marked[page] = true;
            }
            self.picked.push((page, lsn, spot));
        }
        for leaf in 0..LEAVES {
            if self.root.leaves[leaf].is_some_and(|spot| spot.segment == victim) {
                self.is_leaf_dirty[leaf] = true;
            }
        }
    }

    /// The second half: write the copies.
    pub(crate) fn clean_write(&mut self) {
        let picked = std::mem::take(&mut self.picked);
        let Some(victim) = picked.first().map(|(_, _, spot)| spot.segment) else { return };
        let items = |part: &[(usize, u64, Spot)]| {
            let copy = |&(page, lsn, from): &_| (What::Copy { page, lsn, from }, Cell::Empty);
            part.iter().map(copy).collect()
        };
        if self.flaw == Flaw::TwoInFlight {
            self.write_chunk(Stream::Clean, items(&picked));
            return;
        }
        self.mark_and_write(Stream::Clean, items(&picked));
        if self.flaw == Flaw::VictimFreedEarly && self.segments[victim].state == State::Closed {
            self.segments[victim].live = 0;
            self.segments[victim].state = State::Free;
        }
    }

    /// One step of a map checkpoint.
    ///
    /// # Errors
    /// What a crash in the midst of it showed.
    pub(crate) fn step_checkpoint(&mut self) -> Result<(), String> {
        let Some(mut checkpoint) = self.checkpoint.take() else {
            if self.dice.u8(..3) == 0 {
                let todo = (0..LEAVES).filter(|&leaf| self.is_leaf_dirty[leaf]).collect();
                self.checkpoint = Some(Checkpoint { ckpt_seq: self.watermark(), todo });
            }
            return Ok(());
        };
        if let Some(&leaf) = checkpoint.todo.last() {
            if self.write_leaf(leaf) {
                checkpoint.todo.pop();
            }
            self.checkpoint = Some(checkpoint);
            return Ok(());
        }
        let is_leaf = |what: &What| matches!(what, What::Leaf { .. });
        if self.flaw != Flaw::RootBeforeLeaves {
            self.sync();
        }
        let (leaves, rest) = self.flights.drain(..).partition(|f| is_leaf(&f.what));
        self.flights = rest;
        let leaves: Vec<_> = leaves;
        leaves.iter().for_each(|flight| self.publish_one(flight));
        self.switch_root(&checkpoint)
    }

    fn write_leaf(&mut self, leaf: usize) -> bool {
        let pages = leaf * LEAF_PAGES..(leaf + 1) * LEAF_PAGES;
        let at = pages.map(|page| self.map.get(page).copied().flatten()).collect();
        let cell = Cell::Leaf { leaf, seq: 0, at };
        let is_written = self.write_chunk(Stream::Meta, vec![(What::Leaf { leaf }, cell)]);
        if is_written {
            self.is_leaf_dirty[leaf] = false;
        }
        is_written
    }

    fn switch_root(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        self.plan_more();
        let scan = self.spans_since(checkpoint.ckpt_seq);
        let (leaves, ckpt_seq) = (self.new_leaves.clone(), checkpoint.ckpt_seq);
        let mut root = Root { leaves, ckpt_seq, scan, ..self.root.clone() };
        self.write_root(&mut root);
        if self.dice.u8(..4) == 0 {
            return self.crash();
        }
        self.disk.sync_roots();
        let old = std::mem::replace(&mut self.root, root);
        for leaf in 0..LEAVES {
            if let Some(spot) = old.leaves[leaf]
                && self.root.leaves[leaf] != old.leaves[leaf]
            {
                self.segments[spot.segment].live -= 1;
            }
        }
        Ok(())
    }
}
