//! What a run has met.

/// What was met: a run that meets none of a kind shows nothing about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Turns that did something.
    pub turns: u64,
    /// Reads and rows of scans that were as foretold.
    pub reads: u64,
    /// Of these, reads from snapshots of what is not there any more.
    pub old_reads: u64,
    /// Locks refused.
    pub locked: u64,
    /// Changes refused because a transaction had changed the row since.
    pub conflicts: u64,
    /// Rows that were there already.
    pub duplicates: u64,
    /// Commits that changed something.
    pub commits: u64,
    /// Transactions rolled back.
    pub rollbacks: u64,
    /// Goings back to savepoints.
    pub backs: u64,
    /// Transactions with changes that ended when the checkpoint had passed the first of them.
    pub carried: u64,
    /// Transactions prepared.
    pub prepared: u64,
    /// Ranges locked by cursors.
    pub ranges: u64,
    /// Moves of cursors whose move before had failed.
    pub again: u64,
    /// Trees made, dropped and renamed.
    pub defined: u64,
    /// Handles found to be older than the end of their tree.
    pub gone: u64,
}

impl Coverage {
    /// Adds another one.
    pub fn add(&mut self, other: &Coverage) {
        self.turns += other.turns;
        self.reads += other.reads;
        self.old_reads += other.old_reads;
        self.locked += other.locked;
        self.conflicts += other.conflicts;
        self.duplicates += other.duplicates;
        self.commits += other.commits;
        self.rollbacks += other.rollbacks;
        self.backs += other.backs;
        self.carried += other.carried;
        self.prepared += other.prepared;
        self.ranges += other.ranges;
        self.again += other.again;
        self.defined += other.defined;
        self.gone += other.gone;
    }
}
