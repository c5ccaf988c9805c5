//! A report as one HTML file that needs nothing else: figures, charts, how it was run. The live
//! page is the same page, fed second by second.
use crate::feed::{Feed, Recorded};
use crate::figures::Figures;
use crate::line::{micros, thousands};
use crate::report::{Report, replace_file};
use crate::settle::Settling;
use anyhow::Result;
use serde::Serialize;
use std::path::Path;

/// All that a page shows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Page {
    /// What was run.
    pub title: String,
    /// On what, when.
    pub subtitle: String,
    /// What it says, in sentences.
    pub notes: Vec<String>,
    /// A few figures large: value and label.
    pub tiles: Vec<(String, String)>,
    /// Tables of figures.
    pub tables: Vec<Table>,
    /// The runs ([`Run`], as JSON), in the order in which they are drawn.
    pub runs: Vec<serde_json::Value>,
    /// What to draw box plots of instead of the runs' measured seconds.
    pub boxes: Vec<Boxed>,
    /// The exact command.
    pub command: String,
    /// Machine and settings: name and value.
    pub about: Vec<(String, String)>,
    /// Whether rows are still to come.
    pub live: bool,
}

/// A table of figures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// What it is about.
    pub title: String,
    /// How to read it.
    pub hint: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Cells as people read them.
    pub rows: Vec<Vec<String>>,
    /// A row that stands out.
    pub best: Option<usize>,
}

/// A run's rows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// What tells it from the others.
    pub name: String,
    /// Runs of one group are drawn in a chart of their own, and have nothing but their throughput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its rows.
    #[serde(flatten)]
    pub recorded: Recorded,
}

impl Run {
    /// What something else than a bench of this program did each second.
    #[must_use]
    pub fn in_group(group: &str, name: &str, per_second: Vec<f64>) -> Run {
        let recorded = Recorded::throughput(per_second);
        Run { name: name.to_owned(), group: Some(group.to_owned()), recorded }
    }

    /// For a page, or to be kept until there is one.
    ///
    /// # Panics
    /// Never: it is plain data.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain data")
    }
}

/// The values of one box plot.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Boxed {
    /// What tells it from the others.
    pub name: String,
    /// All of them, in any order.
    pub values: Vec<f64>,
}

const HTML: &str = include_str!("../assets/page.html");

