//! Changes, inside transactions and outside, and the refusals that must be.
use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use weir::{Batch, Durability, Error, Isolation, TxnError};

use super::ledger::{Answer, ExpectedLock, Key, Refusal, Sight};
use super::play::{Live, SessionPlayer};
use super::turn::{Row, Turn};
use crate::model::{Digest, digest};
use crate::op::Value;

impl SessionPlayer {
    /// Holds an answer against what it must be. `None`: it was refused as it must or may.
    pub(super) fn judge<T>(
        &mut self,
        live: &mut Live,
        answer: Answer,
        tree: u8,
        got: Result<T, Error>,
    ) -> Result<Option<T>> {
        if self.volume.has_crashed() {
            return Ok(None);
        }
        if self.ledger.is_gone(tree) {
            let is_reported = matches!(got, Err(Error::NoTree(_)));
            ensure!(is_reported, "the tree is gone, and the engine says {:?}", got.err());
            self.forget_gone(Some(live), tree);
            return Ok(None);
        }
        let refusal = match &got {
            Ok(_) => None,
            Err(Error::Duplicate) => Some(Refusal::Duplicate),
            Err(Error::Transaction(TxnError::Conflict)) => Some(Refusal::Conflict),
            Err(Error::Transaction(TxnError::Lock(refused))) => {
                ensure!(
                    matches!(refused, weir::LockError::WouldWait { .. }),
                    "no session waits, and yet: {refused}"
                );
                Some(Refusal::Locked)
            }
            Err(_) => {
                got?;
                return Ok(None);
            }
        };
        match refusal {
            Some(Refusal::Locked) if answer.may_be_locked => {}
            _ => ensure!(
                refusal == answer.must.err(),
                "the engine says {refusal:?}, the model {answer:?}"
            ),
        }
        match refusal {
            Some(Refusal::Locked) => self.seen.locked += 1,
            Some(Refusal::Conflict) => self.seen.conflicts += 1,
            Some(Refusal::Duplicate) => self.seen.duplicates += 1,
            None => {}
        }
        Ok(got.ok())
    }

    pub(super) fn change(&mut self, session: u8, live: &mut Live, turn: &Turn) -> Result<()> {
        let (row, inserts) = match turn {
            Turn::Insert { row, .. } => (*row, true),
            Turn::Put { row, .. } | Turn::Update { row, .. } | Turn::Delete { row, .. } => {
                (*row, false)
            }
            _ => return Ok(()),
        };
        let found = self.find(Some((session, &mut *live)), row)?;
        let Some((tree, key)) = found else { return Ok(()) };
        let answer = self.ledger.ask(session, &key, false, inserts);
        let there = self.ledger.see(Some(session), Sight::Latest, &key);
        let (txn, name) = (&mut live.txn, &key.1);
        let (got, value) = match turn {
            Turn::Put { value, .. } => {
                (txn.put(&tree, name, &value.bytes()).map(|()| true), Some(*value))
            }
            Turn::Insert { value, .. } => {
                let bytes = value.bytes();
                let inserted = match bytes.len() % 2 {
                    0 => txn.insert(&tree, name, &bytes),
                    _ => txn.insert_all(&tree, &[(&name[..], &bytes[..])]),
                };
                (inserted.map(|()| true), Some(*value))
            }
            Turn::Update { value, .. } => {
                let mut wrong = None;
                let got = txn.update(&tree, name, |old, new| {
                    let old = digest(old);
                    wrong = wrong.or((Some(old) != there).then_some(old));
                    new.extend(value.iter().flat_map(|v| v.bytes()));
                    value.is_some()
                });
                ensure!(wrong.is_none(), "the old value is {wrong:?}, the model says {there:?}");
                (got, *value)
            }
            _ => (txn.delete(&tree, name), None),
        };
        let looks = matches!(turn, Turn::Update { .. });
        if looks {
            // A long value is locked before it is looked at, whatever becomes of it then.
            let refused = answer.must.is_err_and(|why| why == Refusal::Locked);
            if !refused && there.is_some() {
                self.ledger.lock(session, &key, ExpectedLock::Maybe);
            }
        }
        let is_duplicate = matches!(got, Err(Error::Duplicate));
        let serializable = live.txn.isolation() == Isolation::Serializable;
        let did = self.judge(live, answer, key.0, got)?;
        let nothing = did == Some(false) || did == Some(true) && looks && value.is_none();
        if serializable && (is_duplicate || nothing) {
            // It tells what is there: that must stay so.
            self.ledger.lock_beside(session, &key, ExpectedLock::Shared, answer);
        }
        let Some(did) = did else { return Ok(()) };
        let expected = there.is_some() || matches!(turn, Turn::Put { .. } | Turn::Insert { .. });
        ensure!(did == expected, "it says {did}; what was there is {there:?}");
        if did && (value.is_some() || !looks) {
            self.changed(session, live, key, value.map(|v| digest(&v.bytes())));
        }
        Ok(())
    }

