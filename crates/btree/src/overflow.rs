//! Values too long for their leaf: a chain of pages of their own.
//!
//! The row holds the chain's head: length, first page, and a number that no other chain has. Each
//! page begins with that number, so that a reader that arrives after the chain was freed, and its
//! pages used for something else, notices (BTREE-5). Behind the head lies the *front*: the value's
//! first bytes, so many that the rest fills whole pages, as far as a leaf has room for them.
use std::ops::Range;

use weir_base::{PageNo, TreeId, TxnId, varint};
use weir_change::{Group, Header, HeldPage, Op, Purge};
use weir_page::{HEADER_BYTES, Kind};

use crate::error::TreeError;
use crate::tree::{Env, Tree};

/// Bytes of the chain's number at the front of each page's data.
pub(crate) const MARK_BYTES: usize = 8;
/// Pages written or freed in one group, at most.
const GROUP_PAGES: usize = 16;
/// The longest head: two varints and the chain's number.
const HEAD_BYTES_MAX: usize = 10 + 5 + 8;
/// At least so many bytes of a value are its front, though the chain has room for them: what a row
/// counts often lies there, and the chain stays when only they change.
const FRONT_BYTES_MIN: usize = 128;

/// What a long change says before each of its groups.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// About so many bytes of log.
    pub bytes: u64,
    /// What is left of the chain that is being freed. What is logged once more of what is left to
    /// free comes before it.
    pub rest: Option<Purge<'static>>,
}

impl Ahead {
    /// A group that is not of a chain.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Ahead { bytes, rest: None }
    }
}

/// Called without latches before each group of a long change: where admission waits.
pub type Admit<'a> = dyn FnMut(Ahead) -> Result<(), TreeError> + 'a;

/// Pages taken into use, one after another: the first, and how many.
pub type Run = (PageNo, u32);

/// A long change that is made group by group: its owner asks how much log the next group takes, and
/// lets it be written. Between two groups no latch is held.
pub trait Steps {
    /// About how many bytes of log the next group takes. `None`: all groups are written.
    fn next_log_bytes(&mut self) -> Option<u64>;

    /// Writes the next group. Returns the pages that it has taken, which are its transaction's to
    /// free from now on, and noted in the group for that.
    ///
    /// # Errors
    /// [`TreeError`]; the group has taken no pages.
    fn write_next(&mut self) -> Result<Vec<Run>, TreeError>;
}

/// What a row holds instead of a long value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// Bytes in the chain.
    pub len: u64,
    /// The first page.
    pub first: PageNo,
    /// The chain's own number.
    pub mark: u64,
}

impl ChainHead {
    /// A chain's number, from its transaction and the chain's number therein: no other chain among
    /// those of four thousand million transactions has it, which is longer than any reference to a
    /// freed chain lives.
    #[must_use]
    pub fn mark(txn: TxnId, number: u64) -> u64 {
        (txn.0 << 32) | (number & u64::from(u32::MAX))
    }

    /// As bytes for the row, which the front follows.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        varint::put(&mut out, self.len);
        varint::put(&mut out, u64::from(self.first.0));
        out.extend_from_slice(&self.mark.to_le_bytes());
        out
    }

    /// The bytes of a row whose value begins with `front` and goes on in the chain.
    #[must_use]
    pub fn with_front(&self, front: &[u8]) -> Vec<u8> {
        let mut row = self.encode();
        row.extend_from_slice(front);
        row
    }

    /// From a row's bytes; `None` when they do not begin with such a head.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::split(bytes).map(|(head, _)| head)
    }

    /// The head and the front of a row's bytes.
    #[must_use]
    pub fn split(mut bytes: &[u8]) -> Option<(Self, &[u8])> {
        let len = varint::take(&mut bytes)?;
        let first = PageNo(u32::try_from(varint::take(&mut bytes)?).ok()?);
        let (mark, front) = bytes.split_first_chunk()?;
        Some((ChainHead { len, first, mark: u64::from_le_bytes(*mark) }, front))
    }
}

/// The overflow chains of a tree, or of none: what transactions store.
#[derive(Clone, Copy)]
pub struct Chains<'e> {
    pub(crate) env: &'e Env,
    pub(crate) tree: TreeId,
}

impl Env {
    /// Chains that belong to no tree.
    #[must_use]
    pub fn chains(&self) -> Chains<'_> {
        self.chains_of(TreeId(0))
    }

    /// Chains that rows of this tree name, or have named.
    #[must_use]
    pub fn chains_of(&self, tree: TreeId) -> Chains<'_> {
        Chains { env: self, tree }
    }
}

impl Tree {
    /// The chains that its rows name.
    #[must_use]
    pub fn chains(&self) -> Chains<'_> {
        Chains { env: &self.env, tree: self.id }
    }
}

impl<'e> Chains<'e> {
    fn page_bytes(&self) -> usize {
        self.env.pool.page_size() - HEADER_BYTES - MARK_BYTES
    }

