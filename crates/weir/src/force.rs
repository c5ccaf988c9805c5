//! What the steps of a forced opening leave out (`docs/damage.md`): decided here, done elsewhere.
use weir_base::TxnId;
use weir_pool::PageUse;

/// How many steps there are.
pub(crate) const STEPS: u8 = 4;

/// Which step a database is opened with; 0: none, all is as ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Force(u8);

impl Force {
    /// Rows that cannot be read are passed over, and nothing is written or rolled back.
    pub(crate) const DAMAGED_PAGES: Force = Force(1);
    /// A transaction without an end that cannot be rolled back in the eyes of readers counts as
    /// committed.
    pub(crate) const DAMAGED_UNDO: Force = Force(2);
    /// The log is applied up to what is damaged in it.
    pub(crate) const DAMAGED_LOG: Force = Force(3);
    /// The log is not applied, and the files may be of different moments.
    pub(crate) const NO_LOG: Force = Force(4);

    /// The step of that number.
    pub(crate) fn at(step: u8) -> Force {
        Force(step)
    }

    pub(crate) fn is_on(self) -> bool {
        self >= Self::DAMAGED_PAGES
    }

    /// What is done with pages.
    pub(crate) fn page_use(self) -> PageUse {
        match self.is_on() {
            true => PageUse::LookedAt { may_be_ahead: self >= Self::DAMAGED_LOG },
            false => PageUse::Changed,
        }
    }

    /// The number of the next transaction, where `next` is what is known of it: behind damage in
    /// the log lie others, whose rows a new one must not take for its own.
    pub(crate) fn next_txn(self, next: TxnId) -> TxnId {
        match self >= Self::DAMAGED_LOG {
            true => TxnId(next.0.saturating_add(1 << 32).min(TxnId::MAX.0 - (1 << 20))).max(next),
            false => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_bears_what_those_before_it_bear() {
        let steps = [Force::DAMAGED_PAGES, Force::DAMAGED_UNDO, Force::DAMAGED_LOG, Force::NO_LOG];
        assert_eq!(steps.last(), Some(&Force(STEPS)));
        for step in 0..=STEPS {
            for (from, needed) in (1..).zip(steps) {
                assert_eq!(Force(step) >= needed, step >= from, "step {step}, {from}");
            }
            let ahead = PageUse::LookedAt { may_be_ahead: true };
            assert_eq!(Force(step).page_use() == ahead, step >= 3);
            assert_eq!(Force(step).page_use() == PageUse::Changed, step == 0);
        }
        let many = TxnId(TxnId::MAX.0 - 5);
        assert_eq!(Force::NO_LOG.next_txn(many), many);
        assert!(Force::NO_LOG.next_txn(TxnId(7)) > TxnId(1 << 32));
        assert_eq!(Force::DAMAGED_UNDO.next_txn(TxnId(7)), TxnId(7));
    }
}
