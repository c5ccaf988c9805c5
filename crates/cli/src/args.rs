//! The command line, as clap reads it.
use crate::args_backup::{Backup, Repair, Restore, VerifyBackup};
use crate::args_trees::{Codec, Compact};
use crate::forced::{Forced, Needless, NotForced};
use crate::text::parse_bytes;
use clap::{Args as ClapArgs, Parser, Subcommand};
use std::path::PathBuf;
use weir::StoreKind;
use weir_base::parse_size;
use weir_bench::tpcc::Isolation;
use weir_bench::{DoubleWriteMode, Durability, Sizes};

/// Weir: a transactional store whose updates go on at a steady rate on any disk.
#[derive(Parser)]
#[command(name = "weir", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The keys of an encrypted database: a file that 'weir key new' makes, or one of MariaDB's
    /// file_key_management
    #[arg(long, global = true, value_name = "FILE", env = "WEIR_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  weir bench update --seconds 20 --disk 2000iops,32MiB
  weir check ./weir-data
  weir dump page ./weir-data 7
  weir salvage ./weir-data ./saved
  weir put ./db people ada 'countess of computing'
  weir scan ./db people --limit 10

Exit codes: 0 all is well; 1 problems found, or a key is not there; 2 cannot run; 130 interrupted.";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure: run a workload, one line a second, then verify what was acknowledged
    #[command(subcommand)]
    Bench(Box<Bench>),
    /// The workbench: the experiments that other engines' flushing policies are known by
    #[command(subcommand)]
    Lab(Lab),
    /// Check a whole database: every page of every tree, and that each page has one owner
    Check(Check),
    /// Show what a database consists of: log, trees, sizes, counters
    Stat(Stat),
    /// Back up a database, also one that is at work: its pages and its log, to a file or a stream
    Backup(Backup),
    /// Verify a backup without restoring it
    Verify(VerifyBackup),
    /// Make a database of a backup, and of those with what was changed since it
    Restore(Restore),
    /// Make a damaged page again from backups, of which the last followed the database
    Repair(Repair),
    /// Show or change how pages of trees are to be packed
    Codec(Codec),
    /// Make trees dense, and give what is free back to the file system
    Compact(Compact),
    /// Copy a database into a new one: dense, with a log and numbers of its own
    Copy(Copy),
    /// Save what can be read of a database that does not open into a new one
    Salvage(Salvage),
    /// Print what is on disk in words, also of a database that is damaged and does not open
    #[command(subcommand)]
    Dump(Dump),
    /// Make key files for encrypted databases, and rotate keys
    #[command(subcommand)]
    Key(Key),
    /// Say what a log half, twice or four times as large would cost or save
    #[command(after_help = ADVISE_EXAMPLES)]
    Advise(Advise),
    /// List the trees
    Trees(Trees),
    /// Print the value of a key
    Get(Get),
    /// Put a value under a key (makes the database and the tree if they are not there)
    Put(Put),
    /// Delete a key
    Delete(Delete),
    /// Print the entries of a tree in key order, one a line: key, tab, value
    Scan(Scan),
    /// Write the manual pages, one for each command (`make install` does)
    #[command(hide = true)]
    Man(Man),
}

#[derive(Subcommand)]
pub(crate) enum Key {
    /// Make a key file with a random key, which only its owner can read
    New(KeyFileArgs),
    /// Add a random key to the file, as the newest version
    Add(KeyFileArgs),
    /// Have a database that no process has open take the newest version of its key
    Rotate(Rotate),
}

#[derive(ClapArgs)]
pub(crate) struct Rotate {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
}

#[derive(ClapArgs)]
pub(crate) struct KeyFileArgs {
    /// The key file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct Man {
    /// Where they go; the folder must be there
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Replace 120 of the 128 value bytes of rows chosen uniformly
    #[command(after_help = BENCH_EXAMPLES)]
    Update(Run),
    /// Insert rows with new keys in random key order
    #[command(after_help = BENCH_EXAMPLES)]
    Insert(Run),
    /// Read rows chosen uniformly
    #[command(after_help = BENCH_EXAMPLES)]
    Read(Run),
    /// Read ranges of 100 rows, upwards and downwards in turn
    #[command(after_help = BENCH_EXAMPLES)]
    Scan(Run),
    /// TPC-C: five transactions on nine tables, then its twelve consistency conditions
    #[command(after_help = TPCC_EXAMPLES)]
    Tpcc(Tpcc),
    /// What a row costs by its size: bytes on disk, load, read, scan, update; all rows compared at
    /// the end
    #[command(after_help = SIZES_EXAMPLES)]
    Sizes(RowSizes),
    /// Verify the bench's trees, and what an --ack-file says was acknowledged
    Verify(Verify),
    /// The report of what `make compare` has run so far
    Compare(Compare),
}

