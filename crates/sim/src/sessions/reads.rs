//! What sessions read, held against what they must see.
use std::ops::Bound;

use anyhow::{Result, ensure};
use weir::{Error, Isolation, TxnError};

use super::ledger::{Held, Key, Sight};
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
        let key = self.key(row);
        let tree = self.tree(row.0)?;
        let answer = self.ledger.ask(session, &key, shared, false);
        let mut bytes = Vec::new();
        let got = if shared {
            live.txn.get_for_share(&tree, &key.1, &mut bytes)
        } else {
            live.txn.get_for_update(&tree, &key.1, &mut bytes)
        };
        let conflict = matches!(got, Err(Error::Transaction(TxnError::Conflict)));
        let found = self.judge(live, answer, got)?;
        if found.is_some() || conflict {
            let held = if shared { Held::Shared } else { Held::Exclusive };
            self.ledger.lock(session, &key, held);
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
    ) -> Result<Stayed> {
        let handle = self.tree(tree)?;
        let cursor = live.txn.cursor(&handle);
        let sight = self.ledger.cursor_sight(session);
        let mut stayed = Stayed { cursor, tree, sight, at: None };
        let from = from.map(|number| self.key((tree, number)).1);
        let (cursor, txn) = (&mut stayed.cursor, &mut live.txn);
        let (on, bound) = match (&from, up) {
            (None, true) => (cursor.seek_first(txn), Bound::Unbounded),
            (None, false) => (cursor.seek_last(txn), Bound::Unbounded),
            (Some(key), true) => (cursor.seek(txn, key), Bound::Included(&key[..])),
            (Some(key), false) => (cursor.seek_before(txn, key), Bound::Excluded(&key[..])),
        };
        self.moved(session, live, &mut stayed, on, bound, up)?;
        Ok(stayed)
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
        let Some(at) = stayed.at.take() else {
            ensure!(!on?, "it stood on no row and moved to one");
            return Ok(());
        };
        self.moved(session, live, stayed, on, Bound::Excluded(&at[..]), up)
    }

    /// A cursor has moved, or was refused to: at SERIALIZABLE it locks what it passes.
    fn moved(
        &mut self,
        session: u8,
        live: &Live,
        stayed: &mut Stayed,
        on: Result<bool, Error>,
        from: Bound<&[u8]>,
        up: bool,
    ) -> Result<()> {
        if live.txn.isolation() != Isolation::Serializable {
            return self.arrived(session, stayed, on?, from, up);
        }
        let span = self.ledger.span(session, stayed.tree, from, up);
        let answer = self.ledger.ask_span(session, &span);
        let on = self.judge(live, answer, on)?;
        self.ledger.lock_span(session, span, on.is_some());
        self.seen.ranges += u64::from(on.is_some());
        match on {
            Some(on) => self.arrived(session, stayed, on, from, up),
            None => Ok(()),
        }
    }

    /// A read at SERIALIZABLE: the row is locked, or its absence.
    pub(super) fn read_and_lock(
        &mut self,
        session: u8,
        live: &Live,
        key: &Key,
        got: Result<Option<Digest>, Error>,
    ) -> Result<()> {
        let answer = self.ledger.ask(session, key, true, false);
        let Some(found) = self.judge(live, answer, got)? else { return Ok(()) };
        if !self.ledger.has_changed(session, key) {
            self.ledger.lock(session, key, Held::Shared);
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
        stayed.at = found.map(|(key, _)| key);
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

    pub(super) fn walk(&mut self, tree: u8) -> Result<()> {
        let mut cursor = self.tree(tree)?.cursor();
        let mut at: Option<Vec<u8>> = None;
        let mut on = cursor.seek_first()?;
        loop {
            let from = at.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let expected = self.ledger.next_row(None, Sight::Latest, tree, from, true);
            let found = match on {
                true => Some((cursor.key().to_vec(), digest(cursor.value()?))),
                false => None,
            };
            ensure!(found == expected, "walked to {found:?}, the model says {expected:?}");
            let Some((key, _)) = found else { return Ok(()) };
            at = Some(key);
            on = cursor.next()?;
        }
    }
}
