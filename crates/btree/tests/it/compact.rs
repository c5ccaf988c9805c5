//! A tree made dense.
use std::collections::{BTreeMap, BTreeSet};

use weir_base::{PageNo, TreeId};
use weir_page::PAGE_SIZES;

use crate::support::{Shape, Site, TREE, scan};

/// Rows of which nine tenths are removed at random: what is left fills its leaves, which lie at the
/// file's beginning.
#[test]
fn what_random_removals_leave_is_made_dense() {
    for page_size in PAGE_SIZES {
        let site = Site::new(&Shape::of(page_size, 4096));
        let (first, tree) = (site.tree(TreeId(8)), site.tree(TREE));
        let mut random = fastrand::Rng::with_seed(9);
        let mut keys: Vec<u32> = (0..40_000).collect();
        random.shuffle(&mut keys);
        for key in &keys {
            site.put(&tree, &key.to_be_bytes(), &[7; 100]).expect("put");
            if key % 4 == 0 {
                site.put(&first, &key.to_be_bytes(), &[7; 100]).expect("put");
            }
        }
        random.shuffle(&mut keys);
        let (left, gone) = keys.split_at(keys.len() / 10);
        for key in gone {
            assert!(site.remove(&tree, &key.to_be_bytes()).expect("remove"));
        }
        let before = site.check(&[&first, &tree]).remove(1);
        let did = site.compact(&tree).expect("compacted");
        let reports = site.check(&[&first, &tree]);
        let after = &reports[1];
        assert_eq!(after.rows, left.len() as u64);
        let of_leaves = |leaves: u64| leaves * page_size as u64;
        assert!(of_leaves(before.leaves) * 2 > before.leaf_bytes_used * 3, "was dense before");
        let (used, all) = (after.leaf_bytes_used, of_leaves(after.leaves));
        assert!(used * 10 > all * 9, "{used} of {all} bytes are used, {did:?}");
        assert!(did.iter().all(|&steps| steps > 0), "joined, filled, moved: {did:?}");
        // As low as may be: behind the other tree's pages, which are more.
        let highest = |pages: &std::collections::BTreeSet<PageNo>| pages.iter().max().copied();
        assert!(highest(&after.pages) < highest(&reports[0].pages), "{page_size}");
        let mut left = left.to_vec();
        left.sort_unstable();
        let found = scan(&tree);
        assert!(found.iter().map(|(key, _)| &key[..]).eq(left.iter().map(|key| key.to_be_bytes())));
        let log = site.log.end();
        assert_eq!(site.compact(&tree).expect("once more"), [0; 3]);
        assert_eq!(site.log.end(), log, "nothing was left to do");
    }
}

fn long(key: u32, page_size: usize) -> Vec<u8> {
    let len = page_size + (key as usize * 7919) % (3 * page_size);
    (0..len).map(|i| (i as u32 ^ key).wrapping_mul(0x9e37_79b9).to_be_bytes()[0]).collect()
}

fn stamps(tree: &weir_btree::Tree) -> BTreeMap<Vec<u8>, weir_page::Stamp> {
    let mut cursor = weir_btree::Cursor::new(tree.clone());
    let mut on = cursor.seek_first().expect("a seek");
    let mut stamps = BTreeMap::new();
    while on {
        stamps.insert(cursor.key().to_vec(), cursor.stamp().expect("on a row"));
        on = cursor.next().expect("a step");
    }
    stamps
}

/// The chains of long values lie at the file's beginning then, too; each holds what it held, and
/// its row is its writer's as before. Those that may not be moved stay where they are.
#[test]
fn long_values_move_to_the_front() {
    for page_size in PAGE_SIZES {
        let site = Site::new(&Shape::of(page_size, 4096));
        let tree = site.tree(TREE);
        let mut random = fastrand::Rng::with_seed(4);
        let mut keys: Vec<u32> = (0..900).collect();
        random.shuffle(&mut keys);
        for key in &keys {
            site.put(&tree, &key.to_be_bytes(), &long(*key, page_size)).expect("put");
        }
        random.shuffle(&mut keys);
        let (left, gone) = keys.split_at(90);
        for key in gone {
            assert!(site.remove(&tree, &key.to_be_bytes()).expect("remove"));
        }
        let mut left = left.to_vec();
        left.sort_unstable();
        let holds = |tree: &weir_btree::Tree| {
            let rows = left.iter().map(|key| (key.to_be_bytes().to_vec(), long(*key, page_size)));
            assert!(scan(tree).into_iter().eq(rows), "{page_size}: rows are others");
        };
        let writers = stamps(&tree);
        let pages = |site: &Site| site.check(&[&tree]).remove(0).pages;
        let highest = |pages: &BTreeSet<PageNo>| pages.iter().max().expect("a page").0;
        let before = pages(&site);
        // No writer but one may be known no more.
        let stays = writers[&left[7].to_be_bytes()[..]];
        let [.., moved] = site.compact_with(&tree, &|stamp| stamp == stays).expect("compacted");
        assert!(moved <= 1, "{moved} of one");
        assert!(highest(&pages(&site)) > highest(&before) / 2);
        holds(&tree);
        let [.., moved] = site.compact_with(&tree, &|_| true).expect("compacted");
        assert!(moved > 40, "{moved} of 90");
        let after = pages(&site);
        holds(&tree);
        assert_eq!(stamps(&tree), writers, "the rows' writers");
        assert!(after.len() <= before.len());
        let most = after.len() as u32 * 11 / 10 + 8;
        assert!(highest(&after) <= most, "{page_size}: {} pages, {}", after.len(), highest(&after));
        // A few gaps are left by those that moved last; then there is nothing left to do.
        while site.compact(&tree).expect("once more") != [0; 3] {}
        let log = site.log.end();
        assert_eq!(site.compact(&tree).expect("once more"), [0; 3]);
        assert_eq!(site.log.end(), log, "nothing was left to do");
        holds(&tree);
    }
}
