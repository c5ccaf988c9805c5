//! `weir dump control`: both copies of the control file.
use std::io::{self, Write};

use weir_base::format_size;
use weir_checkpoint::{CONTROL_FILE, Control, Copy, FORMAT};

use crate::files::{Files, Sound};

/// Prints how each copy was found, and what the one that counts says.
///
/// # Errors
/// Those of `out`.
pub fn control(files: &Files, out: &mut dyn Write) -> io::Result<Sound> {
    let mut sound = Sound::Yes;
    for (at, copy) in &files.copies {
        let how = match copy {
            Copy::Good(control) => format!("sound, sequence {}", control.sequence),
            Copy::OtherFormat(found) => format!("of format {found}; this version reads {FORMAT}"),
            Copy::Foreign => "not a control block".to_owned(),
            Copy::Damaged => "damaged: its checksum is wrong".to_owned(),
        };
        sound.and(matches!(copy, Copy::Good(_)));
        writeln!(out, "{CONTROL_FILE}, copy at byte {at}: {how}")?;
    }
    match &files.control {
        Ok(control) => fields(control, out)?,
        Err(why) => {
            sound = Sound::No;
            writeln!(out, "{why}")?;
        }
    }
    Ok(sound)
}

fn fields(control: &Control, out: &mut dyn Write) -> io::Result<()> {
    let lines = [
        ("database", control.db.to_string()),
        ("format", FORMAT.to_string()),
        ("sequence", format!("{} writes of this file", control.sequence)),
        ("page size", format!("{} bytes", control.page_size)),
        ("checkpoint", format!("{}: recovery reads the log from here", control.checkpoint)),
        ("synced", format!("{}: the log was durable up to here at least", control.synced)),
        ("log", format!("{} bytes ({})", control.log_bytes, format_size(control.log_bytes))),
        ("closed", if control.clean { "in order" } else { "no: open, or after a crash" }.into()),
        ("openings", control.openings.to_string()),
        ("transaction", format!("{}: the next number", control.next_txn)),
        ("tree", format!("{}: the next number", control.next_tree)),
        ("pages", format!("{} in the data file at least", control.pages)),
        ("space maps", control.maps.to_string()),
        ("era", format!("{} (mark {:016x})", control.era.number, control.era.mark)),
    ];
    for (name, what) in lines {
        writeln!(out, "  {name:<12} {what}")?;
    }
    Ok(())
}
