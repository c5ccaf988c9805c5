//! Long values: the pages of a chain, one after the other.
use weir::on_disk::ChainHead;
use weir_base::{AlignedBuf, PageNo};
use weir_page::{Bytes, HEADER_BYTES, Kind, Node};
use weir_pool::PageStore;

/// Bytes of the chain's number at the front of each page's data.
const MARK_BYTES: usize = 8;

/// Appends what the chain holds to `out`.
///
/// # Errors
/// In words, why not: a page cannot be read, or is not of this chain any more.
pub(crate) fn fetch(
    store: &dyn PageStore,
    head: &ChainHead,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let end = head.len.saturating_add(out.len() as u64);
    let mut page = head.first;
    let mut bytes = AlignedBuf::zeroed(store.page_size());
    while (out.len() as u64) < end || page != PageNo::NONE {
        if page == PageNo::NONE {
            return Err("its pages end before it does".into());
        }
        store.read(page, &mut bytes).map_err(|e| e.to_string())?;
        let node = Node::new(&bytes[..]);
        let is_own = node.kind() == Some(Kind::Overflow)
            && node.data_len() >= MARK_BYTES
            && (&bytes[..]).u64_at(HEADER_BYTES) == head.mark;
        if !is_own {
            let (file, offset) = store.place(page);
            return Err(format!(
                "page {page} in '{file}' at byte {offset} is none of its pages any more"
            ));
        }
        let before = out.len();
        node.data_behind_into(MARK_BYTES, out);
        if out.len() as u64 > end || (out.len() == before && node.link() != PageNo::NONE) {
            return Err("its pages hold more than it".into());
        }
        page = node.link();
    }
    Ok(())
}
