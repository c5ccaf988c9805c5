//! Opening a damaged database to read what can be read of it: in steps (`docs/damage.md`), each of
//! which leaves out more of what opening does otherwise. None of them changes a file: all is read
//! below an overlay, no page is ever dirty, and nothing goes on in the background.
use std::sync::Arc;

use weir_base::Lsn;
use weir_checkpoint::Control;
use weir_device::Volume;
use weir_pool::{PageStore, Repair};
use weir_recovery::{Collected, Progress, collect_to_damage};
use weir_redo::{Log, survey};

use crate::config::{Config, LOG_BYTES_MIN};
use crate::data_file::misfits;
use crate::error::Error;
use crate::force::Force;
use crate::read_log::Scanned;
use crate::setup::log_config;

/// What opening left out, and why, in words.
#[derive(Default)]
pub(crate) struct Remarks(pub(crate) Vec<String>);

impl Remarks {
    /// What failed is borne, and noted, from the step `from` on.
    ///
    /// # Errors
    /// What `done` says, in an earlier one.
    pub(crate) fn bear<T>(
        &mut self,
        (force, from): (Force, Force),
        done: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(e) if force >= from => {
                self.0.push(e.to_string());
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Whether the data file is the one that the control file and the log are of.
    ///
    /// # Errors
    /// The first misfit that `force` does not bear.
    pub(crate) fn check_data_file(
        &mut self,
        force: Force,
        store: &dyn PageStore,
        (control, log_end): (&Control, Lsn),
    ) -> Result<(), Error> {
        for (from, e) in misfits(store, control, log_end) {
            self.bear((force, from), Err::<(), _>(e))?;
        }
        Ok(())
    }

    /// Puts torn pages right, in the overlay where `force` is on.
    ///
    /// # Errors
    /// As [`PageStore::repair`], unless that is borne: readers come to the pages that are damaged.
    pub(crate) fn repair(&mut self, force: Force, store: &dyn PageStore) -> Result<Repair, Error> {
        let repaired = store.repair().map_err(Into::into);
        Ok(self.bear((force, Force::DAMAGED_PAGES), repaired)?.unwrap_or_default())
    }
}

/// A log that may be damaged, and what of it is applied: with [`Force::DAMAGED_LOG`] what lies
/// before the damage, with [`Force::NO_LOG`] nothing. What the engine logs goes to a new one in
/// the overlay, behind all positions that pages may name.
pub(crate) fn read_damaged_log(
    volume: &Arc<dyn Volume>,
    was: &Control,
    config: &Config,
    remarks: &mut Remarks,
    tell: &dyn Fn(Progress),
) -> Result<(Scanned, Log), Error> {
    let collected = match Force::at(config.force_recovery) {
        Force::NO_LOG => {
            remarks.0.push(
                "the log is not applied: pages are as they were written last, each at its own \
                 moment, and all changes in them count as committed"
                    .into(),
            );
            Collected::nothing(was.checkpoint)
        }
        _ => {
            leave_out_damaged_files(&**volume, was, remarks);
            tell(Progress { phase: weir_recovery::Phase::Scan, done: 0, of: 0 });
            let (collected, stopped) = collect_to_damage(&**volume, was.db, was.checkpoint);
            let (end, knows) = (collected.end.end, was.checkpoint.max(was.synced));
            if stopped.is_some() || end < knows {
                let why = stopped.map_or_else(
                    || format!("it was durable up to {knows}: it was cut short, or is older"),
                    |e| e.to_string(),
                );
                remarks.0.push(format!(
                    "the log is applied up to position {end} only ({why}): what was changed behind \
                     it is missing where pages did not have it yet, and rows are of no single \
                     moment"
                ));
            }
            collected
        }
    };
    let behind = collected.end.end.max(was.checkpoint).max(was.synced);
    Log::remove_all(&**volume)?;
    let log =
        Log::create(volume.clone(), log_config(was.db, LOG_BYTES_MIN, config.pool_bytes), behind)?;
    Ok((Scanned::InMemory(Box::new(collected)), log))
}

/// Files of the log whose header cannot be believed would keep the others from being read. Gone
/// from the overlay only.
fn leave_out_damaged_files(volume: &dyn Volume, was: &Control, remarks: &mut Remarks) {
    // What cannot be looked at is met again when the log is read.
    for file in survey(volume, Some(was.db)).unwrap_or_default() {
        if let (None, Some(problem)) = (&file.header, &file.problem)
            && volume.remove(&file.file).is_ok()
        {
            remarks.0.push(format!("'{}' is left out: {problem}", file.file));
        }
    }
}
