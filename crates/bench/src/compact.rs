//! The run on a terminal: a small picture that is painted over itself every second, with the
//! figures of the line.
use crate::line::{micros, thousands};
use crate::section::{Section, over};
use crate::target::PageWrites;
use std::collections::VecDeque;
use std::fmt::Write;
use weir_base::format_size;

/// Seconds that the picture reaches back.
const SECONDS: usize = 60;
/// Characters of a bar.
const BAR: usize = 40;
const STEPS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];

/// What was seen lately.
#[derive(Default)]
pub(crate) struct Compact {
    tps: VecDeque<f64>,
    painted_lines: usize,
}

impl Compact {
    /// The picture of the latest second, painted over the one before.
    pub(crate) fn paint(
        &mut self,
        second: u64,
        section: &Section,
        writes: &PageWrites,
        warm_up: bool,
    ) -> String {
        let Some(last) = section.seconds.last() else { return String::new() };
        self.tps.push_back(last.tps);
        if self.tps.len() > SECONDS {
            self.tps.pop_front();
        }
        let seen = &section.after;
        let age = over(seen.checkpoint_age_bytes, seen.checkpoint_age_limit_bytes);
        let lines = [
            format!(
                "{second} s, {} threads{}",
                section.threads,
                if warm_up { ", warming up" } else { "" }
            ),
            format!("tps     {:>10}  {}", thousands(last.tps.round() as u64), self.sparkline()),
            format!(
                "age     {:>9.1}%  {} of {}",
                100.0 * age,
                bar(age),
                format_size(seen.checkpoint_age_limit_bytes)
            ),
            format!(
                "pages   {:>10}  dirty; written/s: deadline {}, free frames {}, idle {}",
                thousands(last.dirty_pages),
                thousands(writes.deadline),
                thousands(writes.free_frames),
                thousands(writes.idle)
            ),
            format!("redo    {:>7.1} MB/s", last.redo_bytes_per_second / 1e6),
            format!("p99     {:>10}", micros(last.latency_micros_p99)),
        ];
        let mut text = String::new();
        if self.painted_lines > 0 {
            // A String takes all that is written to it.
            let _ = write!(text, "\x1b[{}A", self.painted_lines);
        }
        for line in &lines {
            let _ = writeln!(text, "\x1b[2K{line}");
        }
        self.painted_lines = lines.len();
        text
    }

    /// Something else was printed: the next picture begins below it.
    pub(crate) fn interrupted(&mut self) {
        self.painted_lines = 0;
    }

    fn sparkline(&self) -> String {
        let high = self.tps.iter().copied().fold(1.0, f64::max);
        let step = |tps: &f64| STEPS[((tps / high * 7.0).round() as usize).min(7)];
        self.tps.iter().map(step).collect()
    }
}

fn bar(part: f64) -> String {
    let full = ((part.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
    format!("{}{}", "\u{2588}".repeat(full), "\u{2591}".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::latencies;
    use crate::target::Counters;

    #[test]
    fn it_is_painted_over_itself() {
        let mut section = Section::new(8, Counters::default());
        let after = Counters {
            checkpoint_age_bytes: 3 << 20,
            checkpoint_age_limit_bytes: 4 << 20,
            ..Counters::default()
        };
        section.end_second(1_000_000, 1234, &latencies(), after);
        let mut view = Compact::default();
        let first = view.paint(1, &section, &PageWrites::default(), true);
        assert!(first.contains("1,234") && first.contains("75.0%") && first.contains("warming up"));
        assert!(!first.contains("\x1b[6A"));
        let second = view.paint(2, &section, &PageWrites::default(), false);
        assert!(second.starts_with("\x1b[6A") && second.matches('\n').count() == 6);
        assert_eq!(bar(0.5).chars().filter(|&c| c == '\u{2588}').count(), BAR / 2);
    }
}
