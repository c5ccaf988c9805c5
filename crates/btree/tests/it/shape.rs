//! What a tree looks like after many insertions and removals, and what damage looks like.
use weir_base::{PageNo, TreeId};
use weir_btree::{ChainHead, Change, TreeError, Value};
use weir_change::Header;
use weir_page::{Flags, PAGE_SIZES};
use weir_pool::Cause;

use crate::support::{Shape, Site, TREE, scan};

fn order(kind: usize, n: u32) -> Vec<u32> {
    let mut keys: Vec<u32> = (0..n).collect();
    match kind {
        0 => {}
        1 => keys.reverse(),
        2 => fastrand::Rng::with_seed(3).shuffle(&mut keys),
        // From both ends to the middle.
        _ => keys.sort_by_key(|&k| (i64::from(k) - i64::from(n / 2)).abs()),
    }
    keys
}

/// Whatever the order of insertion and removal, an empty tree is one page, and a removal that
/// empties it leaves nothing behind.
#[test]
fn a_tree_grows_and_shrinks_in_any_order() {
    for page_size in PAGE_SIZES {
        for (up, down) in [(0, 0), (0, 1), (1, 2), (2, 3), (2, 2), (3, 0)] {
            let site = Site::new(&Shape::of(page_size, 64));
            let tree = site.tree(TREE);
            for key in order(up, 3000) {
                site.put(&tree, &key.to_be_bytes(), &[7; 100]).expect("put");
            }
            let report = &site.check(&[&tree])[0];
            assert_eq!(report.rows, 3000);
            assert!(report.height >= 2);
            if up == 0 {
                let filled =
                    report.leaf_bytes_used as f64 / (report.leaves * page_size as u64) as f64;
                assert!(filled > 0.85, "ascending keys fill their leaves: {filled}");
            }
            for key in order(down, 3000) {
                assert!(site.remove(&tree, &key.to_be_bytes()).expect("remove"));
            }
            let report = &site.check(&[&tree])[0];
            assert_eq!((report.pages.len(), report.height), (1, 1), "orders {up} and {down}");
        }
    }
}

/// Rows so large that leaves hold two or three: the last removal is the one that joins.
#[test]
fn large_rows_leave_one_page_too() {
    for page_size in PAGE_SIZES {
        for seed in 0..30 {
            let site = Site::new(&Shape::of(page_size, 64));
            let tree = site.tree(TREE);
            let mut random = fastrand::Rng::with_seed(seed);
            let max = weir_page::max_key_len(page_size);
            let mut keys: Vec<Vec<u8>> = (0..random.u16(2..60))
                .map(|n| {
                    let mut key = n.to_be_bytes().to_vec();
                    key.resize(random.usize(2..=max), 1);
                    key
                })
                .collect();
            random.shuffle(&mut keys);
            for key in &keys {
                let len = random.usize(0..=tree.max_inline_value(key.len()));
                site.put(&tree, key, &vec![1; len]).expect("put");
            }
            random.shuffle(&mut keys);
            for key in &keys {
                assert!(site.remove(&tree, key).expect("remove"));
                let report = tree.check(&mut |_| {}).expect("a sound tree");
                assert!(report.leaves > 1 || report.height == 1, "a root with one child");
            }
            assert_eq!(site.check(&[&tree])[0].pages.len(), 1, "seed {seed}, {page_size}");
        }
    }
}

/// The cut that moves no row makes the left leaf's range smaller all the same: a thread that looked
/// at it before must look again.
#[test]
fn a_cut_behind_the_last_row_is_noticed() {
    let site = Site::new(&Shape::of(4096, 64));
    let tree = site.tree(TREE);
    let mut cursor = weir_btree::Cursor::new(tree.clone());
    site.put(&tree, &0u32.to_be_bytes(), &[0; 700]).expect("put");
    assert!(cursor.seek_first().expect("seek"));
    for key in 1u32..500 {
        // Large enough to go right alone.
        site.put(&tree, &key.to_be_bytes(), &[0; 700]).expect("put");
        assert!(cursor.next().expect("next"), "the row put just now follows");
        assert_eq!(cursor.key(), key.to_be_bytes());
    }
}

#[test]
fn dropping_frees_every_page_and_chain() {
    for frames in [16, 1024] {
        let site = Site::new(&Shape::of(4096, frames));
        let (tree, other) = (site.tree(TREE), site.tree(TreeId(8)));
        for key in 0u32..800 {
            let len = if key % 10 == 0 { 9000 } else { 60 };
            site.put(&tree, &key.to_be_bytes(), &vec![1; len]).expect("put");
        }
        site.put(&other, b"left", b"alone").expect("put");
        site.check(&[&tree, &other]);
        tree.free_all(Header::default(), &mut |_| {
            site.pump();
            Ok(())
        })
        .expect("dropped");
        site.check(&[&other]);
        tree.free_all(Header::default(), &mut |_| Ok(())).expect("done before");
        site.check(&[&other]);
    }
}

