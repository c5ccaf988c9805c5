//! Reads everything back and compares it with what was acknowledged.
use crate::ack::Acknowledged;
use crate::options::WorkloadKind;
use crate::record;
use crate::target::{Table, Target};
use crate::workload::{INSERT_TREE, ROWS_TREE, Shared};
use anyhow::{Result, bail};
use std::sync::atomic::Ordering::Relaxed;

/// What reading everything back showed.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Rows read.
    pub rows: u64,
    /// Acknowledged changes compared.
    pub acknowledged: u64,
    /// How many rows are missing, too old, too new or not of our making.
    pub problems: u64,
    /// The first few of them, for people.
    pub examples: Vec<String>,
}

/// More examples than this do not help.
const EXAMPLES_MAX: usize = 10;

impl Verdict {
    /// Whether all is well.
    #[must_use]
    pub fn verified(&self) -> bool {
        self.problems == 0
    }

    fn problem(&mut self, what: impl FnOnce() -> String) {
        self.problems += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(what());
        }
    }

    fn add(&mut self, other: Verdict) {
        self.rows += other.rows;
        self.acknowledged += other.acknowledged;
        self.problems += other.problems;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES_MAX);
    }
}

/// Compares the table with what this run has issued and seen acknowledged.
pub(crate) fn verify_run<B: Table>(shared: &Shared<B>) -> Result<Verdict> {
    match shared.kind {
        WorkloadKind::Insert => verify_inserts(shared),
        WorkloadKind::Update => {
            rows_between(&shared.table, shared.rows, |row| shared.ledger.allowed(row))
        }
        _ => rows_between(&shared.table, shared.rows, |_| (0, u32::MAX)),
    }
}

/// All rows 0 to `rows` must be there, each of a version that `allowed` allows, and no other.
fn rows_between<B: Table>(
    table: &B,
    rows: u64,
    allowed: impl Fn(u64) -> (u32, u32),
) -> Result<Verdict> {
    let mut verdict = Verdict { acknowledged: rows, ..Verdict::default() };
    let mut next = 0;
    table.scan_up(&[], &mut |key, value| {
        verdict.rows += 1;
        let row = match record::key_number(key) {
            Some(row) if row >= next && row < rows => row,
            _ => {
                verdict.problem(|| format!("key {key:02x?} after row {next} belongs to no row"));
                return true;
            }
        };
        if row > next {
            verdict.problem(|| format!("rows {next} to {} are missing", row - 1));
        }
        next = row + 1;
        let (least, most) = allowed(row);
        match record::version_of(row, value) {
            Ok(version) if (least..=most).contains(&version) => {}
            Ok(version) => verdict.problem(|| {
                format!("row {row} has version {version}; acknowledged {least}, issued {most}")
            }),
            Err(why) => verdict.problem(|| format!("row {row}: {why}")),
        }
        true
    })?;
    if next < rows {
        verdict.problem(|| format!("rows {next} to {} are missing", rows - 1));
    }
    Ok(verdict)
}

/// The rows of before must be there, and all that this run inserted, but for those that failed.
fn verify_inserts<B: Table>(shared: &Shared<B>) -> Result<Verdict> {
    let inserts = &shared.inserts;
    let (first, next) = (inserts.first, inserts.next.load(Relaxed));
    let failed = inserts.failed.lock().expect("no thread panics with the lock");
    let mut seen = vec![false; (next - first) as usize];
    let mut before = 0;
    let mut verdict =
        Verdict { acknowledged: next - first - failed.len() as u64, ..Verdict::default() };
    shared.table.scan_up(&[], &mut |key, value| {
        verdict.rows += 1;
        let Some(number) = record::key_number(key) else {
            verdict.problem(|| format!("key {key:02x?} is not a bench's"));
            return true;
        };
        if record::version_of(number, value) != Ok(0) {
            verdict.problem(|| format!("key 0x{number:016x} has another's value"));
        }
        match record::unscramble(number) {
            row if row < first => before += 1,
            row if row < next => seen[(row - first) as usize] = true,
            row => {
                verdict.problem(|| format!("key 0x{number:016x} (row {row}) was never inserted"))
            }
        }
        true
    })?;
    for row in failed.iter() {
        seen[(row - first) as usize] = true;
    }
    for (i, _) in seen.iter().enumerate().filter(|(_, seen)| !**seen) {
        let row = first + i as u64;
        verdict.problem(|| format!("row {row}, key 0x{:016x}, is missing", record::scramble(row)));
    }
    if before != inserts.before {
        let expected = inserts.before;
        verdict.problem(|| format!("{before} rows of before the run are there, not {expected}"));
    }
    Ok(verdict)
}

/// Judges the bench's trees of a store without knowing the run that wrote them: every row must be
/// consistent in itself, and with `acks` every acknowledged change (or a later one) must be there.
///
/// # Errors
/// When there is no bench tree, or the store cannot be read.
pub fn verify_trees<T: Target>(target: &T, acks: Option<&Acknowledged>) -> Result<Verdict> {
    let (rows, inserts) = (target.table(ROWS_TREE)?, target.table(INSERT_TREE)?);
    if rows.is_none() && inserts.is_none() {
        bail!("there is no bench table here ('{ROWS_TREE}' or '{INSERT_TREE}')");
    }
    let mut verdict = Verdict::default();
    let nothing = Acknowledged::default();
    let acks = acks.unwrap_or(&nothing);
    verdict.add(against_acks(rows.as_ref(), &acks.rows, true)?);
    verdict.add(against_acks(inserts.as_ref(), &acks.inserts, false)?);
    Ok(verdict)
}

fn against_acks<B: Table>(
    table: Option<&B>,
    acks: &std::collections::HashMap<u64, u32>,
    dense: bool,
) -> Result<Verdict> {
    let mut verdict = Verdict { acknowledged: acks.len() as u64, ..Verdict::default() };
    let (mut next, mut met) = (0u64, 0u64);
    if let Some(table) = table {
        table.scan_up(&[], &mut |key, value| {
            verdict.rows += 1;
            let Some(number) = record::key_number(key) else {
                verdict.problem(|| format!("key {key:02x?} is not a bench's"));
                return true;
            };
            if dense && number != next {
                verdict.problem(|| format!("row {next} is missing; next comes row {number}"));
            }
            next = number.saturating_add(1);
            let acknowledged = acks.get(&number);
            met += u64::from(acknowledged.is_some());
            let least = acknowledged.copied().unwrap_or(0);
            match record::version_of(number, value) {
                Ok(version) if version >= least => {}
                Ok(version) => verdict.problem(|| {
                    format!("row {number}: version {version}, but {least} was acknowledged")
                }),
                Err(why) => verdict.problem(|| format!("row {number}: {why}")),
            }
            true
        })?;
    }
    let missing = acks.len() as u64 - met;
    if missing > 0 {
        verdict.problem(|| format!("{missing} acknowledged rows are missing"));
    }
    Ok(verdict)
}
