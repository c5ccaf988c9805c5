//! `weir-sim`: random scenarios for so many seconds, or one again.
#![forbid(unsafe_code)]
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use weir::{Clock, SystemClock};
use weir_sim::{Coverage, Planted, Scenario, SessionScenario, Shorten, Tally, shrink};

const USAGE: &str = "\
weir-sim: crashes a database on a simulated disk and looks at what is there afterwards

  --seconds N       run random scenarios for N seconds (60)
  --seed S          the first seed (0); the others follow
  --seeds N         run N scenarios, however long it takes
  --sessions yes    sessions with transactions, instead of single operations
  --planted BUG     plant a bug: skip-log-gate, torn-pages, pages-not-synced, log-not-synced,
                    doublewrite-not-synced, given-up-too-soon, punched-too-soon,
                    holes-handed-out; with --sessions: pin-forgotten,
                    relog-short, row-not-restored, purge-not-noted, snapshot-too-new,
                    locks-not-asked, ranges-not-locked, prepared-short, versions-not-archived,
                    forgotten-too-soon, prepared-forgets-locks, dropped-tree-not-freed,
                    drop-not-locked, index-too-early, pending-forgotten, contents-lack-part,
                    contents-lack-open, contents-lack-ended
  --repeat S        run the scenario of seed S alone
  --crash-after L   with --repeat: crash after these steps (as 12,400)
  --only L          with --repeat: do these operations only (as 0-3,17)";

