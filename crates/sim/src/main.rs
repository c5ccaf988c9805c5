//! `weir-sim`: random scenarios for so many seconds, or one again.
#![forbid(unsafe_code)]
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use weir::{Clock, SystemClock};
use weir_sim::{Planted, Scenario, Tally, shrink};

const USAGE: &str = "\
weir-sim: crashes a database on a simulated disk and looks at what is there afterwards

  --seconds N       run random scenarios for N seconds (60)
  --seed S          the first seed (0); the others follow
  --seeds N         run N scenarios, however long it takes
  --planted BUG     plant a bug: skip-log-gate, torn-pages, pages-not-synced, log-not-synced,
                    doublewrite-not-synced
  --repeat S        run the scenario of seed S alone
  --crash-after L   with --repeat: crash after these steps (as 12,400)
  --only L          with --repeat: do these operations only (as 0-3,17)";

#[derive(Default)]
struct Args {
    seconds: Option<u64>,
    seeds: Option<u64>,
    seed: u64,
    repeat: Option<u64>,
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
            "--planted" => {
                let found = Planted::ALL.iter().find(|(known, _)| *known == value);
                parsed.planted =
                    found.with_context(|| format!("no bug is called '{value}'\n\n{USAGE}"))?.1;
            }
            "--crash-after" => {
                let list: Result<Vec<u64>, _> = value.split(',').map(str::parse).collect();
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
    if let Some(seed) = args.repeat {
        let mut scenario = Scenario::random(seed, args.planted);
        let all: Vec<usize> = (0..scenario.ops.len()).collect();
        let after: Vec<u64> = scenario.crashes.iter().map(|c| c.after).collect();
        scenario = scenario.reduced(
            args.only.as_deref().unwrap_or(&all),
            args.crash_after.as_ref().unwrap_or(&after),
        );
        println!("{:?}\n{:?}", scenario.setup, scenario.crashes);
        for (number, op) in scenario.kept.iter().zip(&scenario.ops) {
            println!("{number}: {op:?}");
        }
        println!("{:?}", scenario.run()?);
        return Ok(());
    }
    run_many(args)
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
    let results: Vec<Result<(u64, Tally)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = UNDER_WAY
            .iter()
            .map(|mine| {
                scope.spawn(|| {
                    let (mut tally, mut count) = (Tally::default(), 0);
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
                        let scenario = Scenario::random(seed, args.planted);
                        match scenario.run() {
                            Ok(one) => tally.add(&one),
                            Err(e) => {
                                stop.store(true, Ordering::Relaxed);
                                return Err(failure(&scenario, &e));
                            }
                        }
                        count += 1;
                    }
                    Ok((count, tally))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|_| bail!("a thread panicked")))
            .collect()
    });
    let (mut tally, mut count) = (Tally::default(), 0);
    for result in results {
        let (ran, one) = result?;
        tally.add(&one);
        count += ran;
    }
    println!("{count} scenarios, none failed: {tally:?}");
    Ok(())
}

/// An error's words without what differs from run to run.
fn kind(e: &anyhow::Error) -> String {
    let text = e.root_cause().to_string();
    text.chars().filter(|c| c.is_alphabetic() || *c == ' ').take(40).collect()
}

/// One line that says what failed and how to see it again.
fn failure(scenario: &Scenario, e: &anyhow::Error) -> anyhow::Error {
    // The same failure, that is: shortening must not end at another one.
    let short = shrink(scenario, 600, &mut |candidate| {
        candidate.run().is_err_and(|other| kind(&other) == kind(e))
    });
    let e = short.run().err().map_or_else(|| format!("{e:#}"), |e| format!("{e:#}"));
    let text = format!(
        "FAILED: seed {} with {:?}, {} operations: {e} | repeat: cargo run --release -p weir-sim \
         -- {}",
        short.seed,
        short.setup,
        short.ops.len(),
        short.arguments()
    );
    anyhow::anyhow!(text.replace('\n', " "))
}
