//! Opens a database that must be there, and tells what opening had to do.
use crate::args::Dir;
use crate::forced::Forced;
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir::{Config, Create, Db, Phase, RecoveryReport, format_size};
use weir_bench::OnRecovery;

/// Opens the database of a command that looks at one: nothing of it is changed.
pub(crate) fn open_to_read(dir: &Dir) -> Result<Db> {
    must_exist(&dir.path)?;
    let config = Config { read_only: true, ..config(dir.pool, Create::Never) };
    open_with(&dir.path, config)
}

/// As [`open_to_read`], of a command that reads what can be read where that is asked for;
/// [`Forced::close`] closes it.
pub(crate) fn open_forced(dir: &Dir, forced: &Forced) -> Result<Db> {
    must_exist(&dir.path)?;
    let step = forced.step();
    let config =
        Config { read_only: true, force_recovery: step, ..config(dir.pool, Create::Never) };
    let opened = match step {
        0 => open_with(&dir.path, config),
        _ => opened(&dir.path, Db::open(&dir.path, config)),
    };
    let db = forced.explain(opened)?;
    forced.say_opened(&db);
    Ok(db)
}

/// Opens the database of a command that changes one.
pub(crate) fn open_existing(dir: &Dir) -> Result<Db> {
    open_existing_at(&dir.path, dir.pool)
}

/// As [`open_existing`], with so much memory for pages.
pub(crate) fn open_existing_at(path: &Path, pool_bytes: u64) -> Result<Db> {
    must_exist(path)?;
    open(path, pool_bytes, Create::Never)
}

/// Opens the database, or makes it.
pub(crate) fn open_or_create(dir: &Dir) -> Result<Db> {
    open(&dir.path, dir.pool, Create::IfMissing)
}

fn open(path: &Path, pool_bytes: u64, create: Create) -> Result<Db> {
    open_with(path, config(pool_bytes, create))
}

fn config(pool_bytes: u64, create: Create) -> Config {
    let recovery_progress = Some(show_recovery());
    let encryption = crate::keys::given();
    Config { pool_bytes, create, recovery_progress, encryption, ..Config::default() }
}

fn open_with(path: &Path, config: Config) -> Result<Db> {
    let read_only = config.read_only;
    let db = opened(path, Db::open(path, config))?;
    say_recovery(&db);
    if read_only && db.recovery_report().is_some() {
        eprintln!("(for this command alone: the files are as they were)");
    }
    Ok(db)
}

fn opened(path: &Path, opened: Result<Db, weir::Error>) -> Result<Db> {
    opened.with_context(|| format!("cannot open {}", path.display()))
}

/// Looking at a database must not make a directory.
pub(crate) fn must_exist(dir: &Path) -> Result<()> {
    ensure!(dir.exists(), "there is no directory {}", dir.display());
    ensure!(dir.is_dir(), "{} is a file, not a database's directory", dir.display());
    Ok(())
}

/// Whether opening failed because another process has the database open.
pub(crate) fn is_in_use(error: &anyhow::Error) -> bool {
    let mut io = error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>());
    io.any(|e| e.get_ref().is_some_and(|e| e.is::<weir::InUse>()))
}

/// Is set by Ctrl-C, from now on. Once for each process.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    ctrlc::set_handler(move || stopped.store(true, Ordering::Relaxed))
        .context("catching Ctrl-C")?;
    Ok(stop)
}

/// A bar on standard error; nothing where that is no terminal.
pub(crate) fn bar(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style).with_message(what)
}

/// Shows how far recovery is.
pub(crate) fn show_recovery() -> OnRecovery {
    let bar = bar("recovering");
    Arc::new(move |progress: &weir::Progress| {
        bar.set_message(match progress.phase {
            Phase::Scan => "recovering: reading the log",
            Phase::Redo => "recovering: changing pages, as the log is larger than memory",
            Phase::Undo => "recovering: unfinished transactions",
        });
        bar.set_length(progress.of);
        bar.set_position(progress.done);
        if progress.of > 0 && progress.done >= progress.of {
            bar.finish_and_clear();
        }
    })
}

/// Opening a database that was not closed changes it: that must not go unsaid. On standard error,
/// because standard output is the answer to the command.
pub(crate) fn say_recovery(db: &Db) {
    if let Some(report) = db.recovery_report() {
        eprintln!("recovered: {}", describe(&report));
    }
}

fn describe(report: &RecoveryReport) -> String {
    let mut text = format!(
        "{} of log read of {}, open after {:.2} s; {} pages get their redo as they are used",
        format_size(report.read_bytes),
        format_size(report.redo_bytes()),
        report.total_micros as f64 / 1e6,
        report.pending_pages,
    );
    let others = [
        (report.pages_repaired, "torn pages repaired"),
        (report.completed, "transactions completed"),
        (report.undone, "transactions rolled back"),
    ];
    for (number, what) in others.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str(&format!(", {number} {what}"));
    }
    text
}
