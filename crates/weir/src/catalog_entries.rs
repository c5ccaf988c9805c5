//! What the catalog's entries say, as committed.
use weir_base::{PageNo, TreeId};
use weir_btree::Tree as RawTree;
use weir_pool::PageCodec;
use weir_txn::{Context, ReadView, RowCursor, TxnError, View};

use crate::error::Error;

pub(crate) const MALFORMED: &str = "an entry of the catalog is malformed";

/// An entry's value; the last byte only where a codec is asked for: without, it is as it was before
/// there were any, and a version that knows of none passes over the byte.
pub(crate) fn encode(id: TreeId, root: PageNo, codec: Option<PageCodec>) -> Vec<u8> {
    let mut out = Vec::with_capacity(13);
    out.extend_from_slice(&id.0.to_le_bytes());
    out.extend_from_slice(&root.0.to_le_bytes());
    out.extend(codec.map(|codec| 1 + codec as u8));
    out
}

/// The tree's number and its root page, of an entry's value.
#[must_use]
pub fn decode(value: &[u8]) -> Option<(TreeId, PageNo)> {
    let (id, rest) = value.split_first_chunk()?;
    let root = rest.first_chunk()?;
    Some((TreeId(u64::from_le_bytes(*id)), PageNo(u32::from_le_bytes(*root))))
}

/// The codec that an entry's value asks for.
#[must_use]
pub fn codec_in(value: &[u8]) -> Option<PageCodec> {
    let number = usize::from(*value.get(12)?);
    PageCodec::ALL.get(number.checked_sub(1)?).copied()
}

/// As [`decode`].
///
/// # Errors
/// [`Error::Damaged`].
pub(crate) fn entry(value: &[u8]) -> Result<(TreeId, PageNo), Error> {
    decode(value).ok_or_else(|| Error::Damaged(MALFORMED.into()))
}

/// That there is no tree of this name, but others.
pub(crate) fn no_tree<'n>(name: &str, there: impl Iterator<Item = &'n str>) -> Error {
    let there = there.take(20).collect::<Vec<_>>().join(", ");
    Error::Name(format!("there is no tree '{name}'; there are: {there}"))
}

/// All trees as committed now, in the order of their names.
pub(crate) fn names_and_trees(
    context: &Context,
    catalog: &RawTree,
) -> Result<Vec<(String, RawTree)>, Error> {
    let mut trees = Vec::new();
    let mut damaged = Ok(());
    for_each_entry(context, catalog, |name, value| match entry(value) {
        Ok((id, root)) => {
            let name = String::from_utf8_lossy(name).into_owned();
            trees.push((name, RawTree::at(catalog.env().clone(), id, root)));
        }
        Err(e) => damaged = Err(e),
    })?;
    damaged.map(|()| trees)
}

/// Goes through a catalog's entries as committed now, in the order of names: name and value.
pub(crate) fn for_each_entry(
    context: &Context,
    catalog: &RawTree,
    mut visit: impl FnMut(&[u8], &[u8]),
) -> Result<(), TxnError> {
    let latest = ReadView::new(context, None, View::Latest);
    let mut cursor = RowCursor::new(catalog.clone());
    let mut found = cursor.seek_first(latest)?;
    while found {
        visit(cursor.key(), cursor.value());
        found = cursor.next(latest)?;
    }
    Ok(())
}
