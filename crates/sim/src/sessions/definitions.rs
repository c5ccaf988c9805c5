//! Trees made, dropped and renamed in the midst of transactions.
use anyhow::{Result, ensure};
use weir::{Error, Isolation};

use super::ledger::{Answer, ExpectedLock, NAMES, Refusal, name_key, name_row};
use super::play::{Live, SessionPlayer};
use super::turn::Turn;
use crate::play::tree_name;

/// A name that is taken is a row that is there.
fn as_row<T>(got: Result<T, Error>) -> Result<T, Error> {
    got.map_err(|e| if matches!(e, Error::Name(_)) { Error::Duplicate } else { e })
}

impl SessionPlayer {
    pub(super) fn define(&mut self, session: u8, live: &mut Live, turn: &Turn) -> Result<()> {
        match turn {
            Turn::Create { tree, .. } => self.create(session, live, *tree),
            Turn::Drop { tree, .. } => self.drop_tree(session, live, *tree).map(|_| ()),
            Turn::Truncate { tree, .. } => {
                if self.drop_tree(session, live, *tree)? {
                    self.create(session, live, *tree)?;
                }
                Ok(())
            }
            Turn::Rename { tree, to, .. } => self.rename(session, live, *tree, *to),
            _ => Ok(()),
        }
    }

    fn create(&mut self, session: u8, live: &mut Live, name: u8) -> Result<()> {
        if !self.ledger.has_room() {
            return Ok(());
        }
        let key = name_key(name);
        let answer = self.ledger.ask(session, &key, false, true);
        let got = as_row(live.txn.create_tree(&tree_name(name)));
        self.note_taken(session, live, name, &got);
        let Some(handle) = self.judge(live, answer, NAMES, got)? else { return Ok(()) };
        let tree = self.ledger.new_tree();
        self.handles.insert(tree, handle);
        live.at_hand.insert(name, tree);
        self.seen.defined += 1;
        self.changed(session, live, key, Some(name_row(tree)));
        Ok(())
    }

    /// At SERIALIZABLE a name that is taken is locked: it tells what is there.
    fn note_taken<T>(&mut self, session: u8, live: &Live, name: u8, got: &Result<T, Error>) {
        let serializable = live.txn.isolation() == Isolation::Serializable;
        if serializable && matches!(got, Err(Error::Duplicate)) {
            self.ledger.lock(session, &name_key(name), ExpectedLock::Shared);
        }
    }

    /// Returns whether it has dropped one.
    fn drop_tree(&mut self, session: u8, live: &mut Live, name: u8) -> Result<bool> {
        let key = name_key(name);
        let tree = self.ledger.tree(Some(session), name);
        let of_name = self.ledger.ask(session, &key, false, false);
        let answer = match tree {
            Some(tree) => both(of_name, self.ledger.ask_tree(session, tree)),
            None => of_name,
        };
        let got = live.txn.drop_tree(&tree_name(name));
        let did = self.judge(live, answer, NAMES, got)?;
        self.lock_name(session, name, of_name, did);
        if let Some(tree) = tree.filter(|_| of_name.must.is_ok()) {
            self.ledger.lock_tree(session, tree, did.is_some());
        }
        let Some(did) = did else { return Ok(false) };
        ensure!(did == tree.is_some(), "it says {did}; what was there is {tree:?}");
        if did {
            self.seen.defined += 1;
            self.changed(session, live, key, None);
        }
        Ok(did)
    }

    fn rename(&mut self, session: u8, live: &mut Live, name: u8, to: u8) -> Result<()> {
        let tree = self.ledger.tree(Some(session), name);
        let of_name = self.ledger.ask(session, &name_key(name), false, false);
        let answer = match tree {
            Some(_) if to != name => {
                both(of_name, self.ledger.ask(session, &name_key(to), false, true))
            }
            _ => of_name,
        };
        let got = as_row(live.txn.rename_tree(&tree_name(name), &tree_name(to)));
        self.note_taken(session, live, to, &got);
        let did = self.judge(live, answer, NAMES, got)?;
        self.lock_name(session, name, of_name, did);
        let Some(did) = did else { return Ok(()) };
        ensure!(did == tree.is_some(), "it says {did}; what was there is {tree:?}");
        if let Some(tree) = tree {
            self.seen.defined += 1;
            self.changed(session, live, name_key(name), None);
            self.changed(session, live, name_key(to), Some(name_row(tree)));
        }
        Ok(())
    }

    /// The name was asked for first, and is kept whatever became of the rest.
    fn lock_name(&mut self, session: u8, name: u8, of_name: Answer, did: Option<bool>) {
        let is_refused = of_name.must == Err(Refusal::Locked);
        if did.is_some() {
            self.ledger.lock(session, &name_key(name), ExpectedLock::Exclusive);
        } else if !is_refused {
            self.ledger.lock(session, &name_key(name), ExpectedLock::Maybe);
        }
    }
}

/// One after the other: the second is asked if the first refuses nothing.
fn both(first: Answer, second: Answer) -> Answer {
    let may_be_locked = first.may_be_locked || second.may_be_locked;
    Answer { must: first.must.and(second.must), may_be_locked }
}
