//! Figures of benchmarks: read from JSON below `docs/benchmarks`, and shown as tables.
//!
//! A file is a set: figures that belong in one table, which a benchmark writes (`weir bench
//! --figure`, `rivals --figures`; `crates/bench/src/figure_set.rs`). What can be computed is
//! computed: where a rival's rate is known, a ratio that is written beside it must be theirs.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use serde::Deserialize;

/// Figures of one table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// A person copied the figures, from an older page: no report of the run was kept.
    transcribed: bool,
    /// The run, where a figure does not say another.
    run: Run,
    figures: Vec<Figure>,
}

/// How figures were come by.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Run {
    date: String,
    /// The commit that was measured; `None`: it was not noted down.
    commit: Option<String>,
    machine: String,
    command: String,
    /// What else the machine did.
    beside: String,
}

/// One workload, Weir's rate of it and its rivals'.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    workload: String,
    /// Weir's; several where the workload has several steps; `None`: only ratios were noted down.
    weir: Option<Values>,
    unit: String,
    spread: String,
    rivals: Vec<Rival>,
    run: Option<Run>,
}

/// What Weir is compared with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rival {
    name: String,
    value: Option<Values>,
    /// Weir's rate over this one's.
    ratio: Option<Values>,
    /// What the ratio was to be at least.
    goal: Option<f64>,
    #[serde(default)]
    spread: String,
    run: Option<Run>,
}

/// A number, or one for each step of the workload.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(f64),
    Steps(Vec<f64>),
}

impl Values {
    fn all(&self) -> &[f64] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Steps(values) => values,
        }
    }

    fn text(&self, form: fn(f64) -> String) -> String {
        self.all().iter().map(|&value| form(value)).collect::<Vec<_>>().join(" / ")
    }
}

impl Set {
    /// A set, from its file's text.
    ///
    /// # Errors
    /// What is wrong with it: a field that is missing, or not known; a ratio that is not that of
    /// the rates beside it; a figure that was measured and does not name its commit.
    pub fn read(text: &str) -> Result<Set> {
        let set: Set = serde_json::from_str(text)?;
        for figure in &set.figures {
            let name = &figure.workload;
            let run = figure.run.as_ref().unwrap_or(&set.run);
            ensure!(set.transcribed || run.commit.is_some(), "{name}: which commit was measured?");
            for rival in &figure.rivals {
                let about = || format!("{name}, {}", rival.name);
                ensure!(
                    rival.ratio.is_some() || rival.value.is_some(),
                    "{}: neither a rate nor a ratio",
                    about()
                );
                let (Some(written), Some(real)) = (&rival.ratio, figure.ratio_to(rival)) else {
                    continue;
                };
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.0051;
                let agree =
                    written.all().len() == real.len() && written.all().iter().zip(&real).all(near);
                ensure!(agree, "{}: the rates' ratio is {real:.3?}", about());
            }
        }
        Ok(set)
    }

