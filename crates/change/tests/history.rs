//! Operations as bytes and back, and histories of them: the same history gives the same bytes,
//! however it is written.
use proptest::prelude::*;
use weir_base::{PageNo, TreeId, TxnId};
use weir_change::{
    ApplyError, BODY_BYTES_MIN, Before, Difference, Header, Op, Patches, Purge, Shape, Stored,
    apply, apply_at, decode, map_bit,
};
use weir_page::{Flags, Kind, Node, NodeMut, Stamp, check, format};

/// An operation that owns its bytes, for generating; `key` and `bytes` are what the operation has
/// of them.
#[derive(Clone, Debug)]
struct Owned {
    which: u8,
    page: u32,
    key: Vec<u8>,
    bytes: Vec<u8>,
    numbers: [u32; 3],
    writer: u64,
    bits: u8,
    shape: Shape,
    difference: Difference,
}

const KINDS: [Kind; 6] =
    [Kind::Leaf, Kind::Inner, Kind::Overflow, Kind::SpaceMap, Kind::Meta, Kind::Free];

impl Owned {
    fn stored(&self) -> Stored {
        let [len, entries, tasks] = self.numbers;
        Stored {
            first: PageNo(self.page),
            mark: self.writer,
            len,
            entries,
            tasks,
            last_seq: len / 2,
        }
    }

    fn patches(&self) -> Patches<'_> {
        self.shape.of(&self.bytes)
    }

    fn op(&self) -> Op<'_> {
        let (page, key, bytes) = (PageNo(self.page), &self.key[..], &self.bytes[..]);
        let [a, b, c] = self.numbers;
        let (tree, flags) = (TreeId(u64::from(a) << (self.bits % 33)), Flags::from_bits(self.bits));
        let stamp = Stamp { writer: TxnId(self.writer), seq: c };
        let (offset, removed) = (a as usize, b as usize);
        match self.which {
            0 => {
                let kind = KINDS[self.bits as usize % KINDS.len()];
                Op::Init { page, kind, level: u8::from(kind == Kind::Inner), tree }
            }
            1 => Op::Insert { page, key, seq: c, flags, value: bytes },
            2 => Op::Update { page, key, seq: c, offset, removed, bytes },
            3 => Op::Update { page, key, seq: c, offset, removed: bytes.len(), bytes },
            4 => Op::Patch { page, key, seq: c, flags, patches: self.patches() },
            5 => Op::Restamp { page, key, stamp },
            6 => Op::Remove { page, key },
            7 => Op::InsertChild { page, key, child: PageNo(a) },
            8 => Op::RemoveChild { page, key },
            9 => Op::SetLink { page, link: PageNo(a.wrapping_sub(1)) },
            10 => Op::Load { page, rows: bytes },
            11 => Op::TruncateFrom { page, key },
            12 => Op::OverflowData { page, next: PageNo(a.wrapping_sub(1)), bytes },
            13 => Op::MapSet { page, first_bit: a, count: b, value: flags.deleted },
            14 => Op::WriteAt { page, offset, bytes },
            15 => Op::Undo { tree, key, seq: c, before: Before::Absent },
            16 => Op::Undo { tree, key, seq: c, before: Before::Row { flags, stamp, bytes } },
            17 | 18 => {
                let (old_flags, flips) = (Flags::from_bits(3 - self.bits), self.difference.flips());
                Op::Flip { page, tree, key, seq: b, flags, old_flags, stamp, flips }
            }
            19 => Op::UndoPages { first: page, count: a },
            20 => {
                let mark = self.writer ^ (u64::from(c) << 40);
                Op::Purge(Purge::Chain { first: page, mark })
            }
            21 => Op::Purge(Purge::Row { tree, key }),
            22 => Op::Purge(Purge::Tree { tree, root: page }),
            23 => Op::Undone { entries: a },
            24 => Op::UndoTree { tree, root: page },
            25 => Op::Prepared { xid: bytes, held: key },
            26 => Op::UndoStored(self.stored()),
            27 => Op::Purge(Purge::Stored(self.stored())),
            _ => Op::UndoReset,
        }
    }
}

/// Where `bytes` differ from others that `key` stands for.
fn differences(key: &[u8], bytes: &[u8]) -> (Shape, Difference) {
    let mask = key.iter().chain([&0; 5]).cycle();
    let old: Vec<u8> = bytes.iter().zip(mask).map(|(byte, mask)| byte ^ (mask & 1)).collect();
    (Shape::between(&old, bytes), Difference::between(&old, bytes))
}