    pub(super) fn changed(
        &mut self,
        session: u8,
        live: &mut Live,
        key: Key,
        value: Option<Digest>,
    ) {
        self.ledger.change(session, key, value);
        if live.first.is_none() {
            live.first = self.db.as_ref().map(|db| db.stats().log_end);
        }
    }

    pub(super) fn single(
        &mut self,
        row: Row,
        value: Option<Value>,
        durability: Durability,
    ) -> Result<()> {
        let Some((tree, key)) = self.find(None, row)? else { return Ok(()) };
        if self.ledger.is_touched(&key) {
            return Ok(());
        }
        let there = self.ledger.see(None, Sight::Latest, &key).is_some();
        let done = match value {
            Some(value) => tree.put(&key.1, &value.bytes(), durability).map(|()| there),
            None => tree.delete(&key.1, durability),
        };
        if self.ledger.is_gone(key.0) {
            return self.must_be_gone(&[key.0], done.err());
        }
        let was = done?;
        ensure!(was == there, "delete said {was}, the model says {there}");
        self.write(&[(row, value)]);
        self.committed(durability);
        Ok(())
    }

    pub(super) fn batch(
        &mut self,
        rows: &[(Row, Option<Value>)],
        durability: Durability,
    ) -> Result<()> {
        let (mut batch, mut trees) = (Batch::new(), Vec::new());
        for (row, value) in rows {
            let Some((tree, key)) = self.find(None, *row)? else { return Ok(()) };
            if self.ledger.is_touched(&key) {
                return Ok(());
            }
            trees.push(key.0);
            match value {
                Some(value) => batch.put(&tree, &key.1, &value.bytes()),
                None => batch.delete(&tree, &key.1),
            }
        }
        let db = self.db.as_ref().context("no database is open")?;
        let done = db.write(&batch, durability);
        trees.retain(|tree| self.ledger.is_gone(*tree));
        if !trees.is_empty() {
            return self.must_be_gone(&trees, done.err());
        }
        done?;
        self.write(rows);
        self.committed(durability);
        Ok(())
    }

    /// A change through a handle of a tree that is gone has failed, because of that.
    fn must_be_gone(&mut self, trees: &[u8], got: Option<Error>) -> Result<()> {
        ensure!(
            self.volume.has_crashed() || matches!(got, Some(Error::NoTree(_))),
            "the tree is gone, and the engine says {got:?}"
        );
        trees.iter().for_each(|tree| self.forget_gone(None, *tree));
        Ok(())
    }

    /// Changes outside all transactions, in the ledger; a removal of what is not there is none.
    pub(super) fn write(&mut self, rows: &[(Row, Option<Value>)]) {
        // A later change of a key replaces an earlier one.
        let mut last: BTreeMap<Key, Option<Digest>> = BTreeMap::new();
        for (row, value) in rows {
            // What is not at hand was not changed either.
            let Some(tree) = self.at_hand.get(&row.0) else { continue };
            last.insert((*tree, self.key_bytes(row.1)), value.map(|v| digest(&v.bytes())));
        }
        let ledger = &mut self.ledger;
        last.retain(|key, value| value.is_some() || ledger.see(None, Sight::Latest, key).is_some());
        if !last.is_empty() {
            ledger.write(last.into_iter().collect());
        }
    }
}
