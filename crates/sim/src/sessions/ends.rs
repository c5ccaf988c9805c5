//! How transactions end, and what of them is known to be durable.
use anyhow::{Context, Result, bail, ensure};
use weir::{Durability, TxnOptions};

use super::play::{Live, SessionPlayer};
use super::prepared::Decision;
use super::turn::{How, Turn};
use crate::play::open;

impl SessionPlayer {
    pub(super) fn commit(&mut self, session: u8, live: Live, how: How) -> Result<()> {
        let changes = self.ledger.has_changes(session);
        let (done, durability) = match how {
            How::Durably(durability) => {
                (live.txn.commit_durably(durability).map(|()| None), durability)
            }
            How::Ticket => (live.txn.commit().map(Some), Durability::Lazy),
        };
        let ticket = done?;
        let is_change = ticket.as_ref().is_some_and(weir::Commit::is_change);
        ensure!(
            ticket.is_none() || is_change || !changes,
            "it has changed rows, and its commit says that it has not"
        );
        self.ledger.commit(session);
        self.committed(durability);
        if let Some(ticket) = ticket.filter(|_| is_change) {
            self.tickets.push((self.marks.len() - 1, ticket));
        }
        Ok(())
    }

    pub(super) fn begin_again(&mut self, session: u8) {
        if let Some(db) = &self.db {
            let txn = db.begin(TxnOptions::default());
            self.live.insert(session, Live::new(txn));
        }
    }

    pub(super) fn rollback(&mut self, session: u8, live: Live, by_drop: bool) -> Result<()> {
        self.seen.rollbacks += 1;
        self.ledger.rollback(session);
        if by_drop {
            drop(live);
            return Ok(());
        }
        Ok(live.txn.rollback()?)
    }

    /// All sessions end, some by dropping, and nothing is held any more.
    ///
    /// # Errors
    /// What ending said.
    pub fn end_all(&mut self) -> Result<()> {
        self.held = None;
        while let Some((session, live)) = self.live.pop_first() {
            self.rollback(session, live, session % 2 == 0)?;
        }
        Ok(())
    }

    /// The turn failed because the disk crashed; what it would have committed may be there.
    pub(super) fn assume(&mut self, turn: &Turn) {
        match turn {
            Turn::Commit { session, .. } if self.live.contains_key(session) => {
                self.ledger.commit(*session);
            }
            Turn::Single { row, value, .. } => self.write(&[(*row, *value)]),
            Turn::Batch { rows, .. } => self.write(rows),
            _ => return,
        }
        self.committed(Durability::Lazy);
    }

    pub(super) fn committed(&mut self, durability: Durability) {
        if self.marks.len() == 1 + self.ledger.commits() as usize {
            return;
        }
        self.marks.push(self.ledger.mark());
        self.seen.commits += 1;
        if durability == Durability::Synced {
            self.synced = self.marks.len() - 1;
        }
    }

    pub(super) fn ask_tickets(&mut self) {
        let Some(db) = &self.db else { return };
        let synced = &mut self.synced;
        self.tickets.retain(|(count, commit)| {
            let durable = db.is_durable(*commit);
            if durable {
                *synced = (*synced).max(*count);
            }
            !durable
        });
    }

    pub(super) fn reopen(&mut self) -> Result<()> {
        self.end_all()?;
        self.handles.clear();
        self.at_hand.clear();
        self.hands.clear();
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        self.tickets.clear();
        let db = open(&self.setup, &self.volume, &self.clock).context("reopening")?;
        let pending: Vec<Vec<u8>> = db.prepared();
        let open = self.prepared.iter().filter(|one| one.decision == Decision::Open);
        let mut known: Vec<Vec<u8>> = open.map(|one| one.xid.clone()).collect();
        known.sort();
        ensure!(pending == known, "{pending:?} are prepared, not {known:?}");
        self.ledger.reopened();
        if let Some(report) = db.recovery_report().filter(|_| pending.is_empty()) {
            bail!("closed in order, and yet there was something to recover: {report:?}");
        }
        self.synced = self.marks.len() - 1;
        self.db = Some(db);
        self.decide_brief()
    }
}
