//! Runs experiments, going on where an earlier run was stopped.
use crate::arm::{Arm, Site, load, run_arm};
use crate::experiments::{Experiment, Work};
use crate::judge::{Results, deadline_stands, plain, table};
use crate::policies::Kind;
use crate::recovery;
use crate::report::{Outcome, page};
use crate::results::Result1;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is to be run, and where its results go.
#[derive(Clone, Debug)]
pub struct Order {
    /// Databases, results and reports.
    pub dir: PathBuf,
    /// Seconds instead of hours.
    pub quick: bool,
    /// Run again what has been run, and replace its report.
    pub force: bool,
    /// Leave alone what has a report instead of refusing.
    pub skip_done: bool,
    /// Only the runs of this policy, beside `deadline`'s.
    pub policy: Option<Kind>,
    /// The command, for the report.
    pub command: String,
}

impl Order {
    fn kind(&self) -> &'static str {
        if self.quick { "quick" } else { "full" }
    }

    /// What the files of an experiment are called.
    fn stem(&self, number: u8) -> String {
        let policy = self.policy.map_or(String::new(), |policy| format!("-{policy}"));
        format!("{}-{number:02}{policy}", self.kind())
    }

    /// Where the report of an experiment is.
    #[must_use]
    pub fn report_path(&self, number: u8) -> PathBuf {
        self.dir.join(format!("{}.html", self.stem(number)))
    }
}

/// Runs one experiment. Each arm's result is kept as soon as it is there; a run that was stopped
/// goes on behind the last of them.
///
/// # Errors
/// When its report is there already and may not be replaced, or something cannot be run.
pub fn run(
    experiment: &Experiment,
    order: &Order,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let report = order.report_path(experiment.number);
    let outcome = |verified, interrupted, was_done| Outcome {
        report: report.clone(),
        verified,
        interrupted,
        was_done,
    };
    if report.exists() && !order.force {
        if order.skip_done {
            return Ok(outcome(true, false, true));
        }
        bail!("{} exists; --force runs the experiment again and replaces it", report.display());
    }
    let place = order.dir.join(order.stem(experiment.number));
    if order.force && place.exists() {
        std::fs::remove_dir_all(&place).with_context(|| format!("removing {}", place.display()))?;
    }
    std::fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    writeln!(out, "experiment {}: {}", experiment.number, experiment.name)?;
    writeln!(out, "seed {}", experiment.seed)?;
    let site = (experiment.site)(if order.quick { Site::quick() } else { Site::full() });
    let results = match &experiment.work {
        Work::Arms(arms) => {
            let arms = chosen(arms(&site), order.policy, experiment.number)?;
            run_arms(&arms, &site, &place, interrupt, out)?
        }
        Work::Recoveries(_) if order.policy.is_some() => {
            bail!("experiment {} is about recovery: no policy runs in it", experiment.number)
        }
        Work::Recoveries(which) => recoveries(which, &site, &place, interrupt, out)?,
    };
    let stopped = interrupt.load(Relaxed);
    // What a seed found is about all of its runs.
    let whole = !stopped && order.policy.is_none();
    let finding = whole.then(|| (experiment.judge)(&Results(&results)));
    let shown = table("", &results);
    writeln!(out, "\n{}", plain(&shown))?;
    if let Some(finding) = &finding {
        writeln!(out, "\n{}", finding.text())?;
    }
    for sentence in deadline_stands(&results) {
        writeln!(out, "{sentence}")?;
    }
    let made = page(experiment, &results, finding.as_ref(), &order.command, order.quick);
    // What an interrupted run has seen is worth a report, but not the name of a whole one.
    let path = if stopped { report.with_extension("interrupted.html") } else { report.clone() };
    made.write(&path, order.force || stopped)?;
    writeln!(out, "report {}\n", path.display())?;
    if !stopped {
        // The databases are large, and all that matters is in the report.
        let _ = std::fs::remove_dir_all(place.join("db"));
    }
    let verified = results.iter().all(|result| result.verified);
    Ok(Outcome { report: path, ..outcome(verified, stopped, false) })
}

