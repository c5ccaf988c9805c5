//! Cursors that live through changes of the tree: a step goes to the neighbour that is there now.
use std::collections::BTreeMap;
use std::ops::Bound;

use weir_btree::Cursor;

use crate::support::{Shape, Site, TREE};

/// Rows of several sizes, so that leaves are cut in the middle and at their ends, joined left and
/// right, and the root grows and is lowered; all that while cursors stand on rows.
fn live_through_changes(page_size: usize, frames: u64, seed: u64) {
    let site = Site::new(&Shape::of(page_size, frames));
    let tree = site.tree(TREE);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model = BTreeMap::new();
    // Where each cursor stands, as far as the model knows.
    let mut cursors: Vec<(Cursor, Option<Vec<u8>>)> =
        (0..4).map(|_| (Cursor::new(tree.clone()), None)).collect();
    // The number of rows goes up and down, so that the tree does.
    let mut growing = true;
    for _ in 0..1_500 {
        let key = random.u16(0..600).to_be_bytes().to_vec();
        growing = if growing { model.len() < 120 } else { model.len() < 3 };
        if random.u8(0..10) < if growing { 7 } else { 2 } {
            let most = tree.max_inline_value(key.len());
            let value = vec![7; if random.bool() { most - random.usize(0..9) } else { 40 }];
            site.put(&tree, &key, &value).expect("put");
            model.insert(key, value);
        } else {
            let near = model.range(key.clone()..).next().map(|(k, _)| k.clone());
            let key = near.unwrap_or(key);
            let was = site.remove(&tree, &key).expect("remove");
            assert_eq!(was, model.remove(&key).is_some());
        }
        let (cursor, stands) = &mut cursors[random.usize(0..4)];
        let forward = random.bool();
        let (on, expected) = match stands {
            Some(at) => {
                let behind = (Bound::Excluded(at.clone()), Bound::Unbounded);
                if forward {
                    (cursor.next(), model.range(behind).next())
                } else {
                    (cursor.prev(), model.range(..at.clone()).next_back())
                }
            }
            None if forward => (cursor.seek_first(), model.iter().next()),
            None => (cursor.seek_last(), model.iter().next_back()),
        };
        assert_eq!(on.expect("a step"), expected.is_some(), "from {stands:?}, seed {seed}");
        if let Some((key, value)) = expected {
            assert_eq!(cursor.key(), key, "from {stands:?}, seed {seed}");
            assert!(cursor.value().expect("a value") == Some(&value[..]));
        }
        *stands = expected.map(|(key, _)| key.clone());
    }
    site.check(&[&tree]);
}

#[test]
fn a_step_goes_to_the_neighbour_that_is_there_now() {
    for seed in 0..12 {
        live_through_changes(4096, 256, seed);
    }
    for seed in 100..104 {
        live_through_changes(16384, 256, seed);
        live_through_changes(4096, 16, seed);
    }
}

#[test]
fn a_cursor_on_nothing_stays_there() {
    let site = Site::new(&Shape::of(4096, 64));
    let tree = site.tree(TREE);
    let mut cursor = Cursor::new(tree.clone());
    assert!(!cursor.next().expect("next") && !cursor.prev().expect("prev"));
    assert!(!cursor.seek_first().expect("seek") && !cursor.seek_last().expect("seek"));
    assert!(cursor.key().is_empty() && cursor.value().expect("value").is_none());
    site.put(&tree, b"b", b"1").expect("put");
    assert!(!cursor.seek(b"c").expect("seek") && !cursor.seek_before(b"b").expect("seek"));
    assert!(cursor.seek_before(b"c").expect("seek") && cursor.key() == b"b");
    assert!(!cursor.next().expect("next") && !cursor.next().expect("next"));
    assert!(cursor.stamp().is_none());
}

/// A long value that is replaced or removed while a cursor stands on its row.
#[test]
fn long_values_under_a_cursor() {
    let site = Site::new(&Shape::of(4096, 64));
    let tree = site.tree(TREE);
    site.put(&tree, b"k", &[1; 20_000]).expect("put");
    let mut cursor = Cursor::new(tree.clone());
    assert!(cursor.seek(b"").expect("seek"));
    assert!(cursor.value().expect("value") == Some(&[1; 20_000][..]));
    site.put(&tree, b"k", &[2; 30_000]).expect("put");
    assert!(cursor.value().expect("value") == Some(&[2; 30_000][..]), "the row as it is now");
    assert!(site.remove(&tree, b"k").expect("remove"));
    site.put(&tree, b"other", &[3; 50_000]).expect("pages used again");
    assert!(cursor.value().expect("value").is_none());
}
