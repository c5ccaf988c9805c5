//! Pages brought up to date in the layer above the source: those that are damaged from a copy in
//! the doublewrite area, then all with what the log has for them, in the order of the file.
use std::collections::BTreeSet;

use weir::Sorted;
use weir_base::{AlignedBuf, DbId, Lsn, PageNo, TxnId};
use weir_change::{Op, apply, decode};
use weir_page::{Damage, HEADER_BYTES, seal, set_lsn};
use weir_pool::{PageCopy, PageStore, PageWrite, PoolError};

use crate::error::SalvageError;
use crate::log::place_of;

/// What applying the log to pages came to.
#[derive(Default)]
pub(crate) struct Applied {
    /// Pages that the log had changes for which they lacked.
    pub(crate) pages: u64,
    /// Damaged pages that have been put right from a copy, or by the log alone.
    pub(crate) repaired: u64,
    /// Pages that may be older than they were last: what was lost of them is not known.
    pub(crate) doubtful: BTreeSet<PageNo>,
    /// Damaged pages for which the log has changes, but not all since they were made.
    pub(crate) lost_changes: u64,
}

fn failed(e: PoolError) -> SalvageError {
    SalvageError::Source(format!("holding a page that was brought up to date: {e}"))
}

/// Puts damaged pages right of which the doublewrite area has a copy.
pub(crate) fn put_copies_back(
    store: &dyn PageStore,
    copies: &[PageCopy],
    applied: &mut Applied,
) -> Result<(), SalvageError> {
    let mut buf = AlignedBuf::zeroed(store.page_size());
    for copy in copies {
        if copy.page.0 < store.pages() && store.read(copy.page, &mut buf).is_ok() {
            continue;
        }
        reach(store, copy.page)?;
        buf.copy_from_slice(&copy.bytes);
        write(store, PageWrite { page: copy.page, lsn: copy.lsn, bytes: &buf })?;
        applied.repaired += 1;
        if !copy.is_newest {
            applied.doubtful.insert(copy.page);
        }
    }
    Ok(())
}

fn write(store: &dyn PageStore, page: PageWrite<'_>) -> Result<(), SalvageError> {
    store.make_room(1).map_err(failed)?;
    store.write_batch(0, &[page], &mut |left| left).map_err(failed)
}

fn reach(store: &dyn PageStore, page: PageNo) -> Result<(), SalvageError> {
    if page.0 < store.pages() { Ok(()) } else { store.grow(page.0 + 1).map_err(failed) }
}

/// Applies what the log has. `gap_end`: changes from there on lie behind a part of the log that was
/// not read, so that a page which has none of them may lack others.
pub(crate) fn apply_log(
    store: &dyn PageStore,
    db: DbId,
    mut changes: Sorted,
    gaps: &[(Lsn, Lsn)],
    applied: &mut Applied,
    progress: &mut dyn FnMut(u64),
) -> Result<(), SalvageError> {
    let mut now: Option<Forward> = None;
    let mut done = 0;
    while let Some((key, body)) = changes.step()? {
        let Some((page, end)) = place_of(key) else { continue };
        if now.as_ref().is_none_or(|now| now.page != page) {
            if let Some(before) = now.take() {
                before.finish(store, db, applied)?;
            }
            now = Some(Forward::of(store, page));
            done += 1;
            progress(done);
        }
        if let Some(now) = &mut now {
            now.take(end, body, gaps);
        }
    }
    match now {
        Some(last) => last.finish(store, db, applied),
        None => Ok(()),
    }
}

/// A page on its way.
struct Forward {
    page: PageNo,
    bytes: AlignedBuf,
    /// Whether `bytes` is a state of the page.
    is_known: bool,
    was_damaged: bool,
    /// The LSN that it had.
    lsn: Lsn,
    /// Where the last change ends that was applied.
    last: Option<Lsn>,
    /// A change did not apply, or is not known: no later one is applied, until the page is made
    /// anew.
    stuck: bool,
    has_lost: bool,
}

impl Forward {
    fn of(store: &dyn PageStore, page: PageNo) -> Forward {
        let mut bytes = AlignedBuf::zeroed(store.page_size());
        let read = store.read(page, &mut bytes);
        let was_damaged = !matches!(
            &read,
            Ok(())
                | Err(PoolError::NoSuchPage(_))
                | Err(PoolError::Damaged { found: Damage::Zeroed, .. })
        );
        let lsn = if read.is_ok() { weir_page::lsn(&bytes) } else { Lsn::ZERO };
        let is_known = read.is_ok();
        Forward {
            page,
            bytes,
            is_known,
            was_damaged,
            lsn,
            last: None,
            stuck: !is_known,
            has_lost: false,
        }
    }

    /// Whether something between the page's state and this change was not read.
    fn is_behind_gap(&self, end: Lsn, gaps: &[(Lsn, Lsn)]) -> bool {
        let has = self.last.unwrap_or(self.lsn).max(self.lsn);
        gaps.iter().any(|&(from, to)| end > to && has < to && from < end)
    }

    fn take(&mut self, end: Lsn, body: &[u8], gaps: &[(Lsn, Lsn)]) {
        let Ok((header, ops)) = decode(body) else { return };
        for op in ops.filter_map(Result::ok) {
            if op.makes_page() {
                if self.is_known && end <= self.lsn {
                    continue;
                }
                (self.stuck, self.is_known) = (false, true);
            } else if end <= self.lsn && self.is_known {
                continue;
            } else if self.is_behind_gap(end, gaps) {
                self.stuck = true;
            }
            if self.stuck {
                self.has_lost = true;
                continue;
            }
            self.make(&op, header.writer(), end);
        }
    }

    fn make(&mut self, op: &Op<'_>, writer: TxnId, end: Lsn) {
        match apply(op, writer, &mut self.bytes) {
            Ok(()) => self.last = Some(end),
            Err(_) => (self.stuck, self.has_lost) = (true, true),
        }
        if op.makes_page() {
            self.has_lost = false;
        }
    }

    fn finish(
        mut self,
        store: &dyn PageStore,
        db: DbId,
        applied: &mut Applied,
    ) -> Result<(), SalvageError> {
        if self.has_lost {
            applied.lost_changes += u64::from(self.was_damaged && !self.is_known);
            applied.doubtful.insert(self.page);
        }
        let Some(last) = self.last.filter(|_| self.is_known) else { return Ok(()) };
        debug_assert!(self.bytes.len() > HEADER_BYTES);
        set_lsn(&mut self.bytes, last);
        seal(&mut self.bytes, db);
        reach(store, self.page)?;
        write(store, PageWrite { page: self.page, lsn: last, bytes: &self.bytes })?;
        applied.pages += 1;
        applied.repaired += u64::from(self.was_damaged);
        if !self.has_lost {
            applied.doubtful.remove(&self.page);
        }
        Ok(())
    }
}
