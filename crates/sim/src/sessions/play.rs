//! Sessions on a database, one turn after the other, and the ledger beside them.
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use weir::{
    Batch, Commit, Db, Durability, Error, Isolation, ManualClock, Savepoint, SimVolume, Snapshot,
    Tree, Txn, TxnCursor, TxnError, TxnOptions, Wait,
};

use super::ledger::{Answer, Held, Key, Ledger, Refusal, Sight};
use super::prepared::{Fate, Prepared};
use super::seen::Seen;
use super::turn::{How, Row, Turn};
use crate::model::{Digest, digest};
use crate::op::{Value, key_bytes};
use crate::play::{Ending, open, tree_name};
use crate::setup::Setup;

struct Stayed {
    cursor: TxnCursor,
    tree: u8,
    /// `None`: what its session sees when it moves.
    sight: Option<Sight>,
    at: Option<Vec<u8>>,
}

pub(super) struct Live {
    pub(super) txn: Txn,
    savepoints: Vec<Savepoint>,
    stayed: Option<Stayed>,
    /// About how much taking it back would write.
    pub(super) undo_bytes: u64,
    /// Where the log ended behind its first change.
    first: Option<u64>,
}

/// Sessions, their database, and what is known.
pub struct SessionPlayer {
    setup: Setup,
    pub(super) volume: SimVolume,
    clock: Arc<ManualClock>,
    pub(super) db: Option<Db>,
    trees: Vec<Tree>,
    pub(super) ledger: Ledger,
    live: BTreeMap<u8, Live>,
    held: Option<(Snapshot, u64)>,
    /// The mark before the first commit and after each.
    pub(super) marks: Vec<u64>,
    /// How many commits must be found after a crash.
    pub(super) synced: usize,
    tickets: Vec<(usize, Commit)>,
    pub(super) prepared: Vec<Prepared>,
    pub(super) next_xid: u64,
    /// What was met so far.
    pub seen: Seen,
}

impl SessionPlayer {
    /// Over an open database that has `trees` trees and holds what `ledger` says.
    ///
    /// # Errors
    /// When a tree is missing.
    #[allow(clippy::too_many_arguments)] // All that a run goes on from.
    pub(crate) fn new(
        setup: Setup,
        volume: SimVolume,
        clock: Arc<ManualClock>,
        db: Db,
        ledger: Ledger,
        trees: u8,
        pending: Vec<Prepared>,
        next_xid: u64,
    ) -> Result<Self> {
        let mut ledger = ledger;
        for one in &pending {
            ledger.begin(one.number, Isolation::ReadCommitted, None);
            for (key, value) in &one.changes {
                ledger.change(one.number, key.clone(), *value);
            }
        }
        let mut player = SessionPlayer {
            setup,
            volume,
            clock,
            db: Some(db),
            trees: Vec::new(),
            marks: vec![ledger.mark()],
            ledger,
            live: BTreeMap::new(),
            held: None,
            synced: 0,
            tickets: Vec::new(),
            prepared: pending,
            next_xid,
            seen: Seen::default(),
        };
        player.find_trees(trees)?;
        Ok(player)
    }

    fn find_trees(&mut self, count: u8) -> Result<()> {
        let db = self.db.as_ref().context("no database is open")?;
        self.trees = (0..count)
            .map(|n| db.tree(&tree_name(n))?.with_context(|| format!("tree {n} is missing")))
            .collect::<Result<_>>()?;
        Ok(())
    }

    /// What is known.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The database; none after a crash while it was being reopened.
    #[must_use]
    pub fn db(&self) -> Option<&Db> {
        self.db.as_ref()
    }

