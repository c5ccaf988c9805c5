//! What `weir compact` reads.
use clap::Args as ClapArgs;
use weir_base::parse_size;

use crate::args::Dir;
use crate::forced::NotForced;

const COMPACT_EXAMPLES: &str = "\
Leaves that deletions have left half empty are joined, and lie at the beginning of the file; what is
free then goes back to the file system. Ctrl-C ends it, and keeps what is done. Long values stay
where they are: 'weir copy' writes those anew, too. A database that another process has open is
compacted by that process.

Examples:
  weir compact ./weir-data
  weir compact ./weir-data people orders --rate 8MiB";

#[derive(ClapArgs)]
#[command(after_help = COMPACT_EXAMPLES)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The trees [default: all]
    #[arg(value_name = "TREE")]
    pub(crate) trees: Vec<String>,
    /// Bytes of pages to read and change per second at most [default: as fast as can be; by the
    /// process that has the database open, a tenth of what the disk gives]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) rate: Option<u64>,
}
