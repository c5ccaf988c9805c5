//! One engine, one workload, one disk: what a program has said of it.
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// What was seen of one engine at one workload.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// `tpcc`, or a workload of sysbench's.
    pub workload: String,
    /// `free` or `limited`.
    pub disk: String,
    /// Whether the server wrote its binary log.
    pub binlog: bool,
    /// Connections.
    pub clients: u64,
    /// `innodb`, `tuned`, `myrocks` or `weir`.
    pub engine: String,
    /// Transactions a second, mean of the measured seconds.
    pub tps: f64,
    /// Standard deviation of the seconds over their mean.
    pub cv: f64,
    /// The worst second over the mean.
    pub worst_second_over_mean: f64,
    /// Seconds below a tenth of the mean.
    pub stalled_seconds: u64,
    /// 99th percentile, milliseconds.
    pub p99_millis: f64,
    /// Bytes of redo for each transaction, the warm-up's included.
    pub redo_bytes_per_transaction: Option<f64>,
    /// Whether what is there afterwards is what must be; `None`: only all cells of a table together
    /// were looked at.
    pub verified: Option<bool>,
    /// Transactions of each measured second.
    pub seconds: Vec<f64>,
}

impl Cell {
    /// The same work on the same disk.
    #[must_use]
    pub fn is_beside(&self, other: &Cell) -> bool {
        self.workload == other.workload
            && self.disk == other.disk
            && self.binlog == other.binlog
            && self.clients == other.clients
    }

    /// From a file's name: `workload.disk.binlog-off.clients.engine`.
    fn named(name: &str) -> Option<Cell> {
        let mut parts = name.split('.');
        let mut next = || parts.next().map(str::to_owned);
        let (workload, disk, binlog) = (next()?, next()?, next()?);
        let (clients, engine) = (next()?.parse().ok()?, next()?);
        let binlog = binlog == "binlog-on";
        Some(Cell { workload, disk, binlog, clients, engine, ..Cell::default() })
    }

    fn take_seconds(&mut self, seconds: Vec<f64>) {
        let count = seconds.len().max(1) as f64;
        let mean = seconds.iter().sum::<f64>() / count;
        let variance = seconds.iter().map(|tps| (tps - mean).powi(2)).sum::<f64>() / count;
        let worst = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        self.tps = mean;
        if mean > 0.0 {
            self.cv = variance.sqrt() / mean;
            self.worst_second_over_mean = worst / mean;
        }
        self.stalled_seconds = seconds.iter().filter(|&&tps| tps < mean / 10.0).count() as u64;
        self.seconds = seconds;
    }
}