#[derive(Subcommand)]
pub(crate) enum Lab {
    /// List the experiments
    List,
    /// Run an experiment, or all: other policies and this engine's on the same work
    #[command(after_help = LAB_EXAMPLES)]
    Run(LabRun),
    /// Measure what the live page and the metrics cost when they are asked for once a second
    Cost(LabCost),
}

#[derive(ClapArgs)]
pub(crate) struct LabCost {
    /// Rounds of four seconds, two of them with a client asking; 6 at least
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) rounds: usize,
    /// Where the database goes
    #[arg(long, value_name = "DIR", default_value = "./weir-lab")]
    pub(crate) dir: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct LabRun {
    /// Its number (weir lab list), or all
    #[arg(value_name = "N|all")]
    pub(crate) which: String,
    /// All in ten minutes, on little data, instead of hours
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only this policy's runs, beside deadline's (an unknown one lists them)
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<weir_lab::policies::Kind>,
    /// Where databases, results and reports go
    #[arg(long, value_name = "DIR", default_value = "./weir-lab")]
    pub(crate) dir: PathBuf,
    /// Run again what has been run, and replace its report
    #[arg(long)]
    pub(crate) force: bool,
}

const ADVISE_EXAMPLES: &str = "\
Example:
  weir advise ./weir-data

From what was observed of the database at work, when it was closed last (or, after a crash, from
what recovery found): how often its pages are changed says how many page writes a log of another
size would take. What is beyond the size observed is extrapolated.";

const LAB_EXAMPLES: &str = "\
Examples:
  weir lab run 5 --quick      four runs, a table, a report in ./weir-lab
  weir lab run all            hours; stop it with Ctrl-C, the same command goes on from there

Each experiment ends in a table with the seed's original figures beside those of this machine, one
sentence whether the seed's finding holds here, and where this engine's own policy stands.";

const BENCH_EXAMPLES: &str = "\
Examples:
  weir bench update                                      one minute, 8 threads, each commit synced
  weir bench update --disk 2000iops,32MiB --seconds 120  on a slow disk: watch the age stay put
  weir bench update --threads 2:20s,32:20s,2:20s         the load changes, the rate must not wave
  weir bench read --durability lazy --json read.json     and keep the figures
  weir bench update --report update.html                 and charts of them
  weir bench update --http 9600                          and watch them in a browser

Sizes: 65536, 64KiB, 64MiB, 2GiB. The table is kept in --dir and used again by the next run.";

const TPCC_EXAMPLES: &str = "\
Examples:
  weir bench tpcc --threads 32                      32 terminals, each waits for its own commit
  weir bench tpcc --threads 2 --pipeline            two threads that go on while commits are synced
  weir bench tpcc --disk 2000iops,32MiB             on a slow disk
  weir bench tpcc --check-only                      is it consistent? (after kill -9, for example)
  weir bench tpcc --mysql /run/mysqld/mysqld.sock --engine InnoDB   the same through SQL

A thread plays all terminals in turn, without think time; --terminals is another word for --threads.
The mix is that of the specification's deck: 43.5 % New-Order and Payment, 4.3 % each of the others.
The database is kept in --dir and used again by the next run.";

#[derive(ClapArgs)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Rows in the table at the start
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = parse_count)]
    pub(crate) rows: u64,
}

#[derive(ClapArgs)]
pub(crate) struct Tpcc {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Warehouses: about 80 MiB each
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_count)]
    pub(crate) warehouses: u64,
    /// Go on while commits are synced; a transaction counts when its own is
    #[arg(long)]
    pub(crate) pipeline: bool,
    /// Begin at once with a database that is there, to see the first seconds of a restart: no
    /// warm-up, nothing is read before
    #[arg(long, conflicts_with_all = ["fresh", "warmup"])]
    pub(crate) restarted: bool,
    /// What transactions see of each other: read-committed, repeatable-read, snapshot or
    /// serializable
    #[arg(long, value_name = "LEVEL", default_value = "repeatable-read")]
    pub(crate) isolation: Isolation,
    /// Run on a server that speaks MySQL's protocol: mysql://user:password@host/database, or its
    /// socket. Its commits are as durable as it is configured
    #[arg(long, value_name = "SERVER")]
    pub(crate) mysql: Option<String>,
    /// The storage engine of the tables on that server
    #[arg(long, value_name = "NAME", default_value = "InnoDB", requires = "mysql")]
    pub(crate) engine: String,
    /// What the random numbers begin with
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Run nothing: check the twelve conditions of a database that is there, and that the orders
    /// of an --ack-file are
    #[arg(long)]
    pub(crate) check_only: bool,
}

