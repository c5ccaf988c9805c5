//! What to do for every state in which control file and log can be found.
use weir_base::Lsn;
use weir_checkpoint::Control;

/// How the log was found, read from the checkpoint on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFound {
    /// It ends here, in order: whole, or in writes that a crash cut short.
    EndsAt(Lsn),
    /// Something in it that was durable has changed.
    Damaged,
    /// The file that must hold the checkpoint is missing, or is another database's.
    Missing,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Open: there is nothing to redo.
    Open,
    /// Redo from the checkpoint to the end.
    Recover {
        /// The checkpoint.
        from: Lsn,
        /// The end of the log.
        to: Lsn,
    },
    /// Do not open.
    Refuse(Refusal),
}

/// Why a database is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The log is damaged: what it held cannot be had, and the pages alone are no sound state.
    LogDamaged,
    /// The log, or the part of it from the checkpoint on, is missing.
    LogMissing,
    /// The log ends before the checkpoint, or before what was durable with it: log and control file
    /// do not belong together.
    LogTooShort,
}

/// Judges a state. One row of this table for each: `clean` says that the database was closed in
/// order, so that nothing should lie behind the checkpoint. If something does, it was written by an
/// opening whose mark in the control file was lost, and redoing it is right all the same.
#[must_use]
pub fn judge(control: &Control, log: LogFound) -> Outcome {
    let from = control.checkpoint;
    match (control.clean, log) {
        (_, LogFound::Missing) => Outcome::Refuse(Refusal::LogMissing),
        (_, LogFound::Damaged) => Outcome::Refuse(Refusal::LogDamaged),
        (_, LogFound::EndsAt(end)) if end < from.max(control.synced) => {
            Outcome::Refuse(Refusal::LogTooShort)
        }
        (true, LogFound::EndsAt(end)) if end == from => Outcome::Open,
        (_, LogFound::EndsAt(to)) => Outcome::Recover { from, to },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::{DbId, Era, TreeId, TxnId};

    #[test]
    fn every_state_has_one_outcome() {
        let control = |clean| Control {
            db: DbId(1),
            sequence: 1,
            page_size: 8192,
            checkpoint: Lsn(100),
            log_bytes: 1,
            next_txn: TxnId(1),
            next_tree: TreeId(1),
            clean,
            openings: 1,
            pages: 64,
            maps: 1,
            era: Era::default(),
            synced: Lsn(100),
        };
        let recover = |to| Outcome::Recover { from: Lsn(100), to: Lsn(to) };
        let table = [
            (true, LogFound::EndsAt(Lsn(100)), Outcome::Open),
            (true, LogFound::EndsAt(Lsn(101)), recover(101)),
            (true, LogFound::EndsAt(Lsn(99)), Outcome::Refuse(Refusal::LogTooShort)),
            (true, LogFound::Damaged, Outcome::Refuse(Refusal::LogDamaged)),
            (true, LogFound::Missing, Outcome::Refuse(Refusal::LogMissing)),
            (false, LogFound::EndsAt(Lsn(100)), recover(100)),
            (false, LogFound::EndsAt(Lsn(101)), recover(101)),
            (false, LogFound::EndsAt(Lsn(99)), Outcome::Refuse(Refusal::LogTooShort)),
            (false, LogFound::Damaged, Outcome::Refuse(Refusal::LogDamaged)),
            (false, LogFound::Missing, Outcome::Refuse(Refusal::LogMissing)),
        ];
        for (clean, log, expected) in table {
            assert_eq!(judge(&control(clean), log), expected, "clean {clean}, {log:?}");
        }
        // An older copy of the log may go on behind the checkpoint, but not as far as it went.
        let later = Control { synced: Lsn(150), ..control(false) };
        let short = judge(&later, LogFound::EndsAt(Lsn(149)));
        assert_eq!(short, Outcome::Refuse(Refusal::LogTooShort));
        assert_eq!(judge(&later, LogFound::EndsAt(Lsn(150))), recover(150));
    }
}
