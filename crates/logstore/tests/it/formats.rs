//! What is encoded is parsed as it was; with any byte changed it is not taken for sound.
use proptest::prelude::*;
use weir_base::{DbId, Lsn, PageNo};
use weir_logstore::format::{
    BLOCK_HEAD, BlockHead, ChunkHead, ChunkLen, Codec, Entry, Footer, FooterEntry, Kind,
    LEAF_BYTES, LEAF_PLACES, Root, RootSlot, SegmentHead, Span, decode_leaf, encode_leaf,
};
use weir_logstore::ids::{Epoch, Place, SegmentNo, Seq};

const DB: DbId = DbId(0x0123_4567_89ab_cdef);
const OTHER: DbId = DbId(0x0123_4567_89ab_cdee);

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Page), Just(Kind::Leaf), Just(Kind::Index)]
}

fn entries() -> impl Strategy<Value = Entry> {
    let block = (kinds(), any::<u32>(), any::<u64>(), 1..=Place::UNITS_MAX as u16);
    let block = block.prop_map(|(kind, number, lsn, units)| Entry::Block {
        kind,
        number,
        lsn: Lsn(lsn),
        units,
    });
    let forget = (any::<u32>(), 1..u16::MAX, any::<u64>());
    let forget = forget.prop_map(|(first, count, lsn)| Entry::Forget {
        first: PageNo(first),
        count,
        lsn: Lsn(lsn),
    });
    prop_oneof![3 => block, 1 => forget]
}

fn chunks() -> impl Strategy<Value = ChunkHead> {
    let numbers = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u64>());
    (numbers, prop::collection::vec(entries(), 1..40)).prop_map(|(numbers, entries)| ChunkHead {
        segment: SegmentNo(numbers.0),
        epoch: Epoch(numbers.1),
        seq: Seq(numbers.2),
        durable: Seq(numbers.3),
        entries,
    })
}

fn roots() -> impl Strategy<Value = Root> {
    let wide = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    let narrow = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    let spans = prop::collection::vec((any::<u32>(), any::<u64>(), any::<u32>()), 0..20);
    let index = prop::collection::vec(any::<u64>(), 0..20);
    (wide, narrow, index, spans).prop_map(|(wide, narrow, index, spans)| Root {
        generation: wide.0,
        life: wide.1,
        next_epoch: Epoch(wide.2),
        ckpt_seq: Seq(wide.3),
        newest: Lsn(wide.0 ^ wide.3),
        page_bytes: narrow.0,
        segment_bytes: narrow.1,
        segments: narrow.2,
        pages: narrow.3,
        index: index.into_iter().map(Place::from_bits).collect(),
        scan: spans
            .into_iter()
            .map(|(segment, epoch, end)| Span {
                segment: SegmentNo(segment),
                epoch: Epoch(epoch),
                end,
            })
            .collect(),
    })
}

