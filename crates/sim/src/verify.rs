//! After a crash: what is there, whether it may be, and whether every page is accounted for.
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use weir::{Db, Error, ManualClock, SimVolume};

use crate::model::{Contents, Model, digest, mark};
use crate::op::Op;
use crate::play::open;
use crate::setup::Setup;

/// Everything in the database, read with cursors.
///
/// # Errors
/// What reading said; keys out of order.
pub fn contents(db: &Db) -> Result<Contents> {
    let mut contents = Contents::new();
    for name in db.tree_names()? {
        let number: u8 = name
            .strip_prefix("tree ")
            .unwrap_or_default()
            .parse()
            .with_context(|| format!("there is a tree '{name}' that no session made"))?;
        let tree = db.tree(&name)?.with_context(|| format!("'{name}' is named but not there"))?;
        let rows = contents.entry(number).or_default();
        let mut cursor = tree.cursor();
        let mut found = cursor.seek_first()?;
        let mut last: Option<Vec<u8>> = None;
        while found {
            let key = cursor.key().to_vec();
            ensure!(last.is_none_or(|last| last < key), "keys of '{name}' are out of order");
            rows.insert(key.clone(), digest(cursor.value()?));
            last = Some(key);
            found = cursor.next()?;
        }
    }
    Ok(contents)
}

/// Whether the database is sound and holds exactly this.
///
/// # Errors
/// What is wrong.
pub fn audit(db: &Db, model: &Model) -> Result<()> {
    audit_contents(db, model.contents())
}

/// As [`audit`].
///
/// # Errors
/// What is wrong.
pub(crate) fn audit_contents(db: &Db, expected: &Contents) -> Result<()> {
    let report = db.check(&mut |_, _| {})?;
    ensure!(report.problems.is_empty(), "the check found: {}", report.problems.join("; "));
    ensure!(report.pages_held == 0, "{} pages belong to nothing", report.pages_held);
    let marked: u64 = report.trees.iter().map(|(_, tree)| tree.marked_rows).sum();
    ensure!(marked == 0, "{marked} rows are marked deleted, and nothing will remove them");
    let found = contents(db)?;
    if found != *expected {
        bail!("the contents are not the model's: {}", differences(&found, expected));
    }
    Ok(())
}

/// Opens after a crash.
///
/// # Errors
/// Those of opening.
pub fn recover(setup: &Setup, volume: &SimVolume, clock: &Arc<ManualClock>) -> Result<Db, Error> {
    open(setup, volume, clock)
}

/// Finds out after how many of the `ops` the recovered contents are those of the model: at least
/// `synced`, at most all that `marks` (of the states from `synced` on) has. `before` is the model
/// before the first of them (SIM-2). Returns the model of what was found.
///
/// # Errors
/// When the contents are of no such state, or the database is not sound.
pub fn window(
    db: &Db,
    before: &Model,
    ops: &[Op],
    skipped: &[bool],
    (synced, marks): (usize, &[u64]),
) -> Result<(usize, Model)> {
    let found = contents(db).context("reading after recovery")?;
    let mark = mark(&found);
    let after = |count: usize| {
        let mut model = before.clone();
        for (op, skip) in ops.iter().zip(skipped).take(count) {
            if !skip {
                model.apply(op);
            }
        }
        model
    };
    let Some(at) = marks.iter().position(|&m| m == mark) else {
        let model = after(synced);
        bail!(
            "recovery found the state after none of the operations {synced} to {}; against the \
             first of these: {}",
            synced + marks.len() - 1,
            differences(&found, model.contents())
        );
    };
    let model = after(synced + at);
    audit(db, &model).context("after recovery")?;
    Ok((synced + at, model))
}

pub(crate) fn differences(found: &Contents, expected: &Contents) -> String {
    let mut list = Vec::new();
    for tree in 0..=u8::MAX {
        match (found.get(&tree), expected.get(&tree)) {
            (None, None) => {}
            (Some(_), None) => list.push(format!("tree {tree} should not be there")),
            (None, Some(_)) => list.push(format!("tree {tree} is missing")),
            (Some(a), Some(b)) => {
                for (key, value) in a {
                    if b.get(key) != Some(value) {
                        let name = String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned();
                        list.push(format!("{tree}:{name} is {value:?}, not {:?}", b.get(key)));
                    }
                }
                for key in b.keys().filter(|key| !a.contains_key(*key)) {
                    let name = String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned();
                    list.push(format!("{tree}:{name} is missing"));
                }
            }
        }
    }
    let all = list.len();
    list.truncate(6);
    format!("{} ({all} differences)", list.join(", "))
}
