//! Old snapshots and next to no memory for versions: they see what they saw.
use proptest::prelude::*;
use weir_btree::Tree;
use weir_txn::{Intent, Isolation, ReadView, RowCursor, Snapshot, Txn, View, Wait};

use crate::support::{Rows, Site, rows, site};

fn key(n: u8) -> Vec<u8> {
    // Some of them longer than an archive's keys can be.
    vec![n; if n % 8 == 7 { 1_195 } else { 1 + usize::from(n % 3) }]
}

fn value(tree: &Tree, under: u8, mark: u8, size: u8) -> Vec<u8> {
    let len = match size {
        0..6 => usize::from(size) * 20,
        6 => tree.max_inline_value(key(under).len()),
        _ => 5_000,
    };
    vec![mark; len]
}

#[derive(Clone, Debug)]
enum Act {
    Put { session: usize, key: u8, size: u8 },
    Delete { session: usize, key: u8 },
    Commit(usize),
    Rollback(usize),
    Single { key: u8, size: u8 },
    Remove { key: u8 },
    Snapshot,
    Leave(usize),
    Archive,
    Prune,
    Purge,
    Look(usize),
}

const SESSIONS: usize = 3;
const KEYS: u8 = 24;

fn any_act() -> impl Strategy<Value = Act> {
    let (session, key, size) = (|| 0..SESSIONS, || 0..KEYS, || 0u8..8);
    prop_oneof![
        8 => (session(), key(), size())
            .prop_map(|(session, key, size)| Act::Put { session, key, size }),
        4 => (session(), key()).prop_map(|(session, key)| Act::Delete { session, key }),
        4 => session().prop_map(Act::Commit),
        1 => session().prop_map(Act::Rollback),
        6 => (key(), size()).prop_map(|(key, size)| Act::Single { key, size }),
        3 => key().prop_map(|key| Act::Remove { key }),
        2 => Just(Act::Snapshot),
        1 => any::<usize>().prop_map(Act::Leave),
        3 => Just(Act::Archive),
        1 => Just(Act::Prune),
        1 => Just(Act::Purge),
        2 => any::<usize>().prop_map(Act::Look),
    ]
}

struct Session {
    txn: Txn,
    changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Session {
    fn new() -> Self {
        Session { txn: Txn::new(Isolation::ReadCommitted, Wait::No), changes: Vec::new() }
    }
}

struct Play<'s> {
    site: &'s Site,
    tree: Tree,
    sessions: Vec<Session>,
    /// What is committed.
    now: Rows,
    snapshots: Vec<(Snapshot, Rows)>,
    mark: u8,
}

