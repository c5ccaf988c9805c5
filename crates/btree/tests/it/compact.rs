//! A tree made dense.
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
