//! `weir lab`.
use super::bench::{catch_interrupts, command_line};
use crate::args::{Lab, LabCost, LabRun};
use crate::exit::{EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_OK};
use anyhow::{Result, anyhow};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use weir_lab::{Experiment, Order, all, cost, find, run};

/// Lists or runs experiments.
pub(crate) fn lab(command: &Lab) -> Result<u8> {
    match command {
        Lab::List => list(),
        Lab::Run(args) => run_some(args),
        Lab::Cost(args) => watched(args),
    }
}

fn list() -> Result<u8> {
    let mut out = std::io::stdout().lock();
    for experiment in all() {
        writeln!(out, "{:>3}  {}", experiment.number, experiment.name)?;
        writeln!(out, "     seed {}", experiment.seed)?;
    }
    Ok(EXIT_OK)
}

/// Above this part of the throughput, being watched costs too much.
const COST_MAX: f64 = 0.01;

fn watched(args: &LabCost) -> Result<u8> {
    let interrupt = Arc::new(AtomicBool::new(false));
    catch_interrupts(interrupt.clone())?;
    let mut out = std::io::stdout();
    let cost = cost(&args.dir, args.rounds, &interrupt, &mut out)?;
    let interrupted = interrupt.load(Relaxed);
    let Some(cost) = cost else {
        writeln!(out, "interrupted before anything can be said")?;
        return Ok(EXIT_INTERRUPTED);
    };
    let (well, verdict) = match cost {
        _ if cost.high < COST_MAX => (true, "less than 1 %"),
        _ if cost.low >= COST_MAX => (false, "NOT less than 1 %"),
        _ => (false, "cannot be told from 1 % on a machine this restless; --rounds takes more"),
    };
    let how = if interrupted { "interrupted; so far " } else { "" };
    writeln!(out, "{how}{verdict}")?;
    Ok(match (interrupted, well) {
        (true, _) => EXIT_INTERRUPTED,
        (false, true) => EXIT_OK,
        (false, false) => EXIT_FINDINGS,
    })
}

fn run_some(args: &LabRun) -> Result<u8> {
    let chosen: Vec<Experiment> = match args.which.as_str() {
        "all" => {
            let has = |one: &Experiment| args.policy.is_none_or(|policy| one.has(policy));
            all().into_iter().filter(has).collect()
        }
        which => vec![find(which).map_err(|error| anyhow!("{error}"))?],
    };
    let order = Order {
        dir: args.dir.clone(),
        quick: args.quick,
        force: args.force,
        skip_done: chosen.len() > 1,
        policy: args.policy,
        command: command_line(),
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    catch_interrupts(interrupt.clone())?;
    let mut out = std::io::stdout();
    let mut well = true;
    for experiment in &chosen {
        let outcome = run(experiment, &order, &interrupt, &mut out)?;
        well &= outcome.verified;
        if outcome.was_done {
            let path = outcome.report.display();
            writeln!(out, "experiment {}: done before, see {path}", experiment.number)?;
        }
        if interrupt.load(Relaxed) {
            writeln!(out, "interrupted; the same command goes on from here")?;
            return Ok(EXIT_INTERRUPTED);
        }
    }
    Ok(if well { EXIT_OK } else { EXIT_FINDINGS })
}
