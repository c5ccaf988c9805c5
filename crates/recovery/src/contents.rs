//! What stretches of the log hold, in short: which pages they change and which transactions were
//! under way. Written down beside the log while it grows (`indexer.rs`), so that after a crash only
//! its end must be read before the database is open, and the rest where a thread needs it.
//!
//! A hint that is never believed alone: a stretch is taken for what it says only if its payload
//! gives the digest that was written down, and each carries on the digest of the one before.
use weir_base::{Lsn, PageNo, TreeId, TxnId, varint};

/// What one stretch of the log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where its first group begins.
    pub start: Lsn,
    /// Where its last group ends.
    pub end: Lsn,
    /// From where on the log had been followed without a gap: of transactions that had something to
    /// say between there and here it is known when they end.
    pub origin: Lsn,
    /// The digest of the stretch before; 0 at the origin.
    pub before: u32,
    /// CRC-32C of its payload, continued from `before`.
    pub digest: u32,
    /// At least one more than the greatest transaction number up to here.
    pub next_txn: TxnId,
    /// The same of tree numbers.
    pub next_tree: TreeId,
    /// Where its parts begin, at most 32: groups of about as many bytes in each.
    pub parts: Vec<Lsn>,
    /// The pages that it changes, ascending.
    pub pages: Vec<Changed>,
    /// The transactions without an end that said in it what they may leave, ascending.
    pub open: Vec<Open>,
    /// Those among the open ones of earlier stretches that came to their end in it, ascending.
    pub ended: Vec<TxnId>,
}

/// A page that a stretch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Which.
    pub page: PageNo,
    /// Whether it is made anew: what it held before the stretch does not matter.
    pub makes: bool,
    /// The parts with its changes that matter, one bit each, the lowest for the first.
    pub parts: u32,
}

/// A transaction without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Which.
    pub txn: TxnId,
    /// It has said what its commit leaves to do: the commit alone is not its end.
    pub has_purge: bool,
}

impl Stretch {
    /// As bytes: numbers as varints, lists with their length before them, what ascends as
    /// differences.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 2 * self.pages.len());
        let head = [
            self.start.0,
            self.end.bytes_since(self.start),
            self.start.bytes_since(self.origin),
            u64::from(self.before),
            u64::from(self.digest),
            self.next_txn.0,
            self.next_tree.0,
        ];
        head.into_iter().for_each(|number| varint::put(&mut out, number));
        put_list(&mut out, self.parts.iter().map(|at| (at.bytes_since(self.start), 0)), 0);
        let pages = self.pages.iter().map(|c| (u64::from(c.page.0), u64::from(c.makes)));
        put_list(&mut out, pages, 1);
        self.pages.iter().for_each(|c| varint::put(&mut out, parts_word(c.parts)));
        let open = self.open.iter().map(|o| (o.txn.0, u64::from(o.has_purge)));
        put_list(&mut out, open, 1);
        put_list(&mut out, self.ended.iter().map(|txn| (txn.0, 0)), 0);
        out
    }

    /// The stretch that `bytes` say; `None` when they say none.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Stretch> {
        let from = &mut bytes;
        let mut number = || varint::take(from);
        let start = Lsn(number()?);
        let end = Lsn(start.0.checked_add(number()?)?);
        let origin = Lsn(start.0.checked_sub(number()?)?);
        let before = u32::try_from(number()?).ok()?;
        let digest = u32::try_from(number()?).ok()?;
        let next_txn = TxnId(number()?);
        let next_tree = TreeId(number()?);
        let part = |(at, _)| start.0.checked_add(at).map(Lsn).filter(|&at| at < end);
        let parts = take_list(from, 0, part)?;
        let page = |(page, flag)| {
            let page = u32::try_from(page).ok().map(PageNo).filter(|&page| page != PageNo::NONE)?;
            Some(Changed { page, makes: flag == 1, parts: 0 })
        };
        let mut pages = take_list(from, 1, page)?;
        for changed in &mut pages {
            changed.parts = parts_of(varint::take(from)?, parts.len())?;
        }
        let txn = |txn| Some(TxnId(txn)).filter(|&txn| txn <= TxnId::MAX);
        let open = |(id, flag)| Some(Open { txn: txn(id)?, has_purge: flag == 1 });
        let open = take_list(from, 1, open)?;
        let ended = take_list(from, 0, |(id, _)| txn(id))?;
        let stretch = Stretch {
            start,
            end,
            origin,
            before,
            digest,
            next_txn,
            next_tree,
            parts,
            pages,
            open,
            ended,
        };
        let begins = stretch.parts.first() == Some(&start) && stretch.parts.len() <= PARTS_MAX;
        (bytes.is_empty() && begins).then_some(stretch)
    }
}

