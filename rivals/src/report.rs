//! The tables: medians over the rounds, and everything with every second in JSON.

use std::fmt::Write as _;

use serde::Serialize;
use weir_bench::{SetFigure, SetRival};

use crate::cell::{Cell, Opened, Size};
use crate::plan::{Shape, Workload};

/// One store under one workload with one number of threads, over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub workload: String,
    pub threads: usize,
    pub durability: String,
    pub engine: String,
    pub unit: String,
    pub how: String,
    /// Of the rounds' means.
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
    /// The median over rounds of each round's worst second over its mean.
    pub worst_over_mean: Option<f64>,
    /// The median over rounds; it includes the flushes of all other processes.
    pub flushes_per_op: Option<f64>,
    pub suspect: bool,
    pub verified_rows: u64,
    pub size: Option<Size>,
    pub opened: Option<Opened>,
    pub cannot: Option<String>,
    pub rounds: Vec<Cell>,
}

impl Row {
    fn of(cells: Vec<Cell>) -> Row {
        let first = cells[0].clone();
        let of = |value: &dyn Fn(&Cell) -> Option<f64>| -> Vec<f64> {
            cells.iter().filter_map(value).collect()
        };
        let means = of(&|cell| Some(cell.mean));
        let middle = |values: Vec<f64>| (!values.is_empty()).then(|| median(&values));
        let seconds = middle(of(&|cell| Some(cell.opened?.seconds)));
        Row {
            median: median(&means),
            lowest: means.iter().copied().fold(f64::INFINITY, f64::min),
            highest: means.iter().copied().fold(0.0, f64::max),
            worst_over_mean: middle(of(&|cell| cell.worst_over_mean)),
            flushes_per_op: middle(of(&|cell| cell.flushes_per_op)),
            suspect: cells.iter().any(Cell::is_suspect),
            verified_rows: cells.iter().map(|cell| cell.verified_rows).min().unwrap_or(0),
            size: cells.last().and_then(|cell| cell.size),
            opened: first.opened.map(|o| Opened { seconds: seconds.unwrap_or(o.seconds), ..o }),
            workload: first.workload,
            threads: first.threads,
            durability: first.durability,
            engine: first.engine,
            unit: first.unit,
            how: first.how,
            cannot: first.cannot,
            rounds: cells,
        }
    }

    /// How far the rounds lie apart, and the worst second of the middle one.
    fn spread(&self) -> String {
        let (lowest, highest) = (rate(self.lowest), rate(self.highest));
        let rounds = format!("{lowest} to {highest} in {}", self.rounds.len());
        match self.worst_over_mean {
            Some(worst) => format!("{rounds}; worst second {worst:.2} of the mean"),
            None => rounds,
        }
    }

    /// The rate, and the worst second over it.
    pub fn figure(&self) -> String {
        match (&self.cannot, self.worst_over_mean) {
            (Some(why), _) => why.clone(),
            (None, Some(worst)) => format!("{} ({worst:.2})", rate(self.median)),
            (None, None) => rate(self.median),
        }
    }
}

#[derive(Serialize)]
pub struct Report {
    pub command: String,
    pub shape: Shape,
    pub rounds: u64,
    pub interrupted: bool,
    /// What went wrong: these cells are missing.
    pub failures: Vec<String>,
    pub engines: Vec<About>,
    pub rows: Vec<Row>,
}

/// What is known of a store.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    pub name: String,
    pub version: String,
    pub setup: String,
    pub limits: String,
}

/// This machine, as figures name it.
pub fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{processors} processors, {} {}", std::env::consts::OS, std::env::consts::ARCH)
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2],
        len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
    }
}