const SIZES_EXAMPLES: &str = "\
Examples:
  weir bench sizes                              64 bytes to 1 MiB in steps: a minute
  weir bench sizes --value 900..8KiB            the steps in between
  weir bench sizes --value 3000,5000 --bytes 1GiB --pool 256MiB   more than memory holds

One thread, on a database of its own for each size, which is removed again.";

#[derive(ClapArgs)]
pub(crate) struct RowSizes {
    /// Bytes of a value: from..to in steps, or a list
    #[arg(long, value_name = "SIZES", default_value = "64..1MiB")]
    pub(crate) value: Sizes,
    /// About so many bytes of values for each size
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    pub(crate) bytes: u64,
    /// How long reads and updates are measured, each
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Where the databases go
    #[arg(long, value_name = "DIR", default_value = "./weir-data")]
    pub(crate) dir: PathBuf,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    pub(crate) pool: u64,
    /// Bytes of a page (4KiB, 8KiB or 16KiB)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) page_size: Option<u64>,
    /// When a commit counts as done: synced, written or lazy
    #[arg(long, value_name = "WHEN", default_value = "lazy")]
    pub(crate) durability: Durability,
}

/// What all workloads take.
#[derive(ClapArgs)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The database; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "./weir-data")]
    pub(crate) dir: PathBuf,
    /// Threads, or steps of threads:seconds such as 2:20s,32:20s,2:20s
    #[arg(long, alias = "terminals", value_name = "N", default_value = "8")]
    pub(crate) threads: String,
    /// How long to measure [default: 60, or what the steps say]
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<u64>,
    /// Seconds before the figures start [default: until the log has wrapped twice]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) warmup: Option<u64>,
    /// When a commit counts as done: synced, written or lazy
    #[arg(long, value_name = "WHEN", default_value = "synced")]
    pub(crate) durability: Durability,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    pub(crate) pool: u64,
    /// Capacity of the log
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    pub(crate) log: u64,
    /// Keeps opening after a crash below so many seconds, with more page writes; 0: the log decides
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) recovery_seconds: f64,
    /// Bytes of a page (4KiB, 8KiB or 16KiB), chosen when the database is made
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) page_size: Option<u64>,
    /// Imitate a disk: 2000iops,32MiB or a name (an unknown one lists them) [default: the real one]
    #[arg(long, value_name = "SPEC")]
    pub(crate) disk: Option<String>,
    /// Keep pages in-place, or in segments, packed, where less is written (log); chosen when the
    /// database is made [default: in-place]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<StoreKind>,
    /// Guard against torn pages: on, detect-only or off [default: as the store decides]
    #[arg(long, value_name = "MODE")]
    pub(crate) doublewrite: Option<DoubleWriteMode>,
    /// Files of the doublewrite area, 1 to 64
    #[arg(long, value_name = "N")]
    pub(crate) doublewrite_files: Option<usize>,
    /// Pages per doublewrite batch, 1 to 336
    #[arg(long, value_name = "N")]
    pub(crate) doublewrite_pages: Option<usize>,
    /// Drop what this bench has loaded before, and load it anew
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Write all figures and series to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report with charts to this file: HTML that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Add the run's figure to this set of them, made if it is not there: docs/benchmarks/NAME.json
    #[arg(long, value_name = "FILE", requires = "commit")]
    pub(crate) figure: Option<PathBuf>,
    /// The commit that is measured, for --figure
    #[arg(long, value_name = "NAME", requires = "figure")]
    pub(crate) commit: Option<String>,
    /// What else the machine does meanwhile, for --figure
    #[arg(long, value_name = "TEXT", requires = "figure", default_value = "nothing")]
    pub(crate) beside: String,
    /// Replace the --json and --report files if they are there
    #[arg(long)]
    pub(crate) force: bool,
    /// Serve the charts as they move, and /metrics for Prometheus: 9600, :9600 or 127.0.0.1:9600
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Let other machines look, too (there is no password)
    #[arg(long, requires = "http")]
    pub(crate) http_public: bool,
    /// Print a line a second on a terminal, too, as into a file
    #[arg(long)]
    pub(crate) plain: bool,
    /// Note each acknowledged change (of TPC-C: each order) in this file, for tests that kill the
    /// process
    #[arg(long, value_name = "FILE")]
    pub(crate) ack_file: Option<PathBuf>,
    /// Do not measure the disk's own rate of synced writes before and after
    #[arg(long)]
    pub(crate) no_raw: bool,
}

