//! `weir bench`.
use super::tpcc::tpcc;
use crate::args::{Bench, Common, Compare, RowSizes, Run, Verify};
use crate::exit::{EXIT_CANNOT, EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_OK};
use crate::opening::{open_existing_at, say_recovery, show_recovery};
use crate::text::Reasons;
use anyhow::{Context, Result, anyhow, ensure};
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use weir::Config;
use weir_bench::compare::{Outputs, compare as compare_cells};
use weir_bench::http::Live;
use weir_bench::page::Page;
use weir_bench::{
    AckFile, Acknowledged, DoubleWrite, Engine, Feed, Lab, MeasuredRun, Opened, Options, Outcome,
    Phases, Raw, Report, RunReport, SizesOptions, WorkloadKind, add_to_set, figure_of, machine,
};
use weir_metrics::endpoint::parse_address;

/// Runs a workload, or verifies what one left.
pub(crate) fn bench(command: Bench) -> Result<u8> {
    match command {
        Bench::Update(args) => run(&args, WorkloadKind::Update),
        Bench::Insert(args) => run(&args, WorkloadKind::Insert),
        Bench::Read(args) => run(&args, WorkloadKind::Read),
        Bench::Scan(args) => run(&args, WorkloadKind::Scan),
        Bench::Tpcc(args) => tpcc(&args),
        Bench::Sizes(args) => row_sizes(&args),
        Bench::Verify(args) => verify(&args),
        Bench::Compare(args) => compare(&args),
    }
}

