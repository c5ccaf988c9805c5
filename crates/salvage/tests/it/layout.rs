//! Where things lie in the files of a database that is sound, so that they can be damaged.
use std::collections::BTreeSet;
use std::path::Path;

use weir::on_disk::ChainHead;
use weir_page::{Kind, Node};

use crate::fixture::{Fixture, Key, PAGE};

pub(crate) fn pages(dir: &Path) -> Vec<u8> {
    std::fs::read(dir.join("pages")).expect("read")
}

/// Pages in use of this kind and tree.
pub(crate) fn pages_of(from: &Fixture, kind: Kind, tree: &str) -> Vec<u32> {
    let bytes = from.pages();
    let number = number_of(from, tree);
    let all = bytes.chunks_exact(PAGE).enumerate();
    let is_it = |page: &[u8]| {
        let node = Node::new(page);
        node.kind() == Some(kind) && node.tree().0 == number
    };
    all.filter(|(at, page)| is_it(page) && is_used(&bytes, *at)).map(|(at, _)| at as u32).collect()
}

pub(crate) fn number_of(from: &Fixture, tree: &str) -> u64 {
    *from.names.iter().find(|(_, name)| *name == tree).expect("the tree").0
}

/// One map page is enough for these databases.
fn is_used(bytes: &[u8], page: usize) -> bool {
    weir_change::map_bit(&bytes[..PAGE], page as u32) == Some(true)
}

/// The rows that leaf pages hold.
pub(crate) fn rows_on(from: &Fixture, leaves: &[u32]) -> BTreeSet<Key> {
    let bytes = from.pages();
    let mut rows = BTreeSet::new();
    for &leaf in leaves {
        let node = Node::new(&bytes[leaf as usize * PAGE..][..PAGE]);
        let Some(name) = from.names.get(&node.tree().0).filter(|_| node.is_leaf()) else {
            continue;
        };
        let live = (0..node.count()).filter(|&slot| !node.is_deleted(slot));
        rows.extend(live.map(|slot| (name.clone(), node.key(slot))));
    }
    rows
}

/// The rows whose long values have one of these pages.
pub(crate) fn rows_over(from: &Fixture, overflow: &[u32]) -> BTreeSet<Key> {
    let bytes = from.pages();
    let mut rows = BTreeSet::new();
    for at in (0..bytes.len() / PAGE).filter(|&at| is_used(&bytes, at)) {
        let node = Node::new(&bytes[at * PAGE..][..PAGE]);
        let Some(name) = from.names.get(&node.tree().0).filter(|_| node.is_leaf()) else {
            continue;
        };
        for slot in (0..node.count()).filter(|&slot| node.is_overflow(slot)) {
            let Some((head, _)) = ChainHead::split(node.value(slot)) else { continue };
            let mut page = head.first.0;
            while page != u32::MAX && !node.is_deleted(slot) {
                if overflow.contains(&page) {
                    rows.insert((name.clone(), node.key(slot)));
                }
                page = Node::new(&bytes[page as usize * PAGE..][..PAGE]).link().0;
            }
        }
    }
    rows
}

/// Flips bits in the middle of pages.
pub(crate) fn flip(dir: &Path, damaged: &[u32]) {
    change(dir, |bytes| damaged.iter().for_each(|&at| bytes[at as usize * PAGE + 700] ^= 0x55));
}

pub(crate) fn zero(dir: &Path, damaged: &[u32]) {
    change(dir, |bytes| {
        damaged.iter().for_each(|&at| bytes[at as usize * PAGE..][..PAGE].fill(0));
    });
}

pub(crate) fn change(dir: &Path, with: impl FnOnce(&mut Vec<u8>)) {
    change_file(dir, "pages", with);
}

pub(crate) fn change_file(dir: &Path, name: &str, with: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(dir.join(name)).expect("read");
    with(&mut bytes);
    std::fs::write(dir.join(name), bytes).expect("written");
}

pub(crate) fn files(dir: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("listed").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().expect("a name")).collect();
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

pub(crate) fn remove(dir: &Path, prefix: &str) {
    for name in files(dir, prefix) {
        std::fs::remove_file(dir.join(name)).expect("removed");
    }
}