/// Parts of a stretch at most.
pub(crate) const PARTS_MAX: usize = 32;

/// Mostly a page's changes are in one part: its number and a one, or the bits and a zero.
fn parts_word(parts: u32) -> u64 {
    match parts.count_ones() {
        1 => u64::from(parts.trailing_zeros()) << 1 | 1,
        _ => u64::from(parts) << 1,
    }
}

/// The bits of a word, if they are of parts that there are.
fn parts_of(word: u64, count: usize) -> Option<u32> {
    let bits = match word & 1 {
        1 => 1u64.checked_shl(u32::try_from(word >> 1).ok()?)?,
        _ => word >> 1,
    };
    let is_there = count <= PARTS_MAX && bits != 0 && bits >> count == 0;
    is_there.then_some(bits as u32)
}

/// Numbers that ascend, each with so many bits beside it.
fn put_list(out: &mut Vec<u8>, items: impl ExactSizeIterator<Item = (u64, u64)>, bits: u32) {
    varint::put(out, items.len() as u64);
    let mut next = 0;
    for (number, flag) in items {
        varint::put(out, (number - next) << bits | flag);
        next = number + 1;
    }
}

fn take_list<T>(
    bytes: &mut &[u8],
    bits: u32,
    item: impl Fn((u64, u64)) -> Option<T>,
) -> Option<Vec<T>> {
    let count = varint::take(bytes)?;
    // Each takes a byte at least.
    let mut items = Vec::with_capacity(usize::try_from(count).ok()?.min(bytes.len()));
    let mut next = 0u64;
    for _ in 0..count {
        let word = varint::take(bytes)?;
        let number = next.checked_add(word >> bits)?;
        items.push(item((number, word & ((1 << bits) - 1)))?);
        next = number.checked_add(1)?;
    }
    Some(items)
}

