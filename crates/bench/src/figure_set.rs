//! Figures as a page shows them: sets in JSON, of which `cargo run -p xtask -- benchmarks` makes
//! `docs/benchmarks.md`. The form is read by `xtask/src/figures.rs`; both are held to
//! `xtask/src/figure_set.json`.
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use weir_base::{Clock, SystemClock};

use crate::options::WorkloadKind;
use crate::report::{Report, replace_file};

/// What is known of a run that its report does not say.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// The commit that was measured.
    pub commit: String,
    /// The command, to be given again.
    pub command: String,
    /// What else the machine did.
    pub beside: String,
}

/// One workload: Weir's rate of it, and those of other stores.
#[derive(Clone, Debug)]
pub struct SetFigure {
    /// What was done, in words.
    pub workload: String,
    /// Weir's rate, one for each step of the workload.
    pub weir: Vec<f64>,
    /// What of in a second, or `s` for seconds, of which fewer are better.
    pub unit: String,
    /// How much it moved, in words.
    pub spread: String,
    /// The others'.
    pub others: Vec<SetRival>,
}

/// Another store's rate of the same.
#[derive(Clone, Debug)]
pub struct SetRival {
    /// The store.
    pub name: String,
    /// Its rate.
    pub rate: f64,
    /// How much it moved, in words.
    pub spread: String,
}

/// What a run's report says, as one figure.
///
/// # Errors
/// When the run was not verified, or never got past its warm-up: its figures count for nothing.
pub fn figure_of(report: &Report) -> Result<SetFigure> {
    ensure!(
        report.verified && report.error.is_none() && !report.interrupted && !report.warmup_only,
        "the run did not end well, or was not verified: its figures count for nothing"
    );
    let (setup, figures) = (&report.setup, &report.figures);
    let what = match setup.workload {
        WorkloadKind::Tpcc => "TPC-C".to_owned(),
        other => format!("{} of {} rows", other.name(), setup.rows),
    };
    let threads: Vec<String> =
        report.phases.iter().map(|phase| phase.threads.to_string()).collect();
    let disk = setup.disk.as_ref().map_or(String::new(), |disk| format!(", disk of {disk}"));
    let durability = report.durability.name();
    let workload = format!("{what}, {} threads, {durability}{disk}", threads.join(" / "));
    let spread = format!(
        "CV {:.3}, worst second {:.2} of the mean, p99 {} us",
        figures.tps_cv, figures.tps_worst_second_over_mean, figures.latency_micros.p99
    );
    let weir = report.phases.iter().map(|phase| phase.tps_mean).collect();
    Ok(SetFigure { workload, weir, unit: "tps".to_owned(), spread, others: Vec::new() })
}

/// The processors and the disk of this machine, as figures name them.
#[must_use]
pub fn machine(report: &Report) -> String {
    let setup = &report.setup;
    format!("{} processors, {}, {}", setup.cpus, setup.platform, setup.volume)
}

/// Adds figures of one run to the set in a file, which is made if it is not there; a figure takes
/// the place of an older one of the same workload.
///
/// # Errors
/// When the file holds something else than a set that benchmarks wrote, or cannot be written.
pub fn add_to_set(
    path: &Path,
    machine: &str,
    run: &MeasuredRun,
    figures: &[SetFigure],
) -> Result<()> {
    let seconds = SystemClock::new().unix_micros() / 1_000_000;
    let text = match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        text => Some(text.with_context(|| format!("cannot read {}", path.display()))?),
    };
    let set = with_figures(text.as_deref(), &date(seconds / 86_400), machine, run, figures)
        .with_context(|| format!("{} is no set of figures to add to", path.display()))?;
    replace_file(path, set.as_bytes(), true)
}

