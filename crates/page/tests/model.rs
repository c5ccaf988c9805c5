//! Nodes against a sorted map, with hostile keys, every page size, and a full check after every
//! step.
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_base::{PageNo, TreeId, TxnId};
use weir_page::{
    Flags, Full, HEADER_BYTES, Incoming, Kind, Moved, Node, NodeMut, PAGE_SIZES, RawPage, Split,
    Stamp, check, format, max_entry, max_inline_value, max_key_len, merged_fits, separator,
};

#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    stamp: Stamp,
    flags: Flags,
    value: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Row),
    Splice { pick: usize, from: usize, removed: usize, bytes: Vec<u8>, stamp: Stamp },
    Mark(usize, bool, Stamp),
    Remove(usize),
    Compact,
    Merge,
}

fn keys(page_size: usize) -> impl Strategy<Value = Vec<u8>> {
    let alphabet = prop::sample::select(vec![0u8, 1, b'a', 0xff]);
    let short = prop::collection::vec(alphabet.clone(), 0..7);
    let longest = max_key_len(page_size);
    prop_oneof![
        4 => short.clone(),
        3 => (0u64..300).prop_map(|number| number.to_be_bytes().to_vec()),
        3 => short.clone().prop_map(|tail| [&[b'p'; 100][..], &tail].concat()),
        1 => short.clone().prop_map(|tail| [&[0; 50][..], &tail].concat()),
        1 => (prop::sample::select(vec![b'p', 0, 255]), short, longest - 9..=longest).prop_map(
            |(fill, tail, len)| {
                let mut key = vec![fill; len - tail.len()];
                key.extend(tail);
                key
            }
        ),
    ]
}

fn stamps() -> impl Strategy<Value = Stamp> {
    (0..=TxnId::MAX.0, any::<u32>()).prop_map(|(writer, seq)| Stamp { writer: TxnId(writer), seq })
}

fn values(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..20),
        2 => (any::<u8>(), 20usize..200).prop_map(|(byte, len)| vec![byte; len]),
        1 => (any::<u8>(), longest - 2..=longest).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn steps(page_size: usize) -> impl Strategy<Value = Vec<Step>> {
    let longest = max_inline_value(page_size, 0);
    let row = (stamps(), 0u8..4, values(longest)).prop_map(|(stamp, bits, value)| Row {
        stamp,
        flags: Flags::from_bits(bits),
        value,
    });
    let pick = 0usize..1000;
    prop::collection::vec(
        prop_oneof![
            8 => (keys(page_size), row).prop_map(move |(key, mut row)| {
                // The key decides what its value may be.
                row.value.truncate(max_inline_value(page_size, key.len()));
                Step::Put(key, row)
            }),
            4 => (pick.clone(), 0usize..300, 0usize..300, values(200), stamps()).prop_map(
                |(pick, from, removed, bytes, stamp)| {
                    Step::Splice { pick, from, removed, bytes, stamp }
                }),
            2 => (pick.clone(), any::<bool>(), stamps())
                .prop_map(|(pick, on, stamp)| Step::Mark(pick, on, stamp)),
            3 => pick.prop_map(Step::Remove),
            1 => Just(Step::Compact),
            1 => Just(Step::Merge),
        ],
        1..120,
    )
}

fn new_page(page_size: usize, kind: Kind) -> Vec<u8> {
    let mut page = vec![0xee; page_size];
    format(&mut page, kind, u8::from(kind == Kind::Inner), TreeId(5), PageNo(9));
    page
}

type Model = BTreeMap<Vec<u8>, Row>;

/// The page says exactly what the model says, in both ways of reading.
fn compare_leaf(page: &[u8], model: &Model) {
    check(page).unwrap();
    // SAFETY: `page` outlives `raw` and no thread writes it.
    let raw = Node::new(unsafe { RawPage::new(page.as_ptr(), page.len()) });
    let node = Node::new(page);
    assert_eq!(node.count(), model.len());
    let (mut key_read, mut value_read) = (Vec::new(), Vec::new());
    for (slot, (key, row)) in model.iter().enumerate() {
        assert_eq!(node.search(key), Ok(slot));
        assert_eq!(raw.search(key), Ok(slot));
        raw.key_into(slot, &mut key_read);
        assert_eq!((&node.key(slot), &key_read), (key, key));
        assert_eq!(node.compare_key(slot, key), std::cmp::Ordering::Equal);
        raw.value_into(slot, &mut value_read);
        assert_eq!((node.value(slot), &value_read), (row.value.as_slice(), &row.value));
        assert_eq!((node.stamp(slot), raw.stamp(slot)), (row.stamp, row.stamp));
        assert_eq!((node.flags(slot), raw.flags(slot)), (row.flags, row.flags));
        // Neighbours of the key that are not there.
        for absent in [[key.as_slice(), &[0]].concat(), key[..key.len().saturating_sub(1)].to_vec()]
        {
            let expected = match model.get(&absent) {
                Some(_) => Ok(model.range(..absent.clone()).count()),
                None => Err(model.range(..absent.clone()).count()),
            };
            assert_eq!(node.search(&absent), expected);
            assert_eq!(raw.search(&absent), expected);
        }
    }
    let used = node.used_bytes();
    assert_eq!(used + node.free_bytes(), page.len() - HEADER_BYTES);
}

