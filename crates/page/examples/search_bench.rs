//! Time of a point lookup in one leaf: search and copy of the value, held and optimistic.
//! `cargo run --release -p weir-page --example search_bench`
use std::hint::black_box;
use std::time::Instant;
use weir_base::{PageNo, TreeId};
use weir_page::{Bytes, Flags, Kind, Node, NodeMut, RawPage, Stamp};

const LOOKUPS: usize = 20_000_000;

/// Ascending keys in a page that never was rebuilt (their heads are all alike) or that was (they
/// share a prefix).
fn leaf(page: &mut [u8], rebuilt: bool) -> Vec<[u8; 8]> {
    let mut node = NodeMut::format(page, Kind::Leaf, 0, TreeId(1), PageNo(1));
    let rows = if rebuilt { 55 } else { 51 };
    let keys: Vec<_> = (0..rows).map(|row| ((1_000_000 + row) * 3u64).to_be_bytes()).collect();
    for (slot, key) in keys.iter().enumerate() {
        node.insert(slot, key, Stamp::default(), Flags::NONE, &[7; 120]).expect("room");
    }
    keys
}

fn measure<B: Bytes>(what: &str, node: Node<B>, keys: &[[u8; 8]]) {
    let mut rng = fastrand::Rng::with_seed(7);
    let order: Vec<u16> = (0..1 << 16).map(|_| rng.u16(0..keys.len() as u16)).collect();
    let mut value = Vec::with_capacity(256);
    let begin = Instant::now();
    for i in 0..LOOKUPS {
        let key = &keys[usize::from(order[i & 0xffff])];
        // Each lookup waits for the one before, as a lookup in a tree does.
        let node = black_box(node);
        if let Ok(slot) = node.search(key) {
            node.value_into(slot, &mut value);
        }
        black_box(&value);
    }
    let nanos = begin.elapsed().as_nanos() as f64 / LOOKUPS as f64;
    let begin = Instant::now();
    for i in 0..LOOKUPS {
        black_box(black_box(node).search(&keys[usize::from(order[i & 0xffff])])).ok();
    }
    let search_nanos = begin.elapsed().as_nanos() as f64 / LOOKUPS as f64;
    println!("{what:<20} {nanos:6.1} ns, of which search {search_nanos:.1} ns");
}

fn main() {
    let mut page = vec![0; 8192];
    for rebuilt in [false, true] {
        let keys = leaf(&mut page, rebuilt);
        println!(
            "{} rows, prefix of {} bytes",
            keys.len(),
            Node::new(page.as_slice()).prefix_len()
        );
        measure("  held", Node::new(page.as_slice()), &keys);
        // SAFETY: the page outlives the reads and no thread writes it.
        let raw = unsafe { RawPage::new(page.as_ptr(), page.len()) };
        measure("  optimistic", Node::new(raw), &keys);
    }
}