    /// Pages that a value of this length takes.
    #[must_use]
    pub fn pages(&self, len: u64) -> u64 {
        len.div_ceil(self.page_bytes() as u64).max(1)
    }

    pub(crate) fn group_pages(&self) -> usize {
        let pool = &self.env.pool;
        let of_log = pool.log().age_limit_bytes() / 32 / pool.page_size() as u64;
        // Many threads may hold so many pages at once, and each must find one more frame.
        let of_frames = pool.residence().frames / 64;
        (of_log.min(of_frames) as usize).clamp(1, GROUP_PAGES)
    }

    /// Writes a chain, or a stretch of one that goes on at `then`, to pages that the group holds.
    pub(crate) fn fill<'p>(
        &self,
        group: &mut Group<'p>,
        (pages, held): (&[PageNo], &[HeldPage]),
        then: PageNo,
        value: &[u8],
        mark: u64,
    ) {
        let room = self.page_bytes();
        let mut bytes = Vec::with_capacity(room + MARK_BYTES);
        for (i, (&page, &held)) in pages.iter().zip(held).enumerate() {
            let next = pages.get(i + 1).copied().unwrap_or(then);
            let part = (i * room).min(value.len())..((i + 1) * room).min(value.len());
            bytes.clear();
            bytes.extend_from_slice(&mark.to_le_bytes());
            bytes.extend_from_slice(&value[part]);
            let (kind, tree) = (Kind::Overflow, self.tree);
            group.apply(held, &Op::Init { page, kind, level: 0, tree });
            group.apply(held, &Op::OverflowData { page, next, bytes: &bytes });
        }
    }

    /// Begins a new chain, `mark`, that holds `value`: its pages are claimed. They belong to the
    /// transaction of `header` until it commits: each group notes them for undo.
    ///
    /// # Errors
    /// [`TreeError`]; no page is claimed.
    pub fn writer<'v>(
        &self,
        value: &'v [u8],
        mark: u64,
        header: Header,
    ) -> Result<ChainWriter<'e, 'v>, TreeError> {
        let len = value.len() as u64;
        if len > u64::from(u32::MAX) {
            return Err(TreeError::ValueTooLong(len));
        }
        self.env.pool.log().check()?;
        let pages = self.env.space.claim(self.pages(len) as usize)?;
        Ok(ChainWriter { chains: *self, value, mark, header, pages, written: 0 })
    }

    /// Frees a chain that no row names any more, in groups under `header`, each noting how far it
    /// has come so that recovery can go on from there.
    ///
    /// Two threads may be at the same chain, or one come when the other is done: after a crash a
    /// transaction is left with it, and so is the one that has taken its tasks over. Its pages may
    /// be others' again by then. A page counts as the chain's while its map says that it is in use
    /// and it has the chain's mark: no thread but one that holds `freeing` for the mark changes
    /// that. The map is asked first: a page that is taken into use is another's before the map says
    /// so.
    ///
    /// # Errors
    /// [`TreeError`]; what is left is freed by recovery.
    pub fn free(
        &self,
        first: PageNo,
        mark: u64,
        header: Header,
        admit: &mut Admit<'_>,
    ) -> Result<(), TreeError> {
        let mut page = first;
        while page != PageNo::NONE {
            admit(Ahead { bytes: 1024, rest: Some(Purge::Chain { first: page, mark }) })?;
            // Not while it waits for admission: what another holds that waits for this may keep the
            // log from going on.
            let _freeing = self.env.freeing.of(mark).lock();
            let mut batch = Vec::new();
            while page != PageNo::NONE && batch.len() < 4 * GROUP_PAGES {
                let link =
                    if self.env.space.is_noted(page)? { self.link(page, mark)? } else { None };
                let Some(link) = link else {
                    page = PageNo::NONE;
                    break;
                };
                batch.push(page);
                page = link.next;
            }
            if batch.is_empty() {
                break;
            }
            batch.sort_unstable();
            let mut group = Group::begin(header);
            self.env.space.log_free(&mut group, &batch)?;
            group.note(&Op::Purge(Purge::Chain { first: page, mark }));
            group.commit(self.env.pool.log())?;
            self.env.space.unclaim(&batch);
        }
        Ok(())
    }

    /// Frees a chain of at most 64 pages in one group, which also says `note`.
    ///
    /// # Errors
    /// [`TreeError`]; nothing was freed. [`TreeError::Damaged`] also when the chain is longer.
    pub fn free_short(
        &self,
        first: PageNo,
        mark: u64,
        header: Header,
        note: &Op<'_>,
    ) -> Result<(), TreeError> {
        let (mut pages, mut page) = (Vec::new(), first);
        while let Some(link) = self.link(page, mark)? {
            pages.push(page);
            if pages.len() > 4 * GROUP_PAGES {
                return Err(self.damaged(first, "a chain of more pages than it was written with"));
            }
            page = link.next;
        }
        pages.sort_unstable();
        let mut group = Group::begin(header);
        if !pages.is_empty() {
            self.env.space.log_free(&mut group, &pages)?;
        }
        group.note(note);
        group.commit(self.env.pool.log())?;
        self.env.space.unclaim(&pages);
        Ok(())
    }
}

