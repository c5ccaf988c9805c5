//! Where old snapshots find the versions that memory has no room for: trees of the store, which are
//! dropped when the last snapshot goes that they were made for. `docs/decisions/old-versions.md`.
//!
//! What has moved there is forgotten by the registry, and with it which committed before which.
//! Only snapshots that are older need that, and they get it as InnoDB's read views have it: which
//! transactions were under way when they were taken, and which number came next. New snapshots see
//! everything that was ever archived.
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_base::lock::RwLock;
use weir_base::{TreeId, TxnId, rank};
use weir_btree::{Cursor, Tree, TreeError};
use weir_page::Flags;

/// What a snapshot does not see, by the numbers of transactions alone.
#[derive(Debug)]
pub(crate) struct OldReadView {
    /// Its commit number.
    pub(crate) at: u64,
    /// Transactions from this number on began later.
    bound: TxnId,
    /// Those below it that had not committed, ascending.
    open: Vec<TxnId>,
    /// Until the snapshot is dropped.
    is_held: AtomicBool,
}

impl OldReadView {
    pub(crate) fn new(at: u64, bound: TxnId, mut open: Vec<TxnId>) -> Self {
        open.sort_unstable();
        open.dedup();
        OldReadView { at, bound, open, is_held: AtomicBool::new(true) }
    }

    /// Whether the snapshot does not see what `writer` did.
    pub(crate) fn hides(&self, writer: TxnId) -> bool {
        writer >= self.bound || self.open.binary_search(&writer).is_ok()
    }

    /// Whether the snapshot is held.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// The snapshot has been dropped.
    pub(crate) fn leave(&self) {
        self.is_held.store(false, Ordering::Release);
    }

    /// It hides no transaction below this number.
    fn floor(&self) -> TxnId {
        self.open.first().copied().unwrap_or(self.bound)
    }
}

/// Snapshots that share a tree of versions.
#[derive(Clone)]
pub(crate) struct SnapshotGroup {
    /// By [`Keys::key`]: a head of [`HEAD_BYTES`], then the row's bytes.
    pub(crate) tree: Tree,
    /// Those that are held, ascending by number, and some that have been dropped lately.
    pub(crate) views: Vec<Arc<OldReadView>>,
}

/// The archive as readers know it.
pub(crate) struct Archive {
    groups: RwLock<rank::OldSnapshots, Vec<SnapshotGroup>>,
    /// No view hides any transaction below this number.
    floor: AtomicU64,
    /// The number of the youngest snapshot that has a view; 0: none has.
    newest: AtomicU64,
    versions: AtomicU64,
    keys: Keys,
}

impl Default for Archive {
    fn default() -> Self {
        Archive {
            groups: RwLock::default(),
            floor: AtomicU64::new(u64::MAX),
            newest: AtomicU64::new(0),
            versions: AtomicU64::new(0),
            keys: Keys::default(),
        }
    }
}

/// Before the bytes of a version: its marks, one of these two, and its writer.
const HEAD_BYTES: usize = 9;
const PLAIN: u8 = 0;
const OVERFLOW: u8 = 1;

impl Archive {
    /// No view hides any transaction below this number.
    pub(crate) fn floor(&self) -> TxnId {
        TxnId(self.floor.load(Ordering::Acquire))
    }

    /// How many versions are in it.
    pub(crate) fn versions(&self) -> u64 {
        self.versions.load(Ordering::Relaxed)
    }

    /// So many versions have been added.
    pub(crate) fn count(&self, more: u64) {
        self.versions.fetch_add(more, Ordering::Relaxed);
    }

    /// So many versions have been removed, of trees that are still there.
    pub(crate) fn count_out(&self, fewer: u64) {
        self.versions.fetch_sub(fewer, Ordering::Relaxed);
    }

    /// Whether some old snapshot that is held does not see what `writer` did.
    pub(crate) fn is_hidden(&self, writer: TxnId) -> bool {
        writer >= self.floor()
            && self
                .groups
                .read()
                .iter()
                .flat_map(|group| &group.views)
                .any(|view| view.is_held() && view.hides(writer))
    }

    /// All snapshots that are held and have this number or a lower one have a view; 0: none has.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Whether no old snapshot that is held sees what `writer` did.
    pub(crate) fn is_hidden_from_all(&self, writer: TxnId) -> bool {
        let groups = self.groups.read();
        let mut views = groups.iter().flat_map(|group| &group.views);
        views.all(|view| !view.is_held() || view.hides(writer))
    }

    /// Whether the snapshot `at` is an old one and does not see what `writer` did.
    pub(crate) fn hides(&self, at: u64, writer: TxnId) -> bool {
        let hides = |group: &SnapshotGroup, own: usize| group.views[own].hides(writer);
        writer >= self.floor() && self.of(at, hides).unwrap_or(false)
    }

    /// Retries at the snapshot `at`, if it is an old one, among those that share its tree.
    fn of<T>(&self, at: u64, look: impl FnOnce(&SnapshotGroup, usize) -> T) -> Option<T> {
        let place =
            |group: &SnapshotGroup| group.views.binary_search_by_key(&at, |view| view.at).ok();
        let groups = self.groups.read();
        let (group, own) = groups.iter().find_map(|group| Some((group, place(group)?)))?;
        Some(look(group, own))
    }

