//! What `weir compact` and `weir codec` read.
use clap::Args as ClapArgs;
use weir::PageCodec;
use weir_base::parse_size;

use crate::args::Dir;
use crate::forced::NotForced;

const COMPACT_EXAMPLES: &str = "\
Leaves that deletions have left half empty are joined, and lie at the beginning of the file, as do
long values of up to sixteen pages; what is free then goes back to the file system. Ctrl-C ends it,
and keeps what is done. A database that another process has open is compacted by that process.

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

const CODEC_EXAMPLES: &str = "\
A tree whose pages lie in segments (--store log) may ask how they are packed; of the others
('default') the store chooses by what it measures. Pages are packed by another codec from their next
write on; 'weir copy' writes all anew. A database that another process has open shows and changes it
through that process. In place nothing is packed: what a tree asks for is kept for copies in
segments. Tables of a MariaDB server: ALTER TABLE ... CODEC=, so that the server knows it, too.

Examples:
  weir codec ./weir-data                 what each tree asks for
  weir codec ./weir-data people lz4
  weir codec ./weir-data people default";

#[derive(ClapArgs)]
#[command(after_help = CODEC_EXAMPLES)]
pub(crate) struct Codec {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The tree [default: all are shown]
    #[arg(value_name = "TREE")]
    pub(crate) tree: Option<String>,
    /// What it is to ask for: none, lz4, zstd or default [default: it is shown]
    #[arg(value_name = "CODEC")]
    pub(crate) codec: Option<Asked>,
}

/// The codec that a tree asks for, if it does.
#[derive(Clone, Copy)]
pub(crate) struct Asked(pub(crate) Option<PageCodec>);

impl std::str::FromStr for Asked {
    type Err = String;

    fn from_str(name: &str) -> Result<Asked, String> {
        match name {
            "default" => Ok(Asked(None)),
            name => match name.parse() {
                Ok(codec) => Ok(Asked(Some(codec))),
                Err(e) => Err(format!("{e}; default: as the store chooses")),
            },
        }
    }
}
