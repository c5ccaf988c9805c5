//! What sessions read, held against what they must see.
use std::ops::Bound;

use anyhow::{Result, ensure};
use weir::{Error, Isolation, TxnError};

use super::ledger::{ExpectedLock, Key, Sight};
use super::play::{Live, SessionPlayer, Stayed};
use super::turn::Row;
use crate::model::{Digest, digest};

impl SessionPlayer {
    pub(super) fn lock(
        &mut self,
        session: u8,
        live: &mut Live,
        row: Row,
        shared: bool,
    ) -> Result<()> {
        let found = self.find(Some((session, &mut *live)), row)?;
        let Some((tree, key)) = found else { return Ok(()) };
        let answer = self.ledger.ask(session, &key, shared, false);
        let mut bytes = Vec::new();
        let got = if shared {
            live.txn.get_for_share(&tree, &key.1, &mut bytes)
        } else {
            live.txn.get_for_update(&tree, &key.1, &mut bytes)
        };
        let conflict = matches!(got, Err(Error::Transaction(TxnError::Conflict)));
        let found = self.judge(live, answer, key.0, got)?;
        if found.is_some() || conflict {
            let held = if shared { ExpectedLock::Shared } else { ExpectedLock::Exclusive };
            self.ledger.lock_beside(session, &key, held, answer);
        }
        let Some(found) = found else { return Ok(()) };
        self.compare(Some(session), Sight::Latest, &key, found.then(|| digest(&bytes)))
    }

    pub(super) fn place(
        &mut self,
        session: u8,
        live: &mut Live,
        tree: u8,
        from: Option<u16>,
        up: bool,
    ) -> Result<Option<Stayed>> {
        let found = self.find_tree(Some((session, &mut *live)), tree)?;
        let Some((tree, handle)) = found else { return Ok(None) };
        let cursor = live.txn.cursor(&handle);
        let sight = self.ledger.cursor_sight(session);
        let mut stayed = Stayed::new(cursor, tree, sight);
        let from = from.map(|number| self.key_bytes(number));
        let (cursor, txn) = (&mut stayed.cursor, &mut live.txn);
        let (on, bound) = match (&from, up) {
            (None, true) => (cursor.seek_first(txn), Bound::Unbounded),
            (None, false) => (cursor.seek_last(txn), Bound::Unbounded),
            (Some(key), true) => (cursor.seek(txn, key), Bound::Included(&key[..])),
            (Some(key), false) => (cursor.seek_before(txn, key), Bound::Excluded(&key[..])),
        };
        self.moved(session, live, &mut stayed, on, bound, up)?;
        Ok(Some(stayed))
    }

    pub(super) fn step(
        &mut self,
        session: u8,
        live: &mut Live,
        stayed: &mut Stayed,
        up: bool,
    ) -> Result<()> {
        let (cursor, txn) = (&mut stayed.cursor, &mut live.txn);
        let on = if up { cursor.next(txn) } else { cursor.prev(txn) };
        let Some(from) = stayed.from[usize::from(!up)].take() else {
            let is_gone = self.ledger.is_gone(stayed.tree) && matches!(on, Err(Error::NoTree(_)));
            ensure!(is_gone || !on?, "there was nothing that way, and it moved to a row");
            stayed.arrive(None);
            return Ok(());
        };
        self.seen.again += u64::from(!stayed.on_row);
        let from = from.as_ref().map(|key| &key[..]);
        self.moved(session, live, stayed, on, from, up)
    }

    /// A cursor has moved, or was refused to: at SERIALIZABLE it locks what it passes.
    fn moved(
        &mut self,
        session: u8,
        live: &mut Live,
        stayed: &mut Stayed,
        on: Result<bool, Error>,
        from: Bound<&[u8]>,
        up: bool,
    ) -> Result<()> {
        if live.txn.isolation() != Isolation::Serializable {
            let sight = self.ledger.sight(session);
            let sight = stayed.sight.unwrap_or(sight);
            return match self.unless_gone(Some(live), stayed.tree, sight, on)? {
                Some(on) => self.arrived(session, stayed, on, from, up),
                None => {
                    stayed.stop(from, up);
                    Ok(())
                }
            };
        }
        let span = self.ledger.span(session, stayed.tree, from, up);
        let answer = self.ledger.ask_span(session, &span);
        let on = self.judge(live, answer, stayed.tree, on)?;
        self.ledger.lock_span(session, span, on.is_some());
        self.seen.ranges += u64::from(on.is_some());
        match on {
            Some(on) => self.arrived(session, stayed, on, from, up),
            None => {
                stayed.stop(from, up);
                Ok(())
            }
        }
    }

