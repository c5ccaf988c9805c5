//! Loading an empty tree from sorted entries.
use weir_base::PageNo;
use weir_btree::TreeError;
use weir_change::Header;
use weir_page::PAGE_SIZES;

use crate::support::{Shape, Site, TREE, scan};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn load(site: &Site, tree: &weir_btree::Tree, entries: &Entries) -> (Result<u64, TreeError>, u64) {
    let header = Header { commits: false, ..site.txn() };
    let last = Header { commits: true, ..header };
    let mut taken = 0;
    let source = entries.iter().map(|(k, v)| (k, v));
    let loaded = site.load(tree, source, header, last, &mut |(_, count)| taken += u64::from(count));
    (loaded, taken)
}

fn entries(count: u32, long: u32) -> Entries {
    (0..count)
        .map(|n| {
            let len = if long > 0 && n % long == 0 { 20_000 } else { 50 + (n % 60) as usize };
            (n.to_be_bytes().to_vec(), vec![n as u8; len])
        })
        .collect()
}

#[test]
fn what_is_loaded_is_there() {
    for page_size in PAGE_SIZES {
        for frames in [16, 4096] {
            for (count, long) in [(0, 0), (1, 0), (1, 1), (2, 0), (20_000, 0), (2_000, 100)] {
                let site = Site::new(&Shape::of(page_size, frames));
                let tree = site.tree(TREE);
                let entries = entries(count, long);
                let (loaded, taken) = load(&site, &tree, &entries);
                assert_eq!(loaded.expect("loaded"), u64::from(count));
                let report = &site.check(&[&tree])[0];
                assert_eq!(report.rows, u64::from(count));
                assert_eq!(report.pages.len() as u64, 1 + taken, "every page taken is known");
                assert!(scan(&tree) == entries);
                if count == 20_000 {
                    let all = (report.leaves * page_size as u64) as f64;
                    assert!(report.leaf_bytes_used as f64 / all > 0.88);
                }
                // It is a tree like any other.
                for (key, _) in &entries {
                    assert!(site.remove(&tree, key).expect("remove"));
                }
                assert_eq!(site.check(&[&tree])[0].pages.len(), 1);
            }
        }
    }
}

#[test]
fn huge_keys_load_too() {
    for page_size in PAGE_SIZES {
        let site = Site::new(&Shape::of(page_size, 64));
        let tree = site.tree(TREE);
        let max = weir_page::max_key_len(page_size);
        let entries: Entries = (0u16..300)
            .map(|n| {
                let mut key = vec![b'a'; max - 2];
                key.extend_from_slice(&n.to_be_bytes());
                let len = tree.max_inline_value(key.len());
                (key, vec![1; len])
            })
            .collect();
        assert_eq!(load(&site, &tree, &entries).0.expect("loaded"), 300);
        site.check(&[&tree]);
        assert!(scan(&tree) == entries);
    }
}

#[test]
fn what_is_wrong_is_refused_and_the_tree_is_as_before() {
    let site = Site::new(&Shape::of(4096, 64));
    let tree = site.tree(TREE);
    for wrong in [vec![5u32, 5], vec![5, 6, 4], vec![9, 8]] {
        let entries: Entries =
            wrong.iter().map(|n| (n.to_be_bytes().to_vec(), vec![1; 20])).collect();
        let at = wrong.len() as u64 - 1;
        let (loaded, _) = load(&site, &tree, &entries);
        assert!(matches!(loaded, Err(TreeError::NotAscending(n)) if n == at), "{loaded:?}");
        site.check(&[&tree]);
        assert!(scan(&tree).is_empty());
    }
    let long = vec![(vec![1; 5000], vec![])];
    assert!(matches!(load(&site, &tree, &long).0, Err(TreeError::KeyTooLong { .. })));
    site.put(&tree, b"k", b"v").expect("put");
    assert!(matches!(load(&site, &tree, &entries(3, 0)).0, Err(TreeError::NotEmpty)));
    assert_eq!(scan(&tree).len(), 1);
}

/// Rows put while a load was under way are not lost: the load is refused.
#[test]
fn a_row_put_during_a_load_survives() {
    let site = Site::new(&Shape::of(4096, 64));
    let tree = site.tree(TREE);
    let all = entries(5_000, 0);
    let header = Header { commits: false, ..site.txn() };
    let source = all.iter().enumerate().map(|(n, (k, v))| {
        if n == 4_000 {
            site.put(&tree, b"row", b"of another").expect("put");
        }
        (k, v)
    });
    let loaded = site.load(&tree, source, header, header, &mut |_| {});
    assert!(matches!(loaded, Err(TreeError::NotEmpty)), "{loaded:?}");
    assert_eq!(scan(&tree), [(b"row".to_vec(), b"of another".to_vec())]);
}

/// One node a level is in memory: an inner node is written as soon as it is full, not at the end.
#[test]
fn inner_nodes_are_written_on_the_way() {
    let site = Site::new(&Shape::of(4096, 4096));
    let tree = site.tree(TREE);
    let all = entries(20_000, 0);
    let header = Header { commits: false, ..site.txn() };
    let last = Header { commits: true, ..header };
    let pages = std::cell::RefCell::new(Vec::new());
    let source = all.iter().enumerate().map(|(n, (k, v))| {
        if n == 19_999 {
            let is_inner =
                |page: &PageNo| site.env.pool.exclusive(*page).expect("read").node().is_inner();
            let written: Vec<PageNo> = pages.borrow().clone();
            let (inner, leaves): (Vec<_>, Vec<_>) = written.into_iter().partition(is_inner);
            assert!(leaves.len() > 300, "{}", leaves.len());
            assert!(!inner.is_empty(), "no inner node of {} leaves is written", leaves.len());
        }
        (k, v)
    });
    let taken = &mut |(page, _)| pages.borrow_mut().push(page);
    let loaded = site.load(&tree, source, header, last, taken);
    assert_eq!(loaded.expect("loaded"), 20_000);
    assert!(scan(&tree) == all);
}