/// A chain in the making. Dropped, it gives back the pages that it has not written.
pub struct ChainWriter<'e, 'v> {
    chains: Chains<'e>,
    value: &'v [u8],
    mark: u64,
    header: Header,
    pages: Vec<PageNo>,
    written: usize,
}

impl ChainWriter<'_, '_> {
    /// What a row is to hold, once all groups are written.
    #[must_use]
    pub fn head(&self) -> ChainHead {
        ChainHead { len: self.value.len() as u64, first: self.pages[0], mark: self.mark }
    }

    fn next(&self) -> Range<usize> {
        let count = self.chains.group_pages().min(self.pages.len() - self.written);
        self.written..self.written + count
    }

    fn write_group(&self, range: Range<usize>) -> Result<Vec<Run>, TreeError> {
        let Chains { env, .. } = self.chains;
        let (pages, value, room) = (&self.pages, self.value, self.chains.page_bytes());
        let fresh: Vec<_> =
            range.clone().map(|i| env.pool.fresh(pages[i])).collect::<Result<_, _>>()?;
        let mut group = Group::begin(Header { undo: true, ..self.header });
        let held: Vec<_> = fresh.into_iter().map(|page| group.hold(page)).collect();
        env.space.log_used(&mut group, &pages[range.clone()])?;
        let then = pages.get(range.end).copied().unwrap_or(PageNo::NONE);
        let part = &value[(range.start * room).min(value.len())..];
        self.chains.fill(&mut group, (&pages[range.clone()], &held), then, part, self.mark);
        let runs = runs(&pages[range]);
        for &(first, count) in &runs {
            group.note(&Op::UndoPages { first, count });
        }
        group.commit(env.pool.log())?;
        Ok(runs)
    }
}

impl Steps for ChainWriter<'_, '_> {
    fn next_log_bytes(&mut self) -> Option<u64> {
        let pages = self.next().len();
        (pages > 0).then(|| (pages * (self.chains.env.pool.page_size() + 64)) as u64)
    }

    fn write_next(&mut self) -> Result<Vec<Run>, TreeError> {
        let range = self.next();
        let end = range.end;
        let runs = self.write_group(range)?;
        self.written = end;
        Ok(runs)
    }
}

impl Drop for ChainWriter<'_, '_> {
    fn drop(&mut self) {
        if self.written < self.pages.len() {
            self.chains.env.space.unclaim(&self.pages[self.written..]);
        }
    }
}

impl Tree {
    /// Bytes of a long value that lie in its leaf, under a key of this length: so many that the
    /// rest takes as few pages as may be.
    fn front_len(&self, key_len: usize, len: usize) -> usize {
        let room = self.max_inline_value(key_len).saturating_sub(HEAD_BYTES_MAX);
        let pages = len.saturating_sub(room).div_ceil(self.chains().page_bytes()).max(1);
        let rest = len.saturating_sub(pages * self.chains().page_bytes());
        rest.max(FRONT_BYTES_MIN).min(room).min(len)
    }

    /// Begins a chain, as [`Chains::writer`], for all of a long value but its front, which is
    /// returned: it stands in the row behind the chain's head ([`ChainHead::with_front`]).
    ///
    /// # Errors
    /// As [`Chains::writer`].
    pub fn long_writer<'v>(
        &self,
        key: &[u8],
        value: &'v [u8],
        mark: u64,
        header: Header,
    ) -> Result<(ChainWriter<'_, 'v>, &'v [u8]), TreeError> {
        let len = value.len() as u64;
        if len > u64::from(u32::MAX) {
            return Err(TreeError::ValueTooLong(len));
        }
        let (front, rest) = value.split_at(self.front_len(key.len(), value.len()));
        Ok((self.chains().writer(rest, mark, header)?, front))
    }

    /// What a row with a chain, whose value is `old`, becomes when that turns into `new` and the
    /// chain stays. `None`: it cannot.
    #[must_use]
    pub fn with_front(&self, key: &[u8], row: &[u8], old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
        let (head, front) = ChainHead::split(row)?;
        let rest = old.get(front.len()..)?;
        let at = new.len().checked_sub(rest.len())?;
        if rest != &new[at..] {
            return None;
        }
        let row = head.with_front(&new[..at]);
        (row.len() <= self.max_inline_value(key.len())).then_some(row)
    }
}

/// Neighbouring page numbers.
fn runs(pages: &[PageNo]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for &page in pages {
        match runs.last_mut() {
            Some((first, count)) if first.0 + *count == page.0 => *count += 1,
            _ => runs.push((page, 1)),
        }
    }
    runs
}