fn row_sizes(args: &RowSizes) -> Result<u8> {
    let options = SizesOptions {
        dir: args.dir.clone(),
        sizes: args.value.clone(),
        data_bytes: args.bytes,
        seconds: args.seconds,
        pool_bytes: args.pool,
        page_size: usize::try_from(args.page_size.unwrap_or(0)).context("--page-size")?,
        durability: args.durability,
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    catch_interrupts(interrupt.clone())?;
    let figures = weir_bench::sizes(&options, &interrupt, &mut std::io::stdout())?;
    Ok(if figures.is_some() { EXIT_OK } else { EXIT_INTERRUPTED })
}

fn compare(args: &Compare) -> Result<u8> {
    let outputs = Outputs {
        report: args.report.clone(),
        json: args.json.clone(),
        picture: args.picture.clone(),
        replace: args.force,
    };
    let (text, well) = compare_cells(&args.dir, &outputs, &command_line())?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(if well { EXIT_OK } else { EXIT_FINDINGS })
}

/// The options that all workloads have; of a table with so many rows.
pub(crate) fn options(args: &Common, workload: WorkloadKind, rows: u64) -> Result<Options> {
    let page_size = args.page_size.unwrap_or(0);
    Ok(Options {
        workload,
        dir: args.dir.clone(),
        rows,
        phases: Phases::parse(&args.threads, args.seconds)?,
        durability: args.durability,
        pool_bytes: args.pool,
        log_bytes: args.log,
        recovery_seconds: args.recovery_seconds,
        page_size: usize::try_from(page_size).context("--page-size")?,
        disk: args.disk.clone(),
        warmup_seconds: args.warmup,
        fresh: args.fresh,
        store: args.store,
        encryption: crate::keys::given(),
        doublewrite: DoubleWrite {
            mode: args.doublewrite,
            files: args.doublewrite_files,
            pages: args.doublewrite_pages,
        },
        ack_file: args.ack_file.clone(),
        raw: !args.no_raw,
        lab: Lab::default(),
        feed: Feed::default(),
        compact: !args.plain && std::io::stdout().is_terminal(),
    })
}

fn run(args: &Run, workload: WorkloadKind) -> Result<u8> {
    let options = options(&args.common, workload, args.rows)?;
    let what = format!("{} rows", options.rows);
    measure(&args.common, &options, &what, |opened, raw, interrupt, out| {
        let volume = opened.volume.describe();
        let clock = opened.clock.as_ref();
        weir_bench::run(&opened.engine, &options, &volume, raw, clock, interrupt, out)
    })
}

/// Opens the database, lets `run` do its work, closes, writes the report.
pub(crate) fn measure<R: RunReport>(
    args: &Common,
    options: &Options,
    what: &str,
    run: impl FnOnce(&Opened, Option<Raw<'_>>, &AtomicBool, &mut dyn Write) -> Result<Outcome<R>>,
) -> Result<u8> {
    let interrupt = begin(args)?;
    let address = args.http.as_deref().map(|text| parse_address(text, args.http_public));
    let address = address.transpose()?;
    let live = address.map(|address| serve(address, args, options, what)).transpose()?;
    let opened = weir_bench::open(options, Some(show_recovery()))?;
    say_recovery(opened.engine.db());
    let mut out = std::io::stdout();
    writeln!(out, "{}", describe(options, what, &opened.volume.describe()))?;
    if let Some(live) = &live {
        writeln!(out, "live        http://{}/ and http://{0}/metrics", live.address())?;
    }
    let raw = || opened.raw_sync_rate();
    let outcome = run(&opened, options.raw.then_some(&raw as Raw<'_>), &interrupt, &mut out);
    options.feed.end();
    let closed = opened.engine.close();
    end(args, &options.feed, outcome?, closed, &mut out)
}

/// What must be known before a long run: that its files can be written, and that Ctrl-C ends it.
pub(crate) fn begin(args: &Common) -> Result<Arc<AtomicBool>> {
    for path in args.json.iter().chain(&args.report) {
        report_can_be_written(path, args.force)?;
    }
    if let Some(path) = &args.ack_file {
        must_have_place(path, "the ack file")?;
        AckFile::look(path)?;
    }
    let interrupt = Arc::new(AtomicBool::new(false));
    catch_interrupts(interrupt.clone())?;
    Ok(interrupt)
}

/// Writes the report of a run whose store has been closed, and says how the process exits.
pub(crate) fn end<R: RunReport>(
    args: &Common,
    feed: &Feed,
    outcome: Outcome<R>,
    closed: Result<()>,
    out: &mut dyn Write,
) -> Result<u8> {
    let Outcome::Done(report) = outcome else {
        closed?;
        // No thread may be reading any more.
        let _ = writeln!(out, "interrupted while loading; the part loaded is dropped again");
        return Ok(EXIT_INTERRUPTED);
    };
    if let Some(path) = &args.json {
        weir_bench::write_json(path, report.as_ref(), args.force)?;
    }
    if let (Some(path), Some(commit)) = (&args.figure, &args.commit) {
        let (commit, command, beside) = (commit.clone(), command_line(), args.beside.clone());
        let (run, report) = (MeasuredRun { commit, command, beside }, report.common());
        add_to_set(path, &machine(report), &run, &[figure_of(report)?])?;
        let _ = writeln!(out, "figure      {}", path.display());
    }
    if let Some(path) = &args.report {
        Page::of_run(report.common(), feed, &command_line()).write(path, args.force)?;
        let _ = writeln!(out, "report      {}", path.display());
    }
    if let Err(error) = closed {
        eprintln!("weir: {}", Reasons(&error));
        return Ok(EXIT_CANNOT);
    }
    Ok(exit_code(report.common()))
}

/// The live page of a run.
fn serve(address: SocketAddr, args: &Common, options: &Options, what: &str) -> Result<Live> {
    let disk = options.disk.as_deref().unwrap_or("the real disk's speed");
    let page = Page {
        title: format!("weir bench {}", options.workload.name()),
        subtitle: format!("{what}, {} commits, on {disk}", options.durability.name()),
        command: command_line(),
        about: vec![
            ("pool".to_owned(), weir::format_size(options.pool_bytes)),
            ("log".to_owned(), weir::format_size(options.log_bytes)),
            ("disk".to_owned(), disk.to_owned()),
        ],
        ..Page::default()
    };
    Live::start(address, args.http_public, page, options.feed.clone())
        .map_err(|error| anyhow!("{}; choose another address for --http", Reasons(&error)))
}

/// The command as it was given, to be given again.
pub(crate) fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    let quoted = |word: String| match word.chars().all(plain) && !word.is_empty() {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args().skip(1).map(quoted);
    std::iter::once("weir".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn exit_code(report: &Report) -> u8 {
    match (report.verified, report.interrupted) {
        (false, _) => EXIT_FINDINGS,
        (true, true) => EXIT_INTERRUPTED,
        (true, false) => EXIT_OK,
    }
}

/// Found out before a long run rather than after it. (CLI-2)
fn report_can_be_written(path: &Path, replace: bool) -> Result<()> {
    ensure!(!path.is_dir(), "{} is a directory; the report needs a file", path.display());
    ensure!(replace || !path.exists(), "{} exists; --force replaces it", path.display());
    must_have_place(path, "the report")
}

fn must_have_place(path: &Path, what: &str) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    ensure!(parent.is_dir(), "there is no directory {} for {what}", parent.display());
    Ok(())
}

/// The first Ctrl-C ends the run cleanly, the second at once. (CLI-4)
pub(crate) fn catch_interrupts(interrupt: Arc<AtomicBool>) -> Result<()> {
    let handler = move || {
        if interrupt.swap(true, Relaxed) {
            // No thread may be reading any more.
            let _ = writeln!(std::io::stderr(), "left at once");
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
    };
    ctrlc::set_handler(handler).context("cannot catch Ctrl-C")
}

fn describe(options: &Options, what: &str, volume: &str) -> String {
    format!(
        "bench {}: {what}, {} threads, {} commits, pool {}, log {}, in {} ({volume})",
        options.workload.name(),
        options.phases.threads_max(),
        options.durability.name(),
        weir::format_size(options.pool_bytes),
        weir::format_size(options.log_bytes),
        options.dir.display(),
    )
}

fn verify(args: &Verify) -> Result<u8> {
    let acks = args.ack_file.as_deref().map(Acknowledged::read).transpose()?;
    let engine = Engine::new(open_existing_at(&args.dir, Config::default().pool_bytes)?);
    let verdict = weir_bench::verify_trees(&engine, acks.as_ref())?;
    engine.close()?;
    let (rows, acknowledged) = (verdict.rows, verdict.acknowledged);
    if verdict.verified() {
        println!(
            "verified: {rows} rows read back, {acknowledged} of them acknowledged in the ack file"
        );
        return Ok(EXIT_OK);
    }
    println!("NOT VERIFIED: {} problems in {rows} rows", verdict.problems);
    for example in &verdict.examples {
        println!("  {example}");
    }
    Ok(EXIT_FINDINGS)
}
