//! Sentences about results: whether a seed's finding holds here, and where `deadline` stands.
use crate::results::Result1;
use weir_bench::page::Table;

/// Whether a seed's finding holds here, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) holds: bool,
    pub(crate) sentence: String,
}

impl Finding {
    pub(crate) fn new(holds: bool, sentence: String) -> Finding {
        Finding { holds, sentence }
    }

    pub(crate) fn text(&self) -> String {
        let what = if self.holds { "holds" } else { "does not hold" };
        format!("The seed's finding {what} here: {}.", self.sentence)
    }
}

/// The results of an experiment's arms.
pub(crate) struct Results<'a>(pub(crate) &'a [Result1]);

impl Results<'_> {
    /// The arm of that name; an empty one if it was not run.
    pub(crate) fn get(&self, name: &str) -> Result1 {
        self.0.iter().find(|result| result.name == name).cloned().unwrap_or_default()
    }

    /// The best mean throughput of other policies in the group of `deadline`.
    fn best_rival<'a>(&'a self, deadline: &Result1) -> Option<&'a Result1> {
        let rivals = self.0.iter().filter(|r| !r.is_deadline && r.group == deadline.group);
        rivals.max_by(|a, b| a.tps.total_cmp(&b.tps))
    }
}

/// Whether `own` is ahead of `other` in transactions since the start at each second, but for noise,
/// and where it is not, in words.
pub(crate) fn behind(own: &Result1, other: &Result1) -> (bool, String) {
    let sums = |result: &Result1| {
        let seconds = result.all_seconds();
        seconds.into_iter().scan(0.0, |sum, tps| Some(std::mem::replace(sum, *sum + tps) + tps))
    };
    let (own, others): (Vec<f64>, Vec<f64>) = (sums(own).collect(), sums(other).collect());
    let behind = |(own, other): (&f64, &f64)| *own < (1.0 - NOISE) * other;
    let seconds = own.iter().zip(&others).filter(|pair| behind(*pair)).count();
    let least = own.iter().zip(&others).map(|(own, other)| own / other.max(1.0));
    let least = least.fold(f64::INFINITY, f64::min);
    let end = own.last().unwrap_or(&0.0) / others.last().unwrap_or(&0.0).max(1.0);
    let name = &other.name;
    let text =
        format!("{name}: behind it for {seconds} s (least {least:.2} of it), at the end {end:.2}");
    (seconds == 0, text)
}

/// A difference below this is none on a machine that others use, too.
const NOISE: f64 = 0.01;

/// For each `deadline` that was run: whether it is at or above the best of the others in mean
/// throughput, and better than every one of them in CV and in the worst second.
pub(crate) fn deadline_stands(results: &[Result1]) -> Vec<String> {
    let all = Results(results);
    let mut sentences = Vec::new();
    for own in results.iter().filter(|result| result.is_deadline) {
        let Some(best) = all.best_rival(own) else { continue };
        let rivals: Vec<&Result1> =
            results.iter().filter(|r| !r.is_deadline && r.group == own.group).collect();
        let mean = own.tps / best.tps.max(1e-9) - 1.0;
        let cv = rivals.iter().map(|r| r.cv).fold(f64::INFINITY, f64::min);
        let worst = rivals.iter().map(|r| r.worst).fold(0.0, f64::max);
        let verdict = |well: bool| if well { "yes" } else { "NO" };
        sentences.push(format!(
            "{} beside the best of the others ({}): mean {:+.1} % (at or above: {}); CV {:.3} \
             against {cv:.3} (better: {}); worst second {:.2} of the mean against {worst:.2} \
             (better: {}).",
            own.name,
            best.name,
            100.0 * mean,
            verdict(mean >= -NOISE),
            own.cv,
            verdict(own.cv <= cv),
            own.worst,
            verdict(own.worst >= worst),
        ));
    }
    sentences
}

