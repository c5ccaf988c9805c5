//! What was issued and what was acknowledged, row by row, in eight bytes each.
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};

/// For each row the last version issued (high half) and acknowledged (low half). They differ while
/// an update is under way, which doubles as a claim: two threads never update one row at once, so
/// (BENCH-1) the versions in the store only grow and "found >= acknowledged" is a fact that can be
/// checked.
pub(crate) struct Ledger {
    rows: Box<[AtomicU64]>,
}

fn both(version: u32) -> u64 {
    u64::from(version) << 32 | u64::from(version)
}

impl Ledger {
    /// All rows at version 0.
    pub(crate) fn new(rows: u64) -> Self {
        Ledger { rows: (0..rows).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Notes the version found in a table that is used again.
    pub(crate) fn found(&self, row: u64, version: u32) {
        self.rows[row as usize].store(both(version), Release);
    }

    /// Issues the row's next version, unless an update of it is under way (or failed).
    pub(crate) fn claim(&self, row: u64) -> Option<u32> {
        let cell = &self.rows[row as usize];
        let seen = cell.load(Acquire);
        let (issued, acknowledged) = ((seen >> 32) as u32, seen as u32);
        if issued != acknowledged {
            return None;
        }
        let next = issued.checked_add(1)?;
        let claimed = u64::from(next) << 32 | u64::from(acknowledged);
        cell.compare_exchange(seen, claimed, AcqRel, Acquire).ok().map(|_| next)
    }

    /// The store has acknowledged this version.
    pub(crate) fn acknowledge(&self, row: u64, version: u32) {
        self.rows[row as usize].store(both(version), Release);
    }

    /// The least and greatest version that the store may show.
    pub(crate) fn allowed(&self, row: u64) -> (u32, u32) {
        let seen = self.rows[row as usize].load(Acquire);
        (seen as u32, (seen >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_update_of_a_row_at_a_time() {
        let ledger = Ledger::new(2);
        assert_eq!(ledger.claim(1), Some(1));
        assert_eq!(ledger.claim(1), None, "claimed twice");
        assert_eq!(ledger.allowed(1), (0, 1));
        ledger.acknowledge(1, 1);
        assert_eq!(ledger.allowed(1), (1, 1));
        assert_eq!(ledger.claim(1), Some(2));
        ledger.found(0, u32::MAX);
        assert_eq!(ledger.claim(0), None, "versions must not start again at 0");
    }
}