/// The stretches, one directly behind the other, that say most of the log from a checkpoint on.
/// What lies between the checkpoint and the first of them must be read.
#[must_use]
pub fn followed(mut all: Vec<Stretch>, checkpoint: Lsn) -> Vec<Stretch> {
    // Of a transaction from before the origin, the end would not be known.
    all.retain(|s| s.start >= checkpoint && s.origin <= checkpoint);
    all.sort_by_key(|s| (s.start, s.end, s.digest));
    all.dedup();
    // From the last one to the first: where it leads, and by which next one.
    let mut leads: Vec<(Lsn, Option<usize>)> = all.iter().map(|s| (s.end, None)).collect();
    for at in (0..all.len()).rev() {
        let from = all.partition_point(|s| s.start < all[at].end);
        let nexts = (from..all.len()).take_while(|&next| all[next].start == all[at].end);
        let linked = nexts.filter(|&next| all[next].before == all[at].digest);
        if let Some(next) = linked.max_by_key(|&next| leads[next].0) {
            leads[at] = (leads[next].0, Some(next));
        }
    }
    // Where several lead as far, the one that begins first.
    let mut at = (0..all.len()).rev().max_by_key(|&at| leads[at].0);
    let mut all: Vec<Option<Stretch>> = all.into_iter().map(Some).collect();
    let mut chain = Vec::new();
    while let Some(number) = at {
        chain.extend(all[number].take());
        at = leads[number].1;
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(start: u64, end: u64, before: u32, digest: u32) -> Stretch {
        Stretch {
            start: Lsn(start),
            end: Lsn(end),
            origin: Lsn(0),
            before,
            digest,
            next_txn: TxnId(1),
            next_tree: TreeId(2),
            parts: vec![Lsn(start)],
            pages: Vec::new(),
            open: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn places(chain: &[Stretch]) -> Vec<(u64, u64, u32)> {
        chain.iter().map(|s| (s.start.0, s.end.0, s.digest)).collect()
    }

    #[test]
    fn the_chain_that_leads_farthest_is_followed() {
        let all = vec![
            stretch(300, 400, 2, 3),
            stretch(100, 200, 0, 1),
            stretch(200, 300, 1, 2),
            // Written down again, from another beginning, and not so far.
            stretch(200, 350, 9, 10),
            stretch(200, 300, 1, 2),
            // Behind a gap.
            stretch(500, 600, 0, 4),
        ];
        let whole = [(100, 200, 1), (200, 300, 2), (300, 400, 3)];
        assert_eq!(places(&followed(all[..5].to_vec(), Lsn(50))), whole);
        assert_eq!(places(&followed(all[..5].to_vec(), Lsn(101))), whole[1..]);
        assert_eq!(places(&followed(all.clone(), Lsn(50))), [(500, 600, 4)]);
        assert!(followed(all, Lsn(501)).is_empty());
        // Another log's, though at the same place.
        let other = vec![stretch(100, 200, 0, 1), stretch(200, 300, 7, 8)];
        assert_eq!(places(&followed(other, Lsn(0))), [(200, 300, 8)]);
    }

    #[test]
    fn what_does_not_know_all_ends_is_left_out() {
        let late = Stretch { origin: Lsn(90), ..stretch(100, 200, 0, 1) };
        assert_eq!(followed(vec![late.clone()], Lsn(90)).len(), 1);
        assert!(followed(vec![late], Lsn(89)).is_empty());
    }

    fn ascending(max: u64, many: usize) -> impl Strategy<Value = Vec<u64>> {
        prop::collection::btree_set(0..max, 0..many).prop_map(|set| set.into_iter().collect())
    }

    fn any_stretch() -> impl Strategy<Value = Stretch> {
        let lists = (
            ascending(u64::from(u32::MAX), 40),
            ascending(1 << 48, 20),
            ascending(1 << 48, 20),
            any::<u64>(),
        );
        let numbers = (0..1u64 << 62, 32..1u64 << 40, any::<(u32, u32)>(), any::<(u64, u64)>());
        (lists, numbers).prop_map(|((pages, open, ended, bits), (start, len, words, next))| {
            let bit = |at: usize| bits >> (at % 64) & 1 == 1;
            let parts = 1 + bits % PARTS_MAX as u64;
            let page = |(at, page): (usize, u64)| {
                let some = bits.rotate_left(at as u32) & ((1 << parts) - 1);
                let parts =
                    if some == 0 || bit(at + 3) { 1 << (bits % parts) } else { some as u32 };
                Changed { page: PageNo(page as u32), makes: bit(at), parts }
            };
            let txns = |(at, txn): (usize, u64)| Open { txn: TxnId(txn), has_purge: bit(at + 7) };
            Stretch {
                start: Lsn(start),
                end: Lsn(start + len),
                origin: Lsn(start.saturating_sub(len)),
                before: words.0,
                digest: words.1,
                next_txn: TxnId(next.0),
                next_tree: TreeId(next.1),
                parts: (0..parts).map(|n| Lsn(start + n * (len / parts))).collect(),
                pages: pages.into_iter().enumerate().map(page).collect(),
                open: open.into_iter().enumerate().map(txns).collect(),
                ended: ended.into_iter().map(TxnId).collect(),
            }
        })
    }

    proptest! {
        #[test]
        fn a_stretch_is_read_back(stretch in any_stretch(), cut in any::<prop::sample::Index>()) {
            let bytes = stretch.encode();
            prop_assert_eq!(Stretch::decode(&bytes), Some(stretch));
            prop_assert_eq!(Stretch::decode(&bytes[..cut.index(bytes.len())]), None);
        }

        #[test]
        fn any_bytes_are_a_stretch_or_none(bytes: Vec<u8>) {
            if let Some(stretch) = Stretch::decode(&bytes) {
                prop_assert!(stretch.origin <= stretch.start && stretch.start < stretch.end);
                prop_assert!(stretch.parts.is_sorted_by(|a, b| a < b));
                let parts = stretch.parts.len() as u32;
                prop_assert!(stretch.pages.iter().all(|c| c.parts.ilog2() < parts));
                prop_assert!(stretch.pages.is_sorted_by(|a, b| a.page < b.page));
            }
        }
    }
}
