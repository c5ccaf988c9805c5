//! Any bytes as a redo group: decoding ends with operations or an offset (CHANGE-4), what was
//! decoded reads the same when written again, and an operation either applies to a page and leaves
//! a sound one or is refused and leaves the page as it was (CHANGE-1).
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::{PageNo, TreeId};
use weir_change::{Op, apply, decode};
use weir_page::{Flags, Kind, NodeMut, Stamp, check, format};

const BYTES: usize = 4096;

fuzz_target!(|input: &[u8]| {
    let Ok((header, ops)) = decode(input) else { return };
    let mut again = Vec::new();
    header.encode(&mut again);
    let mut sound = Vec::new();
    for op in ops {
        match op {
            Ok(op) => {
                op.encode(&mut again);
                sound.push(op);
            }
            Err(error) => assert!(error.offset <= input.len(), "{error}"),
        }
    }
    let (header_again, ops_again) = decode(&again).expect("it was written by encode");
    assert_eq!(header_again, header);
    let ops_again: Vec<Op<'_>> =
        ops_again.map(|op| op.expect("it was written by encode")).collect();
    assert_eq!(ops_again, sound);

    for kind in [Kind::Leaf, Kind::Inner] {
        let mut page = node(kind);
        for op in &sound {
            let before = page.clone();
            match apply(op, header.writer(), &mut page) {
                Ok(()) if matches!(op, Op::Init { .. }) => return,
                Ok(()) => {}
                Err(_) => assert_eq!(page, before, "refused and changed: {op:?}"),
            }
        }
    }
});

/// A small node with something in it.
fn node(kind: Kind) -> Vec<u8> {
    let mut page = vec![0; BYTES];
    let level = u8::from(kind == Kind::Inner);
    format(&mut page, kind, level, TreeId(1), PageNo(1));
    let mut node = NodeMut::new(&mut page);
    for (slot, key) in [b"aa", b"ab", b"bb"].into_iter().enumerate() {
        let done = match kind {
            Kind::Leaf => node.insert(slot, key, Stamp::default(), Flags::default(), b"value"),
            _ => node.insert_child(key, PageNo(9)),
        };
        done.expect("an empty page has room");
    }
    check(&page).expect("it was made by the rules");
    page
}
