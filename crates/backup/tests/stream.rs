//! Backups of any content: read as written, and every byte counts.
use proptest::prelude::*;
use weir_backup::{
    BackupError, Begin, Consistent, Content, End, Frame, Reader, StoreKind, Writer, verify,
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
