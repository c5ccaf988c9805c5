//! The line that a run prints every second, and numbers as people read them.
use crate::section::{Section, over};
use crate::target::PageWrites;

/// `1234567` as `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Microseconds with the unit that suits them.
pub(crate) fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..10_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

/// The section's latest second, which is number `second` of the run; `writes` are the pages written
/// in it.
pub(crate) fn line(second: u64, section: &Section, writes: &PageWrites, warm_up: bool) -> String {
    let Some(last) = section.seconds.last() else { return String::new() };
    let (tps, p99) = (thousands(last.tps.round() as u64), micros(last.latency_micros_p99));
    let when = if warm_up { "   (warm-up)" } else { "" };
    if section.after.checkpoint_age_limit_bytes == 0 {
        // A store that does not count.
        return format!("{second:>5} s {tps:>9} tps   p99 {p99}{when}");
    }
    format!(
        "{second:>5} s {tps:>9} tps   age {:>5.1} %   dirty {:>7}   writes/s deadline {} free {} \
         idle {}   redo {:.1} MB/s   p99 {p99}{when}",
        100.0 * over(section.after.checkpoint_age_bytes, section.after.checkpoint_age_limit_bytes),
        thousands(last.dirty_pages),
        thousands(writes.deadline),
        thousands(writes.free_frames),
        thousands(writes.idle),
        last.redo_bytes_per_second / 1e6,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::latencies;
    use crate::target::Counters;

    #[test]
    fn numbers() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(thousands(number), text);
        }
        assert_eq!((micros(950), micros(2_100)), ("950 us".to_owned(), "2.1 ms".to_owned()));
        assert_eq!(micros(12_340_000), "12.3 s");
    }

    #[test]
    fn a_line_as_the_documents_show_it() {
        let mut section = Section::new(8, Counters::default());
        let mut seen = latencies();
        seen.record(2_100).unwrap();
        let after = Counters {
            redo_bytes: 1_700_000,
            checkpoint_age_bytes: 971,
            checkpoint_age_limit_bytes: 1000,
            dirty_pages: 19_001,
            page_writes: PageWrites { deadline: 570, ..PageWrites::default() },
            ..Counters::default()
        };
        section.end_second(1_000_000, 11_234, &seen, after);
        assert_eq!(
            line(12, &section, &after.page_writes, false),
            "   12 s    11,234 tps   age  97.1 %   dirty  19,001   writes/s deadline 570 free 0 \
             idle 0   redo 1.7 MB/s   p99 2.1 ms"
        );
        assert!(line(12, &section, &after.page_writes, true).ends_with("(warm-up)"));
    }
}
