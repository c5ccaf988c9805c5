//! The page that an experiment leaves behind.
use crate::experiments::Experiment;
use crate::judge::{Finding, deadline_stands, table};
use crate::results::Result1;
use std::path::PathBuf;
use weir_bench::page::{Boxed, Page};

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its report.
    pub report: PathBuf,
    /// Whether everything that was acknowledged in its runs was found again.
    pub verified: bool,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Whether it had been run before, and nothing was done.
    pub was_done: bool,
}

/// The page of these results.
pub(crate) fn page(
    experiment: &Experiment,
    results: &[Result1],
    finding: Option<&Finding>,
    command: &str,
    quick: bool,
) -> Page {
    let mut notes = vec![format!("What the seed found: {}.", experiment.found)];
    match finding {
        Some(finding) => notes.push(finding.text()),
        None => notes.push("Not all runs were done, so nothing is said about it.".to_owned()),
    }
    notes.extend(deadline_stands(results));
    if !experiment.missing.is_empty() {
        notes.push(format!("Not repeated here: {}.", experiment.missing));
    }
    if quick {
        notes.push(
            "A quick run: seconds instead of hours, one-row updates, a log that wraps every few \
             seconds, and policies whose time passes fifty times as fast. Its figures \
             have a noise of some percent."
                .to_owned(),
        );
    }
    let boxed =
        |result: &&Result1| Boxed { name: result.name.clone(), values: result.seconds.clone() };
    let about = results.first().map_or(Vec::new(), |result| result.about.clone());
    let runs = results.iter().filter(|result| !result.run.is_null());
    Page {
        title: format!("weir lab {}: {}", experiment.number, experiment.name),
        subtitle: format!("Seed {}", experiment.seed),
        notes,
        tiles: Vec::new(),
        tables: vec![table("Results", results)],
        runs: runs.map(|result| result.run.clone()).collect(),
        boxes: results.iter().filter(|r| !r.seconds.is_empty()).map(|r| boxed(&r)).collect(),
        command: command.to_owned(),
        about,
        live: false,
    }
}