/// The table of recoveries: there is no throughput in it.
fn recoveries(title: &str, results: &[Result1]) -> Table {
    let mut head = vec!["run".to_owned(), "seed's figures".to_owned()];
    let extras = results.first().map_or(&[][..], |first| &first.extra[..]);
    head.extend(extras.iter().map(|(name, _)| name.clone()));
    let row = |r: &Result1| {
        let cells = r.extra.iter().map(|(_, value)| value.clone());
        [r.name.clone(), r.original.clone()].into_iter().chain(cells).collect()
    };
    let hint = "From SIGKILL under load to an open database.".to_owned();
    let rows = results.iter().map(row).collect();
    Table { title: title.to_owned(), hint, head, rows, best: None }
}

/// The table that an experiment ends in.
pub(crate) fn table(title: &str, results: &[Result1]) -> Table {
    if results.iter().all(|result| result.seconds.is_empty()) {
        return recoveries(title, results);
    }
    let head = [
        "run",
        "seed's figures",
        "C / Cm",
        "tps",
        "CV",
        "worst s",
        "stalled",
        "p99",
        "age mean",
        "age max",
        "pages/s",
        "pages/tx",
    ];
    let mut head: Vec<String> = head.map(str::to_owned).to_vec();
    let extras: Vec<String> =
        results.first().map_or(Vec::new(), |r| r.extra.iter().map(|(k, _)| k.clone()).collect());
    head.extend(extras.iter().cloned());
    let row = |r: &Result1| {
        let percent = |part: f64| format!("{:.1} %", 100.0 * part);
        let mut cells = vec![
            r.name.clone(),
            r.original.clone(),
            r.capacity.map_or("none".to_owned(), |(low, high)| format!("{low} / {high}")),
            format!("{:.0}", r.tps),
            format!("{:.3}", r.cv),
            format!("{:.2}", r.worst),
            r.stalled.to_string(),
            format!("{:.1} ms", r.p99_micros as f64 / 1e3),
            percent(r.age_mean),
            percent(r.age_max),
            format!("{:.0}", r.page_writes_per_second),
            format!("{:.4}", r.pages_per_tx),
        ];
        for name in &extras {
            let found = r.extra.iter().find(|(key, _)| key == name);
            cells.push(found.map_or("-".to_owned(), |(_, value)| value.clone()));
        }
        cells
    };
    let best = (0..results.len()).max_by(|&a, &b| results[a].tps.total_cmp(&results[b].tps));
    Table {
        title: title.to_owned(),
        hint: "The seed's original figures beside those of this machine. C and Cm are scaled to \
               what the work needs here; bold: the best mean."
            .to_owned(),
        head,
        rows: results.iter().map(row).collect(),
        best,
    }
}

/// A table for a terminal.
pub(crate) fn plain(table: &Table) -> String {
    let mut widths: Vec<usize> = table.head.iter().map(|cell| cell.chars().count()).collect();
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    std::iter::once(&table.head).chain(&table.rows).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, is_deadline: bool, tps: f64, cv: f64, worst: f64) -> Result1 {
        let seconds = vec![tps];
        Result1 {
            name: name.to_owned(),
            is_deadline,
            tps,
            cv,
            worst,
            seconds,
            ..Result1::default()
        }
    }

    #[test]
    fn deadline_is_compared_with_the_best_of_its_group() {
        let other_log = Result1 { group: "x2".to_owned(), ..result("c", false, 900.0, 0.0, 1.0) };
        let results = [
            result("deadline", true, 100.0, 0.02, 0.9),
            result("a", false, 90.0, 0.01, 0.5),
            result("b", false, 80.0, 0.30, 0.8),
            other_log,
        ];
        let said = deadline_stands(&results);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("(a): mean +11.1 % (at or above: yes)"), "{}", said[0]);
        assert!(said[0].contains("CV 0.020 against 0.010 (better: NO)"), "{}", said[0]);
        assert!(said[0].contains("0.90 of the mean against 0.80 (better: yes)"), "{}", said[0]);
    }

    #[test]
    fn the_table_has_a_row_for_each_run() {
        let table =
            table("t", &[result("a", true, 5.0, 0.0, 1.0), result("b", false, 9.0, 0.0, 1.0)]);
        assert_eq!((table.rows.len(), table.best), (2, Some(1)));
        let text = plain(&table);
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("run  seed's figures"), "{text}");
    }
}