/// Splits as a tree does: rows move by dump and load, the left side is truncated, the incoming
/// change is made.
fn split_leaf(
    page: &mut [u8],
    model: &mut Model,
    incoming: Incoming<'_>,
) -> (Vec<u8>, Model, bool) {
    let node = Node::new(&*page);
    let Split { at, incoming_right } =
        node.split_point(incoming).expect("a legal change has a cut");
    let mut moved = Vec::new();
    node.dump(at..node.count(), &mut moved);
    let mut right = new_page(page.len(), Kind::Leaf);
    NodeMut::new(&mut right).load(Moved::parse(&moved).unwrap()).unwrap();
    NodeMut::new(page).truncate(at);
    let right_model = match model.keys().nth(at).cloned() {
        Some(key) => model.split_off(&key),
        None => Model::new(),
    };
    compare_leaf(page, model);
    compare_leaf(&right, &right_model);
    if let (Some((last, _)), Some((first, _))) =
        (model.last_key_value(), right_model.first_key_value())
    {
        let between = separator(last, first);
        assert!(last.as_slice() < between && between <= first.as_slice());
    }
    (right, right_model, incoming_right)
}

fn put(page: &mut [u8], key: &[u8], row: &Row) -> Result<(), Full> {
    let before = page.to_vec();
    let slot = Node::new(&*page).search(key);
    let mut node = NodeMut::new(page);
    let (done, fitted) = match slot {
        Ok(slot) => {
            let fitted = node.node().fits_value(slot, row.value.len());
            (node.replace(slot, row.stamp, row.flags, &row.value), fitted)
        }
        Err(slot) => {
            let fitted = node.node().fits_row(slot, key, row.value.len());
            (node.insert(slot, key, row.stamp, row.flags, &row.value), fitted)
        }
    };
    assert_eq!(done.is_ok(), fitted);
    if done.is_err() {
        assert_eq!(page, before, "a refused change leaves no trace");
    }
    done
}

fn put_splitting(
    page: &mut Vec<u8>,
    model: &mut Model,
    other: &mut Option<(Vec<u8>, Model)>,
    key: &[u8],
    row: &Row,
) {
    if put(page, key, row).is_err() {
        let value_len = row.value.len();
        let incoming = match Node::new(page.as_slice()).search(key) {
            Ok(slot) => Incoming::Value { slot, value_len },
            Err(slot) => Incoming::Row { slot, key, value_len },
        };
        let (mut right, mut right_model, incoming_right) = split_leaf(page, model, incoming);
        if incoming_right {
            std::mem::swap(page, &mut right);
            std::mem::swap(model, &mut right_model);
        }
        put(page, key, row).expect("the split made room");
        *other = Some((right, right_model));
    }
    model.insert(key.to_vec(), row.clone());
    assert!(!model.is_empty());
}

