//! What it costs to be watched: updates in memory, where processor time is all that limits them,
//! and beside them, in every other second or so, a client that asks for the live page's data and
//! for the metrics. One process, so that only the asking differs.
//!
//! Seconds come as none, asked, asked, none, and then the other way round: a machine that becomes
//! slower or faster at a steady pace does not show in the comparison of such a round, and what
//! comes and goes has no rhythm to hit. What is shown is the median of the rounds, with bounds that
//! need no assumption about what disturbs them: a build that begins in the middle spoils a round.
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Seconds of a round: two of each kind.
const ROUND_SECONDS: usize = 4;
/// With fewer rounds there are no bounds for the median.
const ROUNDS_MIN: usize = 6;
/// How often the bounds may be wrong.
const DOUBT: f64 = 0.05;

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Transactions per second while no client asked.
    pub alone: f64,
    /// While a client did.
    pub watched: f64,
    /// The part of the throughput that being watched took: the median over the rounds. Below zero
    /// where the seconds with a client asking happened to be the better ones.
    pub lost: f64,
    /// It is between this
    pub low: f64,
    /// and this, with a confidence of at least 95 %.
    pub high: f64,
    /// Rounds.
    pub rounds: usize,
}

/// Whether the client asks in this measured second.
fn is_watched(second: usize) -> bool {
    matches!(second % ROUND_SECONDS, 1 | 2) == (second / ROUND_SECONDS).is_multiple_of(2)
}

impl Cost {
    /// From the measured seconds. `None` with too few of them.
    fn of(tps: &[f64]) -> Option<Cost> {
        let rounds: Vec<(f64, f64)> =
            (0..tps.len() / ROUND_SECONDS).map(|i| round(tps, i)).collect();
        if rounds.len() < ROUNDS_MIN {
            return None;
        }
        let mut parts: Vec<f64> =
            rounds.iter().map(|(alone, watched)| 1.0 - watched / alone.max(1e-9)).collect();
        parts.sort_by(f64::total_cmp);
        let count = parts.len();
        let outside = outside(count);
        let mean = |of: fn(&(f64, f64)) -> f64| rounds.iter().map(of).sum::<f64>() / count as f64;
        Some(Cost {
            alone: mean(|round| round.0),
            watched: mean(|round| round.1),
            lost: (parts[(count - 1) / 2] + parts[count / 2]) / 2.0,
            low: parts[outside],
            high: parts[count - 1 - outside],
            rounds: count,
        })
    }

    /// In a line.
    fn text(&self) -> String {
        format!(
            "alone {:.0} tps, watched {:.0} tps: {:.2} % lost, between {:.2} and {:.2} % (median \
             of {} rounds, 95 %)",
            self.alone,
            self.watched,
            100.0 * self.lost,
            100.0 * self.low,
            100.0 * self.high,
            self.rounds,
        )
    }
}

/// Mean rates of a round, alone and watched.
fn round(tps: &[f64], round: usize) -> (f64, f64) {
    let (mut alone, mut watched) = (0.0, 0.0);
    for (second, tps) in tps.iter().enumerate().skip(round * ROUND_SECONDS).take(ROUND_SECONDS) {
        *(if is_watched(second) { &mut watched } else { &mut alone }) += tps;
    }
    let seconds = ROUND_SECONDS as f64 / 2.0;
    (alone / seconds, watched / seconds)
}

/// How many of `count` sorted values lie outside of the median's bounds on either side: as many as
/// heads may come up in so many throws of a coin without a cause.
fn outside(count: usize) -> usize {
    let mut probability = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut below, mut heads) = (probability, 0);
    while 2.0 * below <= DOUBT {
        heads += 1;
        probability *= (count + 1 - heads) as f64 / heads as f64;
        below += probability;
    }
    heads.saturating_sub(1)
}

#[derive(Deserialize)]
struct Seen {
    verified: bool,
}

