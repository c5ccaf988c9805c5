//! What a group of the log has of one page.
use thiserror::Error;
use weir_base::{Lsn, PageNo};

use crate::apply::{ApplyError, apply};
use crate::code::{DecodeError, decode};

/// Why a group cannot be applied to a page.
#[derive(Debug, Error)]
pub enum GroupError {
    /// It is no group.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The page is not the one that it is for.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// Applies to `page` what the group `body`, which ends at `end`, has of it, and returns how many
/// operations that were. `is_made`: whether `bytes` is that page; otherwise it becomes the page
/// with the first operation that makes it. What the page has already, by its LSN, changes nothing.
///
/// # Errors
/// [`GroupError`]; `bytes` means nothing then.
pub fn apply_to_page(
    body: &[u8],
    end: Lsn,
    page: PageNo,
    bytes: &mut [u8],
    is_made: &mut bool,
) -> Result<u64, GroupError> {
    if *is_made && weir_page::lsn(bytes) >= end {
        return Ok(0);
    }
    let (header, ops) = decode(body)?;
    let mut count = 0;
    for op in ops {
        let op = op?;
        if op.page() != Some(page) {
            continue;
        }
        if op.makes_page() {
            bytes.fill(0);
            *is_made = true;
        }
        if *is_made {
            apply(&op, header.writer(), bytes)?;
            count += 1;
        }
    }
    if count > 0 {
        weir_page::set_lsn(bytes, end);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Header, Op};
    use weir_base::TreeId;
    use weir_page::{Flags, Kind};

    const PAGE: PageNo = PageNo(7);

    fn group(ops: &[Op<'_>]) -> Vec<u8> {
        let mut body = Vec::new();
        Header::default().encode(&mut body);
        ops.iter().for_each(|op| op.encode(&mut body));
        body
    }

    fn make(page: PageNo) -> Op<'static> {
        Op::Init { page, kind: Kind::Leaf, level: 0, tree: TreeId(3) }
    }

    fn row(page: PageNo, key: &'static [u8]) -> Op<'static> {
        Op::Insert { page, key, seq: 0, flags: Flags::NONE, value: b"v" }
    }

    #[test]
    fn a_page_is_made_by_what_makes_it_and_then_changed_once() {
        let (mut bytes, mut is_made) = (vec![9; 4096], false);
        let mut take = |end, ops: &[Op<'_>]| {
            let took = apply_to_page(&group(ops), Lsn(end), PAGE, &mut bytes, &mut is_made);
            took.map(|count| (count, is_made)).expect("a group")
        };
        // Before it is made, and of another page.
        assert_eq!(take(100, &[row(PAGE, b"a")]), (0, false));
        assert_eq!(take(200, &[make(PageNo(8)), row(PageNo(8), b"a")]), (0, false));
        assert_eq!(take(300, &[make(PAGE), row(PAGE, b"a"), row(PageNo(8), b"b")]), (2, true));
        assert_eq!(take(400, &[row(PageNo(8), b"c")]), (0, true));
        assert_eq!(take(400, &[row(PAGE, b"b")]), (1, true));
        // Once more.
        assert_eq!(take(400, &[row(PAGE, b"b")]), (0, true));
        assert_eq!(weir_page::lsn(&bytes), Lsn(400));
        assert_eq!(weir_page::Node::new(&bytes[..]).count(), 2);
    }

    #[test]
    fn what_is_no_group_is_an_error() {
        let mut is_made = true;
        let mut bytes = vec![0; 4096];
        let body = group(&[row(PAGE, b"a")]);
        let cut = &body[..body.len() - 1];
        let end = Lsn(100);
        let decoded = apply_to_page(cut, end, PAGE, &mut bytes, &mut is_made);
        assert!(matches!(decoded, Err(GroupError::Decode(_))), "{decoded:?}");
        let applied = apply_to_page(&body, end, PAGE, &mut bytes, &mut is_made);
        assert!(matches!(applied, Err(GroupError::Apply(_))), "{applied:?}");
    }
}