/// A rate as people read it.
pub fn rate(value: f64) -> String {
    match value {
        v if v >= 1e7 => format!("{:.1} M", v / 1e6),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e5 => format!("{:.0} k", v / 1e3),
        v if v >= 1e3 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// Bytes as people read them.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Gathers cells into rows, in the order in which they first came.
pub fn rows_of(cells: &[Cell]) -> Vec<Row> {
    let mut groups: Vec<Vec<Cell>> = Vec::new();
    for cell in cells {
        let same =
            |group: &&mut Vec<Cell>| group[0].is_same(&cell.workload, cell.threads, &cell.engine);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(cell.clone()),
            None => groups.push(vec![cell.clone()]),
        }
    }
    groups.into_iter().map(Row::of).collect()
}

/// A table with one line for each workload and number of threads, a column for each store.
pub struct Matrix {
    pub head: Vec<String>,
    pub lines: Vec<Vec<String>>,
}

impl Report {
    pub fn row(&self, workload: &str, threads: usize, engine: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.workload == workload && row.threads == threads && row.engine == engine)
    }

    /// Workloads and numbers of threads, in the order in which they run.
    pub fn lines(&self) -> Vec<(String, usize)> {
        let mut lines: Vec<(String, usize)> = Vec::new();
        for row in &self.rows {
            let line = (row.workload.clone(), row.threads);
            if row.engine != "disk" && !lines.contains(&line) {
                lines.push(line);
            }
        }
        let order = |name: &str| crate::plan::ALL.iter().position(|(known, _)| *known == name);
        lines.sort_by_key(|(workload, threads)| (order(workload), *threads));
        lines
    }

    /// The rates as figures of a set: Weir's, and those of the others beside it.
    pub fn figures(&self) -> Vec<SetFigure> {
        let mut figures = Vec::new();
        for (workload, threads) in self.lines() {
            let rows = self.rows.iter().filter(|row| row.engine != "disk" && row.cannot.is_none());
            let rows: Vec<&Row> =
                rows.filter(|row| row.workload == workload && row.threads == threads).collect();
            let Some(own) = rows.iter().find(|row| row.engine == "weir") else { continue };
            let others = rows.iter().filter(|row| row.engine != "weir");
            figures.push(SetFigure {
                workload: format!("{workload}, {threads} threads, {}", own.durability),
                weir: vec![own.median],
                unit: own.unit.clone(),
                spread: own.spread(),
                others: others
                    .map(|row| SetRival {
                        name: row.engine.clone(),
                        rate: row.median,
                        spread: row.spread(),
                    })
                    .collect(),
            });
        }
        figures
    }

    /// All rates.
    pub fn rates(&self) -> Matrix {
        let mut head: Vec<String> =
            ["workload", "threads", "durable", "a second"].map(String::from).to_vec();
        head.extend(self.engines.iter().map(|about| about.name.clone()));
        let mut lines = Vec::new();
        for (workload, threads) in self.lines() {
            let of = |engine: &str| self.row(&workload, threads, engine);
            let Some(first) = self.engines.iter().find_map(|about| of(&about.name)) else {
                continue;
            };
            let mut line = vec![
                workload.clone(),
                threads.to_string(),
                first.durability.clone(),
                first.unit.clone(),
            ];
            line.extend(
                self.engines
                    .iter()
                    .map(|about| of(&about.name).map_or("-".to_string(), Row::figure)),
            );
            lines.push(line);
        }
        Matrix { head, lines }
    }

    /// Room on disk: data, and logs besides.
    pub fn sizes(&self) -> Matrix {
        let head = ["after", "store", "data", "of the rows' bytes", "logs", "greatest of both"];
        let rows = self.rows.iter().filter_map(|row| Some((row, row.size?)));
        let net = self.shape.rows as f64 * (8 + self.shape.value_bytes) as f64;
        let lines = rows.map(|(row, size)| {
            vec![
                row.workload.clone(),
                row.engine.clone(),
                mebibytes(size.data),
                format!("{:.2}", size.data as f64 / net),
                mebibytes(size.log),
                mebibytes(size.greatest),
            ]
        });
        Matrix { head: head.map(String::from).to_vec(), lines: by_workload(lines.collect()) }
    }

    /// What opening took after kill -9.
    pub fn opened(&self) -> Matrix {
        let head = ["store", "open after", "acknowledged, all found", "on disk when killed"];
        let rows = self.rows.iter().filter_map(|row| Some((row, row.opened?)));
        let lines = rows.map(|(row, opened)| {
            vec![
                row.engine.clone(),
                format!("{:.3} s", opened.seconds),
                opened.acknowledged.to_string(),
                mebibytes(opened.bytes),
            ]
        });
        Matrix { head: head.map(String::from).to_vec(), lines: lines.collect() }
    }

    /// The most memory that each store's cells took, where the run has a control group.
    pub fn memory(&self) -> Matrix {
        let head = ["store", "most memory, cached files included", "in"];
        let most = |about: &About| {
            let own = self.rows.iter().filter(|row| row.engine == about.name);
            let cells = own.flat_map(|row| &row.rounds);
            cells.filter_map(|cell| Some((cell.memory_peak_bytes?, cell.workload.clone()))).max()
        };
        let lines = self.engines.iter().filter_map(|about| {
            let (bytes, workload) = most(about)?;
            Some(vec![about.name.clone(), mebibytes(bytes), workload])
        });
        Matrix { head: head.map(String::from).to_vec(), lines: lines.collect() }
    }

    /// What the disk alone did.
    pub fn disk(&self) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row.engine == "disk");
        rows.map(|row| {
            let (low, high) = (rate(row.lowest), rate(row.highest));
            format!("{}: {}/s ({low} to {high})", row.workload, rate(row.median))
        })
        .collect()
    }

    /// What a reader must know besides.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.interrupted {
            notes.push("Interrupted: this is what was seen until then.".to_string());
        }
        notes.extend(self.failures.iter().map(|failure| format!("FAILED: {failure}")));
        for row in self.rows.iter().filter(|row| row.suspect) {
            notes.push(format!(
                "SUSPECT: {} {} x{}: fewer device flushes than commits",
                row.engine, row.workload, row.threads
            ));
        }
        notes
    }

    pub fn about_rows(&self) -> String {
        let shape = &self.shape;
        format!(
            "{} rows, 8-byte keys, {}-byte values, {} rounds of {} s each, cache {} MiB{}",
            shape.rows,
            shape.value_bytes,
            self.rounds,
            shape.seconds,
            shape.cache_bytes >> 20,
            match shape.limits.words() {
                words if words.is_empty() => words,
                words => format!("; limited by the kernel to {words}"),
            }
        )
    }

    pub fn markdown(&self) -> String {
        let mut text = format!("{}\n", self.about_rows());
        for line in self.notes().iter().chain(&self.disk()) {
            let _ = writeln!(text, "- {line}");
        }
        text.push_str("\nMedian rate (worst second over mean):\n\n");
        text.push_str(&self.rates().markdown());
        let more =
            [("Room on disk", self.sizes()), ("Kill -9", self.opened()), ("Memory", self.memory())];
        for (title, matrix) in more {
            if !matrix.lines.is_empty() {
                let _ = write!(text, "\n{title}:\n\n{}", matrix.markdown());
            }
        }
        text
    }
}

