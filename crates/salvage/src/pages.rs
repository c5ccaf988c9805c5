//! All pages of the source in the order in which they lie in the file, and the boundaries of groups
//! of the log that they name.
use std::collections::BTreeSet;

use weir_base::{AlignedBuf, Lsn, PageNo};
use weir_pool::{PageStore, PoolError, StoreRead};

/// Pages read at once.
const BATCH: u32 = 64;

/// What a page is shown to: its number, and its bytes or why there are none.
pub(crate) type Visit<'v, E> = dyn FnMut(PageNo, Result<&[u8], PoolError>) -> Result<(), E> + 'v;

/// Shows every page to `visit`, its bytes or why there are none. `progress` gets how many.
pub(crate) fn each_page<E>(
    store: &dyn PageStore,
    progress: &mut dyn FnMut(u64, u64),
    visit: &mut Visit<'_, E>,
) -> Result<(), E> {
    let (pages, size) = (store.pages(), store.page_size());
    let mut buf = AlignedBuf::zeroed(BATCH as usize * size);
    let mut from = 0;
    while from < pages {
        let count = BATCH.min(pages - from);
        let mut reads: Vec<StoreRead<'_>> = (from..from + count)
            .zip(buf.chunks_exact_mut(size))
            .map(|(page, buf)| StoreRead { page: PageNo(page), buf, outcome: Ok(()) })
            .collect();
        store.read_many(&mut reads);
        for read in reads {
            visit(read.page, read.outcome.map(|()| &*read.buf))?;
        }
        from += count;
        progress(u64::from(from), u64::from(pages));
    }
    Ok(())
}

/// Up to `count` ends of groups in the log at or behind `from`, the first ones: a page's LSN is
/// where the group ends that changed it last, so that another begins there.
pub(crate) fn boundaries(
    store: &dyn PageStore,
    from: Lsn,
    count: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Vec<Lsn> {
    let mut found = BTreeSet::new();
    let done = each_page::<std::convert::Infallible>(store, progress, &mut |_, page| {
        if let Ok(page) = page {
            let lsn = weir_page::lsn(page);
            if lsn >= from && found.insert(lsn) && found.len() > count {
                found.pop_last();
            }
        }
        Ok(())
    });
    match done {
        Ok(()) => found.into_iter().collect(),
    }
}