#[derive(ClapArgs)]
pub(crate) struct Verify {
    /// The database
    #[arg(long, value_name = "DIR", default_value = "./weir-data")]
    pub(crate) dir: PathBuf,
    /// What a run's --ack-file noted
    #[arg(long, value_name = "FILE")]
    pub(crate) ack_file: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct Compare {
    /// Where it ran
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Write the report with charts to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write all figures and seconds to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write TPC-C's curves on the limited disk to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// Replace the files if they are there
    #[arg(long)]
    pub(crate) force: bool,
}

const DUMP_EXAMPLES: &str = "\
Nothing is recovered, repaired or written: a page is printed as it lies in the file, also where the
log holds newer changes of it. Exit code 1: something is damaged, and named.

Examples:
  weir dump page ./db              a line for each page
  weir dump page ./db 7            every row of page 7
  weir dump log ./db --page 7      what the log from the checkpoint on says of it
  weir dump control ./db
  weir dump catalog ./db           names, tree numbers, root pages";

#[derive(Subcommand)]
pub(crate) enum Dump {
    /// Pages of the data file: a line each, or one in full
    #[command(after_help = DUMP_EXAMPLES)]
    Page(DumpPage),
    /// The log: its files block by block, and its groups from the checkpoint on
    #[command(after_help = DUMP_EXAMPLES)]
    Log(DumpLog),
    /// Both copies of the control file
    #[command(after_help = DUMP_EXAMPLES)]
    Control(DumpDir),
    /// The names of trees and where their roots lie, from the pages alone
    #[command(after_help = DUMP_EXAMPLES)]
    Catalog(DumpDir),
}

#[derive(ClapArgs)]
pub(crate) struct DumpDir {
    #[command(flatten)]
    pub(crate) needless: Needless,
    /// The database
    #[arg(value_name = "DIR")]
    pub(crate) path: PathBuf,
    /// Bytes of a page, where the control file is lost [default: what fits the data file]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) page_size: Option<u64>,
}

#[derive(ClapArgs)]
pub(crate) struct DumpPage {
    #[command(flatten)]
    pub(crate) dir: DumpDir,
    /// In full: this page
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<u32>,
    /// And so many from there on
    #[arg(long, value_name = "N", default_value_t = 1, requires = "page")]
    pub(crate) count: u32,
}

#[derive(ClapArgs)]
pub(crate) struct DumpLog {
    #[command(flatten)]
    pub(crate) dir: DumpDir,
    /// Begin at this position, the start of a group [default: the checkpoint]
    #[arg(long, value_name = "LSN")]
    pub(crate) from: Option<u64>,
    /// Only groups that change this page
    #[arg(long, value_name = "PAGE")]
    pub(crate) page: Option<u32>,
    /// Only groups of this transaction
    #[arg(long, value_name = "N")]
    pub(crate) transaction: Option<u64>,
    /// At most so many groups
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = parse_count)]
    pub(crate) limit: u64,
}

#[derive(ClapArgs)]
#[command(
    after_help = "A database that another process has open cannot be checked from outside: what is \
                  said then names the process, and what to ask of it.\n\n\
                  Example:\n  weir check ./weir-data && echo sound"
)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) forced: Forced,
}

#[derive(ClapArgs)]
pub(crate) struct Advise {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) forced: Forced,
}

#[derive(ClapArgs)]
#[command(
    after_help = "A database that was not closed is recovered first, for this command alone: \
                  its files stay as they are."
)]
pub(crate) struct Stat {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) forced: Forced,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Rows are read and written anew, as one snapshot sees them; the database itself \
                  is not changed. Prepared transactions are not copied.\n\n\
                  Example:\n  weir copy ./weir-data ./copy"
)]
pub(crate) struct Copy {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// Where the copy goes: an empty directory, or none yet
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// Keep the copy's pages in-place, or in segments (log) [default: as the database does]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<StoreKind>,
    /// Encrypt the copy with the key in this file [default: as the database is]
    #[arg(long, value_name = "FILE")]
    pub(crate) to_key_file: Option<PathBuf>,
    /// Do not encrypt the copy, though the database is encrypted
    #[arg(long, conflicts_with = "to_key_file")]
    pub(crate) decrypt: bool,
}

