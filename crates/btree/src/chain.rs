//! Reading the overflow pages of a long value ([`crate::overflow`]).
use std::cmp::Ordering;

use weir_base::PageNo;
use weir_page::{Bytes, HEADER_BYTES, Kind, Node, RawPage};

use crate::error::TreeError;
use crate::overflow::{ChainHead, Chains, MARK_BYTES};
use crate::tree::Tree;

/// What one page says of its chain.
pub(crate) struct Link {
    /// The next page.
    pub(crate) next: PageNo,
    /// Bytes of the value in this one.
    pub(crate) len: usize,
}

/// Pages of a chain that are read at once when the first of them has shown that the next lies
/// beside it; twice as many each time that this holds, half as many when it does not.
const AHEAD_PAGES_FIRST: u64 = 8;
const AHEAD_PAGES_MAX: u64 = 64;

impl Chains<'_> {
    /// An error that says where in which file the page lies.
    #[must_use]
    pub fn damaged(&self, page: PageNo, what: impl Into<String>) -> TreeError {
        let (file, offset) = self.env.pool.store().place(page);
        let what = format!("in '{file}' at byte {offset}: {}", what.into());
        TreeError::Damaged { tree: self.tree, page, what }
    }

    /// Appends what a chain holds to the front in `out`. `false`: the chain is no longer there, and
    /// what is in `out` is no value.
    ///
    /// # Errors
    /// [`TreeError`] when the chain is damaged or cannot be read.
    pub fn fetch(&self, head: &ChainHead, out: &mut Vec<u8>) -> Result<bool, TreeError> {
        // Not the whole length at once: it may be a damaged one.
        out.reserve(head.len.min(1 << 20) as usize);
        let end = head.len.saturating_add(out.len() as u64);
        let mut page = head.first;
        let mut ahead = AHEAD_PAGES_FIRST;
        while (out.len() as u64) < end || page != PageNo::NONE {
            let Some(next) = self.read_page(page, head.mark, out)? else {
                return Ok(false);
            };
            if page.0.checked_add(1) != Some(next.0) {
                ahead = (ahead / 2).max(1);
            } else if !self.env.pool.is_resident(next) {
                let left = self.pages(end.saturating_sub(out.len() as u64));
                self.read_ahead(next, left.min(ahead));
                ahead = (ahead * 2).min(AHEAD_PAGES_MAX);
            }
            if out.len() as u64 > end || (next == PageNo::NONE && (out.len() as u64) < end) {
                return Err(
                    self.damaged(page, "an overflow chain does not have the length of its value")
                );
            }
            page = next;
        }
        Ok(true)
    }

    /// Reads so many pages at once, from `first` on: a chain's pages lie one after another where
    /// there was room for them. Those that are not its own are read for nothing; what cannot be
    /// read is found when it is needed.
    fn read_ahead(&self, first: PageNo, count: u64) {
        let end = first.0.saturating_add(count as u32);
        let mut pages: Vec<PageNo> = (first.0..end).map(PageNo).collect();
        self.env.space.retain_used(&mut pages);
        if pages.len() > 1 {
            let _ = self.env.pool.bring_in(&pages);
        }
    }

    /// The pages of a chain that must be there.
    pub(crate) fn page_list(&self, head: &ChainHead) -> Result<Vec<PageNo>, TreeError> {
        let (mut page, mut len) = (head.first, 0u64);
        let mut pages = Vec::new();
        while page != PageNo::NONE {
            pages.push(page);
            let link = self.link(page, head.mark)?.ok_or_else(|| {
                self.damaged(page, "it is not the overflow page that a row names")
            })?;
            page = link.next;
            len += link.len as u64;
            if len > head.len {
                break;
            }
        }
        if len != head.len {
            return Err(
                self.damaged(head.first, "an overflow chain does not have the length of its value")
            );
        }
        Ok(pages)
    }

    /// Appends one page's data and tells the next page; `None` when the page is not of this chain.
    pub(crate) fn read_page(
        &self,
        page: PageNo,
        mark: u64,
        data: &mut Vec<u8>,
    ) -> Result<Option<PageNo>, TreeError> {
        let start = data.len();
        let link = self.look_at_page(page, mark, &mut |node| {
            data.truncate(start);
            node.data_behind_into(MARK_BYTES, data);
        })?;
        if link.is_none() {
            data.truncate(start);
        }
        Ok(link.map(|link| link.next))
    }

    /// Shows one page to `visit`, until it stays as it is meanwhile, and tells where the chain goes
    /// on; `None` when the page is not of this chain.
    fn look_at_page(
        &self,
        page: PageNo,
        mark: u64,
        visit: &mut dyn FnMut(Node<RawPage>),
    ) -> Result<Option<Link>, TreeError> {
        if page == PageNo::NONE || !self.env.space.is_used(page) {
            return Ok(None);
        }
        loop {
            let look = self.env.pool.optimistic(page)?;
            let node = look.node();
            visit(node);
            let data_len = node.data_len();
            let (kind, next) = (node.kind(), node.link());
            let found = look.raw().u64_at(HEADER_BYTES);
            if look.still() {
                let is_own =
                    kind == Some(Kind::Overflow) && data_len >= MARK_BYTES && found == mark;
                return Ok(is_own.then(|| Link { next, len: data_len - MARK_BYTES }));
            }
        }
    }

    /// As [`Chains::look_at_page`], of a page whose data are not wanted.
    pub(crate) fn link(&self, page: PageNo, mark: u64) -> Result<Option<Link>, TreeError> {
        self.look_at_page(page, mark, &mut |_| {})
    }
}