/// The arms of one policy, and `deadline`'s.
fn chosen(arms: Vec<Arm>, policy: Option<Kind>, number: u8) -> Result<Vec<Arm>> {
    let Some(policy) = policy else { return Ok(arms) };
    if !arms.iter().any(|arm| arm.kind == policy) {
        let mut there: Vec<&str> = arms.iter().map(|arm| arm.kind.name()).collect();
        there.dedup();
        bail!("experiment {number} does not run {policy}; it has {}", there.join(", "));
    }
    let kept = |arm: &Arm| arm.kind == policy || arm.kind == Kind::Deadline;
    Ok(arms.into_iter().filter(kept).collect())
}

fn run_arms(
    arms: &[Arm],
    site: &Site,
    place: &Path,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Vec<Result1>> {
    let db = place.join("db");
    let mut results: Vec<Result1> = Vec::new();
    let mut is_loaded = false;
    for (number, arm) in arms.iter().enumerate() {
        let path = place.join(format!("run-{number}.json"));
        if let Some(result) = Result1::load(&path).filter(|result| result.name == arm.name) {
            writeln!(out, "{}: done before", arm.name)?;
            results.push(result);
            continue;
        }
        if interrupt.load(Relaxed) {
            break;
        }
        if !is_loaded {
            load(site, &db, interrupt, out)?;
            is_loaded = true;
        }
        // What is needed depends on the disk, too: that of `deadline` on the same, or of the first.
        let alike = results.iter().find(|r| r.is_deadline && r.group == arm.group());
        let need = alike.or(results.first()).map_or(1000.0, need);
        let mut quiet = Vec::new();
        write!(out, "{} ", arm.name)?;
        out.flush()?;
        let result = run_arm(arm, site, &db, need, interrupt, &mut quiet)
            .with_context(|| format!("running {}", arm.name))?;
        let Some(mut result) = result else { break };
        if let Some(wraps) = result.settled_after_wraps() {
            result.extra.push(("settled, log wraps".to_owned(), format!("{wraps:.1}")));
        } else {
            result.extra.push(("settled, log wraps".to_owned(), "not".to_owned()));
        }
        let (tps, cv) = (result.tps, result.cv);
        let verified = if result.verified { "" } else { "  NOT VERIFIED" };
        writeln!(out, "{tps:.0} tps, CV {cv:.3}, age {:.0} %{verified}", 100.0 * result.age_mean)?;
        if result.interrupted {
            results.push(result);
            break;
        }
        result.save(&path)?;
        results.push(result);
    }
    Ok(results)
}

/// Where seed 0's C = 7000 held the age, as part of the log: 13.66 of 20 GiB.
const SEED_AGE: f64 = 0.683;

/// Page writes a second that the work needs at the age that the seeds' work had. `deadline` holds
/// an older one, and writes go with one over the age (`docs/flushing.md` section 1).
fn need(deadline: &Result1) -> f64 {
    let age = deadline.age_mean * deadline.age_limit_bytes as f64;
    let older = age / (SEED_AGE * deadline.log_bytes.max(1) as f64);
    deadline.page_writes_per_second * older.max(1.0)
}

fn recoveries(
    which: &[(&str, &str, usize)],
    site: &Site,
    place: &Path,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Vec<Result1>> {
    let mut results = Vec::new();
    for (number, (name, original, threads)) in which.iter().enumerate() {
        let path = place.join(format!("run-{number}.json"));
        if let Some(result) = Result1::load(&path) {
            results.push(result);
            continue;
        }
        if interrupt.load(Relaxed) {
            break;
        }
        let result = recovery::run(name, original, site, &place.join("db"), *threads)?;
        writeln!(out, "{name}: {:.0} MB of log a second", result.tps)?;
        result.save(&path)?;
        results.push(result);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Finding;

    fn experiment() -> Experiment {
        Experiment {
            number: 99,
            name: "a small one",
            seed: "none",
            found: "nothing",
            missing: "",
            site: |site| Site {
                rows: 5_000,
                log_bytes: 1 << 20,
                pool_bytes: 8 << 20,
                threads: "2".to_owned(),
                warmup: Some(0),
                seconds: 2,
                ..site
            },
            work: Work::Arms(|_| {
                vec![Arm::deadline(), Arm::new("mysql_8", Kind::Mysql8).original("7500 tps")]
            }),
            judge: |results| {
                let tps = results.get("mysql_8").tps;
                Finding::new(tps > 0.0, format!("it has {tps:.0} tps"))
            },
        }
    }

    fn order(dir: &Path) -> Order {
        Order {
            dir: dir.to_owned(),
            quick: true,
            force: false,
            skip_done: false,
            policy: None,
            command: "weir lab run 99".to_owned(),
        }
    }

    #[test]
    fn it_goes_on_where_it_was_stopped_and_replaces_nothing_unasked() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (experiment, order) = (experiment(), order(scratch.path()));
        let (stop, mut out) = (AtomicBool::new(false), Vec::new());
        let done = run(&experiment, &order, &stop, &mut out).expect("it runs");
        let said = String::from_utf8(out).expect("text");
        assert!(done.verified && !done.interrupted && !done.was_done, "{said}");
        assert!(said.contains("The seed's finding holds here: it has"), "{said}");
        assert!(said.contains("deadline beside the best of the others (mysql_8)"), "{said}");
        let html = std::fs::read_to_string(&done.report).expect("a report");
        assert!(html.contains("7500 tps") && html.contains("weir lab run 99"));

        let refused = run(&experiment, &order, &stop, &mut Vec::new()).expect_err("it is there");
        assert!(refused.to_string().contains("--force"), "{refused}");
        let skip = Order { skip_done: true, ..order.clone() };
        assert!(run(&experiment, &skip, &stop, &mut Vec::new()).expect("skipped").was_done);

        // As after a stop between the two arms: the first is not run again.
        std::fs::remove_file(&done.report).expect("removed");
        std::fs::remove_file(scratch.path().join("quick-99/run-1.json")).expect("removed");
        let mut out = Vec::new();
        let again = run(&experiment, &order, &stop, &mut out).expect("it goes on");
        let said = String::from_utf8(out).expect("text");
        assert!(said.contains("deadline: done before") && again.report.exists(), "{said}");

        // Ctrl-C leaves a report of what was seen, under another name.
        std::fs::remove_file(&again.report).expect("removed");
        std::fs::remove_file(scratch.path().join("quick-99/run-1.json")).expect("removed");
        stop.store(true, Relaxed);
        let stopped = run(&experiment, &order, &stop, &mut Vec::new()).expect("it ends");
        assert!(stopped.interrupted && !order.report_path(99).exists());
        assert!(stopped.report.exists(), "{}", stopped.report.display());
    }

    #[test]
    fn one_policy_may_be_asked_for_by_name() {
        let arms =
            || vec![Arm::deadline(), Arm::new("a", Kind::Mysql8), Arm::new("b", Kind::Furious)];
        let names = |policy| -> Result<Vec<String>> {
            Ok(chosen(arms(), policy, 7)?.into_iter().map(|arm| arm.name).collect())
        };
        assert_eq!(names(None).expect("all"), ["deadline", "a", "b"]);
        assert_eq!(names(Some(Kind::Furious)).expect("two"), ["deadline", "b"]);
        let error = names(Some(Kind::Reflex)).expect_err("it has none").to_string();
        assert_eq!(error, "experiment 7 does not run reflex; it has deadline, mysql_8, furious");
    }
}
