//! A log is written, its files are changed at will, and it is scanned. Whatever was done to it, the
//! scan ends, does not panic, and hands out nothing but a prefix of what was written.
#![no_main]

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use weir_base::{DbId, Lsn};
use weir_device::{SimVolume, Volume};
use weir_redo::{Durability, Log, LogConfig, ScanOptions, scan};

const DB: DbId = DbId(0x5eed_0001);
const GROUPS: u64 = 40;

fn body(number: u64) -> Vec<u8> {
    let len = 8 + (number as usize * 389) % 3000;
    let mut body = number.to_le_bytes().to_vec();
    body.extend((8..len).map(|i| (number as usize * 31 + i) as u8));
    body
}

/// The log as written, made once: its disk, and where it begins.
fn written() -> &'static (SimVolume, Lsn) {
    static WRITTEN: OnceLock<(SimVolume, Lsn)> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let volume = SimVolume::new(1);
        let config = LogConfig { db: DB, capacity_bytes: 640 << 10, buffer_bytes: 64 << 10 };
        let log = Log::create(Arc::new(volume.clone()), config, Lsn(0)).expect("an empty disk");
        let start = log.end();
        for number in 0..GROUPS {
            log.append(&body(number), |_| {}).expect("there is room");
        }
        log.flush(Durability::Synced).expect("the disk is sound");
        drop(log);
        (volume, start)
    })
}

fuzz_target!(|input: &[u8]| {
    let (original, start) = written();
    let volume = original.fork();
    let names = volume.list().expect("the disk is sound");
    match input.split_first() {
        // Bytes at will in place of one file.
        Some((255, rest)) => {
            let mut bytes = rest.to_vec();
            bytes.resize(bytes.len().next_multiple_of(4096), 0);
            volume.write_raw(&names[0], &bytes).expect("the file exists");
        }
        // Five bytes a change: which file and what to flip, and where.
        _ => {
            for change in input.chunks_exact(5) {
                let name = &names[usize::from(change[0]) % names.len()];
                let len = volume.read_raw(name).expect("the file exists").len() as u64;
                let at = u32::from_le_bytes([change[1], change[2], change[3], 0]);
                volume.corrupt(name, u64::from(at) % len.max(1), change[4]).expect("inside");
            }
        }
    }
    let mut next = 0;
    let found = scan(&volume, DB, *start, ScanOptions::default(), |_, found| {
        assert!(next < GROUPS && found == body(next), "group {next} was never written so");
        next += 1;
        ControlFlow::Continue(())
    });
    if let Ok(end) = found {
        assert_eq!(end.groups, next);
    }
});
