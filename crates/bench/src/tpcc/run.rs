//! A run of TPC-C: load or find the population, drive the terminals, check, report.
use super::backend::{Backend, Loaded};
use super::consistency::{Consistency, Totals, check, totals};
use super::deck::Kind;
use super::population::Population;
use super::report::{Ran, TpccReport};
use super::rows::Order;
use super::scale::Scale;
use super::terminals::{Manner, Tally, Terminals, order_number};
use crate::ack::{AckFile, Acknowledged};
use crate::driver::drive;
use crate::durability::Durability;
use crate::line::{micros, thousands};
use crate::load::Surroundings;
use crate::options::Options;
use crate::report::{Report, Setup};
use crate::run::{Outcome, Raw, summary};
use crate::target::Watched;
use anyhow::{Context, Result, bail, ensure};
use std::collections::HashSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_base::{Clock, format_size};

/// What a run of TPC-C is asked to do.
#[derive(Clone, Debug)]
pub struct TpccOptions {
    /// As of every workload; its `rows` are for the report only.
    pub run: Options,
    /// How large the database is when it is loaded.
    pub scale: Scale,
    /// Whether threads go on while their commits are synced: a transaction counts when its log is.
    pub pipeline: bool,
    /// Begin as soon as the database is open: nothing is read before, so what the first seconds
    /// show is a restart. That nothing else than what was acknowledged is there is not asked then.
    pub restarted: bool,
    /// What the random numbers begin with.
    pub seed: u64,
}

/// Between two lines of progress.
const PROGRESS_MICROS: u64 = 1_000_000;

