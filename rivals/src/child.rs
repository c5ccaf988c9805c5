//! Each cell runs in a process of its own, in the run's control group if it has one: what one store
//! leaves in memory is no other's, and a store that dies, or is killed for memory, ends its cell
//! and not the run.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::group::{self, Group};
use crate::plan::{Shape, Workload};
use crate::run::{self, Site};
use crate::stores::{self, Known};

/// What the process of a cell is to do.
#[derive(clap::Args)]
pub struct Child {
    /// `Orders`, as JSON.
    orders: String,
}

#[derive(Serialize, Deserialize)]
struct Orders {
    dir: PathBuf,
    shape: Shape,
    engine: String,
    workload: String,
    threads: usize,
    round: u64,
    /// Of the group that it is to enter.
    doors: Vec<PathBuf>,
}

/// What it answers: the cell, or what went wrong.
type Answer = Result<Cell, String>;

/// The process of a cell: its answer is all that it prints.
pub fn child(child: &Child) -> Result<()> {
    // SAFETY: only asks the kernel to kill this process with its parent, whatever ends that.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let orders: Orders = serde_json::from_str(&child.orders).context("not for people")?;
    let answer: Answer = answer(orders).map_err(|error| format!("{error:#}"));
    println!("{}", serde_json::to_string(&answer)?);
    Ok(())
}

fn answer(orders: Orders) -> Result<Cell> {
    group::enter(&orders.doors)?;
    let site = Site { dir: orders.dir, shape: orders.shape };
    let workload: Workload = orders.workload.parse()?;
    run::cell(&site, stores::find(&orders.engine)?, workload, orders.threads, orders.round)
}

/// Runs one cell in a process of its own.
///
/// # Errors
/// What went wrong in it, or how it ended. One that the kernel has killed for memory is no error:
/// its cell says so in the place of a figure.
pub fn cell(
    site: &Site,
    group: Option<&Group>,
    known: &Known,
    workload: Workload,
    threads: usize,
    round: u64,
) -> Result<Cell> {
    let orders = Orders {
        dir: site.dir.clone(),
        shape: site.shape,
        engine: known.name.to_string(),
        workload: workload.name().to_string(),
        threads,
        round,
        doors: group.map(Group::doors).unwrap_or_default(),
    };
    let killed_before = group.map_or(0, Group::killed);
    group.map(Group::take_peak_bytes);
    let mut process = Command::new(std::env::current_exe()?)
        .args(["cell", &serde_json::to_string(&orders)?])
        .stdout(Stdio::piped())
        .spawn()
        .context("starting a cell's process")?;
    let mut said = String::new();
    process.stdout.take().context("no pipe")?.read_to_string(&mut said)?;
    let status = process.wait()?;
    if group.map_or(0, Group::killed) > killed_before {
        let mut cell = Cell::new(workload, threads, known.name, round);
        cell.cannot = Some("killed for memory".to_string());
        return Ok(cell);
    }
    // Stores write to standard output too; the answer is the last line.
    let Some(line) = said.lines().last().filter(|_| status.success()) else {
        match status.signal() {
            Some(signal) => bail!("its process was ended by signal {signal}"),
            None => bail!("its process ended with {status} and no answer"),
        }
    };
    let answer: Answer =
        serde_json::from_str(line).with_context(|| format!("its process said {line:?}"))?;
    let mut cell = answer.map_err(|error| anyhow!(error))?;
    cell.memory_peak_bytes = group.and_then(Group::take_peak_bytes);
    Ok(cell)
}
