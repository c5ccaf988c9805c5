//! A page made from nothing by the log that there is, while the database works: from its last
//! making on, if that lies behind the checkpoint.
use weir_base::{Lsn, PageNo};
use weir_change::apply_to_page;
use weir_redo::{Chunk, Reader, RedoError};

use crate::unreadable::unreadable;

/// Makes the page in `bytes` by what the log has of it from `from`, the start of a group, to `to`,
/// before which all is durable. `false`: the log does not make it; `bytes` means nothing then.
///
/// # Errors
/// Those of reading the log; that a change does not apply.
pub fn rebuild(
    reader: &Reader,
    from: Lsn,
    to: Lsn,
    page: PageNo,
    bytes: &mut [u8],
) -> Result<bool, RedoError> {
    let mut is_made = false;
    reader.chunks(from, to, |chunk| take(chunk, page, bytes, &mut is_made))?;
    Ok(is_made)
}

fn take(
    chunk: &Chunk,
    page: PageNo,
    bytes: &mut [u8],
    is_made: &mut bool,
) -> Result<(), RedoError> {
    for (span, body) in chunk.bodies() {
        apply_to_page(body, span.end, page, bytes, is_made)
            .map_err(|e| unreadable(span.start, &e.to_string()))?;
    }
    Ok(())
}
