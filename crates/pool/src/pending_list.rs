//! The list of pages that have pending redo, and what makes their changes.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use weir_base::lock::RwLock;
use weir_base::rank;
use weir_base::{Lsn, PageNo};

use crate::error::PoolError;

/// Makes the changes of pages that the log has and the disk may lack. Pages are named by their
/// place in the list that was given to [`Pool::set_pending`](crate::Pool::set_pending).
pub trait PageRedo: Send + Sync {
    /// Reads some more of the log into memory, where changes of all pages lie; `false`: there is no
    /// more. Before all pending redo is applied, this is done.
    fn read_ahead(&self) -> bool {
        false
    }

    /// Whether bringing a page forward reads the log: then that of many at once takes long.
    fn reads(&self) -> bool {
        false
    }

    /// Whether so much of it was read in parts that it is time to read ahead.
    fn is_read_much(&self) -> bool {
        false
    }

    /// Whether the first change that matters makes the page anew: what is on disk is not read then.
    fn makes(&self, index: usize) -> bool;

    /// Makes all the changes that the page lacks, and says where in the log the first of them
    /// begins; `None` if it lacked none. `bytes` is the page as it was read, or zeros.
    ///
    /// # Errors
    /// [`PoolError::Behind`]: page and log do not belong together.
    fn apply_pending(
        &self,
        index: usize,
        page: PageNo,
        bytes: &mut [u8],
    ) -> Result<Option<Lsn>, PoolError>;
}

/// The pages, and how far applying their redo has come.
pub(crate) struct List {
    /// By page number: the page, and where its first change begins.
    pub(crate) pages: Vec<(PageNo, Lsn)>,
    /// Which of them have been brought up to date. Changed under the page's latch.
    pub(crate) settled: Box<[AtomicBool]>,
    /// Where [`Pool::apply_pending`](crate::Pool::apply_pending) looks next.
    pub(crate) next: AtomicUsize,
    pub(crate) redo: Box<dyn PageRedo>,
}

/// All pages that have pending redo.
#[derive(Default)]
pub(crate) struct PendingRedo {
    pub(crate) left: AtomicU64,
    pub(crate) list: RwLock<rank::PendingRedo, Option<Arc<List>>>,
}

/// A page that has pending redo.
pub(crate) struct PendingPage {
    pub(crate) list: Arc<List>,
    pub(crate) index: usize,
}

impl PendingRedo {
    /// Pages that still have pending redo.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// The pending redo of a page. An answer that counts needs the page's latch.
    #[inline]
    pub(crate) fn find(&self, page: PageNo) -> Option<PendingPage> {
        if self.left() == 0 { None } else { self.find_listed(page) }
    }

    #[cold]
    fn find_listed(&self, page: PageNo) -> Option<PendingPage> {
        let list = self.list.read().clone()?;
        let index = list.pages.binary_search_by_key(&page, |pending| pending.0).ok()?;
        let open = !list.settled[index].load(Ordering::Acquire);
        open.then_some(PendingPage { list, index })
    }

    /// A page has been brought up to date. Its latch is held.
    pub(crate) fn settle(&self, pending: &PendingPage) {
        let was = pending.list.settled[pending.index].swap(true, Ordering::Release);
        assert!(!was, "POOL-9: a page is brought up to date once");
        self.left.fetch_sub(1, Ordering::Release);
    }
}

impl PendingPage {
    pub(crate) fn makes(&self) -> bool {
        self.list.redo.makes(self.index)
    }

    /// The page, and where its first change begins.
    pub(crate) fn listed(&self) -> (PageNo, Lsn) {
        self.list.pages[self.index]
    }
}