fn with_figures(
    old: Option<&str>,
    date: &str,
    machine: &str,
    run: &MeasuredRun,
    figures: &[SetFigure],
) -> Result<String> {
    let MeasuredRun { commit, command, beside } = run;
    let run = json!({"date": date, "commit": commit, "machine": machine, "command": command,
        "beside": beside});
    let mut set: Value = match old {
        Some(text) => serde_json::from_str(text)?,
        None => json!({"transcribed": false, "run": run, "figures": []}),
    };
    ensure!(set["transcribed"] == json!(false), "it was copied by hand: begin a new one");
    let is_same_run = set["run"] == run;
    let all = set["figures"].as_array_mut().context("it has no list of figures")?;
    for figure in figures {
        let mut shown = shown(figure);
        if !is_same_run {
            shown["run"] = run.clone();
        }
        match all.iter_mut().find(|old| old["workload"] == shown["workload"]) {
            Some(old) => *old = shown,
            None => all.push(shown),
        }
    }
    Ok(format!("{set:#}\n"))
}

fn shown(figure: &SetFigure) -> Value {
    let others: Vec<Value> = figure
        .others
        .iter()
        .map(|other| {
            json!({"name": other.name, "value": rounded(other.rate), "spread": other.spread})
        })
        .collect();
    let weir = match figure.weir[..] {
        [] => Value::Null,
        [one] => rounded(one),
        ref steps => steps.iter().map(|&step| rounded(step)).collect(),
    };
    json!({"workload": figure.workload, "weir": weir, "unit": figure.unit,
        "spread": figure.spread, "rivals": others})
}

/// Whole numbers from a hundred on.
fn rounded(value: f64) -> Value {
    if value >= 100.0 {
        json!(value.round() as u64)
    } else {
        json!((value * 100.0).round() / 100.0)
    }
}

/// The date of a day since 1970, by the proleptic Gregorian calendar (Hinnant, "chrono-compatible
/// low-level date algorithms", `civil_from_days`).
fn date(days: u64) -> String {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str) -> MeasuredRun {
        let commit = "abc1234".to_owned();
        MeasuredRun { commit, command: command.to_owned(), beside: "nothing".to_owned() }
    }

    fn figure(workload: &str, weir: &[f64]) -> SetFigure {
        let rate = 5_000.4;
        let other = SetRival { name: "B".to_owned(), rate, spread: "4,900 to 5,100".to_owned() };
        SetFigure {
            workload: workload.to_owned(),
            weir: weir.to_vec(),
            unit: "tps".to_owned(),
            spread: "CV 0.002".to_owned(),
            others: if weir.len() == 1 { vec![other] } else { Vec::new() },
        }
    }

    #[test]
    fn a_set_has_the_form_that_its_reader_is_tested_with() {
        let (day, machine) = ("2026-11-26", "2 processors, linux x86_64");
        let first = [figure("update", &[11_202.4])];
        let set = with_figures(None, day, machine, &run("weir bench update"), &first);
        let set = set.expect("a set");
        let steps = [figure("update in steps", &[3_613.2, 21_311.0, 45.678])];
        let set = with_figures(Some(&set), day, machine, &run("weir bench --threads 2"), &steps);
        let set = set.expect("a set");
        let wanted = include_str!("../../../xtask/src/figure_set.json");
        assert_eq!(set, wanted);
        // Once more: in its place.
        let again = with_figures(Some(&set), day, machine, &run("weir bench update"), &first);
        assert_eq!(again.expect("a set"), wanted);
    }

    #[test]
    fn what_was_copied_by_hand_is_left_alone() {
        let of = |old| with_figures(Some(old), "2026-11-26", "m", &run("c"), &[]);
        assert!(of(r#"{"transcribed": true, "run": {}, "figures": []}"#).is_err());
        assert!(of(r#"{"transcribed": false, "run": {}}"#).is_err());
        assert!(of("[]").is_err());
        assert!(of("not JSON").is_err());
    }

    #[test]
    fn days_have_their_dates() {
        let days = [(0, "1970-01-01"), (58, "1970-02-28"), (59, "1970-03-01"), (789, "1972-02-29")];
        for (day, text) in days.into_iter().chain([(11_016, "2000-02-29"), (20_783, "2026-11-26")])
        {
            assert_eq!(date(day), text);
        }
    }
}
