//! Space within a node: which prefix a set of keys shares, what a rebuilt page would take, and the
//! rebuilding itself.
use crate::edit::NodeMut;
use crate::header::{
    COUNT, GARBAGE, HEADER_BYTES, HEAP_START, PREFIX_LEN, PREFIX_OFF, put_u16, put_u32,
};
use crate::limits::usable;
use crate::node::{Node, SLOT_BYTES, SLOT_HEAD, SLOT_KEY_LEN, head_of};

/// The largest page size: what a copy of any page needs.
const PAGE_BYTES_MAX: usize = 16384;

/// How many bytes two keys begin alike.
pub(crate) fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The prefix that a page of `count` keys stores when it is rebuilt: what its first and last key
/// share, nothing for a single key, which would gain nothing and make its neighbour's arrival a
/// rebuild.
pub(crate) fn best_prefix(first: &[u8], last: &[u8], count: usize) -> usize {
    if count < 2 { 0 } else { shared(first, last) }
}

impl Node<&[u8]> {
    /// The prefix length that a rebuild would choose if `key` (when given) stood at `slot` too.
    pub(crate) fn prefix_with(self, slot: usize, key: Option<&[u8]>) -> usize {
        let count = self.count();
        match key {
            None if count < 2 => 0,
            None => self.prefix_len() + shared(self.suffix(0), self.suffix(count - 1)),
            Some(_) if count == 0 => 0,
            // All keys share at least the page's prefix, and one between two others shares what
            // those share.
            Some(_) if slot > 0 && slot < count => {
                self.prefix_with(0, None).min(self.shared_with(0, key))
            }
            Some(_) => self.shared_with(0, key).min(self.shared_with(count - 1, key)),
        }
    }

    /// How many bytes `key` begins like the slot's key.
    fn shared_with(self, slot: usize, key: Option<&[u8]>) -> usize {
        let key = key.unwrap_or_default();
        let prefix = self.prefix();
        let begins = shared(prefix, key);
        if begins < prefix.len() {
            return begins;
        }
        begins + shared(self.suffix(slot), &key[begins..])
    }

    /// Bytes that the page's entries, slots and prefix would take after a rebuild with this prefix
    /// length.
    pub(crate) fn used_with_prefix(self, prefix_len: usize) -> usize {
        let (count, now) = (self.count(), self.prefix_len());
        let whole = self.used_bytes() + now * count - now;
        if count == 0 { 0 } else { whole + prefix_len - prefix_len * count }
    }

    /// The prefix to rebuild with so that an entry with `key` and `body_len` bytes behind it can be
    /// placed at `slot`; `None` when it cannot.
    pub(crate) fn prefix_to_fit(self, slot: usize, key: &[u8], body_len: usize) -> Option<usize> {
        let prefix_len = self.prefix_with(slot, Some(key));
        let entry = SLOT_BYTES + key.len() - prefix_len + body_len;
        (self.used_with_prefix(prefix_len) + entry <= usable(self.bytes().len()))
            .then_some(prefix_len)
    }
}

impl NodeMut<'_> {
    /// Lays all entries out anew, in slot order from the page's end down, behind `prefix`, which
    /// all keys must begin with. The slot `skip` keeps its place but loses its entry; the caller
    /// gives it a new one.
    pub(crate) fn rebuild(&mut self, prefix: &[u8], skip: Option<usize>) {
        let size = self.page.len();
        let mut copy = [0u8; PAGE_BYTES_MAX];
        let copy = &mut copy[..size];
        copy.copy_from_slice(self.page);
        let old = Node::new(&*copy);
        let (count, old_prefix) = (old.count(), old.prefix());

        self.page[HEADER_BYTES + count * SLOT_BYTES..].fill(0);
        let mut heap = size - prefix.len();
        self.page[heap..].copy_from_slice(prefix);
        put_u16(self.page, PREFIX_OFF, if prefix.is_empty() { 0 } else { heap });
        put_u16(self.page, PREFIX_LEN, prefix.len());
        // A shorter prefix gives some of the old one back to every suffix, a longer one takes some
        // from it.
        let give_back = old_prefix.get(prefix.len()..).unwrap_or_default();
        let take = prefix.len().saturating_sub(old_prefix.len());
        for slot in (0..count).filter(|&slot| Some(slot) != skip) {
            let suffix = &old.suffix(slot)[take..];
            let body_off = old.stamp_off(slot);
            let body = &copy[body_off..body_off + old.body_len(slot)];
            let suffix_len = give_back.len() + suffix.len();
            heap -= suffix_len + body.len();
            let (key_part, body_part) = self.page[heap..].split_at_mut(suffix_len);
            key_part[..give_back.len()].copy_from_slice(give_back);
            key_part[give_back.len()..].copy_from_slice(suffix);
            body_part[..body.len()].copy_from_slice(body);
            let head = head_of(key_part);
            let at = HEADER_BYTES + slot * SLOT_BYTES;
            put_u16(self.page, at, heap);
            put_u16(self.page, at + SLOT_KEY_LEN, suffix_len);
            put_u32(self.page, at + SLOT_HEAD, head);
        }
        put_u16(self.page, HEAP_START, heap);
        put_u16(self.page, GARBAGE, 0);
    }

    /// Lays the page out anew with the longest prefix that its keys share.
    pub fn compact(&mut self) {
        let node = self.node();
        let prefix = self.prefix_bytes(node.prefix_with(0, None), &[]);
        self.rebuild(&prefix, None);
    }

    /// The first `len` bytes of the page's first key, or of `key` in an empty page.
    pub(crate) fn prefix_bytes(&self, len: usize, key: &[u8]) -> Vec<u8> {
        let node = self.node();
        let mut prefix = if node.count() == 0 { key.to_vec() } else { node.key(0) };
        prefix.truncate(len);
        prefix
    }

    /// Moves the slots from `slot` on up by `more` places; the caller fills those.
    pub(crate) fn open_slots(&mut self, slot: usize, more: usize) {
        let count = self.node().count();
        let at = HEADER_BYTES + slot * SLOT_BYTES;
        let end = HEADER_BYTES + count * SLOT_BYTES;
        self.page.copy_within(at..end, at + more * SLOT_BYTES);
        put_u16(self.page, COUNT, count + more);
    }

    /// Forgets the heap of a page without entries.
    pub(crate) fn reset_heap(&mut self) {
        debug_assert_eq!(self.node().count(), 0);
        put_u16(self.page, COUNT, 0);
        put_u16(self.page, HEAP_START, self.page.len());
        put_u16(self.page, GARBAGE, 0);
        put_u16(self.page, PREFIX_OFF, 0);
        put_u16(self.page, PREFIX_LEN, 0);
    }
}
