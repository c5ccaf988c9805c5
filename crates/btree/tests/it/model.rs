//! A tree and a `BTreeMap` that get the same changes answer alike, with keys chosen to hurt.
use proptest::prelude::*;
use weir_btree::Cursor;
use weir_page::{PAGE_SIZES, max_key_len};

use crate::support::{Model, Shape, Site, TREE, scan};

#[derive(Clone, Debug)]
enum Step {
    Put(u16, u32),
    Update(u16),
    Remove(u16),
    Mark(u16),
    Get(u16),
    Seek(u16, i8),
    RemoveRange(u16, u16),
    Compact,
}

/// Keys in four families: all zeros, huge with a shared prefix, short, and huge with a difference
/// in front.
fn key(number: u16, page_size: usize) -> Vec<u8> {
    let max = max_key_len(page_size);
    let n = usize::from(number / 4);
    match number % 4 {
        0 => vec![0; (n * 7) % (max + 1)],
        1 => {
            let mut key = vec![b'p'; max - 2];
            key.extend_from_slice(&(n as u16).to_be_bytes());
            key
        }
        2 => format!("user{n:05}").into_bytes(),
        _ => {
            let mut key = (n as u16).to_be_bytes().to_vec();
            key.resize(max - n % 5, 0xff);
            key
        }
    }
}

fn value(seed: u32, len: u32) -> Vec<u8> {
    (0..len).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b9).to_be_bytes()[0]).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![
        6 => 0u32..200,
        3 => 200u32..1200,
        2 => 1000u32..10_000,
        1 => 10_000u32..100_000
    ];
    let step = prop_oneof![
        8 => (0u16..800, len).prop_map(|(k, len)| Step::Put(k, len)),
        2 => (0u16..800).prop_map(Step::Update),
        4 => (0u16..800).prop_map(Step::Remove),
        1 => (0u16..800).prop_map(Step::Mark),
        2 => (0u16..800).prop_map(Step::Get),
        1 => (0u16..800, any::<i8>()).prop_map(|(k, n)| Step::Seek(k, n)),
        1 => (0u16..800, 0u16..200).prop_map(|(k, n)| Step::RemoveRange(k, n)),
        1 => Just(Step::Compact),
    ];
    proptest::collection::vec(step, 1..250)
}

fn run(page_size: usize, frames: u64, steps: &[Step]) {
    let site = Site::new(&Shape::of(page_size, frames));
    let tree = site.tree(TREE);
    let mut model = Model::new();
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Put(k, len) => {
                let (key, value) = (key(k, page_size), value(number as u32, len));
                site.put(&tree, &key, &value).expect("put");
                model.insert(key, (value, false));
            }
            Step::Update(k) => {
                let key = key(k, page_size);
                if let Some((value, false)) = model.get_mut(&key) {
                    if let Some(byte) = value.last_mut() {
                        *byte ^= 0x55;
                    }
                    site.put(&tree, &key, value).expect("update");
                }
            }
            Step::Remove(k) => {
                let key = key(k, page_size);
                let was = site.remove(&tree, &key).expect("remove");
                assert_eq!(was, model.remove(&key).is_some());
            }
            Step::Mark(k) => {
                let key = key(k, page_size);
                // The test frees a marked row's chain at once, which only a commit's tidying may.
                if model.get(&key).is_some_and(|(v, _)| v.len() <= tree.max_inline_value(key.len()))
                {
                    site.mark(&tree, &key).expect("mark");
                    model.entry(key).and_modify(|row| row.1 = true);
                }
            }
            Step::Get(k) => get(&tree, &model, &key(k, page_size)),
            Step::Seek(k, n) => seek(&tree, &model, &key(k, page_size), n),
            Step::RemoveRange(k, n) => {
                for k in k..k + n {
                    let key = key(k, page_size);
                    let was = site.remove(&tree, &key).expect("remove");
                    assert_eq!(was, model.remove(&key).is_some());
                }
            }
            Step::Compact => {
                site.compact(&tree).expect("compacted");
                site.check(&[&tree]);
            }
        }
    }
    let report = &site.check(&[&tree])[0];
    let live = model.values().filter(|row| !row.1).count() as u64;
    assert_eq!((report.rows, report.marked_rows), (live, model.len() as u64 - live));
    let rows = scan(&tree);
    let expected = model.iter().filter(|row| !row.1.1);
    assert!(rows.iter().map(|(k, v)| (k, v)).eq(expected.map(|(k, (v, _))| (k, v))));
    for key in model.keys() {
        assert!(site.remove(&tree, key).expect("remove"));
    }
    let report = &site.check(&[&tree])[0];
    assert_eq!((report.rows + report.marked_rows, report.pages.len()), (0, 1), "one page is left");
}

fn get(tree: &weir_btree::Tree, model: &Model, key: &[u8]) {
    let mut out = Vec::new();
    let head = tree.get(key, &mut out).expect("get");
    match model.get(key) {
        None => assert!(head.is_none()),
        Some((value, marked)) => {
            assert_eq!(head.map(|h| h.flags.deleted), Some(*marked));
            assert!(*marked || out == *value, "another value");
        }
    }
}

/// Seeks, then walks up to `n` rows forward, or backward when negative.
fn seek(tree: &weir_btree::Tree, model: &Model, key: &[u8], n: i8) {
    let mut cursor = Cursor::new(tree.clone());
    let steps = usize::from(n.unsigned_abs());
    let live = |row: &(&Vec<u8>, &(Vec<u8>, bool))| !row.1.1;
    let expected: Vec<&Vec<u8>> = if n >= 0 {
        model.range(key.to_vec()..).filter(live).map(|r| r.0).take(steps + 1).collect()
    } else {
        model.range(..key.to_vec()).rev().filter(live).map(|r| r.0).take(steps + 1).collect()
    };
    let mut on = if n >= 0 { cursor.seek(key) } else { cursor.seek_before(key) }.expect("seek");
    let mut found = Vec::new();
    while on && found.len() <= steps {
        found.push(cursor.key().to_vec());
        on = if n >= 0 { cursor.next() } else { cursor.prev() }.expect("step");
    }
    assert!(found.iter().eq(expected), "cursor from {} keys, {n} steps", model.len());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_tree_is_a_map(steps in steps(), size in 0usize..3) {
        run(PAGE_SIZES[size], 4096, &steps);
    }

    /// The pool holds a fraction of the data: everything is evicted and read back under way.
    #[test]
    fn a_tree_in_a_tiny_pool_is_a_map(steps in steps(), size in 0usize..3) {
        run(PAGE_SIZES[size], 16, &steps);
    }
}
