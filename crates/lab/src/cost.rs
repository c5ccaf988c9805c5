//! What it costs to be watched: updates in memory, where processor time is all that limits them,
//! and beside them, for some seconds in turn, somebody who asks for the live page's data and for
//! the metrics once a second. One process, so that only the asking differs.
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Seconds in a row that are alike.
const TURN_SECONDS: usize = 5;

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Transactions per second while nobody asked.
    pub alone: f64,
    /// While somebody did.
    pub watched: f64,
    /// The part of the throughput that being watched took: the mean over the turns.
    pub lost: f64,
    /// Standard error of that mean.
    pub error: f64,
    /// Pairs of turns.
    pub rounds: usize,
}

impl Cost {
    /// From seconds in turns, the first alone. The first second of each turn is left out: asking
    /// begins and ends within it. `None` without two whole pairs.
    fn of(tps: &[f64]) -> Option<Cost> {
        let turns: Vec<f64> = tps
            .chunks_exact(TURN_SECONDS)
            .map(|turn| turn[1..].iter().sum::<f64>() / (TURN_SECONDS - 1) as f64)
            .collect();
        let pairs: Vec<(f64, f64)> = turns.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        if pairs.len() < 2 {
            return None;
        }
        let count = pairs.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
        let part = |pair: &(f64, f64)| 1.0 - pair.1 / pair.0;
        let lost = mean(&part);
        let variance = mean(&|pair| (part(pair) - lost).powi(2)) * count / (count - 1.0);
        Some(Cost {
            alone: mean(&|pair| pair.0),
            watched: mean(&|pair| pair.1),
            lost,
            error: (variance / count).sqrt(),
            rounds: pairs.len(),
        })
    }
}

#[derive(Deserialize)]
struct Seen {
    series: Series,
    verified: bool,
}

#[derive(Deserialize)]
struct Series {
    tps: Vec<f64>,
}

/// Measures it: `rounds` turns of each kind, on a database in `dir`. `None` when interrupted.
///
/// # Errors
/// When the other process cannot be started or does not do what it should.
pub fn cost(
    dir: &Path,
    rounds: usize,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Option<Cost>> {
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let json = dir.join("cost.json");
    let seconds = 2 * TURN_SECONDS * rounds.max(2);
    writeln!(
        out,
        "{seconds} s of lazy updates in memory; asked once a second in every other turn"
    )?;
    let mut child = start(dir, &json, seconds)?;
    let watched = watch(&mut child, interrupt);
    if watched.is_err() || interrupt.load(Relaxed) {
        // Whatever it says, it is not to be waited for.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let asked = watched?;
    if interrupt.load(Relaxed) {
        return Ok(None);
    }
    ensure!(status.success(), "the run that was to be watched failed: {status}");
    let text = std::fs::read(&json).with_context(|| format!("reading {}", json.display()))?;
    let seen: Seen = serde_json::from_slice(&text)?;
    ensure!(seen.verified, "the run that was to be watched lost something");
    let cost = Cost::of(&seen.series.tps).context("it ended early")?;
    writeln!(
        out,
        "alone {:.0} tps, watched {:.0} tps ({asked} answers): {:.2} % lost, standard error \
         {:.2} %, {} turns of each",
        cost.alone,
        cost.watched,
        100.0 * cost.lost,
        100.0 * cost.error,
        cost.rounds,
    )?;
    Ok(Some(cost))
}

fn start(dir: &Path, json: &Path, seconds: usize) -> Result<Child> {
    let program = std::env::current_exe().context("finding the program to watch")?;
    Command::new(program)
        .args(["bench", "update", "--plain", "--no-raw", "--durability", "lazy", "--force"])
        .args(["--threads", "2", "--log", "1GiB", "--warmup", "5", "--http", "127.0.0.1:0"])
        .args(["--seconds", &seconds.to_string()])
        .arg("--json")
        .arg(json)
        .arg("--dir")
        .arg(dir.join("cost"))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .context("starting the process to be watched")
}

/// Reads the other process's lines, one a second, and asks it in every other turn. Returns how many
/// answers there were.
fn watch(child: &mut Child, interrupt: &AtomicBool) -> Result<usize> {
    let lines = child.stdout.take().context("its lines")?;
    let (mut address, mut warm_up, mut second, mut asked, mut rows) = (None, 0, 0, 0, 0);
    for line in BufReader::new(lines).lines() {
        let line = line?;
        if interrupt.load(Relaxed) {
            break;
        }
        if let Some(rest) = line.strip_prefix("live ") {
            let url = rest.split_whitespace().next().unwrap_or_default();
            address = Some(url.trim_start_matches("http://").trim_end_matches('/').to_owned());
        }
        if !line.contains(" tps   age ") {
            continue;
        }
        if line.contains("(warm-up)") {
            warm_up += 1;
            continue;
        }
        second += 1;
        if (second / TURN_SECONDS) % 2 == 1 {
            let address = address.as_deref().context("it does not say where it listens")?;
            // What a page that has been open for a while asks for, and what Prometheus does.
            for path in [format!("/data.json?from={rows}"), "/metrics".to_owned()] {
                get(address, &path)?;
                asked += 1;
            }
            // The page has all rows up to now, those of the warm-up included.
            rows = warm_up + second;
        }
    }
    Ok(asked)
}

fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).with_context(|| format!("asking {address}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    if !text.contains(" 200 ") {
        bail!("{address}{path} answers {}", text.lines().next().unwrap_or_default());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_mean_over_pairs_of_turns() {
        let turn = |tps: f64| [1.0, tps, tps, tps, tps];
        let seconds = [turn(100.0), turn(99.0), turn(200.0), turn(194.0), turn(1.0)].concat();
        let cost = Cost::of(&seconds).expect("two pairs");
        assert_eq!((cost.alone, cost.watched, cost.rounds), (150.0, 146.5, 2));
        assert!((cost.lost - 0.02).abs() < 1e-12, "1 % and 3 %: {cost:?}");
        assert!((cost.error - 0.01).abs() < 1e-12, "{cost:?}");
        assert_eq!(Cost::of(&turn(100.0)), None);
    }
}
