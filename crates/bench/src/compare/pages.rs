//! The cells as tables and curves of a report.
use super::cell::Cell;
use crate::feed::{Column, Recorded};
use crate::line::thousands;
use crate::page::{Boxed, Page, Run, Table};
use anyhow::{Context, Result};
use std::path::Path;

/// Engines in the order of their columns, and what they are called.
pub(super) const ENGINES: [(&str, &str); 4] =
    [("innodb", "InnoDB"), ("tuned", "InnoDB, tuned"), ("myrocks", "MyRocks"), ("weir", "Weir")];

/// What `run.sh` noted of the server: name and value a line.
pub(super) fn read_about(directory: &Path) -> Result<Vec<(String, String)>> {
    let path = directory.join("about");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let pair = |line: &str| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    Ok(text.lines().filter_map(pair).collect())
}

/// The report.
pub(super) fn page(cells: &[Cell], about: Vec<(String, String)>, command: &str) -> Page {
    let server = about.iter().find(|(name, _)| name == "server");
    let tpcc = || cells.iter().filter(|cell| cell.workload == "tpcc");
    let boxed = |cell: &Cell| Boxed { name: curve_name(cell), values: cell.seconds.clone() };
    Page {
        title: "Engines of one server beside each other".to_owned(),
        subtitle: server.map(|(_, version)| version.clone()).unwrap_or_default(),
        notes: notes(cells),
        tables: tables(cells),
        runs: tpcc().map(|cell| run(cell).json()).collect(),
        boxes: tpcc().map(boxed).collect(),
        command: command.to_owned(),
        about,
        ..Page::default()
    }
}

fn engine_name(cell: &Cell) -> &str {
    let found = ENGINES.iter().find(|(key, _)| *key == cell.engine);
    found.map_or(cell.engine.as_str(), |(_, name)| *name)
}

fn curve_name(cell: &Cell) -> String {
    let binlog = if cell.binlog { ", binlog" } else { "" };
    format!("{}, {} disk{binlog}", engine_name(cell), cell.disk)
}

/// What has to be known before the figures are believed.
fn notes(cells: &[Cell]) -> Vec<String> {
    let mut notes = vec![
        "Every commit is flushed, with the binary log in two phases. Engines run one directly \
         after the other, with the same memory and log. Ratios are to InnoDB at its defaults."
            .to_owned(),
    ];
    for cell in cells.iter().filter(|cell| cell.verified == Some(false)) {
        notes.push(format!("NOT VERIFIED: {} of {}", cell.workload, curve_name(cell)));
    }
    notes
}

/// A table for each disk and kind of binary log.
fn tables(cells: &[Cell]) -> Vec<Table> {
    let kinds = [("free", false), ("free", true), ("limited", false), ("limited", true)];
    kinds
        .into_iter()
        .filter_map(|(disk, binlog)| {
            let of: Vec<&Cell> =
                cells.iter().filter(|cell| cell.disk == disk && cell.binlog == binlog).collect();
            (!of.is_empty()).then(|| {
                let log = if binlog { "on" } else { "off" };
                let title = format!("Transactions a second, {disk} disk, binary log {log}");
                Table { title, ..table(&of) }
            })
        })
        .collect()
}

