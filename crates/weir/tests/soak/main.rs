//! Whether work goes on, whatever an operator changes beside it. Threads change and read rows while
//! others resize pool and log, fill the disk and empty it, compact, load, drop, copy and back up.
//! Asserted: there is no stretch of time without a commit, the checkpoint's age keeps its limit,
//! every call of the operator's ends and so does closing; and in the end, or after kill -9, all
//! rows are as a journal beside the database says.
//!
//! A round is a process of its own: one that stands still can be ended, and looked at before
//! (`WEIR_SOAK_STAY=1` leaves it standing). A few short rounds belong to the tests. By hand:
//!
//! ```text
//! WEIR_SOAK_SECONDS=3600 cargo test --profile checked -p weir --test soak -- --nocapture
//! WEIR_SOAK_SEED=17 ... for that seed alone, WEIR_SOAK_FIRST=17 ... for those from it on,
//! WEIR_SOAK_ROUND_SECONDS=60 ... for longer rounds, WEIR_SOAK_DIR=... on another disk,
//! WEIR_SOAK_LOOK=1 for a look at all rows after each round,
//! WEIR_SOAK_WITHOUT=pool,compact for less that is changed.
//! ```
mod journal;
mod operator;
mod plan;
mod readers;
mod round;
mod watch;
mod workers;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plan::{End, Plan};

/// Seeds of the short run, of both page stores, and how long each round of theirs is.
const SEEDS_SHORT: [u64; 2] = [2, 3];
const ROUND_SECONDS_SHORT: u64 = 2;
const ROUND_SECONDS_LONG: u64 = 12;
/// What a round may take besides its own time: opening, and ending. Far more than any does.
const ROUND_SECONDS_BESIDES: u64 = 600;
const CHILD: &str = "one_round";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn work_goes_on_whatever_an_operator_changes() {
    let long = number("WEIR_SOAK_SECONDS");
    let default = if long.is_some() { ROUND_SECONDS_LONG } else { ROUND_SECONDS_SHORT };
    let seconds = number("WEIR_SOAK_ROUND_SECONDS").unwrap_or(default);
    if let Some(seed) = number("WEIR_SOAK_SEED") {
        return run_seed(seed, seconds);
    }
    let Some(long) = long else {
        return SEEDS_SHORT.into_iter().for_each(|seed| run_seed(seed, seconds));
    };
    let (began, first) = (Instant::now(), number("WEIR_SOAK_FIRST").unwrap_or(1));
    let goes_on = |_: &u64| began.elapsed() < Duration::from_secs(long);
    (first..).take_while(goes_on).for_each(|seed| run_seed(seed, seconds));
}

/// Rounds of one database.
fn run_seed(seed: u64, seconds: u64) {
    let above = std::env::var_os("WEIR_SOAK_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::Builder::new().prefix("weir-soak-").tempdir_in(above).expect("made");
    let again = format!(
        "again: WEIR_SOAK_SEED={seed} WEIR_SOAK_ROUND_SECONDS={seconds} cargo test --profile \
         checked -p weir --test soak work -- --nocapture"
    );
    let first = Plan::of(seed, 0, seconds);
    println!("seed {seed}: {first}");
    for number in 0..first.rounds {
        let mut failed = run_round(dir.path(), &Plan::of(seed, number, seconds));
        if std::env::var_os("WEIR_SOAK_LOOK").is_some() && failed.is_ok() {
            // Of a copy, which recovers in peace.
            let copy = tempfile::tempdir_in(dir.path()).expect("made");
            failed = copy_and_look(dir.path(), copy.path(), &first);
        }
        if let Err(why) = failed {
            let kept = dir.keep();
            panic!("seed {seed}, round {number}: {why}\nkept: {}\n{again}", kept.display());
        }
    }
    if let Err(why) = round::look_at_all(dir.path(), &first) {
        panic!("seed {seed}: {why}\nkept: {}\n{again}", dir.keep().display());
    }
}

fn copy_and_look(dir: &Path, copy: &Path, plan: &Plan) -> Result<(), String> {
    std::fs::create_dir(copy.join("db")).map_err(|e| e.to_string())?;
    for entry in std::fs::read_dir(dir.join("db")).map_err(|e| e.to_string())? {
        let entry = entry.map_err(|e| e.to_string())?;
        std::fs::copy(entry.path(), copy.join("db").join(entry.file_name()))
            .map_err(|e| e.to_string())?;
    }
    for thread in 0..plan.threads {
        let _ = std::fs::copy(
            journal::Journal::path(dir, thread),
            journal::Journal::path(copy, thread),
        );
    }
    round::look_at_all(copy, plan)
}

/// A process, ended by its own or killed.
fn run_round(dir: &Path, plan: &Plan) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let (began_file, mut begun) = (dir.join("begun"), None);
    let _ = std::fs::remove_file(&began_file);
    let mut child = Command::new(program)
        .args(["--exact", CHILD, "--nocapture", "--quiet"])
        .env("WEIR_SOAK_CHILD", dir)
        .env("WEIR_SOAK_SEED", plan.seed.to_string())
        .env("WEIR_SOAK_ROUND", plan.number.to_string())
        .env("WEIR_SOAK_ROUND_SECONDS", plan.seconds.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let started = Instant::now();
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("the process ended with {status}")),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
        if begun.is_none() && began_file.exists() {
            begun = Some(Instant::now());
        }
        let since = |at: Instant| at.elapsed() > Duration::from_secs(plan.seconds);
        if plan.end == End::Killed && begun.is_some_and(since) {
            child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
            return Ok(());
        }
        let may_take = Duration::from_secs(plan.seconds + ROUND_SECONDS_BESIDES);
        if started.elapsed() > may_take && std::env::var_os("WEIR_SOAK_STAY").is_none() {
            child.kill().and_then(|()| child.wait()).map_err(|e| e.to_string())?;
            return Err("the process did not end".into());
        }
    }
}

/// What each process of the test above does. Where none asks for it there is nothing to do.
#[test]
fn one_round() {
    let Some(dir) = std::env::var_os("WEIR_SOAK_CHILD") else { return };
    let seed = number("WEIR_SOAK_SEED").expect("a seed");
    let round = number("WEIR_SOAK_ROUND").expect("a round");
    let seconds = number("WEIR_SOAK_ROUND_SECONDS").expect("a time");
    round::run(Path::new(&dir), &Plan::of(seed, round, seconds));
}
