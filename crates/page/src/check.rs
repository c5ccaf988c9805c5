//! Full structural verification of a page: every rule that the other functions rely on.
use crate::bytes::Bytes;
use crate::header::{
    COUNT, DATA_LEN, Damage, GARBAGE, HEADER_BYTES, HEAP_START, Kind, LEVEL, MARKS, PAGE_SIZES,
    PREFIX_OFF, verify_kind,
};
use crate::node::{Node, SLOT_BYTES, SLOT_HEAD, SLOT_VAL, VAL_LEN, head_of};
use std::cmp::Ordering;

fn rule(what: &'static str, offset: usize, expected: usize, found: usize) -> Result<(), Damage> {
    if expected == found {
        return Ok(());
    }
    Err(Damage::Field { what, offset, expected: expected as u64, found: found as u64 })
}

fn at_most(what: &'static str, offset: usize, limit: usize, found: usize) -> Result<(), Damage> {
    rule(what, offset, limit.min(found), found).map_err(|damage| match damage {
        Damage::Field { what, offset, found, .. } => {
            Damage::Field { what, offset, expected: limit as u64, found }
        }
        other => other,
    })
}

/// Checks everything that can be seen from the page alone: size, kind, and for nodes bounds,
/// overlaps, order of keys, prefix, heads, counts and garbage. Not the checksum (`verify`).
///
/// # Errors
/// The first rule that is broken, with its place.
pub fn check(page: &[u8]) -> Result<(), Damage> {
    if !PAGE_SIZES.contains(&page.len()) {
        return rule("page size", 0, PAGE_SIZES[0], page.len());
    }
    verify_kind(page)?;
    let node = Node::new(page);
    match node.kind() {
        Some(Kind::Leaf) => {
            rule("level of a leaf", LEVEL, 0, usize::from(node.level()))?;
            check_node(page)
        }
        Some(Kind::Inner) => {
            rule("level of an inner node", LEVEL, 1, usize::from(node.level().min(1)))?;
            check_node(page)
        }
        Some(Kind::Overflow) => {
            let data_len = usize::from(page.u16_at(DATA_LEN));
            at_most("length of overflow data", DATA_LEN, page.len() - HEADER_BYTES, data_len)
        }
        _ => Ok(()),
    }
}

fn check_node(page: &[u8]) -> Result<(), Damage> {
    let node = Node::new(page);
    let count = usize::from(page.u16_at(COUNT));
    let heap_start = node.heap_start();
    at_most("start of the heap", HEAP_START, page.len(), heap_start)?;
    at_most("end of the slots", COUNT, heap_start, HEADER_BYTES + count * SLOT_BYTES)?;

    let mut used = Vec::with_capacity(count + 1);
    if node.prefix_len() != 0 {
        check_range(page, PREFIX_OFF, node.prefix_off(), node.prefix_len())?;
        used.push((node.prefix_off(), node.prefix_len(), PREFIX_OFF));
    }
    if count == 0 {
        rule("prefix of an empty node", PREFIX_OFF, 0, node.prefix_len())?;
    }
    let mut marks = 0;
    for slot in 0..count {
        check_entry(node, slot)?;
        let len = node.suffix_len(slot) + node.body_len(slot);
        used.push((node.entry_off(slot), len, node.slot_at(slot)));
        marks += usize::from(node.is_leaf() && node.is_deleted(slot));
    }
    rule("delete marks", MARKS, marks, node.marks())?;
    check_heap(page.len() - heap_start, node.garbage(), &mut used)
}

fn check_range(page: &[u8], field: usize, off: usize, len: usize) -> Result<(), Damage> {
    let heap_start = Node::new(page).heap_start();
    if off < heap_start {
        return rule("offset below the heap", field, heap_start, off);
    }
    at_most("end of an entry", field, page.len(), off + len)
}

fn check_entry(node: Node<&[u8]>, slot: usize) -> Result<(), Damage> {
    let at = node.slot_at(slot);
    let len = node.suffix_len(slot) + node.body_len(slot);
    check_range(node.bytes(), at, node.entry_off(slot), len)?;
    let suffix = node.suffix(slot);
    rule("head of a key", at + SLOT_HEAD, head_of(suffix) as usize, node.head(slot) as usize)?;
    if node.is_inner() {
        rule("value of a separator", at + SLOT_VAL, 0, usize::from(node.val(slot)))?;
    } else {
        at_most("value length", at + SLOT_VAL, usize::from(VAL_LEN), node.value_len(slot))?;
    }
    if slot > 0 && node.suffix(slot - 1).cmp(suffix) != Ordering::Less {
        return rule("order of keys: a slot that follows", at, slot, slot - 1);
    }
    Ok(())
}

/// Nothing overlaps, and what is in no use is counted as garbage.
fn check_heap(
    heap_bytes: usize,
    garbage: usize,
    used: &mut [(usize, usize, usize)],
) -> Result<(), Damage> {
    used.sort_unstable();
    for pair in used.windows(2) {
        let ((off, len, _), (next, _, field)) = (pair[0], pair[1]);
        if off + len > next {
            return rule("entry that overlaps another", field, off + len, next);
        }
    }
    let used_bytes: usize = used.iter().map(|&(_, len, _)| len).sum();
    rule("garbage in the heap", GARBAGE, heap_bytes - used_bytes, garbage)
}