fn run_leaf(page_size: usize, steps: &[Step]) {
    let mut page = new_page(page_size, Kind::Leaf);
    let mut model = Model::new();
    // The neighbour that the last split made, for merging.
    let mut other: Option<(Vec<u8>, Model)> = None;
    for step in steps {
        let picked = |pick: usize| {
            model
                .keys()
                .nth(pick % model.len().max(1))
                .cloned()
                .map(|key| (Node::new(page.as_slice()).search(&key).unwrap(), key))
        };
        match step {
            Step::Put(key, row) => {
                // A key of the neighbour's range would not come here in a tree.
                let in_range = other.as_ref().is_none_or(|(_, theirs)| {
                    let (Some((first, _)), Some((last, _))) =
                        (theirs.first_key_value(), theirs.last_key_value())
                    else {
                        return true;
                    };
                    let right_of_us = model.first_key_value().is_none_or(|(ours, _)| ours < first);
                    if right_of_us { key < first } else { key > last }
                });
                if in_range {
                    put_splitting(&mut page, &mut model, &mut other, key, row);
                }
            }
            Step::Splice { pick, from, removed, bytes, stamp } => {
                let Some((slot, key)) = picked(*pick) else { continue };
                let row = model.get_mut(&key).unwrap();
                let from = from % (row.value.len() + 1);
                let removed = removed % (row.value.len() - from + 1);
                let mut changed = row.clone();
                changed.value.splice(from..from + removed, bytes.iter().copied());
                changed.stamp = *stamp;
                if changed.value.len() > max_inline_value(page_size, key.len()) {
                    continue;
                }
                match NodeMut::new(&mut page).splice(slot, *stamp, from, removed, bytes) {
                    Ok(()) => *row = changed,
                    Err(Full) => put_splitting(&mut page, &mut model, &mut other, &key, &changed),
                }
            }
            Step::Mark(pick, deleted, stamp) => {
                let Some((slot, key)) = picked(*pick) else { continue };
                let row = model.get_mut(&key).unwrap();
                (row.flags.deleted, row.stamp) = (*deleted, *stamp);
                let mut node = NodeMut::new(&mut page);
                let flags = Flags { deleted: *deleted, ..node.node().flags(slot) };
                node.patch(slot, *stamp, flags);
            }
            Step::Remove(pick) => {
                let Some((slot, key)) = picked(*pick) else { continue };
                model.remove(&key);
                NodeMut::new(&mut page).remove(slot);
            }
            Step::Compact => {
                let used = Node::new(page.as_slice()).used_bytes();
                NodeMut::new(&mut page).compact();
                assert!(Node::new(page.as_slice()).used_bytes() <= used);
            }
            Step::Merge => {
                let Some((theirs, their_model)) = other.take() else { continue };
                let (ours, neighbour) = (Node::new(page.as_slice()), Node::new(theirs.as_slice()));
                let mut moved = Vec::new();
                neighbour.dump(0..neighbour.count(), &mut moved);
                let ours_left = their_model.first_key_value().map(|(key, _)| key)
                    > model.first_key_value().map(|(key, _)| key);
                let fits = if ours_left || their_model.is_empty() {
                    merged_fits(ours, neighbour, b"")
                } else {
                    merged_fits(neighbour, ours, b"")
                };
                let done = NodeMut::new(&mut page).load(Moved::parse(&moved).unwrap());
                assert_eq!(done.is_ok(), fits);
                match done {
                    Ok(()) => model.extend(their_model),
                    Err(_) => other = Some((theirs, their_model)),
                }
            }
        }
        compare_leaf(&page, &model);
    }
    let marks = model.values().filter(|row| row.flags.deleted).count();
    assert_eq!(Node::new(page.as_slice()).marks(), marks);
}

fn compare_inner(page: &[u8], leftmost: PageNo, model: &BTreeMap<Vec<u8>, PageNo>) {
    check(page).unwrap();
    let node = Node::new(page);
    assert_eq!(node.count(), model.len());
    assert_eq!(node.child(0), leftmost);
    for (slot, (key, &child)) in model.iter().enumerate() {
        assert_eq!((node.key(slot), node.child(slot + 1)), (key.clone(), child));
        assert_eq!(node.child_index(key), slot + 1);
        let longer = [key.as_slice(), &[0]].concat();
        assert_eq!(node.child_index(&longer), model.range(..=longer.clone()).count());
        if let Some((_, shorter)) = key.split_last() {
            assert_eq!(node.child_index(shorter), model.range(..=shorter.to_vec()).count());
        }
    }
}

