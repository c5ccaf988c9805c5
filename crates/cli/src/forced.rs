//! `--force-recovery`: a damaged database opened to be read, and what was passed over said.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use clap::Args as ClapArgs;
use weir::{Db, Notice};

use crate::exit::{EXIT_FINDINGS, EXIT_OK};

/// Damaged pages are named up to so many; `weir dump page` names them all.
const NAMED_MAX: u64 = 20;

/// What commands that only look take.
#[derive(ClapArgs)]
pub(crate) struct Forced {
    /// Of a damaged database, read what can be read: a step from 1 to 4, each leaves out more than
    /// the one before (1: pages that cannot be read; 2: undo; 3: the log behind damage; 4: the log)
    #[arg(long, value_name = "STEP", value_parser = clap::value_parser!(u8).range(1..=4))]
    force_recovery: Option<u8>,
}

/// What commands that change a database, or copy it, take: an answer to `--force-recovery`.
#[derive(ClapArgs)]
pub(crate) struct NotForced {
    #[arg(long, hide = true, value_name = "STEP", value_parser = refused)]
    force_recovery: Option<std::convert::Infallible>,
}

/// What `weir dump` takes, which opens nothing: an answer to `--force-recovery`.
#[derive(ClapArgs)]
pub(crate) struct Needless {
    #[arg(long, hide = true, value_name = "STEP", value_parser = needless)]
    force_recovery: Option<std::convert::Infallible>,
}

fn needless(_step: &str) -> Result<std::convert::Infallible, &'static str> {
    Err("'weir dump' reads the files as they are, also of a damaged database: leave it out")
}

fn refused(_step: &str) -> Result<std::convert::Infallible, &'static str> {
    Err("a database opened so is only read: 'weir check', 'stat', 'advise', 'trees', 'get' and \
         'scan' do; \
         'weir salvage' saves what can be read into a new one")
}

impl Forced {
    /// 0: not at all.
    pub(crate) fn step(&self) -> u8 {
        self.force_recovery.unwrap_or(0)
    }

    /// Says what to try where damage is why it failed.
    ///
    /// # Errors
    /// As `done`.
    pub(crate) fn explain<T>(&self, done: Result<T>) -> Result<T> {
        match done {
            Err(e) if is_damage(&e) => Err(e.context(match self.step() {
                4 => "'weir salvage' reads what --force-recovery cannot".to_owned(),
                step => format!("--force-recovery {} reads what can be read", step + 1),
            })),
            done => done,
        }
    }

    /// Says, on standard error, what opening has left out; and which damaged pages are met later,
    /// as they are.
    pub(crate) fn say_opened(&self, db: &Db) {
        if self.step() == 0 {
            return;
        }
        eprintln!("opened with --force-recovery {}: nothing is changed", self.step());
        for remark in db.recovery_remarks() {
            eprintln!("left out: {remark}");
        }
        let named = Arc::new(AtomicU64::new(0));
        db.on_notice(Box::new(move |notice| {
            if let Notice::PageLost(what) = notice {
                match named.fetch_add(1, Ordering::Relaxed) {
                    so_far if so_far < NAMED_MAX => eprintln!("damaged: {what}"),
                    NAMED_MAX => eprintln!("(and more: 'weir dump page' lists them)"),
                    _ => {}
                }
            }
        }));
    }

    /// Closes the database of a command that would end with `code`, and says how much was passed
    /// over: then that is a finding.
    ///
    /// # Errors
    /// Those of closing.
    pub(crate) fn close(&self, db: Db, code: u8) -> Result<u8> {
        let (passed_over, is_whole) = (db.stats().passed_over, db.recovery_remarks().is_empty());
        db.close()?;
        if passed_over > 0 {
            eprintln!("rows that cannot be read were passed over at {passed_over} places");
        }
        Ok(if code == EXIT_OK && !(is_whole && passed_over == 0) { EXIT_FINDINGS } else { code })
    }
}

/// Whether it failed because something on disk is damaged.
pub(crate) fn is_damage(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<weir::Error>(), Some(weir::Error::Damaged(_)))
}