/// The number that begins behind `mark`.
fn number_after(text: &str, mark: &str) -> Option<f64> {
    let rest = text.split_once(mark)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// What sysbench printed, once or several times, with the line that `cells.sh` adds. Each time
/// begins with the warm-up.
fn read_sysbench(cell: &mut Cell, text: &str) -> Result<()> {
    let ours = text.lines().find(|line| line.starts_with("compare: "));
    let ours = ours.context("the run did not end")?;
    let warmup = number_after(ours, "warm-up").context("no warm-up")?;
    let reports = text.lines().filter(|line| line.starts_with("[ "));
    let all: Vec<(f64, f64)> = reports
        .filter_map(|line| number_after(line, "[").zip(number_after(line, "tps:")))
        .collect();
    let seconds: Vec<f64> =
        all.iter().filter(|(at, _)| *at > warmup).map(|(_, tps)| *tps).collect();
    if seconds.is_empty() {
        bail!("{} seconds, of which {warmup} each time are the warm-up", all.len());
    }
    cell.take_seconds(seconds);
    let each = |mark: &'static str| text.lines().filter_map(move |line| number_after(line, mark));
    // The worst of its times.
    cell.p99_millis = each("99th percentile:").fold(0.0, f64::max);
    let transactions = Some(each("transactions:").sum()).filter(|&count: &f64| count > 0.0);
    let redo = number_after(ours, "redo");
    cell.redo_bytes_per_transaction = redo.zip(transactions).map(|(redo, count)| redo / count);
    Ok(())
}

/// The JSON of `weir bench tpcc`.
fn read_tpcc(cell: &mut Cell, text: &str) -> Result<()> {
    let run: Value = serde_json::from_str(text)?;
    let series = run["series"]["tps"].as_array().context("no seconds")?;
    cell.take_seconds(series.iter().filter_map(Value::as_f64).collect());
    cell.p99_millis = run["latency_micros"]["p99"].as_f64().unwrap_or(0.0) / 1e3;
    cell.verified = run["verified"].as_bool();
    Ok(())
}

/// All cells of a directory, in the order of their names.
pub(super) fn read_all(directory: &Path) -> Result<Vec<Cell>> {
    let listed = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let mut cells = Vec::new();
    for path in paths {
        let end = path.extension().and_then(|end| end.to_str());
        let (Some(end @ ("out" | "json")), Some(stem)) = (end, path.file_stem()) else { continue };
        let mut cell = Cell::named(&stem.to_string_lossy())
            .with_context(|| format!("{} is named like no cell", path.display()))?;
        let text = std::fs::read_to_string(&path)?;
        let read = if end == "out" { read_sysbench } else { read_tpcc };
        read(&mut cell, &text).with_context(|| format!("reading {}", path.display()))?;
        cells.push(cell);
    }
    Ok(cells)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const SYSBENCH: &str = "\
[ 1s ] thds: 8 tps: 10.00 qps: 10.00 (r/w/o: 0.00/10.00/0.00) lat (ms,99%): 9.91 err/s: 0.00
[ 2s ] thds: 8 tps: 300.50 qps: 10.00 (r/w/o: 0.00/10.00/0.00) lat (ms,99%): 9.91 err/s: 0.00
[ 3s ] thds: 8 tps: 100.50 qps: 10.00 (r/w/o: 0.00/10.00/0.00) lat (ms,99%): 9.91 err/s: 0.00
SQL statistics:
    transactions:                        411    (137.00 per sec.)
Latency (ms):
         99th percentile:                       12.50
compare: warm-up 1 redo 4110
";

    #[test]
    fn what_sysbench_says_is_understood() {
        let mut cell = Cell::named("oltp_insert.free.binlog-on.8.weir").expect("a name");
        assert!(cell.binlog && cell.clients == 8 && cell.engine == "weir");
        read_sysbench(&mut cell, SYSBENCH).expect("understood");
        assert_eq!(cell.seconds, [300.5, 100.5]);
        assert!((cell.tps - 200.5).abs() < 1e-9 && (cell.cv - 100.0 / 200.5).abs() < 1e-9);
        assert!((cell.worst_second_over_mean - 100.5 / 200.5).abs() < 1e-9);
        assert!((cell.p99_millis - 12.5).abs() < 1e-9);
        assert_eq!(cell.redo_bytes_per_transaction, Some(10.0));
        let twice = [&SYSBENCH[..SYSBENCH.find("compare:").expect("ours")], SYSBENCH].concat();
        read_sysbench(&mut cell, &twice).expect("understood");
        assert_eq!(cell.seconds, [300.5, 100.5, 300.5, 100.5], "each time's warm-up left out");
        assert_eq!(cell.redo_bytes_per_transaction, Some(5.0), "of both times' transactions");
        let cut = SYSBENCH.replace("compare:", "");
        assert!(read_sysbench(&mut cell, &cut).is_err(), "it did not end");
        assert!(Cell::named("tpcc.free").is_none());
    }

    #[test]
    fn what_our_tpcc_says_is_understood() {
        let mut cell = Cell::named("tpcc.limited.binlog-off.8.myrocks").expect("a name");
        let json = r#"{"series": {"tps": [100.0, 100.0, 1.0]}, "verified": false,
            "latency_micros": {"p99": 2500}}"#;
        read_tpcc(&mut cell, json).expect("understood");
        assert_eq!((cell.verified, cell.stalled_seconds), (Some(false), 1));
        assert!((cell.p99_millis - 2.5).abs() < 1e-9);
    }
}
