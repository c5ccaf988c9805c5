//! Backups of any content: read as written, and every byte counts.
use proptest::prelude::*;
use weir_backup::{
    BackupError, Begin, Consistent, Content, End, Found, Frame, Partial, Reader, Resumed,
    StoreKind, Writer, found, verify,
};
use weir_base::{DbId, Era, Lsn, PageNo, TreeId, TxnId, varint};
use weir_checkpoint::Control;

const PAGE: usize = 4096;

fn begin(content: Content) -> Begin {
    let control = Control {
        db: DbId(77),
        sequence: 5,
        page_size: PAGE as u32,
        checkpoint: Lsn(512 * 9 + 12),
        log_bytes: 1 << 20,
        next_txn: TxnId(4),
        next_tree: TreeId(5),
        clean: false,
        openings: 1,
        pages: 64,
        maps: 1,
        era: Era { number: 3, mark: 4 },
        synced: Lsn(512 * 9 + 12),
    };
    Begin { id: 42, content, began_micros: 1, store: StoreKind::Log, control }
}

fn page(number: u32) -> (PageNo, Vec<u8>) {
    let mut bytes = vec![0; PAGE];
    weir_page::format(&mut bytes, weir_page::Kind::Meta, 0, TreeId(0), PageNo(number));
    weir_page::set_lsn(&mut bytes, Lsn(99));
    weir_page::seal(&mut bytes, DbId(77));
    (PageNo(number), bytes)
}

/// A group whose body is a header and nothing else, padded.
fn group() -> Vec<u8> {
    let mut body = Vec::new();
    weir_change::Header::default().encode(&mut body);
    weir_change::Op::pad(&mut body);
    let mut out = Vec::new();
    varint::put(&mut out, body.len() as u64);
    out.extend(body);
    out
}

#[derive(Clone, Debug)]
enum Part {
    Pages(Vec<u32>),
    Log(u8),
}

fn written(parts: &[Part], content: Content) -> Vec<u8> {
    let begin = begin(content);
    let mut out = Vec::new();
    let mut writer = Writer::begin(&mut out, &begin).expect("begun");
    let mut at = begin.control.checkpoint;
    for part in parts {
        match part {
            Part::Pages(numbers) => {
                let pages: Vec<_> = numbers.iter().map(|number| page(*number)).collect();
                let pages: Vec<_> = pages.iter().map(|(n, bytes)| (*n, &bytes[..])).collect();
                writer.pages(&pages).expect("written");
            }
            Part::Log(groups) => {
                let payload = group().repeat(usize::from(*groups));
                writer.log(at, 7, &payload).expect("written");
                let ends = weir_redo::whole_groups(at, &payload).expect("whole");
                at = ends.last().map_or(at, |group| group.span.end);
            }
        }
    }
    writer.consistent(&Consistent { at, file_pages: 64, micros: 8 }).expect("written");
    let end =
        End { end: at, consistent: at, file_pages: 64, pages: 0, log_bytes: 0, ended_micros: 9 };
    let (_, bytes) = writer.end(&end).expect("ended");
    assert_eq!(bytes, out.len() as u64);
    out
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        proptest::collection::vec(4..60u32, 1..6).prop_map(Part::Pages),
        (0..40u8).prop_map(Part::Log),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn it_is_read_as_it_was_written(parts in proptest::collection::vec(part(), 0..6)) {
        let content = Content::Since { base: 9, lsn: Lsn(3) };
        let bytes = written(&parts, content);
        let verified = verify(&bytes[..], &mut |_, _| true).expect("sound").expect("whole");
        prop_assert_eq!(verified.begin, begin(content));
        prop_assert_eq!(verified.bytes, bytes.len() as u64);
        let mut reader = Reader::open(&bytes[..]).expect("opened");
        let mut found = 0;
        while let Frame::Pages(_) | Frame::Log { .. } = reader.read().expect("read") {
            found += 1;
        }
        prop_assert_eq!(found, parts.len());
    }

    #[test]
    fn each_byte_that_is_missing_or_changed_is_an_error(
        parts in proptest::collection::vec(part(), 1..4),
        at in any::<prop::sample::Index>(),
        bit in 0..8u8,
    ) {
        let mut bytes = written(&parts, Content::All);
        let at = at.index(bytes.len());
        prop_assert!(verify(&bytes[..at], &mut |_, _| true).is_err());
        bytes[at] ^= 1 << bit;
        prop_assert!(verify(&bytes[..], &mut |_, _| true).is_err(), "byte {at}");
    }

    #[test]
    fn any_bytes_are_an_answer(tail in proptest::collection::vec(any::<u8>(), 0..400)) {
        let whole = written(&[], Content::All);
        let head = &whole[..whole.len() - 64 - 40];
        prop_assert!(verify(&[head, &tail].concat()[..], &mut |_, _| true).is_err());
        prop_assert!(verify(&tail[..], &mut |_, _| true).is_err());
    }
}