    /// Takes the turns until the end or until the disk crashes.
    ///
    /// # Errors
    /// Whatever the engine should not have said or done.
    pub fn play(&mut self, turns: &[Turn]) -> Result<Ending> {
        for (at, turn) in turns.iter().enumerate() {
            let done = self.take(turn);
            if self.volume.has_crashed() {
                // Whether or not the engine noticed, a commit may be there after the crash.
                if done.is_err() {
                    self.assume(turn);
                }
                return Ok(Ending::Crashed { at });
            }
            done.with_context(|| format!("turn {at}, {turn:?}"))?;
            self.ask_tickets();
        }
        Ok(Ending::Done)
    }

    fn ask_tickets(&mut self) {
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

    fn key(&self, row: Row) -> Key {
        (row.0, key_bytes(row.1, self.setup.page_size))
    }

    fn tree(&self, number: u8) -> Result<Tree> {
        self.trees.get(usize::from(number)).cloned().context("no such tree")
    }

    /// The turn failed because the disk crashed; what it would have committed may be there.
    fn assume(&mut self, turn: &Turn) {
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

    /// Changes outside all transactions, in the ledger; a removal of what is not there is none.
    fn write(&mut self, rows: &[(Row, Option<Value>)]) {
        // A later change of a key replaces an earlier one.
        let mut last: BTreeMap<Key, Option<Digest>> = BTreeMap::new();
        for (row, value) in rows {
            last.insert(self.key(*row), value.map(|v| digest(&v.bytes())));
        }
        let ledger = &mut self.ledger;
        last.retain(|key, value| value.is_some() || ledger.see(None, Sight::Latest, key).is_some());
        if !last.is_empty() {
            ledger.write(last.into_iter().collect());
        }
    }

    fn committed(&mut self, durability: Durability) {
        if self.marks.len() == 1 + self.ledger.commits() as usize {
            return;
        }
        self.marks.push(self.ledger.mark());
        self.seen.commits += 1;
        if durability == Durability::Synced {
            self.synced = self.marks.len() - 1;
        }
    }

    fn take(&mut self, turn: &Turn) -> Result<()> {
        match turn {
            Turn::Begin { session, isolation, at_once, share } => {
                if !self.live.contains_key(session) {
                    self.begin(*session, *isolation, *at_once, *share)?;
                }
            }
            Turn::Single { row, value, durability } => self.single(*row, *value, *durability)?,
            Turn::Batch { rows, durability } => self.batch(rows, *durability)?,
            Turn::Look { row } => {
                let key = self.key(*row);
                let found = self.tree(row.0)?.get(&key.1)?.map(|bytes| digest(&bytes));
                self.compare(None, Sight::Latest, &key, found)?;
            }
            Turn::Walk { tree } => self.walk(*tree)?,
            Turn::Decide { which, commit } => {
                let open = self.prepared.iter().filter(|one| one.fate == Fate::Open).count();
                if open > 0 {
                    self.decide(usize::from(*which) % open, *commit)?;
                }
            }
            Turn::Hold => {
                if self.held.take().is_none() {
                    let db = self.db.as_ref().context("no database is open")?;
                    self.held = Some((db.snapshot(), self.ledger.commits()));
                }
            }
            Turn::Step => self.db.as_ref().context("no database is open")?.step()?,
            Turn::Checkpoint => self.db.as_ref().context("no database is open")?.checkpoint()?,
            Turn::Pass(micros) => self.clock.advance(*micros),
            Turn::Reopen => self.reopen()?,
            _ => return self.take_of_session(turn),
        }
        self.seen.turns += 1;
        Ok(())
    }

    fn begin(
        &mut self,
        session: u8,
        isolation: Isolation,
        at_once: bool,
        share: bool,
    ) -> Result<()> {
        let db = self.db.as_ref().context("no database is open")?;
        let mut txn = db.begin(TxnOptions { isolation, lock_wait: Wait::No });
        let shared = self.held.as_ref().filter(|_| share);
        if let Some((snapshot, _)) = shared {
            txn.share(snapshot);
        }
        self.ledger.begin(session, isolation, shared.map(|(_, at)| *at));
        if at_once {
            txn.take_snapshot();
            self.ledger.take_snapshot(session);
        }
        let live = Live { txn, savepoints: Vec::new(), stayed: None, undo_bytes: 0, first: None };
        self.live.insert(session, live);
        Ok(())
    }

    /// One turn of a session: it is taken out of the list meanwhile.
    fn take_of_session(&mut self, turn: &Turn) -> Result<()> {
        let session = match turn {
            Turn::Get { session, .. }
            | Turn::Lock { session, .. }
            | Turn::Put { session, .. }
            | Turn::Insert { session, .. }
            | Turn::Update { session, .. }
            | Turn::Delete { session, .. }
            | Turn::Scan { session, .. }
            | Turn::Place { session, .. }
            | Turn::Move { session, .. }
            | Turn::Savepoint { session }
            | Turn::Back { session, .. }
            | Turn::Commit { session, .. }
            | Turn::Prepare { session }
            | Turn::Rollback { session, .. } => *session,
            _ => return Ok(()),
        };
        let Some(mut live) = self.live.remove(&session) else { return Ok(()) };
        self.seen.turns += 1;
        if matches!(turn, Turn::Commit { .. } | Turn::Rollback { .. })
            && let (Some(first), Some(db)) = (live.first, &self.db)
            && db.stats().checkpoint > first
        {
            self.seen.carried += u64::from(self.ledger.has_changes(session));
        }
        match turn {
            Turn::Commit { how, .. } => {
                let done = self.commit(session, live, *how);
                if done.is_err() {
                    // So that it is known that it may have committed, should the disk have crashed.
                    self.begin_again(session);
                }
                return done;
            }
            Turn::Prepare { .. } => return self.prepare(session, live),
            Turn::Rollback { by_drop, .. } => return self.rollback(session, live, *by_drop),
            _ => {}
        }
        let done = self.take_with(session, &mut live, turn);
        self.live.insert(session, live);
        done
    }

    fn begin_again(&mut self, session: u8) {
        if let Some(db) = &self.db {
            let txn = db.begin(TxnOptions::default());
            let live =
                Live { txn, savepoints: Vec::new(), stayed: None, undo_bytes: 0, first: None };
            self.live.insert(session, live);
        }
    }

    fn take_with(&mut self, session: u8, live: &mut Live, turn: &Turn) -> Result<()> {
        match turn {
            Turn::Get { row, .. } => {
                let key = self.key(*row);
                let sight = self.ledger.sight(session);
                let tree = self.tree(row.0)?;
                let found = live.txn.get(&tree, &key.1)?.map(|bytes| digest(&bytes));
                self.compare(Some(session), sight, &key, found)
            }
            Turn::Lock { row, shared, .. } => self.lock(session, live, *row, *shared),
            Turn::Scan { tree, from, up, limit, .. } => {
                let mut stayed = self.place(session, live, *tree, *from, *up)?;
                let mut left = *limit;
                while stayed.at.is_some() && left > 0 {
                    left -= 1;
                    self.step(session, live, &mut stayed, *up)?;
                }
                Ok(())
            }
            Turn::Place { tree, from, up, .. } => {
                live.stayed = Some(self.place(session, live, *tree, *from, *up)?);
                Ok(())
            }
            Turn::Move { up, .. } => {
                let Some(mut stayed) = live.stayed.take() else { return Ok(()) };
                self.step(session, live, &mut stayed, *up)?;
                live.stayed = Some(stayed);
                Ok(())
            }
            Turn::Savepoint { .. } => {
                live.savepoints.push(live.txn.savepoint());
                self.ledger.savepoint(session);
                Ok(())
            }
            Turn::Back { which, .. } if !live.savepoints.is_empty() => {
                let which = usize::from(*which) % live.savepoints.len();
                live.savepoints.truncate(which + 1);
                live.txn.rollback_to(live.savepoints[which])?;
                self.ledger.back(session, which);
                self.seen.backs += 1;
                Ok(())
            }
            _ => self.change(session, live, turn),
        }
    }

    /// Holds an answer against what it must be. `None`: it was refused as it must or may.
    fn judge<T>(
        &mut self,
        live: &Live,
        answer: Answer,
        got: Result<T, Error>,
    ) -> Result<Option<T>> {
        if self.volume.has_crashed() {
            return Ok(None);
        }
        let refusal = match &got {
            Ok(_) => None,
            Err(Error::Duplicate) => Some(Refusal::Duplicate),
            Err(Error::Transaction(TxnError::Conflict)) => Some(Refusal::Conflict),
            Err(Error::Transaction(TxnError::Lock(refused))) => {
                ensure!(
                    matches!(refused, weir::Refused::WouldWait { .. }),
                    "nobody waits, and yet: {refused}"
                );
                Some(Refusal::Locked)
            }
            // What would have to be remembered is more than this log allows.
            Err(Error::Transaction(TxnError::TooLarge { .. })) if live.undo_bytes > 16 << 10 => {
                return Ok(None);
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

    fn lock(&mut self, session: u8, live: &mut Live, row: Row, shared: bool) -> Result<()> {
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

    fn change(&mut self, session: u8, live: &mut Live, turn: &Turn) -> Result<()> {
        let (row, inserts) = match turn {
            Turn::Insert { row, .. } => (*row, true),
            Turn::Put { row, .. } | Turn::Update { row, .. } | Turn::Delete { row, .. } => {
                (*row, false)
            }
            _ => return Ok(()),
        };
        let key = self.key(row);
        let tree = self.tree(row.0)?;
        let answer = self.ledger.ask(session, &key, false, inserts);
        let there = self.ledger.see(Some(session), Sight::Latest, &key);
        let (txn, name) = (&mut live.txn, &key.1);
        let (got, value) = match turn {
            Turn::Put { value, .. } => {
                (txn.put(&tree, name, &value.bytes()).map(|()| true), Some(*value))
            }
            Turn::Insert { value, .. } => {
                (txn.insert(&tree, name, &value.bytes()).map(|()| true), Some(*value))
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
                self.ledger.lock(session, &key, Held::Maybe);
            }
        }
        let Some(did) = self.judge(live, answer, got)? else { return Ok(()) };
        let expected = there.is_some() || matches!(turn, Turn::Put { .. } | Turn::Insert { .. });
        ensure!(did == expected, "it says {did}; what was there is {there:?}");
        if did && (value.is_some() || !looks) {
            live.undo_bytes += 64 + key.1.len() as u64 + there.map_or(0, |(_, len)| u64::from(len));
            self.ledger.change(session, key, value.map(|v| digest(&v.bytes())));
            if live.first.is_none() {
                live.first = self.db.as_ref().map(|db| db.stats().log_end);
            }
        }
        Ok(())
    }

    fn place(
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
            (None, true) => (cursor.seek_first(txn)?, Bound::Unbounded),
            (None, false) => (cursor.seek_last(txn)?, Bound::Unbounded),
            (Some(key), true) => (cursor.seek(txn, key)?, Bound::Included(&key[..])),
            (Some(key), false) => (cursor.seek_before(txn, key)?, Bound::Excluded(&key[..])),
        };
        self.arrived(session, &mut stayed, on, bound, up)?;
        Ok(stayed)
    }

    fn step(&mut self, session: u8, live: &mut Live, stayed: &mut Stayed, up: bool) -> Result<()> {
        let (cursor, txn) = (&mut stayed.cursor, &mut live.txn);
        let on = if up { cursor.next(txn)? } else { cursor.prev(txn)? };
        let Some(at) = stayed.at.take() else {
            ensure!(!on, "it stood on no row and moved to one");
            return Ok(());
        };
        self.arrived(session, stayed, on, Bound::Excluded(&at[..]), up)
    }

    /// Compares what a cursor has come to.
    fn arrived(
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

    fn count_read(&mut self, found: &Option<(Vec<u8>, Digest)>, sight: Sight, tree: u8) {
        self.seen.reads += 1;
        if let (Some((key, value)), Sight::At(_)) = (found, sight) {
            let now = self.ledger.see(None, Sight::Latest, &(tree, key.clone()));
            self.seen.old_reads += u64::from(now != Some(*value));
        }
    }

    fn compare(
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

    fn walk(&mut self, tree: u8) -> Result<()> {
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

    fn commit(&mut self, session: u8, live: Live, how: How) -> Result<()> {
        let changes = self.ledger.has_changes(session);
        let undo_bytes = live.undo_bytes;
        let (done, durability) = match how {
            How::Durably(durability) => {
                (live.txn.commit_durably(durability).map(|()| None), durability)
            }
            How::Ticket => (live.txn.commit().map(Some), Durability::Lazy),
        };
        match done {
            Err(Error::Transaction(TxnError::TooLarge { .. }))
                if undo_bytes > 16 << 10 && !self.volume.has_crashed() =>
            {
                self.ledger.rollback(session);
                return Ok(());
            }
            done => {
                if let Some(ticket) = done? {
                    ensure!(
                        ticket.is_change() || !changes,
                        "it has changed rows, and its commit says that it has not"
                    );
                    self.ledger.commit(session);
                    self.committed(durability);
                    if ticket.is_change() {
                        self.tickets.push((self.marks.len() - 1, ticket));
                    }
                    return Ok(());
                }
            }
        }
        self.ledger.commit(session);
        self.committed(durability);
        Ok(())
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

    fn single(&mut self, row: Row, value: Option<Value>, durability: Durability) -> Result<()> {
        let key = self.key(row);
        if self.ledger.is_touched(&key) {
            return Ok(());
        }
        let tree = self.tree(row.0)?;
        match value {
            Some(value) => tree.put(&key.1, &value.bytes(), durability)?,
            None => {
                let there = self.ledger.see(None, Sight::Latest, &key).is_some();
                let was = tree.delete(&key.1, durability)?;
                ensure!(was == there, "delete said {was}, the model says {there}");
            }
        }
        self.write(&[(row, value)]);
        self.committed(durability);
        Ok(())
    }

    fn batch(&mut self, rows: &[(Row, Option<Value>)], durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        for (row, value) in rows {
            let key = self.key(*row);
            if self.ledger.is_touched(&key) {
                return Ok(());
            }
            let tree = self.tree(row.0)?;
            match value {
                Some(value) => batch.put(&tree, &key.1, &value.bytes()),
                None => batch.delete(&tree, &key.1),
            }
        }
        let db = self.db.as_ref().context("no database is open")?;
        db.write(&batch, durability)?;
        self.write(rows);
        self.committed(durability);
        Ok(())
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

    fn reopen(&mut self) -> Result<()> {
        self.end_all()?;
        self.trees.clear();
        let count = self.ledger.latest().keys().next_back().map_or(0, |last| last + 1);
        if let Some(db) = self.db.take() {
            db.close()?;
        }
        self.tickets.clear();
        let db = open(&self.setup, &self.volume, &self.clock).context("reopening")?;
        let pending: Vec<Vec<u8>> = db.prepared();
        let open = self.prepared.iter().filter(|one| one.fate == Fate::Open);
        let mut known: Vec<Vec<u8>> = open.map(|one| one.xid.clone()).collect();
        known.sort();
        ensure!(pending == known, "{pending:?} are prepared, not {known:?}");
        self.ledger.forget_locks();
        if let Some(report) = db.recovery_report().filter(|_| pending.is_empty()) {
            bail!("closed in order, and yet there was something to recover: {report:?}");
        }
        self.synced = self.marks.len() - 1;
        self.db = Some(db);
        self.find_trees(count)
    }
}