#[test]
fn limits_are_errors_that_change_nothing() {
    for page_size in PAGE_SIZES {
        let site = Site::new(&Shape::of(page_size, 64));
        let tree = site.tree(TREE);
        let max = weir_page::max_key_len(page_size);
        let before = site.log.end();
        let long = site.put(&tree, &vec![1; max + 1], b"x");
        assert!(matches!(
            long,
            Err(TreeError::KeyTooLong { len, max: m, .. }) if len == max + 1 && m == max
        ));
        assert_eq!(site.log.end(), before);
        site.put(&tree, &vec![1; max], b"x").expect("the longest key");
        site.put(&tree, b"", b"").expect("the shortest");
        assert_eq!(scan(&tree).len(), 2);
    }
}

/// A row that names a chain that is not there is damage, not a reason to look again for ever.
#[test]
fn a_dangling_chain_is_damage() {
    let site = Site::new(&Shape::of(4096, 64));
    let tree = site.tree(TREE);
    let head = ChainHead { len: 5000, first: PageNo(40), mark: 99 }.encode();
    let value = Value { bytes: &head, flags: Flags::OVERFLOW };
    tree.put(b"k", &Change::single(site.txn()), value).expect("put");
    let found = tree.get(b"k", &mut Vec::new());
    assert!(matches!(found, Err(TreeError::Damaged { page: PageNo(40), .. })), "{found:?}");
    let found = tree.check(&mut |_| {}).map(|_| ());
    assert!(matches!(found, Err(TreeError::Damaged { page: PageNo(40), .. })), "{found:?}");
}

/// A neighbour that cannot be read does not make a removal fail that has been logged already.
#[test]
fn a_damaged_neighbour_does_not_fail_a_removal() {
    let site = Site::new(&Shape::of(4096, 16));
    let tree = site.tree(TREE);
    for key in 0u32..2000 {
        site.put(&tree, &key.to_be_bytes(), &[7; 100]).expect("put");
    }
    let pool = &site.env.pool;
    while pool.residence().dirty > 0 {
        let pages = pool.take_oldest(64, site.log.end());
        pool.write_back(0, &pages, Cause::Shutdown, 64, &mut |_| {}).expect("written");
    }
    // All leaves but the first: it and the inner nodes are needed to get to the row.
    let report = tree.check(&mut |_| {}).expect("sound");
    let first = {
        let mut cursor = weir_btree::Cursor::new(tree.clone());
        cursor.seek_first().expect("seek");
        cursor.page()
    };
    let raw = site.volume.read_raw("pages").expect("the file");
    for &page in report.pages.iter().filter(|p| **p != first) {
        let at = page.0 as usize * 4096;
        if raw[at + 16] == 2 {
            site.volume.corrupt("pages", at as u64 + 2000, 1).expect("corrupted");
        }
    }
    // Out of memory with what is there.
    for &page in report.pages.iter().rev().take(40) {
        let _ = pool.optimistic(page);
    }
    let mut key = 0u32;
    while let Ok(true) = site.remove(&tree, &key.to_be_bytes()) {
        key += 1;
    }
    assert!(key >= 30, "all rows of the first leaf could be removed, {key}");
    let gone = tree.get(&(key - 1).to_be_bytes(), &mut Vec::new()).expect("readable");
    assert!(gone.is_none());
}

/// A child of another tree, or of another level, is damage wherever a walk meets it.
#[test]
fn a_child_that_its_parent_does_not_mean_is_damage() {
    let site = Site::new(&Shape::of(4096, 4096));
    let tree = site.tree(TREE);
    for key in 0u32..12_000 {
        site.put(&tree, &key.to_be_bytes(), &[7; 100]).expect("put");
    }
    let report = tree.check(&mut |_| {}).expect("sound");
    assert!(report.height >= 3, "{}", report.height);
    let pool = &site.env.pool;
    let is_inner = |page| pool.exclusive(page).expect("the page").node().is_inner();
    let below_root = report.pages.iter().copied().filter(|page| *page != tree.root());
    let (inner, leaves): (Vec<_>, Vec<_>) = below_root.partition(|page| is_inner(*page));
    for page in inner.into_iter().chain(leaves.into_iter().step_by(37)) {
        // Byte 17 is the level, byte 40 the tree, byte 16 the kind.
        for (at, xor) in [(17, 1), (17, 2), (40, 4), (16, 1)] {
            pool.exclusive(page).expect("the page").bytes_mut()[at] ^= xor;
            let mut failed = 0;
            for key in (0u32..12_000).step_by(29) {
                let key = key.to_be_bytes();
                match tree.get(&key, &mut Vec::new()) {
                    Ok(found) => assert!(found.is_some(), "a row is gone without a word"),
                    Err(TreeError::Damaged { page: found, what, .. }) => {
                        assert_eq!(found, page);
                        let place = format!("'pages' at byte {}:", u64::from(page.0) * 4096);
                        assert!(what.contains(&place), "{what}");
                        assert!(site.put(&tree, &key, b"x").is_err(), "and nothing is written");
                        failed += 1;
                    }
                    Err(e) => panic!("{e}"),
                }
            }
            assert!(failed > 0, "page {page} is met by some test");
            assert!(tree.check(&mut |_| {}).is_err());
            pool.exclusive(page).expect("the page").bytes_mut()[at] ^= xor;
        }
    }
    tree.check(&mut |_| {}).expect("sound again");
}
