//! A run from the loaded table to the summary.
use crate::driver::{Driven, drive};
use crate::durability::Durability;
use crate::figures::Figures;
use crate::line::{micros, thousands};
use crate::load::{Surroundings, prepare};
use crate::options::{Options, WorkloadKind};
use crate::report::{Report, Setup};
use crate::target::Target;
use crate::verify::{Verdict, verify_run};
use anyhow::Result;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use weir_base::{Clock, format_size};

/// Measures the disk's own rate of synced 4 KiB writes, alone.
pub type Raw<'a> = &'a dyn Fn() -> Result<f64>;

/// How a run ended.
pub enum Outcome<R = Report> {
    /// Interrupted before there was anything to report.
    InterruptedWhileLoading,
    /// With a report (of an interrupted run, too).
    Done(Box<R>),
}

/// Loads or finds the table, runs the workload, verifies, prints the summary. `volume` says on what
/// it runs, `clock` began when it was opened; `interrupt` may be set from a signal handler and ends
/// the run early and cleanly.
///
/// # Errors
/// When the table cannot be prepared or nothing can be printed. Errors of the store during the run
/// are in the report, with `verified` false.
pub fn run<T: Target>(
    target: &T,
    options: &Options,
    volume: &str,
    raw: Option<Raw<'_>>,
    clock: &dyn Clock,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let mut around = Surroundings { clock, interrupt, out };
    target.hurry(true);
    let Some((shared, reused)) = prepare(target, options, &mut around)? else {
        return Ok(Outcome::InterruptedWhileLoading);
    };
    target.hurry(false);
    let before = raw.map(|raw| raw()).transpose()?;
    let driven = drive(target, &shared, options, clock, interrupt, out)?;
    if driven.interrupted {
        // Here and below: a reader that is gone must not keep the run from being verified and
        // closed.
        let _ = writeln!(out, "interrupted; verifying (Ctrl-C again leaves at once)");
    } else {
        let _ = writeln!(out, "verifying");
    }
    // A disk that fails now fails the verification, too: that is where it is reported.
    let after = raw.filter(|_| !driven.interrupted).and_then(|raw| raw().ok());
    // Reading everything back is no part of what is measured, nor is closing.
    target.hurry(true);
    let verdict = judge(&driven, verify_run(&shared));
    let mut report = Report::of(
        &driven,
        options,
        Setup { store: target.kept_how(), ..Setup::of(options, volume, reused, shared.alone) },
        before,
        after,
    );
    report.durability = options.durability;
    report.verified = verdict.verified() && verdict.rows > 0 && driven.error.is_none();
    report.verified_rows = verdict.rows;
    report.problems = verdict.examples.clone();
    let _ = summary(&report, out).and_then(|()| verified_how(&report, &verdict, out));
    Ok(Outcome::Done(Box::new(report)))
}

/// A store that cannot be read back has not kept what it acknowledged.
fn judge(driven: &Driven, verdict: Result<Verdict>) -> Verdict {
    verdict.unwrap_or_else(|error| {
        let after = if driven.error.is_some() { ", after the run had failed" } else { "" };
        let what = format!("cannot read everything back{after}: {error:#}");
        Verdict { problems: 1, examples: vec![what], ..Verdict::default() }
    })
}

/// Everything but what was verified, and how.
pub(crate) fn summary(report: &Report, out: &mut dyn Write) -> Result<()> {
    let figures = &report.figures;
    writeln!(out)?;
    if let Some(error) = &report.error {
        writeln!(out, "THE RUN FAILED: {error}")?;
    }
    if report.warmup_only {
        writeln!(out, "these are figures of the warm-up: the run got no further")?;
    }
    if report.phases.len() > 1 {
        for (i, phase) in report.phases.iter().enumerate() {
            write!(out, "phase {}, {} threads: ", i + 1, phase.threads)?;
            rates(phase, out)?;
        }
        write!(out, "all phases: ")?;
    }
    rates(figures, out)?;
    let latency = &figures.latency_micros;
    writeln!(
        out,
        "latency     p50 {}, p99 {}, p99.9 {}, max {}",
        micros(latency.p50),
        micros(latency.p99),
        micros(latency.p999),
        micros(latency.max)
    )?;
    if let Some(processors) = &figures.processors {
        writeln!(
            out,
            "processors  {:.2} of the machine's {:.0} busy, {:.2} idle, {:.2} taken by the host; \
             CV of the transactions of a busy second {:.3}",
            processors.busy_mean,
            processors.busy_mean + processors.idle_mean + processors.stolen_mean,
            processors.idle_mean,
            processors.stolen_mean,
            processors.tps_over_busy_cv,
        )?;
    }
    // A store that does not count has no figures; of a server they are its own affair.
    if report.setup.checkpoint_age_limit_bytes == 0 {
        return durable_how(report, out);
    }
    if report.setup.workload.writes() {
        log_and_pages(report, out)?;
    }
    settled(report, out)?;
    writeln!(
        out,
        "device      {} writes, {}; {} reads, {}; {} syncs",
        thousands(figures.device_writes),
        format_size(figures.device_bytes_written),
        thousands(figures.device_reads),
        format_size(figures.device_bytes_read),
        thousands(figures.device_syncs),
    )?;
    raw_disk(report, out)?;
    durable_how(report, out)
}

