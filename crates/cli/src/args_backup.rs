//! What `weir backup`, `weir verify` and `weir restore` read.
use std::path::PathBuf;

use clap::Args as ClapArgs;
use weir::StoreKind;
use weir_base::parse_size;

use crate::args::Dir;
use crate::forced::NotForced;

const BACKUP_EXAMPLES: &str = "\
Examples:
  weir backup ./db sunday.weirbackup
  weir backup ./db monday.weirbackup --since sunday.weirbackup
  weir backup ./db sunday.weirbackup --resume     (after a crash in the middle of it)
  weir backup ./db - | zstd | ssh elsewhere 'cat > sunday.zst'
  weir backup ./db today.weirbackup --follow      (until Ctrl-C)

A database that another process has open is backed up by that process.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  weir restore ./restored sunday.weirbackup monday.weirbackup
  ssh elsewhere 'cat sunday.zst' | zstd -d | weir restore ./restored -
  weir restore ./restored today.weirbackup --to-time $(date -d 'today 14:30' +%s)";

#[derive(ClapArgs)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(crate) struct Backup {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The file to make; '-' is standard output
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// Go on with one that was cut off (a crash, a full disk), whose TO.part is there
    #[arg(long, conflicts_with = "since")]
    pub(crate) resume: bool,
    /// Only pages that were changed since this backup: it is needed to restore
    #[arg(long, value_name = "BACKUP")]
    pub(crate) since: Option<PathBuf>,
    /// Bytes to read per second at most [default: all the disk gives while the database is idle, a
    /// tenth of it while it is at work]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) rate: Option<u64>,
    /// Go on with the log until Ctrl-C: any moment from then on can be restored. If it is killed,
    /// what is in TO.part is good for 'weir restore --incomplete'
    #[arg(long)]
    pub(crate) follow: bool,
    /// While it follows, read all of TO.part again so often, and end with an error if it is not
    /// what was written: begin another then
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, requires = "follow",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) verify_every: u64,
}

#[derive(ClapArgs)]
pub(crate) struct VerifyBackup {
    /// The backup; '-' is standard input
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: PathBuf,
}

#[derive(ClapArgs)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// Where the database goes: an empty directory, or none yet
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// A full backup, and those since it, each of the one before; '-' is standard input
    #[arg(value_name = "BACKUP", required = true)]
    pub(crate) backups: Vec<PathBuf>,
    /// Keep the pages in-place, or in segments (log) [default: as the database did]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<StoreKind>,
    /// What was committed before this position of the log
    #[arg(long, value_name = "POSITION", conflicts_with = "to_time")]
    pub(crate) to_lsn: Option<u64>,
    /// What was committed at this time, in seconds since 1970, to about a second
    #[arg(long, value_name = "SECONDS")]
    pub(crate) to_time: Option<f64>,
    /// The last backup may be cut short behind its pages: of a '--follow' that was killed
    #[arg(long)]
    pub(crate) incomplete: bool,
}

#[derive(ClapArgs)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The database, which no process may have open
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The page's number, as errors and 'weir check' say it
    #[arg(long, value_name = "N")]
    pub(crate) page: u32,
    /// A full backup, and those since it; the last must reach up to the database's checkpoint, as
    /// one made with --follow does. Once for each
    #[arg(long, value_name = "BACKUP", required = true)]
    pub(crate) from: Vec<PathBuf>,
}