    /// The snapshot `at` has been dropped.
    pub(crate) fn leave(&self, at: u64) {
        if self.floor().0 < u64::MAX {
            self.of(at, |group, own| group.views[own].leave());
        }
    }

    /// The trees and the snapshots that they serve.
    pub(crate) fn groups(&self) -> Vec<SnapshotGroup> {
        self.groups.read().clone()
    }

    /// Replaces the groups.
    pub(crate) fn set_groups(&self, groups: Vec<SnapshotGroup>) {
        let mut now = self.groups.write();
        let views = groups.iter().flat_map(|group| &group.views);
        let floor = views.clone().map(|view| view.floor().0).min().unwrap_or(u64::MAX);
        let newest = views.map(|view| view.at).max().unwrap_or(0);
        if groups.is_empty() {
            self.versions.store(0, Ordering::Relaxed);
        }
        self.floor.store(floor, Ordering::Release);
        *now = groups;
        self.newest.store(newest, Ordering::Release);
    }

    /// The version of a row that the snapshot `at` sees, into `value`, when the transaction that
    /// wrote it later is archived; `None`: it sees no row.
    ///
    /// # Errors
    /// [`TreeError`] when the version cannot be read.
    pub(crate) fn version(
        &self,
        at: u64,
        tree: TreeId,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<Flags>, TreeError> {
        let own =
            |group: &SnapshotGroup, own: usize| (group.tree.clone(), group.views[own].clone());
        let Some((archived, view)) = self.of(at, own) else { return Ok(None) };
        let place = self.keys.key(&archived, at, tree, key);
        // A version lies under the newest snapshot that saw it, of those held then: this one as a
        // rule, which costs no copy of a leaf, or one behind it.
        if archived.get(&place, value)?.is_none() {
            let mut cursor = Cursor::new(archived.clone());
            if !cursor.seek(&place)? || split(cursor.key()).0 != split(&place).0 {
                return Ok(None);
            }
            cursor.inline(value);
        }
        let Some((flags, writer)) = head(value) else {
            let what = "a version of a row has no head";
            return Err(archived.damaged(archived.root(), what));
        };
        value.drain(..HEAD_BYTES);
        // Unless the first that is found is a later one: then there was none.
        Ok((!view.hides(writer)).then_some(flags))
    }

    /// Where the version of a row that the snapshot `at` sees lies in an archive's tree.
    pub(crate) fn key(&self, archived: &Tree, at: u64, tree: TreeId, key: &[u8]) -> Vec<u8> {
        self.keys.key(archived, at, tree, key)
    }

    /// A version as it lies there.
    pub(crate) fn record(flags: Flags, writer: TxnId, bytes: &[u8]) -> Vec<u8> {
        let mut record = Vec::with_capacity(HEAD_BYTES + bytes.len());
        record.push(if flags.overflow { OVERFLOW } else { PLAIN });
        record.extend_from_slice(&writer.0.to_le_bytes());
        record.extend_from_slice(bytes);
        record
    }
}

/// The marks of a version, and its writer.
fn head(record: &[u8]) -> Option<(Flags, TxnId)> {
    let (marks, rest) = record.split_first()?;
    let writer = TxnId(u64::from_le_bytes(*rest.first_chunk()?));
    match *marks {
        PLAIN => Some((Flags::NONE, writer)),
        OVERFLOW => Some((Flags::OVERFLOW, writer)),
        _ => None,
    }
}

/// A place in an archive's tree as the row and the number of the snapshot.
pub(crate) fn split(place: &[u8]) -> (&[u8], u64) {
    let (row, at) = place.split_last_chunk().unwrap_or((place, &[0; 8]));
    (row, u64::from_be_bytes(*at))
}

/// Makes keys of tree, row, and snapshot, in this order, that are never too long: what snapshots
/// see of a row lies together. No row's part of a key begins with another's.
#[derive(Default)]
struct Keys {
    /// Nothing outside knows them: no two keys can be made on purpose that meet.
    hashers: [RandomState; 2],
}

impl Keys {
    fn key(&self, archived: &Tree, at: u64, tree: TreeId, key: &[u8]) -> Vec<u8> {
        // A version is longer than the row's bytes by its head.
        let max = archived.max_key_len() - HEAD_BYTES;
        let at = at.to_be_bytes();
        let mut place = Vec::with_capacity(18 + key.len());
        place.extend_from_slice(&tree.0.to_be_bytes());
        place.extend_from_slice(&(key.len() as u16).to_be_bytes());
        place.extend_from_slice(key);
        if place.len() + at.len() > max {
            // What does not fit is told apart by 128 bits.
            place.truncate(max - at.len() - 16);
            for hasher in &self.hashers {
                place.extend_from_slice(&hasher.hash_one(key).to_be_bytes());
            }
        }
        place.extend_from_slice(&at);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_hides_transactions_under_way_and_later_ones() {
        let view = OldReadView::new(7, TxnId(20), vec![TxnId(12), TxnId(9), TxnId(12)]);
        let hidden: Vec<u64> = (0..25).filter(|&id| view.hides(TxnId(id))).collect();
        assert_eq!(hidden, [9, 12, 20, 21, 22, 23, 24]);
        assert_eq!(view.floor(), TxnId(9));
        assert_eq!(OldReadView::new(7, TxnId(20), Vec::new()).floor(), TxnId(20));
    }
}