/// Lines whose first cell is a workload, those of one workload together.
fn by_workload(mut lines: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let order = |name: &str| {
        name.parse::<Workload>().map_or(usize::MAX, |workload| {
            crate::plan::ALL.iter().position(|(_, known)| *known == workload).unwrap_or(usize::MAX)
        })
    };
    lines.sort_by_key(|line| order(&line[0]));
    lines
}

impl Matrix {
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = vec!["---".to_string(); self.head.len()];
        let mut text = line(&self.head);
        text.push_str(&line(&rule));
        self.lines.iter().for_each(|cells| text.push_str(&line(cells)));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn rounds_of_the_same_become_one_row() {
        let cell = |engine: &str, round, mean: f64| {
            let mut cell = Cell::new(Workload::Read, 2, engine, round);
            cell.saw(vec![mean, mean / 2.0], mean);
            cell
        };
        let cells = [cell("a", 1, 10.0), cell("b", 1, 5.0), cell("a", 2, 30.0), cell("a", 3, 20.0)];
        let rows = rows_of(&cells);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].median, rows[0].lowest, rows[0].highest), (20.0, 10.0, 30.0));
        assert_eq!(rows[0].figure(), "20 (0.50)");
        assert_eq!((rows[1].engine.as_str(), rows[1].rounds.len()), ("b", 1));
    }

    #[test]
    fn weirs_rates_stand_beside_the_others() {
        let cell = |engine: &str, mean: f64| {
            let mut cell = Cell::new(Workload::Read, 2, engine, 1);
            cell.saw(vec![mean], mean);
            cell
        };
        let cells = [cell("weir", 20_000.0), cell("redb", 10_000.0), cell("disk", 500.0)];
        let mut rows = rows_of(&cells);
        let cannot = Some("it was killed".to_owned());
        rows.push(Row { cannot, engine: "b".to_owned(), ..rows[1].clone() });
        let shape = Shape {
            rows: 10,
            value_bytes: 16,
            seconds: 1.0,
            warmup_seconds: 0.0,
            cache_bytes: 1 << 20,
            kill_seconds: 1.0,
            limits: crate::group::Limits::default(),
        };
        let (failures, engines) = (Vec::new(), Vec::new());
        let command = "rivals".to_owned();
        let report =
            Report { command, shape, rounds: 1, interrupted: false, failures, engines, rows };
        let figures = report.figures();
        assert_eq!(figures.len(), 1);
        assert_eq!(figures[0].weir, [20_000.0]);
        let others: Vec<_> = figures[0].others.iter().map(|o| (o.name.as_str(), o.rate)).collect();
        assert_eq!(others, [("redb", 10_000.0)]);
        assert!(figures[0].spread.starts_with("20.0 k to 20.0 k in 1"), "{}", figures[0].spread);
    }

    #[test]
    fn rates_keep_three_digits() {
        let seen = [12.0, 1_234.0, 123_456.0, 1_234_567.0, 12_345_678.0].map(rate);
        assert_eq!(seen, ["12", "1.2 k", "123 k", "1.23 M", "12.3 M"]);
    }
}