#[test]
fn parts_in_another_order_or_of_another_backup_are_refused() {
    let parts = [Part::Pages(vec![4]), Part::Pages(vec![5])];
    let bytes = written(&parts, Content::All);
    let frame = 16 + 4 + 4 + PAGE;
    let first = 16 + 16 + 40 + 512;
    let (one, two) = (first..first + frame, first + frame..first + 2 * frame);
    let exchanged = [&bytes[..first], &bytes[two.clone()], &bytes[one.clone()], &bytes[two.end..]];
    let twice = [&bytes[..first], &bytes[one.clone()], &bytes[one.clone()], &bytes[two.end..]];
    let missing = [&bytes[..first], &bytes[one], &bytes[two.end..]].concat();
    for changed in [exchanged.concat(), twice.concat(), missing] {
        let told = verify(&changed[..], &mut |_, _| true).expect_err("it is not as written");
        assert!(matches!(told, BackupError::Damaged { .. }), "{told}");
    }
    let refused = {
        let mut out = Vec::new();
        Writer::refuse(&mut out, "the disk is full").expect("said");
        verify(&out[..], &mut |_, _| true).expect_err("none")
    };
    assert!(refused.to_string().contains("the disk is full"), "{refused}");
}

/// What there is of a backup with pages and log that was cut off there.
fn cut_off(bytes: &[u8]) -> Partial {
    match found(bytes, |_| None, &mut |_| true).expect("its beginning").expect("not ended") {
        Found::Partial(there) => *there,
        Found::Whole(_) => panic!("it is whole"),
    }
}

#[test]
fn one_that_was_cut_off_goes_on_as_what_it_was() {
    let parts = [Part::Pages(vec![5, 9]), Part::Log(3), Part::Pages(vec![6])];
    let whole = written(&parts, Content::Since { base: 9, lsn: Lsn(3) });
    // Its end, and what is said when all pages are there.
    let cut = &whole[..whole.len() - 64 - 40];
    let there = cut_off(&[cut, b"torn"].concat());
    assert_eq!((there.place.at, there.place.pages), (cut.len() as u64, 3));
    assert!([5, 6, 9].iter().all(|&page| there.pages.contains(PageNo(page))));
    assert!(!there.pages.contains(PageNo(7)) && there.end().is_none());
    // Another process is given what it needs, in whole blocks.
    let mut given = there.to_bytes();
    given.resize(4096, 0);
    let again = Partial::from_bytes(&given).expect("as it was");
    assert_eq!(again.place.begin, there.place.begin);
    assert_eq!(again.pages.without(&there.pages).count(), 0);
    assert_eq!(there.pages.without(&again.pages).count(), 0);
    for len in 0..there.to_bytes().len() - 8 {
        let _ = Partial::from_bytes(&given[..len]);
    }
    assert!(Partial::from_bytes(&given[..500]).is_none());

    let go_on = |control: Control| {
        let mut rest = Vec::new();
        let mut writer = Writer::go_on(&mut rest, &again.place);
        writer.resumed(&Resumed { micros: 20, control }).expect("written");
        let (number, bytes) = page(9);
        writer.pages(&[(number, &bytes)]).expect("written");
        let at = control.checkpoint;
        writer.consistent(&Consistent { at, file_pages: 64, micros: 21 }).expect("written");
        let (end, consistent, ended_micros) = (at, at, 22);
        let end = End { end, consistent, file_pages: 64, pages: 0, log_bytes: 0, ended_micros };
        writer.end(&end).expect("ended");
        [cut, &rest].concat()
    };
    let was = there.place.begin.control;
    let later = Control { checkpoint: Lsn(512 * 50 + 12), openings: 3, ..was };
    let resumed = go_on(later);
    let verified = verify(&resumed[..], &mut |_, _| true).expect("sound").expect("whole");
    assert_eq!((verified.end.end, verified.end.pages), (later.checkpoint, 4));
    // Each byte counts there, too.
    for at in cut.len()..resumed.len() {
        let mut flipped = resumed.clone();
        flipped[at] ^= 1;
        assert!(verify(&flipped[..], &mut |_, _| true).is_err(), "byte {at}");
        assert!(verify(&resumed[..at], &mut |_, _| true).is_err(), "cut at {at}");
    }
    for other in [
        Control { db: DbId(78), ..later },
        Control { page_size: 8192, ..later },
        Control { checkpoint: Lsn(12), ..later },
    ] {
        let told = verify(&go_on(other)[..], &mut |_, _| true).expect_err("another");
        assert!(told.to_string().contains("another backup"), "{told}");
    }
}