fn run_inner(page_size: usize, steps: &[(Vec<u8>, bool)]) {
    let mut page = new_page(page_size, Kind::Inner);
    let mut leftmost = PageNo(1);
    NodeMut::new(&mut page).set_leftmost(leftmost);
    let mut model = BTreeMap::new();
    for (number, (key, insert)) in (2..).zip(steps) {
        let slot = Node::new(page.as_slice()).search(key);
        match slot {
            Err(_) if !insert => {}
            Ok(slot) => {
                NodeMut::new(&mut page).remove_child(slot);
                model.remove(key);
            }
            Err(slot) => {
                let child = PageNo(number);
                let fits = Node::new(page.as_slice()).fits_child(slot, key);
                let done = NodeMut::new(&mut page).insert_child(key, child);
                assert_eq!(done.is_ok(), fits);
                if done.is_err() {
                    let node = Node::new(page.as_slice());
                    let split = node.split_point(Incoming::Child { slot, key }).expect("a cut");
                    let (up, up_child) = (node.key(split.at), node.child(split.at + 1));
                    let mut moved = Vec::new();
                    node.dump(split.at + 1..node.count(), &mut moved);
                    let mut right = new_page(page_size, Kind::Inner);
                    NodeMut::new(&mut right).set_leftmost(up_child);
                    NodeMut::new(&mut right).load(Moved::parse(&moved).unwrap()).unwrap();
                    let whole = page.clone();
                    NodeMut::new(&mut page).truncate(split.at);
                    assert_eq!(split.incoming_right, *key > up);
                    let (left, other) = (Node::new(page.as_slice()), Node::new(right.as_slice()));
                    assert!(merged_fits(left, other, &up), "the halves came out of one page");
                    // And back together: the separator comes down, the right one's entries follow.
                    let mut merged = page.clone();
                    NodeMut::new(&mut merged).insert_child(&up, other.link()).unwrap();
                    NodeMut::new(&mut merged).load(Moved::parse(&moved).unwrap()).unwrap();
                    compare_inner(&merged, leftmost, &model);
                    NodeMut::new(&mut page).compact();
                    assert_eq!(
                        Node::new(whole.as_slice()).count(),
                        Node::new(merged.as_slice()).count()
                    );
                    let right_model = model.split_off(&up);
                    if split.incoming_right {
                        (page, leftmost, model) = (right, up_child, right_model);
                        model.remove(&up);
                    }
                    NodeMut::new(&mut page).insert_child(key, child).expect("the split made room");
                }
                model.insert(key.clone(), child);
            }
        }
        compare_inner(&page, leftmost, &model);
    }
}

fn sizes() -> impl Strategy<Value = usize> {
    prop::sample::select(PAGE_SIZES.to_vec())
}

/// Every function that reads, on bytes that mean nothing.
fn read_everything(page: &[u8], key: &[u8]) {
    let _ = check(page);
    let _ = weir_page::verify(page, weir_base::DbId(1), PageNo(0));
    let held = Node::new(page);
    // SAFETY: `page` outlives `raw` and no thread writes it.
    let raw = Node::new(unsafe { RawPage::new(page.as_ptr(), page.len()) });
    assert_eq!(held.search(key), raw.search(key));
    assert_eq!(held.child_index(key), raw.child_index(key));
    assert_eq!((held.count(), held.free_bytes()), (raw.count(), raw.free_bytes()));
    assert_eq!((held.kind(), held.lsn(), held.link()), (raw.kind(), raw.lsn(), raw.link()));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for slot in (0..held.count() + 2).take(50) {
        held.key_into(slot, &mut a);
        raw.key_into(slot, &mut b);
        assert_eq!(a, b);
        held.value_into(slot, &mut a);
        raw.value_into(slot, &mut b);
        assert_eq!(a, b);
        assert_eq!(held.compare_key(slot, key), raw.compare_key(slot, key));
        assert_eq!((held.stamp(slot), held.flags(slot)), (raw.stamp(slot), raw.flags(slot)));
        assert_eq!(held.child(slot), raw.child(slot));
    }
    a.clear();
    b.clear();
    held.data_into(&mut a);
    raw.data_into(&mut b);
    assert_eq!(a, b);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_leaf_is_a_sorted_map(
        (page_size, steps) in sizes().prop_flat_map(|size| (Just(size), steps(size))),
    ) {
        run_leaf(page_size, &steps);
    }

    #[test]
    fn an_inner_node_is_a_sorted_map_of_children(
        (page_size, steps) in sizes().prop_flat_map(|size| {
            (Just(size), prop::collection::vec((keys(size), prop::bool::weighted(0.8)), 1..150))
        })
    ) {
        run_inner(page_size, &steps);
    }

    #[test]
    fn any_bytes_can_be_read(
        bytes in prop::collection::vec(any::<u8>(), 0..5000),
        kind in 0u8..8,
        key in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let mut bytes = bytes;
        read_everything(&bytes, &key);
        if let Some(byte) = bytes.get_mut(16) {
            *byte = kind;
        }
        read_everything(&bytes, &key);
        bytes.resize(4096, 0xab);
        read_everything(&bytes, &key);
    }

    #[test]
    fn a_sound_page_with_broken_bytes_can_be_read_and_checked(
        rows in 1u64..80,
        breaks in prop::collection::vec((0usize..900, any::<u8>()), 1..6),
        key in 0u64..90,
    ) {
        let mut page = new_page(8192, Kind::Leaf);
        for number in 0..rows {
            let row = Row { stamp: Stamp::default(), flags: Flags::NONE, value: vec![7; 60] };
            put(&mut page, &number.to_be_bytes(), &row).unwrap();
        }
        for (at, byte) in breaks {
            page[at] = byte;
        }
        read_everything(&page, &key.to_be_bytes());
    }

    #[test]
    fn any_bytes_can_be_offered_as_moved_rows(bytes in prop::collection::vec(0u8..6, 0..60)) {
        for kind in [Kind::Leaf, Kind::Inner, Kind::Meta] {
            let mut page = new_page(4096, kind);
            let before = page.clone();
            let done = Moved::parse(&bytes).and_then(|moved| NodeMut::new(&mut page).load(moved));
            if done.is_err() {
                prop_assert_eq!(&page, &before);
            }
            check(&page).unwrap();
        }
    }
}

