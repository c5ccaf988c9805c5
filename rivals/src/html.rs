//! The report as one page that needs no network: the page of `weir bench`, with a chart for each
//! workload instead of those of one run.

use weir_bench::page::{Page, Run, Table};

use crate::plan::Workload;
use crate::report::{Matrix, Report, Row, mebibytes, rate};
use crate::stores;

/// The page of this report.
pub fn page(report: &Report) -> Page {
    let mut tables = vec![best_rates(report)];
    let hints = [
        (
            report.sizes(),
            "Room on disk",
            "Blocks of the closed store's files. Logs are there \
         whatever the data is; Weir's is as large as it was made.",
        ),
        (
            report.opened(),
            "Opened after kill -9",
            "A process with 8 threads of synced updates was \
         killed; its store was opened, with what the kernel had cached, until the first row was \
         read. Every row was then read back: each was at the version that had been acknowledged, \
         or at the next.",
        ),
    ];
    tables.extend(hints.map(|(matrix, title, hint)| table(matrix, title, hint)));
    tables.extend([setups(report), workloads(report), details(report)]);
    tables.retain(|table| !table.rows.is_empty());
    let runs = report.lines().into_iter().flat_map(|(workload, threads)| {
        let group = format!("{workload}, {threads} threads");
        let rows = report.rows.iter();
        rows.filter(move |row| row.workload == workload && row.threads == threads)
            .filter_map(move |row| Some(Run::in_group(&group, &row.engine, seconds(row)?).json()))
    });
    Page {
        title: "rivals".to_string(),
        subtitle: report.about_rows(),
        notes: report.notes(),
        tables,
        runs: runs.collect(),
        command: report.command.clone(),
        about: about(report),
        ..Page::default()
    }
}

/// The seconds of all rounds, one after the other.
fn seconds(row: &Row) -> Option<Vec<f64>> {
    let all: Vec<f64> = row.rounds.iter().flat_map(|cell| cell.per_second.clone()).collect();
    (all.len() >= 2).then_some(all)
}

fn table(matrix: Matrix, title: &str, hint: &str) -> Table {
    Table {
        title: title.to_string(),
        hint: hint.to_string(),
        head: matrix.head,
        rows: matrix.lines,
        best: None,
    }
}

/// Columns of the rates before the first store's.
const NAMES: usize = 4;

/// The rates, and where Weir stands.
fn best_rates(report: &Report) -> Table {
    let mut matrix = report.rates();
    matrix.head.insert(NAMES, "weir / best other".to_string());
    for ((workload, threads), line) in report.lines().into_iter().zip(&mut matrix.lines) {
        let of = |row: &&Row| row.workload == workload && row.threads == threads;
        let done = || report.rows.iter().filter(of).filter(|row| row.cannot.is_none());
        let other = done().filter(|row| !stores::is_weir(&row.engine)).map(|row| row.median);
        let best = other.fold(0.0, f64::max);
        let weir = done().find(|row| row.engine == "weir").map(|row| row.median);
        let ratio = match weir {
            Some(weir) if best > 0.0 => format!("{:.2}", weir / best),
            _ => String::new(),
        };
        line.insert(NAMES, ratio);
    }
    let hint = "Median over the rounds of what was done a second; in brackets the worst second \
                over the mean. All stores of a line promise at least what the column \"durable\" \
                says: lazy: whole after any crash, without the last second; synced: durable when \
                the commit returns.";
    table(matrix, "Rates", hint)
}

fn details(report: &Report) -> Table {
    let head = [
        "workload",
        "threads",
        "store",
        "lowest to highest round",
        "flushes per op",
        "rows \
                verified",
        "durable how",
    ];
    let mut rows = Vec::new();
    for (workload, threads) in report.lines() {
        for about in &report.engines {
            let Some(row) = report.row(&workload, threads, &about.name) else { continue };
            if row.cannot.is_some() {
                continue;
            }
            let flushes = row.flushes_per_op.map_or(String::new(), |f| format!("{f:.3}"));
            rows.push(vec![
                workload.clone(),
                threads.to_string(),
                about.name.clone(),
                format!("{} to {}", rate(row.lowest), rate(row.highest)),
                flushes,
                row.verified_rows.to_string(),
                row.how.clone(),
            ]);
        }
    }
    Table {
        title: "Each by itself".to_string(),
        hint:
            "Device flushes are the whole machine's: one thread that syncs each commit must cause \
               one each."
                .to_string(),
        head: head.map(String::from).to_vec(),
        rows,
        best: None,
    }
}

fn setups(report: &Report) -> Table {
    let engines = report.engines.iter();
    Table {
        title: "How each store is set up".to_string(),
        hint: "As its own documentation recommends; none of them compresses.".to_string(),
        head: ["store", "version", "set up", "cannot"].map(String::from).to_vec(),
        rows: engines
            .map(|about| {
                [&about.name, &about.version, &about.setup, &about.limits]
                    .map(Clone::clone)
                    .to_vec()
            })
            .collect(),
        best: None,
    }
}

fn workloads(report: &Report) -> Table {
    let mut names: Vec<String> = report.lines().into_iter().map(|(name, _)| name).collect();
    names.dedup();
    let rows = names.into_iter().map(|name| {
        let about = name.parse::<Workload>().map_or("", Workload::about);
        vec![name, about.to_string()]
    });
    Table {
        title: "Workloads".to_string(),
        hint: String::new(),
        head: ["workload", "what it does"].map(String::from).to_vec(),
        rows: rows.collect(),
        best: None,
    }
}

fn about(report: &Report) -> Vec<(String, String)> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut about = vec![
        ("processors".to_string(), cpus.to_string()),
        ("platform".to_string(), format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("rows' bytes".to_string(), {
            mebibytes(report.shape.rows * (8 + report.shape.value_bytes as u64))
        }),
    ];
    about.extend(report.disk().into_iter().map(|line| ("the disk alone".to_string(), line)));
    about
}
