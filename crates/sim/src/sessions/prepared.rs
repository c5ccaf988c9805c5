//! Prepared transactions: what must be there of them after a crash.
use anyhow::{Context, Result, bail, ensure};
use weir::{Durability, PreparedTxn};

use super::ledger::{Key, Locks, NAMES, name_row};
use super::play::{Live, SessionPlayer};
use crate::model::Digest;

/// A transaction that is prepared, or was.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(super) xid: Vec<u8>,
    /// Its number in the ledger.
    pub(super) number: u8,
    pub(super) changes: Vec<(Key, Option<Digest>)>,
    pub(super) locks: Locks,
    /// It was acknowledged.
    pub(super) is_sure: bool,
    /// Its locks are free after a restart, where it is decided before all else.
    pub(super) is_brief: bool,
    pub(super) decision: Decision,
}

/// What became of a prepared transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// Nothing yet.
    Open,
    /// It is the commit of this number.
    Commit(usize),
    /// It was rolled back, or had nothing to commit, after so many commits.
    Gone(usize),
}

impl SessionPlayer {
    /// Whether contents with this mark, and these names of prepared transactions, may be found
    /// after a crash now: the state after some commits that holds all that were durable, with what
    /// was prepared then and not decided. Returns after how many commits, and the prepared ones.
    ///
    /// # Errors
    /// What must not be.
    pub(crate) fn may_be_found(
        &self,
        mark: u64,
        names: &[Vec<u8>],
    ) -> Result<(u64, Vec<Prepared>)> {
        let last = self.marks.len() - 1;
        let (mut is_known, mut wrong) = (false, Vec::new());
        for count in (self.synced..=last).filter(|&count| self.marks[count] == mark) {
            is_known = true;
            let other = self.prepared.iter().find(|one| {
                let there = names.contains(&one.xid);
                match one.decision {
                    Decision::Open => one.is_sure && !there,
                    Decision::Commit(number) => there != (count < number),
                    Decision::Gone(after) => there && count > after,
                }
            });
            match other {
                None => {
                    let known = |name: &Vec<u8>| self.prepared.iter().find(|one| one.xid == *name);
                    let found: Option<Vec<_>> = names.iter().map(|n| known(n).cloned()).collect();
                    let mut found =
                        found.context("something is prepared that no session prepared")?;
                    for one in &mut found {
                        (one.decision, one.is_sure) = (Decision::Open, true);
                    }
                    // Two states with the same rows may have other trees.
                    if found.iter().all(|one| self.has_its_trees(one, count as u64)) {
                        return Ok((count as u64, found));
                    }
                    wrong.push(format!("after {count} commits, a tree is not there"));
                }
                Some(one) => wrong.push(format!(
                    "after {count} commits, '{}' with {:?}",
                    String::from_utf8_lossy(&one.xid),
                    one.decision
                )),
            }
        }
        let synced = self.synced;
        ensure!(is_known, "recovery found the state after none of the commits {synced} to {last}");
        bail!("what is prepared is not what it must be: {}", wrong.join("; "))
    }

    /// Whether all trees that it has changed are there after so many commits, but for those that it
    /// has made.
    fn has_its_trees(&self, one: &Prepared, commits: u64) -> bool {
        let there = self.ledger.names_at(commits);
        let names = || one.changes.iter().filter(|((tree, _), _)| *tree == NAMES);
        let made = |tree: u8| names().any(|(_, row)| *row == Some(name_row(tree)));
        let known = |tree: u8| tree == NAMES || there.values().any(|t| *t == tree) || made(tree);
        one.changes.iter().all(|((tree, _), _)| known(*tree))
    }

    pub(super) fn prepare(&mut self, session: u8, live: Live) -> Result<()> {
        let number = 128 + (self.next_xid % 100) as u8;
        if self.prepared.iter().any(|one| one.decision == Decision::Open && one.number == number) {
            return self.rollback(session, live, true);
        }
        let xid = format!("x{}", self.next_xid).into_bytes();
        self.next_xid += 1;
        // What is known must be known too if the disk crashes under way.
        let changes = self.ledger.changes(session);
        self.ledger.renumber(session, number);
        let (decision, is_sure, locks) = (Decision::Open, false, self.ledger.locks_of(number));
        let is_brief = self.briefly && number.is_multiple_of(2);
        let known =
            Prepared { xid: xid.clone(), number, changes, locks, is_sure, is_brief, decision };
        self.prepared.push(known);
        if is_brief {
            self.hands.insert(xid.clone(), live.txn.prepare_owned(&xid)?);
        } else {
            live.txn.prepare(&xid)?;
        }
        if let Some(one) = self.prepared.last_mut() {
            one.is_sure = true;
        }
        self.synced = self.marks.len() - 1;
        self.seen.prepared += 1;
        Ok(())
    }

    /// Ends the `which`-th of those prepared.
    pub(super) fn decide(&mut self, which: usize, commit: Option<Durability>) -> Result<()> {
        let db = self.db.clone().context("no database is open")?;
        let mut open = self.prepared.iter_mut().filter(|one| one.decision == Decision::Open);
        let one = open.nth(which).context("nothing is prepared")?;
        let (xid, number) = (one.xid.clone(), one.number);
        // Known first, as the disk may crash under way: both ends are possible then.
        let last = self.marks.len() - 1;
        if commit.is_some() && !one.changes.is_empty() {
            one.decision = Decision::Commit(last + 1);
            self.ledger.commit(number);
            self.marks.push(self.ledger.mark());
        } else {
            one.decision = Decision::Gone(last);
            self.ledger.rollback(number);
        }
        let done = match (self.hands.get_mut(&xid), commit) {
            (Some(held), commit) => end_held(held, commit).map(|()| true)?,
            (None, Some(durability)) => db.commit_prepared(&xid, durability)?,
            (None, None) => db.rollback_prepared(&xid)?,
        };
        self.hands.remove(&xid);
        ensure!(done, "it is prepared, and yet it is not known");
        if commit == Some(Durability::Synced) {
            self.synced = self.marks.len() - 1;
        }
        Ok(())
    }

    /// Ends what had a handle before the restart.
    ///
    /// # Errors
    /// What ending said.
    pub(super) fn decide_brief(&mut self) -> Result<()> {
        loop {
            let open =
                self.prepared.iter().filter(|one| one.decision == Decision::Open).enumerate();
            let mut left =
                open.filter(|(_, one)| one.is_brief && !self.hands.contains_key(&one.xid));
            let Some((which, one)) = left.next() else { return Ok(()) };
            let commit = (one.number % 4 == 0).then_some(Durability::Synced);
            self.decide(which, commit)?;
        }
    }

    /// Ends all that is prepared.
    ///
    /// # Errors
    /// What ending said.
    pub fn decide_all(&mut self) -> Result<()> {
        while let Some(one) = self.prepared.iter().find(|one| one.decision == Decision::Open) {
            let commit = (one.number % 2 == 0).then_some(Durability::Lazy);
            self.decide(0, commit)?;
        }
        Ok(())
    }
}

/// Ends a transaction by its handle; by its name it cannot be ended meanwhile.
fn end_held(held: &mut PreparedTxn, commit: Option<Durability>) -> Result<(), weir::Error> {
    match commit {
        Some(durability) => held.commit(durability),
        None => held.rollback(),
    }
}