/// How long each change of threads or disk was felt.
fn settled(report: &Report, out: &mut dyn Write) -> Result<()> {
    for (number, settling) in report.settling.iter().enumerate() {
        let label = if number == 0 { "settled" } else { "" };
        write!(out, "{label:<12}{} from second {}: ", settling.change, settling.at_second + 1)?;
        let after = |seconds: Option<usize>| match seconds {
            Some(seconds) => format!("after {seconds} s"),
            None => "not before the next change".to_owned(),
        };
        let (tps, age) = (after(settling.tps_seconds), after(settling.age_seconds));
        write!(out, "throughput {tps}, age {age}")?;
        match settling.log_wraps {
            Some(wraps) => writeln!(out, ", {wraps:.2} log wraps")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

fn raw_disk(report: &Report, out: &mut dyn Write) -> Result<()> {
    let shown = |rate: f64| thousands(rate.round() as u64);
    let Some(before) = report.raw_sync_rate_before else { return Ok(()) };
    write!(out, "raw disk    {} 4 KiB append+sync/s alone before the run", shown(before))?;
    if let Some(after) = report.raw_sync_rate_after {
        write!(out, ", {} after it", shown(after))?;
    }
    match report.tps_mean_over_raw_sync_rate {
        Some(part) => writeln!(out, "; the run's mean is {part:.2} of that")?,
        None => writeln!(out, "; too unsteady to compare the run with")?,
    }
    Ok(())
}

fn rates(figures: &Figures, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "{} transactions in {:.0} s: mean {} tps, CV {:.3}, worst second {:.2} of it, {} stalled",
        thousands(figures.transactions),
        figures.seconds,
        thousands(figures.tps_mean.round() as u64),
        figures.tps_cv,
        figures.tps_worst_second_over_mean,
        figures.stalled_seconds,
    )?;
    Ok(())
}

fn log_and_pages(report: &Report, out: &mut dyn Write) -> Result<()> {
    let figures = &report.figures;
    writeln!(
        out,
        "redo        {:.0} bytes a transaction, {:.1} commits a log write",
        figures.redo_bytes_per_transaction, figures.commits_per_log_write
    )?;
    write!(out, "pages       {:.4} written a transaction", figures.page_writes_per_transaction)?;
    if let (Some(least), Some(over)) =
        (figures.page_writes_per_transaction_least, figures.page_writes_over_least)
    {
        write!(out, " ({over:.3} x the least possible, {least:.4})")?;
    }
    let writes = &figures.page_writes;
    writeln!(
        out,
        "; deadline {}, free frames {}, idle {}",
        thousands(writes.deadline),
        thousands(writes.free_frames),
        thousands(writes.idle)
    )?;
    writeln!(
        out,
        "age         mean {:.1} %, greatest {:.1} % of the limit of {}",
        100.0 * figures.checkpoint_age_mean_over_limit,
        100.0 * figures.checkpoint_age_max_over_limit,
        format_size(report.setup.checkpoint_age_limit_bytes),
    )?;
    writeln!(
        out,
        "waits       {} for a free frame, {} for admission ({} in all)",
        thousands(figures.free_frame_waits),
        thousands(figures.admission_waits),
        micros(figures.admission_wait_micros),
    )?;
    Ok(())
}

fn durable_how(report: &Report, out: &mut dyn Write) -> Result<()> {
    let how = match report.durability {
        Durability::Synced => "each commit synced before it was acknowledged",
        Durability::Written => "each commit written, synced about once a second",
        Durability::Lazy => "commits in memory, written and synced about once a second",
    };
    let doublewrite = match report.setup.doublewrite.mode {
        None => "as the store decides".to_owned(),
        Some(mode) => serde_json::to_value(mode)?.as_str().unwrap_or("?").to_owned(),
    };
    let volume = &report.setup.volume;
    writeln!(out, "durability  {how}; doublewrite {doublewrite}; on {volume}")?;
    writeln!(out, "pages       {}", report.setup.store)?;
    Ok(())
}

fn verified_how(report: &Report, verdict: &Verdict, out: &mut dyn Write) -> Result<()> {
    if report.verified {
        let rows = thousands(verdict.rows);
        let what = match report.setup.workload {
            WorkloadKind::Update => "each at the version last acknowledged",
            WorkloadKind::Insert => "every acknowledged one and no other",
            _ => "each as it was loaded or last written",
        };
        writeln!(out, "verified    {rows} rows read back, {what}")?;
    } else {
        writeln!(out, "NOT VERIFIED: {} problems", thousands(verdict.problems))?;
        for example in &verdict.examples {
            writeln!(out, "  {example}")?;
        }
    }
    Ok(())
}
