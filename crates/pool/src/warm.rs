//! What a pool says of the pages in memory, so that they come back after a restart.
use weir_base::PageNo;

use crate::latch::Latch;
use crate::pool::Pool;
use crate::warm_list::WarmList;

impl Pool {
    /// The pages in memory now. A look without latches: a page that comes and goes meanwhile is on
    /// it or not.
    #[must_use]
    pub fn warm_list(&self) -> WarmList {
        WarmList::of_resident((0..self.free.used_end()).filter_map(|frame| {
            let meta = self.frames.meta(frame);
            let page = meta.page();
            let there = self.latch(page).map(Latch::load).and_then(|word| word.frame());
            (there == Some(frame)).then(|| (page, meta.heat()))
        }))
    }

    /// Whether a page is in memory now.
    #[must_use]
    pub fn is_resident(&self, page: PageNo) -> bool {
        self.latch(page).is_some_and(|latch| latch.load().frame().is_some())
    }

    /// Pages that were read one by one, because a thread asked for them, since the last call: the
    /// last few, in no order.
    #[must_use]
    pub fn take_asked(&self) -> Vec<PageNo> {
        self.asked.take()
    }
}