impl Page {
    /// The page as HTML.
    ///
    /// # Panics
    /// Never: all of it can be written as JSON.
    #[must_use]
    pub fn html(&self) -> String {
        // Inside of a script nothing may look like the end of it.
        let data = serde_json::to_string(self).expect("plain data").replace('<', "\\u003c");
        let title = self.title.replace('&', "&amp;").replace('<', "&lt;");
        let connect = if self.live { "'self'" } else { "'none'" };
        let mut html = String::with_capacity(data.len() + (96 << 10));
        let mut rest = HTML;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, behind)) = after.split_once("}}") else { break };
            html.push_str(before);
            html.push_str(match name {
                "title" => &title,
                "connect" => connect,
                "uplot_css" => include_str!("../assets/uPlot.min.css"),
                "css" => include_str!("../assets/page.css"),
                "uplot" => include_str!("../assets/uPlot.iife.min.js"),
                "script" => include_str!("../assets/page.js"),
                _ => &data,
            });
            rest = behind;
        }
        html.push_str(rest);
        html
    }

    /// Writes the page, whole or not at all.
    ///
    /// # Errors
    /// When the file exists and may not be replaced, or cannot be written.
    pub fn write(&self, path: &Path, replace: bool) -> Result<()> {
        replace_file(path, self.html().as_bytes(), replace)
    }

    /// The page of one run that has ended.
    #[must_use]
    pub fn of_run(report: &Report, feed: &Feed, command: &str) -> Page {
        let name = report.setup.workload.name();
        let mut notes = Vec::new();
        if let Some(error) = &report.error {
            notes.push(format!("The run failed: {error}"));
        }
        if report.interrupted {
            notes.push("The run was interrupted; this is what was seen until then.".to_owned());
        }
        if !report.verified {
            notes.push(format!("NOT VERIFIED. {}", report.problems.join("; ")));
        }
        let run = Run { name: name.to_owned(), group: None, recorded: feed.recorded(0) };
        Page {
            title: format!("weir bench {name}"),
            subtitle: format!(
                "{} rows, {} threads, {} commits, on {}",
                thousands(report.setup.rows),
                report.figures.threads,
                report.durability.name(),
                report.setup.volume
            ),
            notes,
            tiles: tiles(&report.figures),
            tables: phases(report).into_iter().chain(settling(report)).collect(),
            boxes: phase_boxes(report),
            runs: vec![run.json()],
            command: command.to_owned(),
            about: about(report),
            live: false,
        }
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// The figures that matter most.
#[must_use]
pub fn tiles(figures: &Figures) -> Vec<(String, String)> {
    let tile = |value: String, label: &str| (value, label.to_owned());
    let mut tiles = vec![
        tile(thousands(figures.tps_mean.round() as u64), "transactions/s, mean"),
        tile(percent(figures.tps_worst_second_over_mean), "worst second, of the mean"),
        tile(format!("{:.3}", figures.tps_cv), "CV of the seconds"),
        tile(thousands(figures.stalled_seconds), "stalled seconds"),
        tile(micros(figures.latency_micros.p99), "p99 latency"),
        tile(micros(figures.latency_micros.max), "longest transaction"),
    ];
    if figures.page_writes.total() > 0 {
        tiles.push(tile(
            percent(figures.checkpoint_age_mean_over_limit),
            "checkpoint age, mean of its limit",
        ));
        tiles.push(tile(
            format!("{:.4}", figures.page_writes_per_transaction),
            "page writes a transaction",
        ));
    }
    tiles
}

/// The head of [`figures_row`].
pub const FIGURES_HEAD: [&str; 9] = [
    "tps mean",
    "CV",
    "worst s",
    "stalled s",
    "p99",
    "age mean",
    "age max",
    "pages/tx",
    "page writes/s",
];

/// The figures of a run or phase as cells of a table.
#[must_use]
pub fn figures_row(figures: &Figures) -> Vec<String> {
    let pages = figures.page_writes.total() as f64 / figures.seconds.max(1e-9);
    vec![
        thousands(figures.tps_mean.round() as u64),
        format!("{:.3}", figures.tps_cv),
        format!("{:.2}", figures.tps_worst_second_over_mean),
        figures.stalled_seconds.to_string(),
        micros(figures.latency_micros.p99),
        percent(figures.checkpoint_age_mean_over_limit),
        percent(figures.checkpoint_age_max_over_limit),
        format!("{:.4}", figures.page_writes_per_transaction),
        thousands(pages.round() as u64),
    ]
}

fn phases(report: &Report) -> Option<Table> {
    if report.phases.len() < 2 {
        return None;
    }
    let mut head = vec!["phase".to_owned(), "threads".to_owned()];
    head.extend(FIGURES_HEAD.map(str::to_owned));
    let row = |(number, phase): (usize, &Figures)| {
        let mut cells = vec![format!("phase {number}"), phase.threads.to_string()];
        cells.extend(figures_row(phase));
        cells
    };
    let rows = (1..).zip(&report.phases).map(row).collect();
    Some(Table { title: "Phases".to_owned(), head, rows, ..Table::default() })
}

/// How long each change of threads or disk was felt, where there were any.
fn settling(report: &Report) -> Option<Table> {
    if report.settling.is_empty() {
        return None;
    }
    let after = |seconds: Option<usize>| match seconds {
        Some(seconds) => format!("{seconds} s"),
        None => "not before the next change".to_owned(),
    };
    let row = |settling: &Settling| {
        vec![
            settling.change.clone(),
            settling.at_second.to_string(),
            after(settling.tps_seconds),
            after(settling.age_seconds),
            settling.log_wraps.map_or("-".to_owned(), |wraps| format!("{wraps:.2}")),
        ]
    };
    let head = ["change", "at second", "throughput settled", "age settled", "log wraps"];
    Some(Table {
        title: "Settling".to_owned(),
        hint:
            "Until means of three seconds stay within a tenth of the throughput, and a twentieth \
               of the age's limit, of where they end up."
                .to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: report.settling.iter().map(row).collect(),
        best: None,
    })
}

/// A box for each phase, where there are several.
fn phase_boxes(report: &Report) -> Vec<Boxed> {
    if report.phases.len() < 2 {
        return Vec::new();
    }
    let mut from = 0;
    let asked = report.phases_asked();
    let phases = (1..).zip(&report.phases).zip(asked);
    phases
        .map(|((number, phase), asked)| {
            let to = (from + asked.seconds as usize).min(report.series.tps.len());
            let values = report.series.tps[from.min(to)..to].to_vec();
            from = to;
            Boxed { name: format!("phase {number}, {} threads", phase.threads), values }
        })
        .collect()
}

/// Machine and settings of a run.
#[must_use]
pub fn about(report: &Report) -> Vec<(String, String)> {
    let setup = &report.setup;
    let size = weir::format_size;
    let doublewrite = match setup.doublewrite.mode {
        Some(mode) => format!("{mode:?}").to_lowercase(),
        None => "as the store decides".to_owned(),
    };
    let pages =
        setup.doublewrite.pages.map_or(String::new(), |pages| format!(", {pages} pages a batch"));
    let verified = if report.verified { "yes" } else { "NO" };
    let mut about = vec![
        ("verified", format!("{verified}, {} rows read back", thousands(report.verified_rows))),
        ("pool", size(setup.pool_bytes)),
        ("log", size(setup.log_bytes)),
        ("checkpoint age limit", size(setup.checkpoint_age_limit_bytes)),
        ("page", format!("{} bytes", setup.page_size)),
        ("pages kept", setup.store.clone()),
        ("doublewrite", format!("{doublewrite}{pages}")),
        ("durability", report.durability.name().to_owned()),
        ("disk", setup.disk.clone().unwrap_or_else(|| "the real one's speed".to_owned())),
        ("device", setup.volume.clone()),
        ("warm-up", format!("{} s, not in the figures", report.warmup_seconds)),
        ("machine", format!("{} processors, {}", setup.cpus, setup.platform)),
        ("weir", setup.version.to_owned()),
    ];
    if let Some(rate) = report.raw_sync_rate {
        about.push(("raw disk", format!("{} append+sync/s alone", thousands(rate.round() as u64))));
    }
    about.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_nothing_else_and_cannot_be_broken_out_of() {
        let page = Page { title: "</title><script>x".to_owned(), ..Page::default() };
        let html = page.html();
        assert!(!html.contains("{{") && html.contains("connect-src 'none'"));
        assert!(!html.contains("<script>x") && html.contains("\\u003c/title>"));
        for outside in ["src=\"", "@import", "url(", "<link rel=\"stylesheet"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("uPlot (v1.6.32)"));
    }
}