/// `is_believed` must hold of `bytes`, and of no copy with one byte changed.
fn every_byte_counts(bytes: &[u8], from: usize, is_believed: &dyn Fn(&[u8]) -> bool) {
    assert!(is_believed(bytes));
    let mut copy = bytes.to_vec();
    for at in from..bytes.len() {
        for xor in [1, 0x80, 0xff] {
            copy[at] ^= xor;
            assert!(!is_believed(&copy), "byte {at} xor {xor}");
            copy[at] ^= xor;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_chunk_is_read_as_it_was_written(chunk in chunks(), behind in any::<u8>()) {
        let mut bytes = vec![behind; chunk.chunk_bytes()];
        chunk.encode(DB, &mut bytes);
        let ChunkLen::Bytes(len) = ChunkHead::len_of(&bytes[..48]) else { panic!("a chunk") };
        prop_assert!(len <= ChunkHead::bytes(chunk.entries.len()));
        prop_assert_eq!(ChunkHead::parse(DB, &bytes[..len]), Some(chunk.clone()));
        prop_assert_eq!(ChunkHead::parse(DB, &bytes), Some(chunk.clone()));
        prop_assert_eq!(ChunkHead::parse(OTHER, &bytes), None);
        prop_assert_eq!(ChunkHead::parse(DB, &bytes[..len - 1]), None);
        let (last, _) = chunk.placed().last().expect("an entry");
        prop_assert!(last <= chunk.chunk_bytes());
    }

    #[test]
    fn a_root_is_read_as_it_was_written(root in roots()) {
        let mut bytes = vec![9; 8192];
        let len = root.encode(DB, &mut bytes);
        prop_assert_eq!(len, Root::bytes(root.index.len(), root.scan.len()));
        prop_assert_eq!(Root::parse(DB, &bytes[..len]), RootSlot::Good(root.clone()));
        prop_assert_eq!(Root::parse(OTHER, &bytes), RootSlot::OtherStore(DB));
    }

    #[test]
    fn a_footer_is_read_as_it_was_written(
        lines in prop::collection::vec((kinds(), any::<u32>(), 0u32..1 << 24), 0..600),
        numbers in any::<(u32, u64)>(),
    ) {
        let entries = lines.into_iter().map(|(kind, number, at)| FooterEntry { kind, number, at });
        let (segment, epoch) = (SegmentNo(numbers.0), Epoch(numbers.1));
        let footer = Footer { segment, epoch, entries: entries.collect() };
        let mut bytes = vec![3; 4096 + Footer::bytes(footer.entries.len())];
        footer.encode(DB, &mut bytes[4096..]);
        let last = &bytes[bytes.len() - 4096..];
        prop_assert_eq!(Footer::len_of(last), Some(Footer::bytes(footer.entries.len())));
        prop_assert_eq!(Footer::parse(DB, &bytes), Some(footer.clone()));
        prop_assert_eq!(Footer::parse(DB, &bytes[4096..]), Some(footer));
        prop_assert_eq!(Footer::parse(OTHER, &bytes), None);
    }

    #[test]
    fn a_block_is_read_as_it_was_written(
        payload in prop::collection::vec(any::<u8>(), 0..300),
        numbers in any::<(u32, u64, u64)>(),
        kind in kinds(),
        is_packed in any::<bool>(),
    ) {
        let head = BlockHead {
            kind,
            codec: if is_packed { Codec::Zstd } else { Codec::Raw },
            number: numbers.0,
            lsn: Lsn(numbers.1),
            seq: Seq(numbers.2),
            len: payload.len() as u32,
        };
        let mut bytes = vec![1; 400];
        bytes[BLOCK_HEAD..BLOCK_HEAD + payload.len()].copy_from_slice(&payload);
        head.seal(DB, &mut bytes);
        prop_assert_eq!(BlockHead::parse(DB, &bytes), Some((head, &payload[..])));
        prop_assert_eq!(BlockHead::parse(OTHER, &bytes), None);
    }

    #[test]
    fn any_bytes_are_something_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        prop_assert_eq!(ChunkHead::parse(DB, &bytes), None);
        prop_assert_eq!(BlockHead::parse(DB, &bytes), None);
        prop_assert_eq!(Footer::parse(DB, &bytes), None);
        prop_assert_eq!(SegmentHead::parse(DB, &bytes), None);
        prop_assert_eq!(Root::parse(DB, &bytes), RootSlot::None);
        // A leaf's checksum is its block's: of as many bytes, any may be one.
        if let Some(places) = decode_leaf(&bytes) {
            let mut again = vec![1; LEAF_BYTES];
            encode_leaf(places, &mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}

#[test]
fn every_byte_of_every_part_counts() {
    let (segment, epoch, seq) = (SegmentNo(3), Epoch(9), Seq::before(2).next());
    let page = Entry::Block { kind: Kind::Page, number: 5, lsn: Lsn(6), units: 2 };
    let gone = Entry::Forget { first: PageNo(7), count: 8, lsn: Lsn(9) };
    let chunk = ChunkHead { segment, epoch, seq, durable: seq.back(), entries: vec![page, gone] };
    let mut bytes = vec![0; 48 + 2 * 16];
    chunk.encode(DB, &mut bytes);
    every_byte_counts(&bytes, 0, &|bytes| ChunkHead::parse(DB, bytes).is_some());

    let head =
        BlockHead { kind: Kind::Leaf, codec: Codec::Raw, number: 1, lsn: Lsn(0), seq, len: 9 };
    let mut bytes = vec![0xa5; BLOCK_HEAD + 9];
    head.seal(DB, &mut bytes);
    every_byte_counts(&bytes, 0, &|bytes| BlockHead::parse(DB, bytes).is_some());

    let mut bytes = vec![0; 4096];
    SegmentHead { segment, epoch, life: 4 }.encode(DB, &mut bytes);
    every_byte_counts(&bytes[..48], 0, &|bytes| SegmentHead::parse(DB, bytes).is_some());

    let entry = FooterEntry { kind: Kind::Index, number: 4, at: 77 };
    let mut bytes = vec![0; 4096];
    Footer { segment, epoch, entries: vec![entry; 3] }.encode(DB, &mut bytes);
    every_byte_counts(&bytes, 4096 - 40 - 24, &|bytes| Footer::parse(DB, bytes).is_some());

    let root = Root {
        generation: 8,
        life: 2,
        page_bytes: 4096,
        segment_bytes: 1 << 20,
        segments: 16,
        pages: 100,
        next_epoch: Epoch(12),
        ckpt_seq: seq,
        newest: Lsn(5),
        index: vec![Place::new(99, 3, seq)],
        scan: vec![Span { segment, epoch, end: 256 }],
    };
    let mut bytes = vec![0; 4096];
    root.encode(DB, &mut bytes);
    every_byte_counts(&bytes[..104 + 8 + 16], 0, &|bytes| {
        Root::parse(DB, bytes) == RootSlot::Good(root.clone())
    });
}

#[test]
fn a_leaf_is_read_as_it_was_written() {
    let place =
        |i: usize| if i.is_multiple_of(3) { Place::NONE } else { Place::new(i as u64, i, Seq(7)) };
    let places: Vec<Place> = (0..LEAF_PLACES - 1).map(place).collect();
    let mut bytes = vec![1; LEAF_BYTES];
    encode_leaf(places.iter().copied(), &mut bytes);
    let mut read = decode_leaf(&bytes).expect("a leaf");
    assert_eq!(read.pop(), Some(Place::NONE), "what is not given is nowhere");
    assert!(read == places);
    assert_eq!(decode_leaf(&bytes[8..]), None);
    // A place without a length is none.
    bytes[8 * 5..8 * 6].copy_from_slice(&(1u64 << 24).to_le_bytes());
    assert_eq!(decode_leaf(&bytes), None);
}