impl Play<'_> {
    fn change(&mut self, session: usize, key: Vec<u8>, value: Option<Vec<u8>>) {
        let session = &mut self.sessions[session];
        let intent = value.as_deref().map_or(Intent::Delete, Intent::Put);
        match session.txn.change(&self.site.context, &self.tree, &key, intent) {
            Ok(true) => session.changes.push((key, value)),
            Ok(false) => assert!(value.is_none()),
            Err(e) => assert!(e.to_string().contains("lock"), "another's row: {e}"),
        }
    }

    fn end(&mut self, session: usize, commits: bool) {
        let mut session = std::mem::replace(&mut self.sessions[session], Session::new());
        if !commits {
            session.txn.rollback(&self.site.context).expect("rolled back");
            return;
        }
        self.site.commit(&mut session.txn).expect("committed");
        for (key, value) in session.changes {
            match value {
                Some(value) => self.now.insert(key, value),
                None => self.now.remove(&key),
            };
        }
    }

    fn is_locked(&self, key: &[u8]) -> bool {
        self.sessions.iter().flat_map(|s| &s.changes).any(|(changed, _)| changed == key)
    }

    /// The snapshot sees what was committed when it was taken.
    fn look(&self, which: usize) {
        let Some((snapshot, then)) = self.snapshots.get(which) else { return };
        let (context, view) = (&self.site.context, View::At(snapshot.number()));
        let mut out = Vec::new();
        for key in (0..KEYS).map(key) {
            let found = context.read(&self.tree, &key, None, view, &mut out).expect("read");
            assert_eq!(found.then_some(&out), then.get(&key), "{:?}", &key[..1]);
        }
        let looker = ReadView::new(context, None, view);
        let mut cursor = RowCursor::new(self.tree.clone());
        let mut up = Rows::new();
        let mut on = cursor.seek_first(looker).expect("a scan");
        while on {
            up.insert(cursor.key().to_vec(), cursor.value().to_vec());
            on = cursor.next(looker).expect("a scan");
        }
        assert!(up == *then, "upwards");
        let mut down = Rows::new();
        let mut on = cursor.seek_last(looker).expect("a scan");
        while on {
            down.insert(cursor.key().to_vec(), cursor.value().to_vec());
            on = cursor.prev(looker).expect("a scan");
        }
        assert!(down == *then, "downwards");
    }

    fn act(&mut self, act: &Act) {
        self.mark = self.mark.wrapping_add(1);
        let (auto, background) = (&self.site.auto, &self.site.background);
        match *act {
            Act::Put { session, key: n, size } => {
                let value = value(&self.tree, n, self.mark, size);
                self.change(session, key(n), Some(value));
            }
            Act::Delete { session, key: n } => self.change(session, key(n), None),
            Act::Commit(session) => self.end(session, true),
            Act::Rollback(session) => self.end(session, false),
            Act::Single { key: n, .. } | Act::Remove { key: n } if self.is_locked(&key(n)) => {}
            Act::Single { key: n, size } => {
                let value = value(&self.tree, n, self.mark, size);
                auto.put(&self.tree, &key(n), &value).expect("put");
                self.now.insert(key(n), value);
            }
            Act::Remove { key: n } => {
                let was = auto.delete(&self.tree, &key(n)).expect("removed").is_some();
                assert_eq!(was, self.now.remove(&key(n)).is_some());
            }
            Act::Snapshot => {
                self.snapshots.push((self.site.registry.snapshot(), self.now.clone()));
            }
            Act::Leave(_) if self.snapshots.is_empty() => {}
            Act::Leave(which) => {
                self.snapshots.swap_remove(which % self.snapshots.len());
            }
            Act::Archive => while background.archive().expect("archived") {},
            Act::Prune => {
                background.prune(64);
                self.site.context.relog_all().expect("relogged");
            }
            Act::Purge => {
                background.purge(64);
            }
            Act::Look(which) => self.look(which % self.snapshots.len().max(1)),
        }
    }
}

fn play(site: &Site) -> Play<'_> {
    Play {
        site,
        tree: site.tree(10),
        sessions: (0..SESSIONS).map(|_| Session::new()).collect(),
        now: Rows::new(),
        snapshots: Vec::new(),
        mark: 0,
    }
}

