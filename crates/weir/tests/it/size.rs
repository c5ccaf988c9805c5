//! How large a tree is, estimated from a few walks, beside what a check of it counts.
use weir::{Config, Db, Durability};

fn is_near(estimate: u64, counted: u64) -> bool {
    estimate.abs_diff(counted) * 5 <= counted
}

#[test]
fn a_tree_is_about_as_large_as_it_is_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = Config { page_size: 4096, ..Config::default() };
    let db = Db::open(&dir.path().join("db"), config).expect("open");
    let tree = db.create_tree("herons").expect("a tree");
    let empty = tree.size().expect("a size");
    assert_eq!((empty.leaf_pages, empty.inner_pages, empty.value_pages), (1, 0, 0));
    let free = db.free_bytes();
    for (rows, every) in [(100u32, 50), (2_000, 40), (40_000, 100)] {
        for i in 0..rows {
            let key = i.wrapping_mul(2_654_435_761).to_be_bytes();
            let len = if i % every == 0 { 9_000 } else { 20 + (i % 7) as usize * 9 };
            tree.put(&key, &vec![7; len], Durability::Lazy).expect("a put");
        }
        let (size, counted) = (tree.size().expect("a size"), tree.check(&mut |_| ()).expect("ok"));
        assert!(is_near(size.leaf_pages, counted.leaves), "{size:?} {}", counted.leaves);
        assert!(
            size.inner_pages.abs_diff(counted.inner_nodes) <= 1 + counted.inner_nodes / 4,
            "{size:?} {}",
            counted.inner_nodes
        );
        // Rare rows, of which 16 leaves hold few.
        let (about, long) = (size.value_pages, counted.overflow_pages);
        assert!(about * 3 >= long && about <= long * 3, "{size:?} {long}");
        assert_eq!(size.pages(), size.leaf_pages + size.inner_pages + size.value_pages);
    }
    assert!(db.drop_tree("herons").expect("dropped"));
    assert!(db.free_bytes() > free, "what was dropped is free");
}