impl Tree {
    /// Turns the bytes of a [`ChainHead`] in `bytes` into the value that it leads to. `false`: the
    /// chain is no longer there, so the row has changed since.
    ///
    /// # Errors
    /// [`TreeError`] when the chain is damaged or cannot be read.
    pub fn fetch(&self, bytes: &mut Vec<u8>) -> Result<bool, TreeError> {
        let chain = self.fetch_front(bytes)?;
        self.chains().fetch(&chain, bytes)
    }

    /// Turns the bytes of a [`ChainHead`] in `bytes` into the front behind it, and returns it.
    ///
    /// # Errors
    /// [`TreeError::Damaged`].
    pub fn fetch_front(&self, bytes: &mut Vec<u8>) -> Result<ChainHead, TreeError> {
        let (chain, front) = ChainHead::split(bytes).ok_or_else(|| {
            self.damaged(self.root, "a row's pointer to its overflow pages is malformed")
        })?;
        let head_bytes = bytes.len() - front.len();
        bytes.drain(..head_bytes);
        Ok(chain)
    }

    /// Whether `value` is what a row with a chain (its `row` bytes) holds. A chain stays as it is
    /// for as long as the row names it. Nothing is copied.
    ///
    /// # Errors
    /// [`TreeError`] when the chain cannot be read.
    pub fn is_long(&self, row: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        let Some((head, front)) = ChainHead::split(row) else { return Ok(false) };
        let Some(mut rest) = value.strip_prefix(front) else { return Ok(false) };
        let mut page = head.first;
        while !rest.is_empty() || page != PageNo::NONE {
            let mut is_alike = false;
            let link = self.chains().look_at_page(page, head.mark, &mut |node| {
                let len = node.data_len().saturating_sub(MARK_BYTES);
                let part = rest.get(..len).unwrap_or_default();
                let at = HEADER_BYTES + MARK_BYTES;
                is_alike = node.bytes().compare(at, len, part) == Ordering::Equal;
            })?;
            let Some(link) = link.filter(|_| is_alike) else { return Ok(false) };
            (page, rest) = (link.next, rest.get(link.len..).unwrap_or_default());
        }
        Ok(true)
    }
}
