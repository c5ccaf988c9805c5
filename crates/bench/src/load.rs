//! Makes the table that a workload needs, or finds that it is there already.
use crate::ack::AckFile;
use crate::ledger::Ledger;
use crate::line::thousands;
use crate::options::{Options, WorkloadKind};
use crate::record::{self, VALUE_BYTES};
use crate::target::{Table, Target};
use crate::workload::{INSERT_TREE, Inserts, ROWS_TREE, Shared};
use anyhow::{Context, Result, bail, ensure};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use weir_base::Clock;

/// Between two lines of progress.
const PROGRESS_MICROS: u64 = 1_000_000;
/// Rows between two looks at the clock and at the interrupt.
const ROWS_PER_LOOK: u64 = 4096;

/// Where a preparation prints and what may end it early.
pub(crate) struct Surroundings<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) out: &'a mut dyn Write,
}

/// The table for `options`, loaded or found; `None` when interrupted.
pub(crate) fn prepare<T: Target>(
    target: &T,
    options: &Options,
    around: &mut Surroundings<'_>,
) -> Result<Option<(Shared<T::Table>, bool)>> {
    let inserts = options.workload == WorkloadKind::Insert;
    let name = if inserts { INSERT_TREE } else { ROWS_TREE };
    options.check()?;
    let mut found = target.table(name)?;
    if options.fresh && found.take().is_some() {
        target.drop_table(name)?;
    }
    let reused = found.is_some();
    let table = match found {
        Some(table) => table,
        None => match load(target, name, options.rows, around)? {
            Some(table) => table,
            None => return Ok(None),
        },
    };
    let ledger_rows = if options.workload == WorkloadKind::Update { options.rows } else { 0 };
    let mut shared = Shared {
        kind: options.workload,
        table,
        durability: options.durability,
        rows: options.rows,
        ledger: Ledger::new(ledger_rows),
        inserts: Inserts::default(),
        alone: target.table(if inserts { ROWS_TREE } else { INSERT_TREE })?.is_none(),
        acks: options.ack_file.as_deref().map(AckFile::open).transpose()?,
    };
    let complete = match (reused, options.workload) {
        (false, _) => {
            shared.inserts = inserts_from(options.rows, options.rows);
            true
        }
        (true, WorkloadKind::Insert) => learn_inserts(&mut shared, around)?,
        (true, WorkloadKind::Update) => learn_versions(&shared, around)?,
        (true, _) => check_ends(&shared.table, options.rows).map(|()| true)?,
    };
    if reused && complete {
        writeln!(around.out, "using the table '{name}' that is there (--fresh loads a new one)")?;
    }
    Ok(complete.then_some((shared, reused)))
}

fn inserts_from(before: u64, next: u64) -> Inserts {
    Inserts { before, first: next, next: AtomicU64::new(next), ..Inserts::default() }
}

/// Fills a new table in key order; `None` when interrupted (the part loaded is dropped again).
fn load<T: Target>(
    target: &T,
    name: &str,
    rows: u64,
    around: &mut Surroundings<'_>,
) -> Result<Option<T::Table>> {
    let table = target.create_table(name)?;
    let start = around.clock.now_micros();
    let mut progress = start;
    let mut value = [0; VALUE_BYTES];
    // In the tree of inserts, neighbours in key order are strangers in number: sort them first.
    let mut keys: Vec<u64> = Vec::new();
    if name == INSERT_TREE {
        keys = (0..rows).map(record::scramble).collect();
        keys.sort_unstable();
    }
    let mut next = 0;
    let mut sorted = std::iter::from_fn(|| {
        if next % ROWS_PER_LOOK == 0 {
            if around.interrupt.load(Relaxed) {
                return None;
            }
            let now = around.clock.now_micros();
            if now.saturating_sub(progress) >= PROGRESS_MICROS {
                progress = now;
                let (done, of) = (thousands(next), thousands(rows));
                // A reader that went away is noticed when the run itself prints.
                let _ = writeln!(around.out, "loading   {done} of {of} rows");
            }
        }
        if next == rows {
            return None;
        }
        let key = keys.get(next as usize).copied().unwrap_or(next);
        next += 1;
        record::fill(&mut value, key, 0);
        Some((key.to_be_bytes().to_vec(), value.to_vec()))
    });
    let loaded = table.bulk_load(&mut sorted).with_context(|| format!("loading '{name}'"))?;
    if around.interrupt.load(Relaxed) && loaded < rows {
        target.drop_table(name)?;
        return Ok(None);
    }
    ensure!(loaded == rows, "{loaded} of {rows} rows were loaded");
    target.checkpoint().context("writing the loaded pages")?;
    let seconds = (around.clock.now_micros() - start) as f64 / 1e6;
    writeln!(around.out, "loaded {} rows in {seconds:.1} s", thousands(rows))?;
    Ok(Some(table))
}

/// Reads all rows of a table that is used again: each must be one of ours, and its version is where
/// the updates go on. False when interrupted.
fn learn_versions<B: Table>(shared: &Shared<B>, around: &Surroundings<'_>) -> Result<bool> {
    check_ends(&shared.table, shared.rows)?;
    let mut next = 0;
    let mut wrong = None;
    let mut interrupted = false;
    shared.table.scan_up(&[], &mut |key, value| {
        let number = record::key_number(key).filter(|&number| number == next);
        match number.map(|number| record::version_of(number, value)) {
            Some(Ok(version)) => shared.ledger.found(next, version),
            Some(Err(why)) => wrong = Some(format!("row {next}: {why}")),
            None => wrong = Some(format!("row {next} is missing; next comes key {key:02x?}")),
        }
        next += 1;
        interrupted = next % ROWS_PER_LOOK == 0 && around.interrupt.load(Relaxed);
        wrong.is_none() && !interrupted
    })?;
    if let Some(wrong) = wrong {
        bail!("the table that is there is damaged or not a bench's: {wrong}");
    }
    Ok(!interrupted)
}

/// Reads the tree of inserts: how many rows it has and which number comes next. False when
/// interrupted.
fn learn_inserts<B: Table>(shared: &mut Shared<B>, around: &Surroundings<'_>) -> Result<bool> {
    let (mut before, mut next) = (0u64, 0u64);
    let mut wrong = None;
    let mut interrupted = false;
    shared.table.scan_up(&[], &mut |key, value| {
        match record::key_number(key) {
            Some(number) => {
                next = next.max(record::unscramble(number) + 1);
                if let Err(why) = record::version_of(number, value) {
                    wrong = Some(format!("key {key:02x?}: {why}"));
                }
            }
            None => wrong = Some(format!("key {key:02x?} is not a bench's")),
        }
        before += 1;
        interrupted = before % ROWS_PER_LOOK == 0 && around.interrupt.load(Relaxed);
        wrong.is_none() && !interrupted
    })?;
    if let Some(wrong) = wrong {
        bail!("the table that is there is damaged or not a bench's: {wrong}");
    }
    shared.inserts = inserts_from(before, next);
    Ok(!interrupted)
}

/// The table must run from row 0 to the last.
fn check_ends<B: Table>(table: &B, rows: u64) -> Result<()> {
    let mut last = None;
    table.scan_down(None, &mut |key, _| {
        last = Some(record::key_number(key));
        false
    })?;
    let found = match last {
        None => 0,
        Some(None) => bail!("the table '{ROWS_TREE}' that is there is not a bench's"),
        Some(Some(key)) => key.saturating_add(1),
    };
    ensure!(
        found == rows,
        "the directory holds a bench table of {found} rows, not {rows}; use --rows {found}, or \
         --fresh to drop it and load a new one"
    );
    Ok(())
}
