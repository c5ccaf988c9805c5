//! How the pages of a long value are read, and freed.
use std::sync::Barrier;

use weir_base::{PageNo, TxnId};
use weir_btree::{ChainHead, Steps};
use weir_change::Header;

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

/// Writes a chain of `pages` pages that no row names.
fn chain(site: &Site, mark: u64, pages: usize) -> ChainHead {
    let value = value(mark as u8, pages);
    let header = Header { txn: Some(TxnId(mark)), ..Header::default() };
    let mut writer = site.env.chains().writer(&value, mark, header).expect("pages");
    while writer.next_log_bytes().is_some() {
        writer.write_next().expect("written");
    }
    writer.head()
}

fn free(site: &Site, head: &ChainHead) {
    let mut admit = |_| Ok(());
    site.env.chains().free(head.first, head.mark, Header::default(), &mut admit).expect("freed");
}

/// After a crash two transactions may have the same chain to free. The second one leaves alone what
/// others have claimed meanwhile, although nothing is written there yet.
#[test]
fn a_chain_that_is_freed_twice_takes_no_page_from_another() {
    let site = Site::new(&Shape::of(PAGE, 128));
    let head = chain(&site, 7, 10);
    free(&site, &head);
    let claimed = site.env.space.claim(8).expect("pages");
    assert!(claimed.contains(&head.first), "{claimed:?} are pages of the chain");
    free(&site, &head);
    let others = site.env.space.claim(8).expect("pages");
    assert!(claimed.iter().all(|page| !others.contains(page)), "{claimed:?} {others:?}");
}

/// As above, by two threads at the same time, while a third one writes to what has become free.
#[test]
fn a_chain_that_two_threads_free_takes_no_page_from_another() {
    let site = Site::new(&Shape::of(PAGE, 256));
    let before = site.env.space.used();
    for round in 0..300 {
        site.pump();
        let head = chain(&site, 2 * round + 1, 12);
        let start = Barrier::new(3);
        let written = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    free(&site, &head);
                });
            }
            start.wait();
            chain(&site, 2 * round + 2, 12)
        });
        let mut bytes = Vec::new();
        let is_there = site.env.chains().fetch(&written, &mut bytes).expect("read");
        assert!(is_there && bytes == value((2 * round + 2) as u8, 12), "round {round}");
        free(&site, &written);
        assert_eq!(site.env.space.used(), before, "round {round}");
    }
}
