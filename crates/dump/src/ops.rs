//! One operation of redo as a line of text.
use weir_change::{Before, Op, Purge, Stored};
use weir_page::Flags;

use crate::words::{brief, page_name};

fn marks(flags: Flags) -> &'static str {
    match (flags.deleted, flags.overflow) {
        (false, false) => "",
        (true, false) => ", deleted",
        (false, true) => ", overflow",
        (true, true) => ", deleted, overflow",
    }
}

/// What the operation does: its name, its page, its fields.
pub(crate) fn describe(op: &Op<'_>) -> String {
    let name = op.name();
    match op.page() {
        Some(page) => format!("{name} page {page}: {}", change(op)),
        None => format!("{name}: {}", note(op)),
    }
}

/// Of those that change a page.
fn change(op: &Op<'_>) -> String {
    match *op {
        Op::Init { kind, level, tree, .. } => {
            format!("{kind:?} of tree {tree}, level {level}").to_lowercase()
        }
        Op::Insert { key, seq, flags, value, .. } => {
            format!("{} = {}, change {seq}{}", brief(key), brief(value), marks(flags))
        }
        Op::Update { key, seq, offset, removed, bytes, .. } => format!(
            "{}: {removed} bytes at {offset} become {}, change {seq}",
            brief(key),
            brief(bytes)
        ),
        Op::Flip { tree, key, seq, flags, old_flags, stamp, .. } => format!(
            "{} of tree {tree}: some bits, change {seq}{}; before: transaction {}, change {}{}",
            brief(key),
            marks(flags),
            stamp.writer,
            stamp.seq,
            marks(old_flags)
        ),
        Op::Patch { key, seq, flags, patches, .. } => {
            let places: Vec<String> =
                patches.iter().map(|(at, bytes)| format!("at {at} {}", brief(bytes))).collect();
            format!("{}: {}, change {seq}{}", brief(key), places.join(", "), marks(flags))
        }
        Op::Restamp { key, stamp, .. } => {
            format!("{}: transaction {}, change {}", brief(key), stamp.writer, stamp.seq)
        }
        Op::Remove { key, .. } | Op::TruncateFrom { key, .. } | Op::RemoveChild { key, .. } => {
            brief(key)
        }
        Op::InsertChild { key, child, .. } => format!("{}: page {child}", brief(key)),
        Op::SetLink { link, .. } => page_name(link),
        Op::Load { rows, .. } => format!("{} bytes of entries", rows.len()),
        Op::OverflowData { next, bytes, .. } => {
            format!("{} bytes, next {}", bytes.len(), page_name(next))
        }
        Op::MapSet { first_bit, count, value, .. } => {
            let what = if value { "taken" } else { "free" };
            format!(
                "bits {first_bit} to {} {what}",
                (u64::from(first_bit) + u64::from(count)).saturating_sub(1)
            )
        }
        Op::WriteAt { offset, bytes, .. } => format!("{} at {offset}", brief(bytes)),
        _ => String::new(),
    }
}

/// Of those that change none.
fn note(op: &Op<'_>) -> String {
    match *op {
        Op::Undo { tree, key, seq, before } => {
            let was = match before {
                Before::Absent => "there was none".to_owned(),
                Before::Row { flags, stamp, bytes } => format!(
                    "was {} of transaction {}, change {}{}",
                    brief(bytes),
                    stamp.writer,
                    stamp.seq,
                    marks(flags)
                ),
            };
            format!("change {seq} of {} in tree {tree}: {was}", brief(key))
        }
        Op::UndoPages { first, count } => format!("{count} pages from {first} on"),
        Op::UndoTree { tree, root } => format!("tree {tree}, root page {root}"),
        Op::UndoStored(stored) => chain(stored),
        Op::Prepared { xid, held } => {
            format!("as {}, {} bytes of locks", brief(xid), held.len())
        }
        Op::Undone { entries } => format!("the last {entries} entries"),
        Op::UndoReset => "undo so far counts no more".to_owned(),
        Op::Purge(Purge::Chain { first, mark }) => {
            format!("chain {mark:016x}, from page {} on", page_name(first))
        }
        Op::Purge(Purge::Row { tree, key }) => format!("row {} of tree {tree}", brief(key)),
        Op::Purge(Purge::Tree { tree, root }) => format!("tree {tree}, root page {root}"),
        Op::Purge(Purge::Stored(stored)) => chain(stored),
        _ => String::new(),
    }
}

fn chain(stored: Stored) -> String {
    format!(
        "{} bytes from page {} on (chain {:016x}): {} entries of undo, {} purge tasks, changes up \
         to {}",
        stored.len,
        page_name(stored.first),
        stored.mark,
        stored.entries,
        stored.tasks,
        stored.last_seq
    )
}