/// With room for this many bytes of versions.
fn small(bytes: u64) -> Site {
    // Transactions of more than 8 KiB of undo store it, and stay in memory.
    let site = site(1024, 512 << 10);
    site.with_versions_max(bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn snapshots_see_what_they_saw(acts in prop::collection::vec(any_act(), 1..160)) {
        let site = small(2_000);
        let mut play = play(&site);
        for act in &acts {
            play.act(act);
        }
        (0..SESSIONS).for_each(|session| play.end(session, session % 2 == 0));
        while site.background.archive().expect("archived") {}
        (0..play.snapshots.len()).for_each(|which| play.look(which));
        play.snapshots.clear();
        while site.background.purge(64) > 0 || site.background.archive().expect("left") {}
        prop_assert!(rows(&play.tree) == play.now);
        site.check(&[(&play.tree, &play.now)]);
        prop_assert_eq!(site.registry.stats().archived_versions, 0);
    }
}

/// A hundred thousand changes beside a snapshot of a hundred rows: memory and pages stay what they
/// are after the first few.
#[test]
fn memory_does_not_grow_with_the_changes() {
    let site = small(256 << 10);
    let tree = site.tree(10);
    let mut model = Rows::new();
    for n in 0u32..100 {
        site.auto.put(&tree, &n.to_be_bytes(), &[1; 100]).expect("put");
        model.insert(n.to_be_bytes().to_vec(), vec![1; 100]);
    }
    let snapshot = site.registry.snapshot();
    let (mut bytes_max, mut used) = (0, Vec::new());
    for round in 0u32..100_000 {
        // Every fourth row is removed and put again, which leaves something to be done later.
        let (n, put) = (round % 100, round % 400 < 300 || round % 4 != 0);
        let key = n.to_be_bytes();
        if put {
            site.auto.put(&tree, &key, &round.to_le_bytes()).expect("put");
        } else {
            site.auto.delete(&tree, &key).expect("removed");
        }
        site.background.short_step().expect("a step");
        site.background.long_step(64).expect("a step");
        bytes_max = bytes_max.max(site.registry.stats().version_bytes);
        if round % 20_000 == 19_999 {
            used.push(site.env.space.used());
        }
    }
    let stats = site.registry.stats();
    assert_eq!(stats.archived_versions, 100, "one version of each row is needed");
    assert!(bytes_max < 1 << 20, "{bytes_max}");
    let view = View::At(snapshot.number());
    let mut out = Vec::new();
    for (key, value) in &model {
        assert!(site.context.read(&tree, key, None, view, &mut out).expect("read"));
        assert_eq!(out, *value);
    }
    drop(snapshot);
    while site.background.long_step(64).expect("a step") {}
    let now = rows(&tree);
    site.check(&[(&tree, &now)]);
    println!("{bytes_max} bytes of versions at most, pages {used:?}, {stats:?}");
}

fn update(site: &Site, tree: &Tree, count: u32, from: u32) {
    for n in from..from + count {
        site.auto.put(tree, &(n % ROWS).to_be_bytes(), &n.to_be_bytes()).expect("put");
        if n % 16 == 0 {
            site.background.short_step().expect("a step");
        }
    }
}

/// What `snapshot` sees: each row as the last of the updates before it has left it.
fn see(site: &Site, tree: &Tree, snapshot: &Snapshot, updates: u32) {
    let view = View::At(snapshot.number());
    let mut out = Vec::new();
    for row in 0..ROWS {
        assert!(site.context.read(tree, &row.to_be_bytes(), None, view, &mut out).expect("read"));
        let newest = updates - 1 - (updates - 1 - row) % ROWS;
        assert_eq!(out, newest.to_be_bytes(), "row {row} after {updates}");
    }
}

const ROWS: u32 = 300;

/// Four snapshots are held throughout, and shorter ones beside them that overlap: what was made for
/// these is gone when they are.
#[test]
fn snapshots_that_come_and_go_beside_long_ones_leave_nothing() {
    const UPDATES: u32 = 2_100;
    let site = small(64 << 10);
    let tree = site.tree(10);
    update(&site, &tree, ROWS, 0);
    let mut updates = ROWS;
    let mut step = |snapshots: &mut Vec<(Snapshot, u32)>| {
        snapshots.push((site.registry.snapshot(), updates));
        update(&site, &tree, UPDATES, updates);
        updates += UPDATES;
        while site.background.archive().expect("archived") {}
    };
    let (mut long, mut short) = (Vec::new(), Vec::new());
    (0..4).for_each(|_| step(&mut long));
    let (mut views_max, mut versions_max) = (0, 0);
    for _ in 0..24 {
        step(&mut short);
        if short.len() > 1 {
            short.remove(0);
        }
        views_max = views_max.max(site.background.archive_views());
        versions_max = versions_max.max(site.registry.stats().archived_versions);
        long.iter().chain(&short).for_each(|(snapshot, then)| see(&site, &tree, snapshot, *then));
    }
    // Held are the long ones and up to two more; and each has at most one version of each row.
    assert!(views_max <= 8, "{views_max} views");
    assert!(versions_max <= 4_000, "{versions_max} versions");
    let trees = site.background.archive_trees();
    let lie: u64 = trees.iter().map(|t| t.check(&mut |_| {}).expect("sound").rows).sum();
    assert_eq!(lie, site.registry.stats().archived_versions);
    drop((long, short));
    while site.background.long_step(64).expect("a step") {}
    site.check(&[(&tree, &rows(&tree))]);
}
