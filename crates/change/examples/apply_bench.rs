//! Time to encode, and to decode and apply, one update of 120 bytes in a page that is in the cache.
//! `cargo run --release -p weir-change --example apply_bench`
use std::hint::black_box;
use std::time::Instant;
use weir_base::{PageNo, TreeId, TxnId};
use weir_change::{Header, Op, apply, decode};
use weir_page::Kind;

const ROUNDS: usize = 200_000;
const ROWS: u64 = 50;

fn main() {
    let (number, writer) = (PageNo(1_000_000), TxnId(123_456_789));
    let mut page = vec![0; 8192];
    let init = Op::Init { page: number, kind: Kind::Leaf, level: 0, tree: TreeId(1) };
    apply(&init, writer, &mut page).expect("init");
    let keys: Vec<_> = (0..ROWS).map(|row| (1_000_000 + row * 3).to_be_bytes()).collect();
    for key in &keys {
        let flags = weir_page::Flags::NONE;
        let op = Op::Insert { page: number, key, seq: 1, flags, value: &[0; 128] };
        apply(&op, writer, &mut page).expect("room");
    }
    let mut rng = fastrand::Rng::with_seed(1);
    let mut bodies = Vec::new();
    let mut encode_nanos = 0;
    for _ in 0..1000 {
        let key = &keys[rng.usize(..keys.len())];
        let mut body = Vec::with_capacity(256);
        let begin = Instant::now();
        for _ in 0..100 {
            body.clear();
            Header { txn: Some(writer), commits: true, ..Header::default() }.encode(&mut body);
            let bytes = black_box(&[7; 120]);
            Op::Update { page: number, key, seq: 1, offset: 8, removed: 120, bytes }
                .encode(&mut body);
            Op::pad(&mut body);
            black_box(&body);
        }
        encode_nanos += begin.elapsed().as_nanos();
        bodies.push(body);
    }
    println!("encode             {:6.1} ns, {} bytes", encode_nanos as f64 / 1e5, bodies[0].len());
    let begin = Instant::now();
    for round in 0..ROUNDS {
        for body in &bodies[round % 20 * 50..][..50] {
            let (header, ops) = decode(black_box(body)).expect("a header");
            for op in ops {
                apply(&op.expect("an op"), header.writer(), &mut page).expect("a row");
            }
        }
    }
    let nanos = begin.elapsed().as_nanos() as f64 / (ROUNDS * 50) as f64;
    println!("decode and apply   {nanos:6.1} ns");
}