#[derive(Default)]
struct Args {
    seconds: Option<u64>,
    seeds: Option<u64>,
    seed: u64,
    repeat: Option<u64>,
    sessions: bool,
    planted: Planted,
    crash_after: Option<Vec<u64>>,
    only: Option<Vec<usize>>,
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Args> {
    let mut parsed = Args::default();
    while let Some(name) = args.next() {
        if name == "--help" || name == "-h" {
            println!("{USAGE}");
            std::process::exit(0);
        }
        let value = args.next().with_context(|| format!("{name} needs a value\n\n{USAGE}"))?;
        let number = || value.parse::<u64>().with_context(|| format!("{name}: '{value}'"));
        match name.as_str() {
            "--seconds" => parsed.seconds = Some(number()?),
            "--seeds" => parsed.seeds = Some(number()?),
            "--seed" => parsed.seed = number()?,
            "--repeat" => parsed.repeat = Some(number()?),
            "--sessions" => parsed.sessions = value == "yes",
            "--planted" => {
                let found = Planted::ALL.iter().find(|(known, _)| *known == value);
                parsed.planted =
                    found.with_context(|| format!("no bug is called '{value}'\n\n{USAGE}"))?.1;
            }
            "--crash-after" => {
                let list: Result<Vec<u64>, _> =
                    value.split(',').filter(|part| !part.is_empty()).map(str::parse).collect();
                parsed.crash_after = Some(list.with_context(|| format!("{name}: '{value}'"))?);
            }
            "--only" => parsed.only = Some(numbers(&value)?),
            _ => bail!("unknown option {name}\n\n{USAGE}"),
        }
    }
    Ok(parsed)
}

fn numbers(text: &str) -> Result<Vec<usize>> {
    let mut list = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let wrong = || format!("'{part}' is not a range");
        list.extend(from.parse().with_context(wrong)?..=to.parse::<usize>().with_context(wrong)?);
    }
    Ok(list)
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|args| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{}", format!("{e:#}").trim_end());
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let Some(seed) = args.repeat else { return run_many(args) };
    if args.sessions {
        let scenario = cut(args, &SessionScenario::random(seed, args.planted));
        println!("{:?}\n{:?}", scenario.setup, scenario.crashes);
        for (number, turn) in scenario.kept.iter().zip(&scenario.turns) {
            println!("{number}: {turn:?}");
        }
        println!("{:?}", scenario.run()?);
    } else {
        let scenario = cut(args, &Scenario::random(seed, args.planted));
        println!("{:?}\n{:?}", scenario.setup, scenario.crashes);
        for (number, op) in scenario.kept.iter().zip(&scenario.ops) {
            println!("{number}: {op:?}");
        }
        println!("{:?}", scenario.run()?);
    }
    Ok(())
}

/// Only what the arguments leave of it.
fn cut<S: Shorten>(args: &Args, scenario: &S) -> S {
    let all: Vec<usize> = (0..scenario.count()).collect();
    let after: Vec<u64> = scenario.clone().crashes().iter().map(|c| c.after).collect();
    let (only, after) =
        (args.only.as_ref().unwrap_or(&all), args.crash_after.as_ref().unwrap_or(&after));
    scenario.reduced(only, after)
}

/// Runs the scenario of a seed.
fn run_one(args: &Args, seed: u64) -> Result<(Tally, Coverage)> {
    if args.sessions {
        let scenario = SessionScenario::random(seed, args.planted);
        return scenario.run().map_err(|e| failure(&scenario, scenario.seed, &e));
    }
    let scenario = Scenario::random(seed, args.planted);
    let ran = scenario.run().map(|tally| (tally, Coverage::default()));
    ran.map_err(|e| failure(&scenario, scenario.seed, &e))
}

/// What the hook for panics and the watch over hangs know of each thread: its seed.
static UNDER_WAY: [AtomicU64; 2] = [const { AtomicU64::new(u64::MAX) }; 2];

fn run_many(args: &Args) -> Result<()> {
    std::panic::set_hook(Box::new(|panic| {
        let seeds: Vec<u64> = UNDER_WAY.iter().map(|s| s.load(Ordering::Relaxed)).collect();
        eprintln!("FAILED: panic in one of the seeds {seeds:?} (weir-sim --repeat SEED): {panic}");
    }));
    let clock = Arc::new(SystemClock::new());
    let (next, stop) = (AtomicU64::new(args.seed), AtomicBool::new(false));
    let seconds = args.seconds.unwrap_or(60);
    let results: Vec<Result<(u64, Tally, Coverage)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = UNDER_WAY
            .iter()
            .map(|mine| {
                scope.spawn(|| {
                    let (mut tally, mut seen, mut count) = Default::default();
                    while !stop.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        let over = match args.seeds {
                            Some(seeds) => seed - args.seed >= seeds,
                            None => clock.now_micros() > seconds * 1_000_000,
                        };
                        if over {
                            break;
                        }
                        mine.store(seed, Ordering::Relaxed);
                        match run_one(args, seed) {
                            Ok((one, met)) => {
                                Tally::add(&mut tally, &one);
                                Coverage::add(&mut seen, &met);
                            }
                            Err(e) => {
                                stop.store(true, Ordering::Relaxed);
                                return Err(e);
                            }
                        }
                        count += 1;
                    }
                    Ok((count, tally, seen))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| bail!("a thread panicked")))
            .collect()
    });
    let (mut tally, mut seen, mut count) = (Tally::default(), Coverage::default(), 0);
    for result in results {
        let (ran, one, met) = result?;
        tally.add(&one);
        seen.add(&met);
        count += ran;
    }
    println!("{count} scenarios, none failed: {tally:?}");
    if args.sessions {
        println!("{seen:?}");
    }
    Ok(())
}

/// An error's words without what differs from run to run.
fn kind(e: &anyhow::Error) -> String {
    let text = e.root_cause().to_string();
    text.chars().filter(|c| c.is_alphabetic() || *c == ' ').take(40).collect()
}

/// One line that says what failed and how to see it again.
fn failure<S: Shorten>(scenario: &S, seed: u64, e: &anyhow::Error) -> anyhow::Error {
    // The same failure, that is: shortening must not end at another one.
    let short = shrink(scenario, 600, &mut |candidate| {
        candidate.check().is_err_and(|other| kind(&other) == kind(e))
    });
    let e = short.check().err().map_or_else(|| format!("{e:#}"), |e| format!("{e:#}"));
    let text = format!(
        "FAILED: seed {seed}, {} steps: {e} | repeat: cargo run --release -p weir-sim -- {}",
        short.count(),
        short.arguments()
    );
    anyhow::anyhow!(text.replace('\n', " "))
}