/// A row for each workload and number of clients, a column for each engine.
fn table(cells: &[&Cell]) -> Table {
    let mut firsts: Vec<&Cell> = Vec::new();
    for &cell in cells {
        if !firsts.iter().any(|first| first.is_beside(cell)) {
            firsts.push(cell);
        }
    }
    firsts.sort_by_key(|cell| (cell.workload.clone(), cell.clients));
    let of = |first: &Cell, engine: &str| {
        cells.iter().find(|cell| cell.is_beside(first) && cell.engine == engine).copied()
    };
    let used: Vec<(&str, &str)> = ENGINES
        .into_iter()
        .filter(|(key, _)| cells.iter().any(|cell| cell.engine == *key))
        .collect();
    let mut head = vec!["workload".to_owned(), "clients".to_owned()];
    head.extend(used.iter().map(|(_, name)| (*name).to_owned()));
    head.push("Weir / InnoDB".to_owned());
    head.push("CV, redo a transaction: InnoDB".to_owned());
    head.push("Weir".to_owned());
    let row = |first: &&Cell| {
        let mut row = vec![first.workload.clone(), first.clients.to_string()];
        row.extend(used.iter().map(|(key, _)| of(first, key).map_or("-".to_owned(), rate)));
        let (base, ours) = (of(first, "innodb"), of(first, "weir"));
        row.push(match (base, ours) {
            (Some(base), Some(ours)) if base.tps > 0.0 => format!("{:.2}", ours.tps / base.tps),
            _ => "-".to_owned(),
        });
        row.push(base.map_or("-".to_owned(), steadiness));
        row.push(ours.map_or("-".to_owned(), steadiness));
        row
    };
    let hint = "a bad second shows in the CV, the spread of the seconds over their mean".to_owned();
    Table { hint, head, rows: firsts.iter().map(row).collect(), ..Table::default() }
}

fn rate(cell: &Cell) -> String {
    thousands(cell.tps.round() as u64)
}

fn steadiness(cell: &Cell) -> String {
    let redo = cell.redo_bytes_per_transaction;
    let redo = redo.map_or(String::new(), |bytes| format!(", {} B", thousands(bytes as u64)));
    format!("{:.3}{redo}", cell.cv)
}

/// A cell's seconds as the rows of a run.
fn run(cell: &Cell) -> Run {
    let column =
        |name: &str, unit, help| Column { name: name.to_owned(), counter: false, unit, help };
    let columns = vec![
        column("weir_bench_elapsed_seconds", "seconds", "since the first row"),
        column("weir_bench_warm_up_state", "state", "1 before the figures begin"),
        column("weir_bench_rate_transactions", "transactions", "transactions a second"),
    ];
    let row = |(second, tps): (usize, &f64)| vec![second as f64, 0.0, *tps];
    let rows = (1..).zip(&cell.seconds).map(row).collect();
    let recorded = Recorded { columns, rows, from: 0, ended: true };
    Run { name: curve_name(cell), group: None, recorded }
}

/// The tables for a terminal.
pub(super) fn plain(page: &Page) -> String {
    let mut text = String::new();
    for table in &page.tables {
        text += &format!("\n{}\n", table.title);
        let lines: Vec<&Vec<String>> = std::iter::once(&table.head).chain(&table.rows).collect();
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max();
        for line in &lines {
            let cells = line.iter().enumerate().map(|(at, cell)| {
                let width = width(at).unwrap_or(0);
                if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            text += &cells.collect::<Vec<_>>().join("  ");
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(engine: &str, tps: f64) -> Cell {
        Cell {
            workload: "tpcc".to_owned(),
            disk: "limited".to_owned(),
            clients: 8,
            engine: engine.to_owned(),
            tps,
            seconds: vec![tps; 3],
            verified: Some(engine != "myrocks"),
            ..Cell::default()
        }
    }

    #[test]
    fn engines_stand_side_by_side_and_what_is_wrong_is_said() {
        let cells = [cell("weir", 300.0), cell("innodb", 150.0), cell("myrocks", 200.0)];
        let page = page(&cells, vec![("server".to_owned(), "one".to_owned())], "make compare");
        let text = plain(&page);
        assert!(text.contains("limited disk, binary log off"), "{text}");
        assert!(text.contains("2.00") && !text.contains("tuned"), "{text}");
        assert!(page.notes.iter().any(|note| note.contains("NOT VERIFIED: tpcc of MyRocks")));
        assert_eq!((page.runs.len(), page.boxes.len()), (3, 3));
        assert_eq!(page.subtitle, "one");
    }
}