/// Loads or finds the population, runs the terminals, checks the twelve conditions and that what
/// was acknowledged is there, prints the summary. The other arguments are those of
/// [`crate::run()`]; `target` is what the backend runs on.
///
/// # Errors
/// When the population cannot be loaded or nothing can be printed. Errors of the database during
/// the run are in the report, with `verified` false.
#[allow(clippy::too_many_arguments)] // One more than `crate::run`: the backend beside its store.
pub fn run<B: Backend, T: Watched>(
    backend: &B,
    target: &T,
    options: &TpccOptions,
    volume: &str,
    raw: Option<Raw<'_>>,
    clock: &dyn Clock,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Outcome<TpccReport>> {
    let run = &options.run;
    ensure!(
        !options.pipeline || run.durability != Durability::Written,
        "pipelined commits can be synced or lazy, not written"
    );
    let epoch_seconds = seconds_since_1970().saturating_sub(clock.now_micros() / 1_000_000);
    let mut around = Surroundings { clock, interrupt, out };
    target.hurry(true);
    let Some((loaded, reused)) = prepare(backend, options, epoch_seconds, &mut around)? else {
        return Ok(Outcome::InterruptedWhileLoading);
    };
    let before = if reused && options.restarted {
        None
    } else {
        if reused {
            warm(backend, target, run.pool_bytes, &mut around)?;
        }
        Some(totals(backend).context("reading what was ordered and paid before the run")?)
    };
    target.hurry(false);
    let raw_before = raw.map(|raw| raw()).transpose()?;
    let acks = run.ack_file.as_deref().map(AckFile::open).transpose()?;
    let manner = Manner { pipeline: options.pipeline, epoch_seconds, seed: options.seed, acks };
    let terminals = Terminals::new(backend, loaded, manner, run.phases.threads_max());
    let driven = std::thread::scope(|scope| {
        if options.pipeline {
            scope.spawn(|| terminals.keep_syncing(clock));
        }
        let driven = drive(target, &terminals, run, clock, interrupt, out);
        terminals.end();
        driven
    })?;
    let interrupted = if driven.interrupted { "interrupted; " } else { "" };
    // Here and below: a reader that is gone must not keep the run from being checked and closed.
    let _ = writeln!(out, "{interrupted}checking the twelve consistency conditions");
    let raw_after = raw.filter(|_| !driven.interrupted).and_then(|raw| raw().ok());
    // What follows is not measured: neither reading everything, nor closing.
    target.hurry(true);

    let sections = terminals.into_sections();
    let setup = Setup { store: target.kept_how(), ..Setup::of(run, volume, reused, false) };
    let report = Report::of(&driven, &options.run, setup, raw_before, raw_after);
    let measured = if report.warmup_only { ..1 } else { ..1 + driven.phases.len() };
    let skipped = usize::from(!report.warmup_only);
    let tally = sum(&sections[measured][skipped..]);
    let ran = Ran {
        warehouses: loaded.scale.warehouses,
        pipeline: options.pipeline,
        restarted: reused && options.restarted,
        isolation: backend.isolation(),
    };
    let mut report = TpccReport::new(report, &tally, ran);
    report.report.durability = run.durability;
    let acknowledged = sum(&sections).totals;
    judge(&mut report, check(backend, loaded.scale), before, acknowledged);
    let _ = print(&report, out);
    Ok(Outcome::Done(Box::new(report)))
}

/// Checks the twelve conditions of a database that is there, and with `acks` that every order
/// acknowledged is, too; prints what it finds, and says whether all is well. `None` when there is
/// no database that was loaded whole.
///
/// # Errors
/// When the database cannot be read.
pub fn check_only<B: Backend>(
    backend: &B,
    acks: Option<&Acknowledged>,
    out: &mut dyn Write,
) -> Result<Option<bool>> {
    let Some(loaded) = backend.loaded()? else { return Ok(None) };
    let found = check(backend, loaded.scale)?;
    print_conditions(&found, out)?;
    let mut lost = 0;
    if let Some(acks) = acks {
        let mut missing: HashSet<u64> = acks.orders.keys().copied().collect();
        backend.visit(&mut |row: &Order| {
            missing.remove(&order_number(row.w, row.d, row.o));
            Ok(())
        })?;
        lost = missing.len();
        let (all, lost) = (thousands(acks.orders.len() as u64), thousands(lost as u64));
        writeln!(out, "acknowledged  {all} orders, {lost} of them missing")?;
    }
    Ok(Some(found.holds() && lost == 0))
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

fn sum(sections: &[Tally]) -> Tally {
    let mut all = Tally::new();
    for section in sections {
        all.add(section);
    }
    all
}

/// The population that is there, or a new one; `None` when interrupted.
fn prepare<B: Backend>(
    backend: &B,
    options: &TpccOptions,
    now_seconds: u64,
    around: &mut Surroundings<'_>,
) -> Result<Option<(Loaded, bool)>> {
    if let Some(loaded) = backend.loaded()?.filter(|_| !options.run.fresh) {
        ensure!(
            loaded.scale == options.scale,
            "the database has {0} warehouses, not {1}; use --warehouses {0}, or --fresh to drop \
             them and load new ones",
            loaded.scale.warehouses,
            options.scale.warehouses
        );
        let warehouses = loaded.scale.warehouses;
        writeln!(
            around.out,
            "using the {warehouses} warehouses that are there (--fresh loads new ones)"
        )?;
        return Ok(Some((loaded, true)));
    }
    backend.drop_all().context("removing what was there")?;
    let population = Population::new(options.scale, options.seed, now_seconds as u32);
    let Surroundings { clock, interrupt, out } = around;
    let start = clock.now_micros();
    let (mut reported_at, mut rows) = (start, 0);
    backend.load(&population, &mut |done| {
        rows = done;
        let now = clock.now_micros();
        if now.saturating_sub(reported_at) >= PROGRESS_MICROS {
            reported_at = now;
            // A reader that went away is noticed when the run itself prints.
            let _ = writeln!(out, "loading   {} rows", thousands(done));
        }
        !interrupt.load(Relaxed)
    })?;
    if interrupt.load(Relaxed) {
        backend.drop_all().context("removing the part loaded")?;
        return Ok(None);
    }
    let seconds = (clock.now_micros() - start) as f64 / 1e6;
    let warehouses = options.scale.warehouses;
    writeln!(out, "loaded {warehouses} warehouses, {} rows, in {seconds:.1} s", thousands(rows))?;
    match backend.loaded()? {
        Some(loaded) => Ok(Some((loaded, false))),
        None => bail!("the database was loaded, but does not know of it"),
    }
}

/// Reads what the pool takes of a database that is there, so that a run finds it as a run that has
/// just loaded does. Otherwise a slow disk would be busy with reading for minutes, and the rate
/// would tell of that.
fn warm<B: Backend, T: Watched>(
    backend: &B,
    target: &T,
    pool_bytes: u64,
    around: &mut Surroundings<'_>,
) -> Result<()> {
    let Surroundings { clock, interrupt, out } = around;
    let (before, start) = (target.counters().device_bytes_read, clock.now_micros());
    let mut reported_at = start;
    let mut read = 0;
    backend
        .warm(&mut |rows| {
            read = target.counters().device_bytes_read.saturating_sub(before);
            let now = clock.now_micros();
            if now.saturating_sub(reported_at) >= PROGRESS_MICROS {
                reported_at = now;
                let _ = writeln!(out, "warming   {} rows, {}", thousands(rows), format_size(read));
            }
            read < pool_bytes && !interrupt.load(Relaxed)
        })
        .context("reading the tables into memory")?;
    if read > 0 {
        let seconds = (clock.now_micros() - start) as f64 / 1e6;
        let _ = writeln!(out, "read {} into memory in {seconds:.1} s", format_size(read));
    }
    Ok(())
}

/// What was acknowledged must be there, and nothing else: a thread that failed may have committed
/// one transaction that was not acknowledged.
fn judge(
    report: &mut TpccReport,
    found: Result<Consistency>,
    before: Option<Totals>,
    acknowledged: Totals,
) {
    let failed = report.report.error.is_some();
    match found {
        Ok(mut found) => {
            let expected = (acknowledged.orders, acknowledged.paid);
            // Of a restart it is not known how many there were: only what is there now is checked.
            let (orders, paid) = before.map_or(expected, |before| {
                let orders = found.totals.orders - before.orders.min(found.totals.orders);
                (orders, found.totals.paid - before.paid)
            });
            let all_there = orders >= expected.0 && paid >= expected.1;
            let kept = all_there && (failed || (orders, paid) == expected);
            if !kept {
                let (orders, cents) = expected;
                let what = format!(
                    "{orders} orders and payments of {cents} cents were acknowledged; there are \
                     {orders} and {paid} more than before"
                );
                found.problems.push(what);
            }
            report.report.verified = found.holds() && kept && !failed;
            report.report.verified_rows = found.rows;
            report.report.problems.clone_from(&found.problems);
            report.consistency = Some(found);
        }
        Err(error) => {
            let after = if failed { ", after the run had failed" } else { "" };
            let what = format!("cannot read everything back{after}: {error:#}");
            report.report.problems.push(what);
        }
    }
}

fn print(report: &TpccReport, out: &mut dyn Write) -> Result<()> {
    summary(&report.report, out)?;
    writeln!(
        out,
        "tpmC        {} New-Orders a minute, without think time; {} rolled back by their users",
        thousands(report.tpmc.round() as u64),
        thousands(report.rolled_back),
    )?;
    for kind in Kind::ALL {
        let Some(figures) = report.types.get(kind.name()) else { continue };
        let latency = &figures.latency_micros;
        writeln!(
            out,
            "{:<12} {:>11} ({:>4.1} %)  p50 {}, p99 {}, p99.9 {}, max {}",
            kind.name(),
            thousands(figures.count),
            figures.percent,
            micros(latency.p50),
            micros(latency.p99),
            micros(latency.p999),
            micros(latency.max)
        )?;
    }
    let retries: Vec<String> = report
        .retries
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(why, count)| format!("{} {why}", thousands(*count)))
        .collect();
    let retries = if retries.is_empty() { "none".to_owned() } else { retries.join(", ") };
    writeln!(out, "retries     {retries}")?;
    if let Some(found) = &report.consistency {
        print_conditions(found, out)?;
    }
    if report.report.verified && report.restarted {
        writeln!(out, "verified    as far as the conditions go")?;
    } else if report.report.verified {
        writeln!(out, "verified    all that was acknowledged is there, and nothing else")?;
    } else {
        writeln!(out, "NOT VERIFIED")?;
        for problem in &report.report.problems {
            writeln!(out, "  {problem}")?;
        }
    }
    Ok(())
}

fn print_conditions(found: &Consistency, out: &mut dyn Write) -> Result<()> {
    let rows = thousands(found.rows);
    if found.holds() {
        writeln!(out, "consistent  conditions 3.3.2.1 to 3.3.2.12 hold ({rows} rows read)")?;
        return Ok(());
    }
    let broken: Vec<String> =
        found.conditions().filter(|(_, holds)| !holds).map(|(name, _)| name).collect();
    writeln!(out, "INCONSISTENT  violated: {} ({rows} rows read)", broken.join(", "))?;
    for problem in &found.problems {
        writeln!(out, "  {problem}")?;
    }
    Ok(())
}
