//! Backups in the middle of a workload: made of the database as it is, with whatever a crash left
//! to do, and restored onto a disk of its own.
use std::io::{Cursor, Read};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use weir::{BackupBase, BackupOptions, Db, ManualClock, RestoreOptions, SimVolume, StoreKind};

use crate::model::Model;
use crate::setup::Setup;
use crate::verify::{audit, recover};

/// Longer chains are begun anew.
const CHAIN_MAX: usize = 3;

/// A full backup, and those since it.
#[derive(Default)]
pub(crate) struct Chain(Vec<Vec<u8>>);

impl Chain {
    /// Backs up, restores, and compares with the model.
    pub(crate) fn back_up(&mut self, db: &Db, setup: &Setup, model: &Model) -> Result<()> {
        if self.0.len() == CHAIN_MAX {
            self.0.clear();
        }
        let since = match self.0.last() {
            Some(last) => {
                let last = weir::unseal(&last[..], setup.encryption().as_ref())?;
                Some(BackupBase::read(last).context("the backup before")?)
            }
            None => None,
        };
        let options = BackupOptions { since, ..BackupOptions::default() };
        let mut out = Vec::new();
        let done = db.backup(&mut out, &options, &mut |_| true).context("backing up")?;
        ensure!(done.is_some(), "the backup was ended");
        self.0.push(out);
        self.restore(setup, model).with_context(|| {
            let which = self.0.len();
            format!("restored, of {which} backups")
        })
    }

    fn restore(&self, setup: &Setup, model: &Model) -> Result<()> {
        let volume = SimVolume::new(self.0.len() as u64);
        let backups = self.0.iter().map(|b| Box::new(Cursor::new(b.clone())) as Box<dyn Read>);
        // Now and then into the other store.
        let other = self.0.last().is_some_and(|last| last.len() % 4 == 0);
        let store = match setup.store {
            StoreKind::InPlace if other => StoreKind::Log,
            StoreKind::Log if other => StoreKind::InPlace,
            same => same,
        };
        let encryption = setup.encryption();
        let options =
            RestoreOptions { store: Some(store), encryption, ..RestoreOptions::default() };
        let restored =
            weir::restore_onto(Arc::new(volume.clone()), backups.collect(), &options, &mut |_| {
                true
            });
        restored?.context("the restore was ended")?;
        let clock = Arc::new(ManualClock::default());
        let db = recover(&Setup { store, ..*setup }, &volume, &clock)?;
        // Nothing is left to be rolled back, or applied, when it is looked at.
        db.checkpoint()?;
        audit(&db, model)
    }
}