/// Measures it in `rounds` rounds of four seconds, on a database in `dir`. When interrupted: from
/// what was seen until then, `None` if that is too little.
///
/// # Errors
/// When the other process cannot be started or does not do what it should.
pub fn cost(
    dir: &Path,
    rounds: usize,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<Option<Cost>> {
    ensure!(rounds >= ROUNDS_MIN, "{rounds} rounds tell nothing; it takes {ROUNDS_MIN} or more");
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let json = dir.join("cost.json");
    let seconds = ROUND_SECONDS * rounds;
    writeln!(out, "{seconds} s of lazy updates in memory; a client asks in half of them")?;
    let mut child = start(dir, &json, seconds)?;
    let mut watch = Watch::default();
    let watched = watch.run(&mut child, interrupt);
    let interrupted = interrupt.load(Relaxed);
    if watched.is_err() || interrupted {
        // Whatever it says, it is not to be waited for.
        let _ = child.kill();
    }
    let status = child.wait()?;
    if !interrupted {
        watched?;
        ensure!(status.success(), "the run that was to be watched failed: {status}");
        let text = std::fs::read(&json).with_context(|| format!("reading {}", json.display()))?;
        let seen: Seen = serde_json::from_slice(&text)?;
        ensure!(seen.verified, "the run that was to be watched lost something");
    }
    let cost = Cost::of(&watch.tps);
    ensure!(cost.is_some() || interrupted, "it ended early");
    if let Some(cost) = &cost {
        writeln!(out, "{} answers; {}", watch.answers, cost.text())?;
    }
    Ok(cost)
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

/// A thread that reads the other process's lines, one a second, and asks it in every other second.
#[derive(Default)]
struct Watch {
    address: Option<String>,
    warm_up: usize,
    /// What was done in each measured second.
    tps: Vec<f64>,
    answers: usize,
}

impl Watch {
    fn run(&mut self, child: &mut Child, interrupt: &AtomicBool) -> Result<()> {
        let lines = child.stdout.take().context("its lines")?;
        for line in BufReader::new(lines).lines() {
            let line = line?;
            if interrupt.load(Relaxed) {
                break;
            }
            self.line(&line)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(rest) = line.strip_prefix("live ") {
            let url = rest.split_whitespace().next().unwrap_or_default();
            self.address = Some(url.trim_start_matches("http://").trim_end_matches('/').to_owned());
        }
        let Some(tps) = tps_of(line) else { return Ok(()) };
        if line.contains("(warm-up)") {
            self.warm_up += 1;
        } else {
            self.tps.push(tps);
        }
        // The second that begins now. The first measured one is not watched, so no warm-up is.
        if !is_watched(self.tps.len()) {
            return Ok(());
        }
        let address = self.address.as_deref().context("it does not say where it listens")?;
        // What a page asks for that has been open for a while, and has all rows but the last, those
        // of the warm-up included; and what Prometheus asks for.
        let rows = self.warm_up + self.tps.len() - 1;
        for path in [format!("/data.json?from={rows}"), "/metrics".to_owned()] {
            get(address, &path)?;
            self.answers += 1;
        }
        Ok(())
    }
}

/// The rate in a line of a run.
fn tps_of(line: &str) -> Option<f64> {
    let (before, _) = line.split_once(" tps   age ")?;
    before.split_whitespace().next_back()?.replace(',', "").parse().ok()
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

    /// Rounds of which the one numbered `i` loses the part `lost(i)`, on a machine that becomes
    /// slower from second to second.
    fn rounds(count: usize, slower: f64, lost: impl Fn(usize) -> f64) -> Vec<f64> {
        let one = |second: usize| {
            let part = if is_watched(second) { lost(second / ROUND_SECONDS) } else { 0.0 };
            (1000.0 - slower * second as f64) * (1.0 - part)
        };
        (0..count * ROUND_SECONDS).map(one).collect()
    }

    #[test]
    fn seconds_of_both_kinds_come_first_as_often() {
        let shown: String =
            (0..16).map(|second| if is_watched(second) { '1' } else { '0' }).collect();
        assert_eq!(shown, "0110100101101001");
    }

    #[test]
    fn a_steady_drift_does_not_show() {
        let cost = Cost::of(&rounds(20, 3.0, |_| 0.02)).expect("enough");
        assert!((cost.lost - 0.02).abs() < 1e-4, "{cost:?}");
        assert!(cost.high - cost.low < 1e-4, "{cost:?}");
        assert_eq!(cost.rounds, 20);
    }

    #[test]
    fn a_few_rounds_that_were_disturbed_do_not_decide() {
        let spoilt = |round: usize| if round.is_multiple_of(7) { 0.6 } else { 0.004 };
        let cost = Cost::of(&rounds(20, 0.0, spoilt)).expect("enough");
        assert!((cost.lost - 0.004).abs() < 1e-9 && cost.high < 0.01, "{cost:?}");
        let restless = |round: usize| 0.005 * round as f64 - 0.02;
        let cost = Cost::of(&rounds(9, 0.0, restless)).expect("enough");
        assert!((cost.lost).abs() < 1e-9, "the fifth of nine: {cost:?}");
        assert!((cost.low + 0.015).abs() < 1e-9 && (cost.high - 0.015).abs() < 1e-9, "{cost:?}");
        assert_eq!(Cost::of(&rounds(5, 0.0, |_| 0.0)), None);
    }

    #[test]
    fn bounds_of_the_median_are_those_of_the_sign_test() {
        // As in tables of the sign test, both sides, 5 %.
        let table = [(6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (20, 5), (25, 7), (50, 17)];
        for (count, below) in table {
            assert_eq!(outside(count), below, "{count}");
        }
    }

    #[test]
    fn the_rate_is_read_from_the_line() {
        let line = "   12 s   311,234 tps   age  97.1 %   dirty  19,001   p99 2.1 ms";
        assert_eq!(tps_of(line), Some(311_234.0));
        assert_eq!(tps_of("loading"), None);
    }
}