const SALVAGE_EXAMPLES: &str = "\
Every page is looked at; the log is applied as far as it can be read; what had not been committed is
rolled back. The damaged database is not changed. What is missing is printed: ranges of keys, pages
with file and byte. Rows that may be older than they were last go to trees of their own. A tree
whose name is lost becomes tree-NUMBER; the others ask for the codec that they had. Exit code 1:
something is missing, or may be older.

Example:
  weir salvage ./weir-data ./saved";

#[derive(ClapArgs)]
#[command(after_help = SALVAGE_EXAMPLES)]
pub(crate) struct Salvage {
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The damaged database
    #[arg(value_name = "DIR")]
    pub(crate) path: PathBuf,
    /// Where the new one goes: an empty directory, or none yet
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
    /// Bytes of a page [default: as the files say, or the pages look]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) page_size: Option<u64>,
    /// Keep the new database's pages in-place, or in segments (log) [default: as the damaged one]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<StoreKind>,
    /// Memory for the new database's pages, and for sorting
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    pub(crate) pool: u64,
}

#[derive(ClapArgs)]
pub(crate) struct Trees {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) forced: Forced,
}

#[derive(ClapArgs)]
pub(crate) struct Dir {
    /// The database
    #[arg(value_name = "DIR")]
    pub(crate) path: PathBuf,
    /// Memory for pages
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    pub(crate) pool: u64,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Keys are text, or bytes as 0x00ff.\n\nExample:\n  weir get ./db people ada"
)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) forced: Forced,
    /// The tree
    pub(crate) tree: String,
    /// The key
    #[arg(value_parser = parse_bytes)]
    pub(crate) key: Bytes,
}

const PUT_EXAMPLES: &str = "\
Keys and values are text, or bytes as 0x00ff.

Example:
  weir put ./db people ada countess";

#[derive(ClapArgs)]
#[command(after_help = PUT_EXAMPLES)]
pub(crate) struct Put {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The tree
    pub(crate) tree: String,
    /// The key
    #[arg(value_parser = parse_bytes)]
    pub(crate) key: Bytes,
    /// The value
    #[arg(value_parser = parse_bytes)]
    pub(crate) value: Bytes,
}

#[derive(ClapArgs)]
#[command(after_help = "Example:\n  weir delete ./db people ada")]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) not_forced: NotForced,
    /// The tree
    pub(crate) tree: String,
    /// The key
    #[arg(value_parser = parse_bytes)]
    pub(crate) key: Bytes,
}

#[derive(ClapArgs)]
#[command(after_help = "Example:\n  weir scan ./db people --from a --to b --limit 10")]
pub(crate) struct Scan {
    #[command(flatten)]
    pub(crate) dir: Dir,
    #[command(flatten)]
    pub(crate) forced: Forced,
    /// The tree
    pub(crate) tree: String,
    /// Begin at this key (with --reverse: below this key)
    #[arg(long, value_name = "KEY", value_parser = parse_bytes)]
    pub(crate) from: Option<Bytes>,
    /// End before this key (with --reverse: at this key)
    #[arg(long, value_name = "KEY", value_parser = parse_bytes)]
    pub(crate) to: Option<Bytes>,
    /// From the last key to the first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most so many entries
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) limit: Option<u64>,
}

/// A key or value. (A plain `Vec<u8>` would be a repeated argument to clap.)
pub(crate) type Bytes = std::sync::Arc<[u8]>;

/// `1000000`, `1_000_000`, `1M`, `250k`: a number of things, with decimal units.
fn parse_count(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no number of things; write 1000000, 1_000_000 or 1M");
    let plain = text.trim().replace('_', "");
    let (digits, unit) = match plain.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1_000),
        Some((at, 'm' | 'M')) => (&plain[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&plain[..at], 1_000_000_000),
        _ => (plain.as_str(), 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn counts() {
        for (text, count) in [("1", 1), ("1_000", 1000), ("250k", 250_000), ("2M", 2_000_000)] {
            assert_eq!(parse_count(text), Ok(count));
        }
        for text in ["", "k", "-1", "1.5M", "1MM", "99999999999999G"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }
}
