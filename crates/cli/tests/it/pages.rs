//! Pages of the book that say what the code says: all metrics, from the table that `/metrics`
//! shows, and all commands, from their definitions. A change of either is written into its page by
//! `WEIR_BLESS=1 cargo test -p weir-cli --test it pages`.
use crate::{Scratch, expect};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const END: &str = "<!-- end of what is generated -->";

fn begin() -> String {
    "<!-- generated: WEIR_BLESS=1 cargo test -p weir-cli --test it pages -->".to_owned()
}

fn in_tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(in_tree(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The page has `wanted` between its marks, or gets it.
fn assert_on_page(path: &str, wanted: &str) {
    let page = read(path);
    let (before, rest) = page.split_once(&begin()).expect("a place for it");
    let (_, after) = rest.split_once(END).expect("the end of the place");
    let new = format!("{before}{}\n{wanted}\n{END}{after}", begin());
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(in_tree(path), new).expect("written");
    } else if new != page {
        panic!("{path} is older than the code: {}", begin());
    }
}

/// Name as Prometheus shows it, unit, and what it tells, of each metric.
fn metrics() -> Vec<(String, &'static str, &'static str)> {
    let scratch = Scratch::new();
    let db = weir::Db::open(scratch.text("db").as_ref(), weir::Config::default()).expect("opened");
    let mut all = Vec::new();
    db.visit_metrics(&mut |metric, _| {
        let end = if metric.kind == weir::MetricKind::Counter { "_total" } else { "" };
        all.push((format!("{}{end}", metric.name), metric.unit, metric.help));
    });
    db.close().expect("closed");
    all
}

#[test]
fn the_page_of_metrics_has_them_all() {
    let mut wanted = String::from("| metric | unit | |\n|---|---|---|\n");
    for (name, unit, help) in metrics() {
        writeln!(wanted, "| `{name}` | {unit} | {help} |").expect("a string takes it");
    }
    assert_on_page("docs/operating/metrics.md", wanted.trim_end());
}

/// The words of a text that look like metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("weir_")).map(str::to_owned).collect()
}

#[test]
fn alerts_and_the_dashboard_name_metrics_that_there_are() {
    let there: BTreeSet<String> = metrics().into_iter().map(|(name, ..)| name).collect();
    let page = read("docs/operating/metrics.md");
    let (alerts, _) = page.split_once(&begin()).expect("a place");
    let dashboard = named(&read("docs/grafana/weir.json"));
    let unknown: Vec<String> =
        named(alerts).union(&dashboard).filter(|name| !there.contains(*name)).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(named(alerts).len() > 5 && dashboard.len() > 5);
}

/// What `--help` says of a command, and of those below it.
fn help(words: &[&str], shown: &mut Vec<(String, String)>, page: &mut String) {
    let mut all = words.to_vec();
    all.push("--help");
    let text = expect(0, &all).out;
    let name = format!("weir {}", words.join(" "));
    let parts: Vec<&str> = text.trim_end().split("\n\n").collect();
    let below = parts.iter().find_map(|part| part.strip_prefix("Commands:\n"));
    if let Some(below) = below {
        let names = below.lines().filter(|line| !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        for next in names.filter(|next| *next != "help") {
            help(&[words, &[next]].concat(), shown, page);
        }
        return;
    }
    let (mut new, mut known) = (Vec::new(), BTreeSet::new());
    for part in parts {
        match shown.iter().find(|(text, _)| text == part) {
            Some((_, of)) if part.lines().count() > 3 => drop(known.insert(of.clone())),
            _ => {
                shown.push((part.to_owned(), name.clone()));
                new.push(part);
            }
        }
    }
    writeln!(page, "\n## {name}\n\n```\n{}\n```", new.join("\n\n")).expect("a string takes it");
    for of in known {
        writeln!(page, "\nAnd what `{of}` has.").expect("a string takes it");
    }
}

#[test]
fn the_page_of_commands_has_them_all() {
    let mut page = String::new();
    help(&[], &mut Vec::new(), &mut page);
    assert_on_page("docs/operating/commands.md", &page);
}
