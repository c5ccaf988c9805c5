//! Whether the data file is the one that the control file was written beside
//! (`docs/decisions/whose-page.md`). Asked before anything is written.
use weir_base::Lsn;
use weir_checkpoint::{CONTROL_FILE, Control};
use weir_pool::{ERA_PAGES, PageStore};

use crate::error::Error;
use crate::force::Force;

/// What speaks against the file, in the order in which it is said, each with the step of a forced
/// opening that bears it. `log_end`: where the durable log ends.
///
/// [`Error::Damaged`]: the file is shorter, older or newer than the control file or the log, or of
/// another database or another copy of this one; others: it cannot be read.
pub(crate) fn misfits(
    store: &dyn PageStore,
    control: &Control,
    log_end: Lsn,
) -> impl Iterator<Item = (Force, Error)> {
    let short = check_length(store, control).err().map(|e| (Force::DAMAGED_PAGES, e));
    let ahead = check_log_end(store, log_end).err().map(|e| (Force::DAMAGED_LOG, e));
    let other = check_era(store, control).err().map(|e| match &e {
        // It says which era it is of, and that is another one.
        Error::Damaged(told) if told.place().page.is_none() => (Force::NO_LOG, e),
        _ => (Force::DAMAGED_PAGES, e),
    });
    short.into_iter().chain(ahead).chain(other)
}

fn check_length(store: &dyn PageStore, control: &Control) -> Result<(), Error> {
    let page_bytes = u64::from(control.page_size);
    let (has, knows) = (store.pages(), control.pages);
    if has >= knows {
        return Ok(());
    }
    let (ends, wanted) = (u64::from(has) * page_bytes, u64::from(knows) * page_bytes);
    let file = store.size_file();
    Err(Error::Damaged(
        format!(
            "'{file}' ends at byte {ends} of pages, but '{CONTROL_FILE}' knows of {wanted}: it was \
             cut short, or is older"
        )
        .into(),
    ))
}

fn check_log_end(store: &dyn PageStore, log_end: Lsn) -> Result<(), Error> {
    let Some((place, newest)) = store.newest_written().filter(|found| found.1 > log_end) else {
        return Ok(());
    };
    Err(Error::Damaged(
        format!(
            "the redo log ends at position {log_end}, but pages with changes up to {newest} were \
             written, as {place} says: the log is older than they are, or was cut short"
        )
        .into(),
    ))
}

fn check_era(store: &dyn PageStore, control: &Control) -> Result<(), Error> {
    let eras = store.eras();
    // A crash may come when the data file knows of an era and the control file does not yet.
    if eras.iter().flatten().any(|era| *era == control.era) {
        return Ok(());
    }
    let slot = (control.era.number % 2) as usize;
    let (file, from) = store.place(ERA_PAGES[slot]);
    let newest = eras.iter().flatten().map(|era| era.number).max();
    let [even, odd] = eras;
    let at = if slot == 0 { even } else { odd }?;
    let newest = newest.unwrap_or(at.number);
    let how = match newest.cmp(&control.era.number) {
        std::cmp::Ordering::Less => "older than",
        std::cmp::Ordering::Equal => "of another copy of the database than",
        std::cmp::Ordering::Greater => "newer than",
    };
    Err(Error::Damaged(format!(
        "'{file}' is {how} '{CONTROL_FILE}': at byte {from} it says that it is of era {newest}, \
         not {}",
        control.era.number
    )
    .into()))
}
