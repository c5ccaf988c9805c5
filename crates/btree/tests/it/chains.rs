//! How the pages of a long value are read.
use weir_base::PageNo;
use weir_btree::ChainHead;

use crate::support::{Shape, Site, TREE};

const PAGE: usize = 4096;

fn value(n: u8, pages: usize) -> Vec<u8> {
    (0..pages * PAGE).map(|at| (at % 253) as u8 ^ n).collect()
}

/// Has everything but what is written now leave memory.
fn crowd_out(site: &Site, tree: &weir_btree::Tree) {
    for n in 0..200u8 {
        site.put(tree, &[b'z', n], &value(n, 2)).expect("a put");
    }
}

#[test]
fn a_chain_that_is_not_in_memory_is_read_in_a_few_goes() {
    let site = Site::new(&Shape::of(PAGE, 128));
    let tree = site.tree(TREE);
    for n in 0..4u8 {
        site.put(&tree, &[b'k', n], &value(n, 40)).expect("a put");
    }
    crowd_out(&site, &tree);
    let pool = &site.env.pool;
    let mut out = Vec::new();
    for n in 0..4u8 {
        assert!(tree.get_inline(&[b'k', n], &mut out).expect("a read").is_some());
        let (reads, _) = (pool.stats().reads.get(), pool.take_asked());
        assert!(tree.fetch(&mut out).expect("a read") && out == value(n, 40));
        let (reads, asked) = (pool.stats().reads.get() - reads, pool.take_asked());
        assert!((39..=41).contains(&reads), "{reads} pages read for a chain of 40");
        assert!(asked.len() <= 5, "{} of them by themselves", asked.len());
    }
}

#[test]
fn a_chain_in_pieces_is_read_with_little_that_is_not_its_own() {
    let site = Site::new(&Shape::of(PAGE, 128));
    let tree = site.tree(TREE);
    // Every second page of a stretch is free then.
    for n in 0..80u8 {
        site.put(&tree, &[b'a', n], &value(n, 1)).expect("a put");
    }
    for n in (0..80u8).step_by(2) {
        assert!(site.remove(&tree, &[b'a', n]).expect("a removal"));
    }
    site.put(&tree, b"k", &value(7, 40)).expect("a put");
    let mut out = Vec::new();
    assert!(tree.get_inline(b"k", &mut out).expect("a read").is_some());
    let head = ChainHead::decode(&out).expect("a chain");
    assert_ne!(head.first, PageNo::NONE);
    crowd_out(&site, &tree);
    let reads = site.env.pool.stats().reads.get();
    assert!(tree.get(b"k", &mut out).expect("a read").is_some() && out == value(7, 40));
    let reads = site.env.pool.stats().reads.get() - reads;
    assert!(reads <= 60, "{reads} pages read for a chain of 40");
}