#[test]
fn two_of_the_largest_entries_fit_in_every_page() {
    for page_size in PAGE_SIZES {
        let mut page;
        for key_len in [0, 1, 8, 100, max_key_len(page_size)] {
            page = new_page(page_size, Kind::Leaf);
            for first in [1u8, 2].iter().take(key_len.max(1)) {
                let value = vec![1; max_inline_value(page_size, key_len)];
                let row = Row { stamp: Stamp::default(), flags: Flags::NONE, value };
                let key = vec![*first; key_len];
                assert!(key.len() + row.value.len() + 20 <= max_entry(page_size));
                put(&mut page, &key, &row).unwrap();
                check(&page).unwrap();
            }
        }
    }
}

#[test]
fn ascending_rows_fill_their_pages() {
    let mut page = new_page(8192, Kind::Leaf);
    let (mut pages, mut rows) = (1, 0u64);
    let row = Row { stamp: Stamp::default(), flags: Flags::NONE, value: vec![1; 128] };
    while pages < 20 {
        let key = rows.to_be_bytes();
        if put(&mut page, &key, &row).is_ok() {
            rows += 1;
            continue;
        }
        let node = Node::new(page.as_slice());
        let slot = node.count();
        let split = node.split_point(Incoming::Row { slot, key: &key, value_len: 128 }).unwrap();
        assert!(split.incoming_right);
        let mut moved = Vec::new();
        node.dump(split.at..slot, &mut moved);
        let mut right = new_page(8192, Kind::Leaf);
        NodeMut::new(&mut right).load(Moved::parse(&moved).unwrap()).unwrap();
        page = right;
        pages += 1;
    }
    let per_page = rows / pages;
    assert!(per_page >= 47, "{per_page} rows of 55 a page");
}

#[test]
fn the_shortest_separator() {
    let table: [(&[u8], &[u8], &[u8]); 5] = [
        (b"abc", b"abd", b"abd"),
        (b"abc", b"b", b"b"),
        (b"a", b"abc", b"ab"),
        (b"", b"\0", b"\0"),
        (b"apple", b"banana", b"b"),
    ];
    for (left, right, expected) in table {
        assert_eq!(separator(left, right), expected);
    }
}

#[test]
fn check_names_what_is_broken_and_where() {
    let mut page = new_page(4096, Kind::Leaf);
    for key in [b"a", b"b", b"c"] {
        let row = Row { stamp: Stamp::default(), flags: Flags::NONE, value: vec![1; 10] };
        put(&mut page, key, &row).unwrap();
    }
    let table: [(usize, u8, &str); 7] = [
        (17, 1, "level of a leaf at byte 17"),
        (19, 2, "end of the slots at byte 18"),
        (22, 1, "garbage in the heap at byte 22"),
        (36, 1, "delete marks at byte 36"),
        (49, 0, "offset below the heap at byte 48"),
        (57, 9, "head of a key at byte 54"),
        (62, 11, "entry that overlaps another"),
    ];
    for (at, byte, what) in table {
        let mut broken = page.clone();
        broken[at] = byte;
        let damage = check(&broken).unwrap_err().to_string();
        assert!(damage.starts_with(what), "byte {at}: {damage}");
    }
    let (one, two) = (page[48..58].to_vec(), page[58..68].to_vec());
    page[48..58].copy_from_slice(&two);
    page[58..68].copy_from_slice(&one);
    assert!(check(&page).unwrap_err().to_string().starts_with("order of keys"));
}