    /// A read at SERIALIZABLE: the row is locked, or its absence.
    pub(super) fn read_and_lock(
        &mut self,
        session: u8,
        live: &mut Live,
        key: &Key,
        got: Result<Option<Digest>, Error>,
    ) -> Result<()> {
        let answer = self.ledger.ask(session, key, true, false);
        let Some(found) = self.judge(live, answer, key.0, got)? else { return Ok(()) };
        if !self.ledger.has_changed(session, key) {
            self.ledger.lock(session, key, ExpectedLock::Shared);
        }
        self.compare(Some(session), Sight::Latest, key, found)
    }

    /// Compares what a cursor has come to.
    pub(super) fn arrived(
        &mut self,
        session: u8,
        stayed: &mut Stayed,
        on: bool,
        from: Bound<&[u8]>,
        up: bool,
    ) -> Result<()> {
        let sight = self.ledger.sight(session);
        let sight = stayed.sight.unwrap_or(sight);
        let expected = self.ledger.next_row(Some(session), sight, stayed.tree, from, up);
        let cursor = &stayed.cursor;
        let found = on.then(|| (cursor.key().to_vec(), digest(cursor.value())));
        let short = |row: &Option<(Vec<u8>, Digest)>| {
            row.as_ref().map(|(key, value)| {
                (String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned(), *value)
            })
        };
        ensure!(
            found == expected,
            "the cursor came to {:?}, the model says {:?}",
            short(&found),
            short(&expected)
        );
        self.count_read(&found, sight, stayed.tree);
        stayed.arrive(found.map(|(key, _)| key));
        Ok(())
    }

    pub(super) fn count_read(&mut self, found: &Option<(Vec<u8>, Digest)>, sight: Sight, tree: u8) {
        self.seen.reads += 1;
        if let (Some((key, value)), Sight::At(_)) = (found, sight) {
            let now = self.ledger.see(None, Sight::Latest, &(tree, key.clone()));
            self.seen.old_reads += u64::from(now != Some(*value));
        }
    }

    pub(super) fn compare(
        &mut self,
        session: Option<u8>,
        sight: Sight,
        key: &Key,
        found: Option<Digest>,
    ) -> Result<()> {
        let expected = self.ledger.see(session, sight, key);
        ensure!(found == expected, "found {found:?} by {sight:?}, the model says {expected:?}");
        self.count_read(&found.map(|value| (key.1.clone(), value)), sight, key.0);
        Ok(())
    }

    /// What a read without locks has got; `None`: its tree is gone, and that may be by now.
    pub(super) fn unless_gone<T>(
        &mut self,
        live: Option<&mut Live>,
        tree: u8,
        sight: Sight,
        got: Result<T, Error>,
    ) -> Result<Option<T>> {
        if matches!(got, Err(Error::NoTree(_))) && self.ledger.may_be_gone(tree, sight) {
            self.forget_gone(live, tree);
            return Ok(None);
        }
        Ok(Some(got?))
    }

    /// A handle has been found to be good for nothing.
    pub(super) fn forget_gone(&mut self, live: Option<&mut Live>, tree: u8) {
        let at_hand = live.map_or(&mut self.at_hand, |live| &mut live.at_hand);
        at_hand.retain(|_, known| *known != tree);
        self.seen.gone += 1;
    }

    pub(super) fn look(&mut self, row: Row) -> Result<()> {
        let Some((tree, key)) = self.find(None, row)? else { return Ok(()) };
        let found = tree.get(&key.1).map(|found| found.map(|bytes| digest(&bytes)));
        match self.unless_gone(None, key.0, Sight::Latest, found)? {
            Some(found) => self.compare(None, Sight::Latest, &key, found),
            None => Ok(()),
        }
    }

    pub(super) fn walk(&mut self, name: u8) -> Result<()> {
        let Some((tree, handle)) = self.find_tree(None, name)? else { return Ok(()) };
        let mut cursor = handle.cursor();
        let mut at: Option<Vec<u8>> = None;
        let mut moved = cursor.seek_first();
        loop {
            let on = self.unless_gone(None, tree, Sight::Latest, moved)?;
            let Some(on) = on else { return Ok(()) };
            let from = at.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let expected = self.ledger.next_row(None, Sight::Latest, tree, from, true);
            let found = match on {
                true => Some((cursor.key().to_vec(), digest(cursor.value()?))),
                false => None,
            };
            ensure!(found == expected, "walked to {found:?}, the model says {expected:?}");
            let Some((key, _)) = found else { return Ok(()) };
            at = Some(key);
            moved = cursor.next();
        }
    }
}