    /// The set as Markdown: how it was measured, and a table.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let copied = if self.transcribed { " Copied by hand, no report was kept." } else { "" };
        let single = self.figures.iter().all(|figure| figure.run.is_none());
        if single {
            writeln!(out, "{}.{copied}\n", self.run.text()).expect("a string takes everything");
        } else {
            writeln!(out, "{}.{copied}\n", self.run.machine).expect("a string takes everything");
        }
        let rivals = || self.figures.iter().flat_map(|figure| &figure.rivals);
        let columns = Columns {
            store: rivals().any(|rival| rival.value.is_some()),
            value: self.figures.iter().any(|figure| figure.weir.is_some()),
            ratio: rivals().next().is_some(),
            run: !single,
        };
        columns.row(&mut out, ["workload", "store", "rate", "Weir's, of it", "spread", "run"]);
        columns.row(&mut out, ["---", "---", "--:", "--:", "---", "---"]);
        for figure in &self.figures {
            self.rows(figure, &columns, &mut out);
        }
        out
    }

    /// Weir's row, with what only its ratio is known of, and one for each rival with a rate.
    fn rows(&self, figure: &Figure, columns: &Columns, out: &mut String) {
        let rate = |values: &Option<Values>| match values {
            Some(values) => format!("{} {}", values.text(number), figure.unit).trim().to_string(),
            None => String::new(),
        };
        let run_text = |run: Option<&Run>| run.unwrap_or(&self.run).brief();
        let (with_rate, without): (Vec<&Rival>, Vec<&Rival>) =
            figure.rivals.iter().partition(|rival| rival.value.is_some());
        let ratios: Vec<String> = without
            .iter()
            .map(|rival| ratio_text(figure, rival, &format!(" of {}", rival.name)))
            .collect();
        let spreads: Vec<&str> = std::iter::once(figure.spread.as_str())
            .chain(without.iter().map(|rival| rival.spread.as_str()))
            .filter(|spread| !spread.is_empty())
            .collect();
        let weir = rate(&figure.weir);
        let bold = if weir.is_empty() { weir } else { format!("**{weir}**") };
        columns.row(
            out,
            [
                &figure.workload,
                "**Weir**",
                &bold,
                &ratios.join(", "),
                &spreads.join("; "),
                &run_text(figure.run.as_ref()),
            ],
        );
        for rival in with_rate {
            let run = rival.run.as_ref().or(figure.run.as_ref());
            let same = run == figure.run.as_ref();
            columns.row(
                out,
                [
                    "",
                    &rival.name,
                    &rate(&rival.value),
                    &ratio_text(figure, rival, ""),
                    &rival.spread,
                    &if same { String::new() } else { run_text(run) },
                ],
            );
        }
    }
}

impl Figure {
    /// Weir's rates over the rival's; `None` where one of them is not known.
    fn ratio_to(&self, rival: &Rival) -> Option<Vec<f64>> {
        let (own, other) = (self.weir.as_ref()?.all(), rival.value.as_ref()?.all());
        let pairs = own.iter().zip(other);
        // Seconds are better the fewer they are.
        let lower_is_better = self.unit == "s";
        Some(pairs.map(|(a, b)| if lower_is_better { b / a } else { a / b }).collect())
    }
}

/// With the second digit where there is one: 0.95 is not 0.9.
fn goal_text(goal: f64) -> String {
    let hundredths = (goal * 100.0).round();
    if hundredths % 10.0 == 0.0 { format!("{goal:.1}") } else { format!("{goal:.2}") }
}

/// The ratio, of what (as `of` says), and whether it is what it was to be.
fn ratio_text(figure: &Figure, rival: &Rival, of: &str) -> String {
    let ratios = match (&rival.ratio, figure.ratio_to(rival)) {
        (Some(written), _) => written.all().to_vec(),
        (None, Some(real)) => real,
        (None, None) => return String::new(),
    };
    let text = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(" / ");
    let text = text + of;
    match rival.goal {
        None => text,
        Some(goal) if ratios.iter().all(|&ratio| ratio >= goal) => {
            format!("{text} (goal {})", goal_text(goal))
        }
        Some(goal) => format!("{text}, **not held** ({})", goal_text(goal)),
    }
}

impl Run {
    fn text(&self) -> String {
        let commit = self.commit.as_ref().map_or("not noted down", String::as_str);
        format!(
            "`{}`; {}, beside it: {}; commit {commit}; {}",
            self.command, self.date, self.beside, self.machine
        )
    }

    /// Without the machine, which stands above the table.
    fn brief(&self) -> String {
        let commit = self.commit.as_ref().map_or(String::new(), |name| format!(", commit {name}"));
        format!("{}{commit}, beside it: {}; `{}`", self.date, self.beside, self.command)
    }
}

/// Which columns a table has.
struct Columns {
    store: bool,
    value: bool,
    ratio: bool,
    run: bool,
}

