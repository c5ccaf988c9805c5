//! Memory for pages that changes while the database works.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use weir::{Background, Config, Db, Durability, Error, SimVolume, StoreKind};

use crate::support::tiny;

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Writers go on while memory shrinks to a tenth and grows again, over and over: each row is what
/// was written last, also on disk, and each second has commits.
#[test]
fn writers_go_on_while_memory_shrinks_and_grows() {
    const ROWS: u32 = 6_000;
    for store in [StoreKind::InPlace, StoreKind::Log] {
        let volume = SimVolume::new(81);
        let config = Config {
            store: Some(store),
            pool_bytes: 8 << 20,
            log_bytes: 8 << 20,
            pages_max: 1 << 14,
            background: Background::Threads,
            ..tiny()
        };
        let db = Db::open_on(Arc::new(volume.clone()), config.clone()).expect("opened");
        let tree = db.create_tree("rows").expect("a tree");
        let last: Vec<AtomicU64> = (0..ROWS).map(|_| AtomicU64::new(0)).collect();
        let value = |n: u64| {
            let mut value = n.to_be_bytes().to_vec();
            value.resize(300 + (n % 200) as usize, n as u8);
            value
        };
        for n in 0..ROWS {
            tree.put(&key(n), &value(0), Durability::Lazy).expect("a put");
        }
        let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut seconds = Vec::new();
        std::thread::scope(|scope| {
            for writer in 0..2u32 {
                let (tree, stop, commits, last) = (&tree, &stop, &commits, &last);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(u64::from(writer));
                    for round in 1u64.. {
                        if stop.load(Relaxed) {
                            break;
                        }
                        let n = random.u32(0..ROWS / 2) * 2 + writer;
                        tree.put(&key(n), &value(round), Durability::Lazy).expect("a put");
                        last[n as usize].store(round, Relaxed);
                        let other = random.u32(0..ROWS);
                        assert!(tree.get(&key(other)).expect("read").is_some());
                        commits.fetch_add(1, Relaxed);
                    }
                });
            }
            let began = Instant::now();
            let (sizes, mut turn) = ([1u64 << 20, 4 << 20, 512 << 10, 16 << 20, 2 << 20], 0);
            let (mut tick, mut before) = (Instant::now(), 0);
            while began.elapsed() < Duration::from_secs(4) {
                let bytes = sizes[turn % sizes.len()];
                turn += 1;
                db.set_pool_bytes(bytes).expect("set");
                assert_eq!(db.stats().pool_frames, bytes / 4096);
                if tick.elapsed() > Duration::from_secs(1) {
                    let now = commits.load(Relaxed);
                    seconds.push(now - before);
                    (tick, before) = (Instant::now(), now);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Relaxed);
            println!("{store}: {turn} changes, commits a second: {seconds:?}");
        });
        assert!(seconds.iter().all(|&commits| commits > 0), "{seconds:?}");
        let check = |db: &Db| {
            let tree = db.tree("rows").expect("looked").expect("the tree");
            for n in 0..ROWS {
                let expected = value(last[n as usize].load(Relaxed));
                assert_eq!(tree.get(&key(n)).expect("read"), Some(expected), "row {n}");
            }
        };
        check(&db);
        db.close().expect("closed");
        let db = Db::open_on(Arc::new(volume), config).expect("opened again");
        check(&db);
        assert!(db.check(&mut |_, _| {}).expect("checked").problems.is_empty());
        db.close().expect("closed");
    }
}

#[test]
fn what_is_not_possible_is_said_and_changes_nothing() {
    let db = Db::open_on(Arc::new(SimVolume::new(82)), tiny()).expect("opened");
    let before = db.stats().pool_frames;
    for bytes in [0, 1, (256 << 10) - 1, 1 << 60, u64::MAX] {
        let e = db.set_pool_bytes(bytes).expect_err("refused");
        assert!(matches!(e, Error::Config(_)) && e.to_string().contains("the least is"), "{e}");
        assert_eq!(db.stats().pool_frames, before);
    }
    let tree = db.create_tree("rows").expect("a tree");
    for bytes in [1 << 20, 256 << 10, 4 << 20, 300 << 10] {
        db.set_pool_bytes(bytes).expect("set");
        for n in 0..400u32 {
            tree.put(&key(n), &[bytes as u8; 100], Durability::Lazy).expect("a put");
        }
    }
    db.close().expect("closed");
}