/// Any operation at all, with any numbers.
fn any_op() -> impl Strategy<Value = Owned> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let number = || prop_oneof![0u32..200, any::<u32>()];
    let numbers = [number(), number(), number()];
    (0u8..29, any::<u32>(), bytes(), bytes(), numbers, 0..=TxnId::MAX.0, 0u8..4).prop_map(
        |(which, page, key, bytes, numbers, writer, bits)| {
            let (shape, difference) = differences(&key, &bytes);
            Owned { which, page, key, bytes, numbers, writer, bits, shape, difference }
        },
    )
}

/// Rows as a split would move them.
fn moved(keys: &[Vec<u8>], inner: bool) -> Vec<u8> {
    let mut page = vec![0; 16384];
    let kind = if inner { Kind::Inner } else { Kind::Leaf };
    let mut node = NodeMut::format(&mut page, kind, u8::from(inner), TreeId(1), PageNo(1));
    for key in keys {
        if let Err(slot) = node.node().search(key) {
            let done = if inner {
                node.insert_child(key, PageNo(key.len() as u32))
            } else {
                let stamp = Stamp { writer: TxnId(7), seq: 9 };
                node.insert(slot, key, stamp, Flags::from_bits(key.len() as u8), &key.repeat(2))
            };
            done.expect("few and small");
        }
    }
    let mut rows = Vec::new();
    node.node().dump(0..node.node().count(), &mut rows);
    rows
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    let alphabet = prop::sample::select(vec![0u8, 1, b'a', b'b', 0xff]);
    prop_oneof![
        5 => prop::collection::vec(alphabet.clone(), 0..4),
        1 => prop::collection::vec(alphabet, 0..4)
            .prop_map(|tail| [&[b'x'; 600][..], &tail].concat()),
    ]
}

/// Operations that have a fair chance to apply: few pages, few keys, numbers in range.
fn likely_op() -> impl Strategy<Value = Owned> {
    let which = prop_oneof![
        12 => Just(1u8), 4 => 2u8..4, 4 => Just(4u8), 1 => Just(5u8), 4 => Just(6u8),
        8 => Just(7u8), 2 => Just(8u8), 1 => Just(9u8), 2 => Just(10u8), 1 => Just(11u8),
        1 => Just(12u8), 2 => Just(13u8), 2 => Just(14u8), 1 => 15u8..17, 4 => Just(17u8),
        1 => 19u8..25,
    ];
    let bytes = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (any::<u8>(), 100usize..800).prop_map(|(byte, len)| vec![byte; len]),
    ];
    let rows = prop_oneof![
        3 => (prop::collection::vec(key(), 0..5), any::<bool>())
            .prop_map(|(keys, inner)| moved(&keys, inner)),
        1 => prop::collection::vec(0u8..5, 0..30),
    ];
    let numbers = [0u32..40, 0u32..40, 0u32..1000];
    (which, 0u32..5, key(), bytes, rows, numbers, 0..=TxnId::MAX.0, 0u8..4).prop_map(
        |(which, page, key, mut bytes, rows, mut numbers, writer, bits)| {
            // Most kinds of operation make sense on one page only.
            let page = match which {
                1..=6 | 17 => 0,
                7..=8 => 1,
                9 => 1 + page % 2,
                10..=11 => page % 2,
                12 => 2,
                13 => 3,
                14 => 4,
                _ => page,
            };
            match which {
                10 => bytes = rows,
                13 => numbers[0] *= 700,
                14 => numbers[0] += 45,
                _ => {}
            }
            let (shape, difference) = differences(&key, &bytes);
            Owned { which, page, key, bytes, numbers, writer, bits, shape, difference }
        },
    )
}

fn new_pages(rubbish: u8) -> Vec<Vec<u8>> {
    (0..5u32)
        .map(|number| {
            let mut page = vec![rubbish; 4096];
            let kind = KINDS[number as usize];
            let level = u8::from(kind == Kind::Inner);
            let op = Op::Init { page: PageNo(number), kind, level, tree: TreeId(1) };
            apply(&op, TxnId(1), &mut page).unwrap();
            page
        })
        .collect()
}