impl Columns {
    fn row(&self, out: &mut String, cells: [&str; 6]) {
        let there = [true, self.store, self.value, self.ratio, true, self.run];
        for (cell, _) in cells.iter().zip(there).filter(|(_, there)| *there) {
            write!(out, "| {} ", cell.replace('|', "\\|")).expect("a string takes everything");
        }
        out.push_str("|\n");
    }
}

/// A number with its thousands apart.
fn number(value: f64) -> String {
    let text = value.to_string();
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if rest.is_empty() { out } else { format!("{out}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#""run": {"date": "2026-01-02", "commit": null, "machine": "two cores",
        "command": "run --only 'a|b'", "beside": "nothing"}"#;

    fn set(transcribed: bool, figures: &str) -> Result<Set> {
        Set::read(&format!(r#"{{"transcribed": {transcribed}, {RUN}, "figures": [{figures}]}}"#))
    }

    #[test]
    fn a_ratio_that_the_rates_do_not_have_is_refused() {
        let figure = |ratio: &str| {
            let rival = format!(r#"{{"name": "B", "value": 422, "ratio": {ratio}}}"#);
            let text = r#""workload": "w", "weir": 1053, "unit": "tps", "spread": """#;
            set(true, &format!("{{{text}, \"rivals\": [{rival}]}}"))
        };
        assert!(figure("2.5").is_ok());
        let error = figure("2.6").err().expect("refused").to_string();
        assert!(error.contains("w, B") && error.contains("2.495"), "{error}");
    }

    #[test]
    fn a_figure_that_was_measured_names_its_commit() {
        let figure = r#"{"workload": "w", "weir": 1, "unit": "", "spread": "", "rivals": []}"#;
        assert!(set(true, figure).is_ok());
        assert!(set(false, figure).is_err());
        assert!(set(true, r#"{"workload": "w", "weirs": 1}"#).is_err());
    }

    #[test]
    fn a_table_has_the_columns_that_its_figures_need() {
        let only_ratio = r#"{"workload": "w", "weir": null, "unit": "", "spread": "wide",
            "rivals": [{"name": "B", "ratio": [0.9, 1.1], "goal": 0.95}]}"#;
        let table = set(true, only_ratio).expect("a set").table();
        assert!(table.contains("| workload | Weir's, of it | spread |\n"), "{table}");
        assert!(table.contains("| w | 0.90 / 1.10 of B, **not held** (0.95) | wide |"), "{table}");
        assert_eq!((goal_text(3.0), goal_text(0.97)), ("3.0".into(), "0.97".into()));
        assert!(table.starts_with("`run --only 'a|b'`; 2026-01-02"), "{table}");
        let rated = r#"{"workload": "w", "weir": [12345, 6.5], "unit": "tps", "spread": "",
            "rivals": [{"name": "B", "value": [1000, 13], "spread": "CV 1"}],
            "run": {"date": "2026-01-03", "commit": "abc", "machine": "two cores",
            "command": "x|y", "beside": "all"}}"#;
        let table = set(true, rated).expect("a set").table();
        assert!(table.contains("| w | **Weir** | **12,345 / 6.5 tps** |"), "{table}");
        assert!(table.contains("|  | B | 1,000 / 13 tps | 12.35 / 0.50 | CV 1 |"), "{table}");
        assert!(table.contains("commit abc, beside it: all; `x\\|y` |"), "{table}");
    }

    /// `weir_bench::add_to_set` is held to the same file.
    #[test]
    fn a_set_that_a_benchmark_has_written_is_read() {
        let set = Set::read(include_str!("figure_set.json")).expect("a set");
        assert!(!set.transcribed);
        let table = set.table();
        assert!(table.contains("| update | **Weir** | **11,202 tps** |"), "{table}");
        assert!(table.contains("|  | B | 5,000 tps | 2.24 | 4,900 to 5,100 |"), "{table}");
        assert!(table.contains("**3,613 / 21,311 / 45.68 tps**"), "{table}");
        assert!(table.contains("commit abc1234, beside it: nothing; `weir bench"), "{table}");
    }
}
