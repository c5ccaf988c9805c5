//! `weir advise`: what a log of another size would cost or save.
use crate::args::Advise;
use crate::exit::{EXIT_FINDINGS, EXIT_OK};
use crate::opening::open_forced;
use anyhow::Result;
use std::io::Write;
use weir::{Advice, Observed, format_size};

/// Prints a table.
pub(crate) fn advise(args: &Advise) -> Result<u8> {
    let db = open_forced(&args.dir, &args.forced)?;
    // Before it is closed, which would be the end of what recovery found.
    let observed = db.observed();
    let mut out = std::io::stdout().lock();
    let code = match &observed {
        Some(observed) => {
            print(observed, &mut out)?;
            EXIT_OK
        }
        None => {
            writeln!(
                out,
                "too little has been observed: let the database work until its log is a \
                 sixteenth full, and close it"
            )?;
            EXIT_FINDINGS
        }
    };
    drop(out);
    args.forced.close(db, code)
}

fn print(observed: &Observed, out: &mut dyn Write) -> Result<()> {
    let pages = observed.working_set.last().map_or(0, |&(_, pages)| pages);
    writeln!(
        out,
        "observed    a checkpoint age of {} in a log of {}, in which {pages} pages were changed",
        format_size(observed.age_bytes),
        format_size(observed.log_bytes)
    )?;
    writeln!(out, "      log   pages/GiB of redo   page writes   recovery")?;
    for advice in observed.advice() {
        writeln!(
            out,
            "{:>9}   {:>17.0}   {:>11}   {}",
            format_size(advice.log_bytes),
            advice.page_writes_per_gib,
            change(&advice),
            advice
                .recovery_seconds
                .map_or("not measured yet".to_owned(), |seconds| format!("{seconds:.1} s"))
        )?;
    }
    Ok(())
}

fn change(advice: &Advice) -> String {
    if (advice.factor - 1.0).abs() < 1e-9 {
        return "as now".to_owned();
    }
    format!("{:+.0} %", 100.0 * (advice.page_writes_factor - 1.0))
}

/// The same in one line, for the status.
pub(crate) fn line(observed: &Observed) -> String {
    let advice = observed.advice();
    let part = |advice: &Advice| {
        format!("a log of {}: {} page writes", format_size(advice.log_bytes), change(advice))
    };
    let others = advice.iter().filter(|advice| (advice.factor - 1.0).abs() > 1e-9);
    others.map(part).collect::<Vec<_>>().join(", ")
}
