//! Any bytes as a page: no check and no read panics, loops or leaves the page (PAGE-5), and on a
//! page that `check` accepts the reads agree with each other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::{DbId, PageNo};
use weir_page::{Node, check, seal, verify};

const BYTES: usize = 4096;
const DB: DbId = DbId(7);

fuzz_target!(|input: &[u8]| {
    let mut page = vec![0; BYTES];
    let len = input.len().min(BYTES);
    page[..len].copy_from_slice(&input[..len]);
    // As it came, then with the checksum that a fuzzer would not guess.
    let _ = verify(&page, DB, PageNo(1));
    let key = &input[len / 2..len];
    read(&page, key);
    seal(&mut page, DB);
    let number = Node::new(&page[..]).page_no();
    let _ = verify(&page, DB, number);
    if check(&page).is_ok() && verify(&page, DB, number).is_ok() {
        agree(&page);
    }
});

/// Every read there is, on whatever is there.
fn read(page: &[u8], key: &[u8]) {
    let node = Node::new(page);
    let mut out = Vec::new();
    let _ = (node.kind(), node.level(), node.lsn(), node.tree(), node.link(), node.marks());
    let _ = (node.free_bytes(), node.used_bytes(), node.prefix_len(), node.data_len());
    let _ = (node.search(key), node.child_index(key));
    node.data_into(&mut out);
    for slot in 0..node.count() {
        out.clear();
        node.key_into(slot, &mut out);
        node.value_into(slot, &mut out);
        let _ = (node.key_len(slot), node.value_len(slot), node.compare_key(slot, key));
        let _ = (node.stamp(slot), node.flags(slot), node.child(slot));
    }
}

/// Each key of a sound node is found where it stands.
fn agree(page: &[u8]) {
    let node = Node::new(page);
    if !node.is_leaf() && !node.is_inner() {
        return;
    }
    for slot in 0..node.count() {
        let key = node.key(slot);
        assert_eq!(key.len(), node.key_len(slot));
        assert_eq!(node.search(&key), Ok(slot));
    }
}
