//! `weir restore`, `weir verify` and `weir repair`: a database of backups, whether a backup is
//! whole, and a page of one.
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use weir::{Lsn, RestoreOptions, RestorePoint};
use weir_backup::{BackupError, Content};

use crate::args_backup::{Repair, Restore, VerifyBackup};
use crate::cmd::backup::{byte_bar, describe};
use crate::exit::{EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_OK};
use crate::keys;
use crate::opening::{interrupted, must_exist};

/// Makes a database of backups.
pub(crate) fn restore(args: &Restore) -> Result<u8> {
    let stop = interrupted()?;
    let to = match (args.to_lsn, args.to_time) {
        (Some(lsn), _) => Some(RestorePoint::Lsn(Lsn(lsn))),
        (None, Some(seconds)) => Some(RestorePoint::Micros((seconds * 1e6) as u64)),
        (None, None) => None,
    };
    let options = RestoreOptions {
        to,
        store: args.store,
        incomplete: args.incomplete,
        encryption: keys::given(),
    };
    let backups = args.backups.iter().map(|path| input(path)).collect::<Result<Vec<_>>>()?;
    let bar = byte_bar("restoring");
    let mut progress = |bytes| {
        bar.set_position(bytes);
        !stop.load(Ordering::Relaxed)
    };
    let restored = weir::restore(&args.dir, backups, &options, &mut progress);
    bar.finish_and_clear();
    let restored = restored.with_context(|| format!("restoring {}", args.dir.display()))?;
    let Some(restored) = restored else {
        eprintln!("interrupted: nothing is left in {}", args.dir.display());
        return Ok(EXIT_INTERRUPTED);
    };
    println!("{} pages, up to position {} of the log", restored.pages, restored.end);
    println!("(the first opening applies the log; 'weir check' does that, and looks at all of it)");
    Ok(EXIT_OK)
}

/// Whether a backup is whole.
pub(crate) fn verify(args: &VerifyBackup) -> Result<u8> {
    let stop = interrupted()?;
    let backup = weir::unseal(input(&args.backup)?, keys::given().as_ref())?;
    let bar = byte_bar("verifying");
    let verified = weir_backup::verify(backup, &mut |bytes, _| {
        bar.set_position(bytes);
        !stop.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    match verified {
        Ok(None) => Ok(EXIT_INTERRUPTED),
        Ok(Some(verified)) => {
            let content = match verified.begin.content {
                Content::All => "all pages".to_owned(),
                Content::Since { base, .. } => format!("what was changed since the backup {base}"),
            };
            println!(
                "backup {} of the database {}: {content}",
                verified.begin.id, verified.begin.control.db
            );
            println!("{}", describe(&verified));
            println!("sound");
            Ok(EXIT_OK)
        }
        Err(
            e @ (BackupError::Damaged { .. }
            | BackupError::CutShort { .. }
            | BackupError::Failed { .. }),
        ) => {
            println!("problem: {e}");
            Ok(EXIT_FINDINGS)
        }
        Err(e) => Err(e).with_context(|| format!("verifying {}", args.backup.display())),
    }
}

/// Makes a damaged page again.
pub(crate) fn repair(args: &Repair) -> Result<u8> {
    must_exist(&args.dir)?;
    let backups = args.from.iter().map(|path| input(path)).collect::<Result<Vec<_>>>()?;
    let repaired = weir::repair_page(&args.dir, args.page, backups, keys::given().as_ref())
        .with_context(|| format!("repairing page {} of {}", args.page, args.dir.display()))?;
    println!(
        "page {} is as it was at position {} of the log, with {} changes from the backup's log",
        args.page, repaired.lsn, repaired.changes
    );
    println!("(what the database's own log has since comes at the next opening: 'weir check' it)");
    Ok(EXIT_OK)
}

fn input(path: &PathBuf) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    Ok(Box::new(io::BufReader::with_capacity(1 << 20, file)))
}
