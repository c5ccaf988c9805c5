//! Waiting, by the thread that waits: it sleeps, looks when it is notified, naps, and reports for
//! which transactions it waits.
use std::sync::Arc;
use std::time::Duration;

use weir_base::TxnId;

use super::lock_error::LockError;
use super::owner::{Outcome, Owner, Woken};
use super::place::LockTarget;
use super::table::{LockTable, wake};
use super::tree_locks::ToWake;
use super::waits::Next;

/// How long one that was notified of a free key, and found it busy, leaves it to others before it
/// bars them. A hand-over to a sleeping thread costs a hundredth of that; the transaction that
/// waits first waits about so long at most beyond what the others need.
const NAP: Duration = Duration::from_micros(500);

/// Called for waits, by the thread that waits and with no lock of the table held. For a program
/// that has an order of its own that transactions must follow, and sees that a wait goes against
/// it.
pub trait WaitListener: Send + Sync {
    /// `waiter` is about to wait. Returns whether it is of interest for which transactions.
    fn begins(&self, waiter: TxnId) -> bool;
    /// `waiter` waits for `holder`, a transaction that has what it wants or comes first. May be
    /// called again, and is notified of those that come into its way while it waits.
    fn waits_for(&self, waiter: TxnId, holder: TxnId);
    /// Whether, of two that are in a deadlock, `one` is rather to pay for it than `other`, whatever
    /// they have done.
    fn is_rather_victim(&self, one: TxnId, other: TxnId) -> bool;
    /// The wait of `waiter` is over.
    fn ends(&self, waiter: TxnId);
}

impl LockTable {
    /// Sleeps until the wait of `owner` on `target` is over, at most for `limit`.
    pub(super) fn wait_for(
        &self,
        owner: &Arc<Owner>,
        target: &LockTarget,
        limit: Duration,
    ) -> Result<(), LockError> {
        let begun = self.clock.now_micros();
        let listener = self.listener.get();
        let asks = listener.filter(|listener| listener.begins(owner.id()));
        owner.set_reports(asks.is_some());
        let outcome = self.sleep_for(owner, target, limit, begun, asks.map(|asks| &**asks));
        if let Some(listener) = listener {
            listener.ends(owner.id());
        }
        let waited_micros = self.clock.now_micros().saturating_sub(begun);
        self.counts.wait_micros.add(waited_micros);
        match outcome.expect("a wait ends when it has left its queue") {
            Outcome::Granted => Ok(()),
            Outcome::TimedOut { holder } => {
                self.counts.timeouts.add(1);
                Err(LockError::TimedOut { holder, waited: Duration::from_micros(waited_micros) })
            }
            Outcome::Deadlock { cycle } => {
                self.counts.deadlocks.add(1);
                Err(LockError::Deadlock { cycle })
            }
            Outcome::Killed => {
                self.counts.kills.add(1);
                Err(LockError::Killed)
            }
        }
    }

    fn sleep_for(
        &self,
        owner: &Arc<Owner>,
        target: &LockTarget,
        limit: Duration,
        begun: u64,
        asks: Option<&dyn WaitListener>,
    ) -> Option<Outcome> {
        let mut naps = false;
        loop {
            // The transaction that has come first meanwhile came before it had looked.
            if let Some(listener) = asks.filter(|_| !naps) {
                self.report(listener, owner);
            }
            let waited = Duration::from_micros(self.clock.now_micros().saturating_sub(begun));
            let left = limit.saturating_sub(waited);
            let nap = naps && left > NAP;
            let woken = if nap { owner.nap(NAP) } else { owner.sleep(left) };
            let is_last = match woken {
                Woken::Ended(outcome) => return Some(outcome),
                Woken::Notified => false,
                Woken::Late => !nap,
            };
            naps = self.look(owner, target, is_last) == Next::Nap;
            if is_last {
                // The transaction that takes it out of the queue first says how the wait ended.
                self.end_wait(owner.id(), target, |holder| Outcome::TimedOut { holder });
                return owner.take_outcome();
            }
        }
    }

    fn report(&self, listener: &dyn WaitListener, owner: &Owner) {
        let mut before = Vec::new();
        self.blockers_of(owner, &mut before);
        for holder in before.iter().map(|blocker| blocker.owner.id()) {
            if holder != owner.id() {
                listener.waits_for(owner.id(), holder);
            }
        }
    }

    /// Lets a waiter look whether it can have what it waits for.
    pub(super) fn look(&self, owner: &Owner, target: &LockTarget, is_last: bool) -> Next {
        let tally = &self.shards.tally;
        let mut to_wake = ToWake::new();
        let next = self.shards.lock(target.tree()).with(target.tree(), |locks| {
            locks.look(owner.id(), target, is_last, tally, &mut to_wake)
        });
        wake(&to_wake);
        next
    }

    /// Takes the waiter `id` out of the queue of `target`, if it is still there.
    pub(super) fn end_wait(
        &self,
        id: TxnId,
        target: &LockTarget,
        outcome: impl FnOnce(TxnId) -> Outcome,
    ) {
        let mut to_wake = ToWake::new();
        self.shards.lock(target.tree()).with(target.tree(), |locks| {
            locks.withdraw(id, target, outcome, &self.shards.tally, &mut to_wake);
        });
        wake(&to_wake);
    }
}
