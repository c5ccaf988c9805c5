//! Whether backups belong together: a full one, and each other made since the one before it.
use weir_backup::{Begin, Content};

use crate::error::Error;

/// # Errors
/// [`Error::Config`] when each is not made since the one before, of the same database.
pub(crate) fn check_chain<'a>(begins: impl Iterator<Item = &'a Begin>) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::Config(what));
    let mut before: Option<&Begin> = None;
    for (number, begin) in (1..).zip(begins) {
        let base = match begin.content {
            Content::All => None,
            Content::Since { base, .. } => Some(base),
        };
        match (before, base) {
            (None, None) => {}
            (None, Some(_)) => {
                return wrong(
                    "the first backup has only what was changed since another one: give \
                              that one before it"
                        .into(),
                );
            }
            (Some(_), None) => {
                return wrong(format!("backup {number} is a full one: give it alone, or first"));
            }
            (Some(before), Some(base))
                if base != before.id || before.control.db != begin.control.db =>
            {
                return wrong(format!("backup {number} was not made since the one before it"));
            }
            (Some(_), Some(_)) => {}
        }
        before = Some(begin);
    }
    if before.is_none() { wrong("there is no backup to restore".into()) } else { Ok(()) }
}