fn run(pages: &mut [Vec<u8>], ops: &[Owned]) -> Vec<Result<(), ApplyError>> {
    let step = |owned: &Owned| {
        let op = owned.op();
        match op.page() {
            None => apply(&op, TxnId(5), &mut pages[0]),
            Some(page) => apply(&op, TxnId(5), &mut pages[page.0 as usize]),
        }
    };
    ops.iter().map(step).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn operations_come_back_from_their_bytes(
        ops in prop::collection::vec(any_op(), 0..8),
        txn in prop::option::of(0..=TxnId::MAX.0),
        flags in any::<[bool; 3]>(),
    ) {
        let [commits, ended, undo] = flags;
        let header = Header { txn: txn.map(TxnId), commits, ended, undo };
        let mut body = Vec::new();
        header.encode(&mut body);
        for owned in &ops {
            owned.op().encode(&mut body);
        }
        let len = body.len();
        Op::pad(&mut body);
        prop_assert!(body.len() >= BODY_BYTES_MIN && (body.len() == len || len < BODY_BYTES_MIN));
        let (header_read, ops_read) = decode(&body).unwrap();
        prop_assert_eq!(header_read, header);
        let read: Vec<_> = ops_read.collect::<Result<_, _>>().unwrap();
        let written: Vec<_> = ops.iter().map(Owned::op).collect();
        prop_assert_eq!(&read, &written);
        // Cut short anywhere, it is an error or says less; it never says anything else.
        for cut in 0..len {
            let Ok((_, ops_read)) = decode(&body[..cut]) else { continue };
            let read: Vec<_> = ops_read.map_while(Result::ok).collect();
            prop_assert!(written.starts_with(&read));
        }
    }

    #[test]
    fn any_bytes_can_be_decoded_and_applied(
        bytes in prop::collection::vec(prop_oneof![0u8..30, any::<u8>()], 0..80),
    ) {
        let mut pages = new_pages(0);
        if let Ok((header, ops)) = decode(&bytes) {
            for op in ops {
                let Ok(op) = op.map_err(|error| assert!(error.offset < bytes.len())) else { break };
                let mut again = Vec::new();
                op.encode(&mut again);
                for page in &mut pages {
                    let _ = apply(&op, header.writer(), page);
                    check(page).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_history_repeats_itself(
        ops in prop::collection::vec(likely_op(), 1..120),
        cut in 0usize..120,
    ) {
        // What was in the memory before does not matter.
        let (mut one, mut other) = (new_pages(0), new_pages(0xee));
        let outcomes = run(&mut one, &ops);
        let cut = cut.min(ops.len());
        let first = run(&mut other, &ops[..cut]);
        let mut copy = other.clone();
        let second = run(&mut copy, &ops[cut..]);
        prop_assert_eq!(&one, &copy);
        prop_assert_eq!(&outcomes, &[first, second].concat());

        // As the log has it, only what had applied, and with the slots that forward work found.
        let mut body = Vec::new();
        Header { txn: Some(TxnId(5)), ..Header::default() }.encode(&mut body);
        for (owned, outcome) in ops.iter().zip(&outcomes) {
            if outcome.is_ok() {
                owned.op().encode(&mut body);
            }
        }
        let (header, replayed) = decode(&body).unwrap();
        let mut third = new_pages(0x11);
        for op in replayed {
            let op = op.unwrap();
            let Some(page) = op.page() else { continue };
            let page = &mut third[page.0 as usize];
            let found = op.key().map(|key| Node::new(&page[..]).search(key));
            let slot = found.map(|found| found.unwrap_or_else(|slot| slot));
            apply_at(&op, header.writer(), page, slot).unwrap();
        }
        prop_assert_eq!(&one, &third);
    }

    #[test]
    fn a_page_stays_sound_and_a_refused_change_leaves_no_trace(
        ops in prop::collection::vec(prop_oneof![9 => likely_op(), 1 => any_op()], 1..80),
    ) {
        let mut pages = new_pages(0);
        for owned in &ops {
            let op = owned.op();
            let number = op.page().map_or(0, |page| page.0 as usize % pages.len());
            let page = &mut pages[number];
            let before = page.clone();
            match apply(&op, TxnId(5), page) {
                Ok(()) => check(page).unwrap(),
                Err(_) => prop_assert_eq!(&before, page),
            }
        }
    }
}

#[test]
fn an_update_of_120_bytes_takes_at_most_138() {
    let (old, new) = ([0; 128], [&[0; 8][..], &[1; 120]].concat());
    let (page, key, shape) = (PageNo(200_000_000), 7u64.to_be_bytes(), Shape::between(&old, &new));
    let patches = shape.of(&new);
    let op = Op::Patch { page, key: &key, seq: 1, flags: Flags::NONE, patches };
    let mut out = Vec::new();
    op.encode(&mut out);
    assert!(out.len() <= 138, "{} bytes", out.len());
}

#[test]
fn what_operations_do_and_refuse() {
    let mut page = vec![0; 4096];
    format(&mut page, Kind::Leaf, 0, TreeId(1), PageNo(3));
    let (me, key) = (TxnId(9), &b"k"[..]);
    let number = PageNo(3);
    let value = |page: &[u8]| (Node::new(page).value(0).to_vec(), Node::new(page).stamp(0));
    let stamp = |seq| Stamp { writer: me, seq };

    let missing = apply(&Op::Remove { page: number, key }, me, &mut page);
    assert_eq!(missing, Err(ApplyError::Missing { op: "remove" }));
    let insert = |bytes| Op::Insert { page: number, key, seq: 1, flags: Flags::NONE, value: bytes };
    apply(&insert(b"hello"), me, &mut page).unwrap();
    let update =
        |offset, removed, bytes, seq| Op::Update { page: number, key, seq, offset, removed, bytes };
    apply(&update(1, 1, b"a", 2), me, &mut page).unwrap();
    assert_eq!(value(&page), (b"hallo".to_vec(), stamp(2)));
    apply(&update(0, 2, b"", 3), me, &mut page).unwrap();
    apply(&update(3, 0, b" there", 4), me, &mut page).unwrap();
    assert_eq!(value(&page), (b"llo there".to_vec(), stamp(4)));
    let range = apply(&update(8, 2, b"xx", 5), me, &mut page);
    assert_eq!(range.unwrap_err().to_string(), "update: range ends at 10, beyond 9");
    let deleted = Flags { deleted: true, ..Flags::NONE };
    let shape = Shape::between(b"llo there", b"Llo thErE");
    let patch = |patches| Op::Patch { page: number, key, seq: 6, flags: deleted, patches };
    apply(&patch(shape.of(b"Llo thErE")), me, &mut page).unwrap();
    assert_eq!(value(&page), (b"Llo thErE".to_vec(), stamp(6)));
    assert_eq!((Node::new(&page[..]).is_deleted(0), Node::new(&page[..]).marks()), (true, 1));
    let long = Shape::between(b"llo there!", b"llo there?");
    let range = apply(&patch(long.of(b"llo there?")), me, &mut page);
    assert_eq!(range.unwrap_err().to_string(), "patch: range ends at 10, beyond 9");
    // Another transaction's row again, as a rollback would have it.
    let old = Stamp { writer: TxnId(4), seq: 2 };
    apply(&insert(b"old"), me, &mut page).unwrap();
    apply(&Op::Restamp { page: number, key, stamp: old }, me, &mut page).unwrap();
    assert_eq!(value(&page), (b"old".to_vec(), old));
    assert_eq!(Node::new(&page[..]).marks(), 0);
    let child = Op::InsertChild { page: number, key, child: PageNo(8) };
    let kind = apply(&child, me, &mut page);
    assert_eq!(kind, Err(ApplyError::Kind { op: "insert child", found: Some(Kind::Leaf) }));

    format(&mut page, Kind::SpaceMap, 0, TreeId(1), number);
    let set = |first_bit, count, value| Op::MapSet { page: number, first_bit, count, value };
    apply(&set(5, 20, true), me, &mut page).unwrap();
    apply(&set(9, 1, false), me, &mut page).unwrap();
    let taken: Vec<_> = (0..100).filter(|&bit| map_bit(&page, bit).unwrap()).collect();
    assert_eq!(taken, (5..25).filter(|&bit| bit != 9).collect::<Vec<_>>());
    assert!(apply(&set(4048 * 8 - 1, 1, true), me, &mut page).is_ok());
    assert!(apply(&set(4048 * 8 - 1, 2, true), me, &mut page).is_err());
    assert_eq!(map_bit(&page, 4048 * 8), None);

    format(&mut page, Kind::Meta, 0, TreeId(1), number);
    let write = |offset, bytes| Op::WriteAt { page: number, offset, bytes };
    assert!(apply(&write(47, b"x"), me, &mut page).is_err());
    assert!(apply(&write(4095, b"xy"), me, &mut page).is_err());
    apply(&write(4094, b"xy"), me, &mut page).unwrap();
    assert_eq!(&page[4094..], b"xy");
}
