//! Opening after many page writes without a map checkpoint: what it reads, and how long it takes.
use std::sync::Arc;
use std::time::Instant;

use fastrand::Rng;
use weir_base::{Lsn, PageNo};
use weir_device::{FileVolume, SimVolume, Volume};
use weir_logstore::{LogStore, LogStoreConfig, PageImage};

use crate::support::DB;

const PAGE: usize = 8 << 10;
/// As the pool's writers do it.
const BATCH: usize = 64;

/// A store in `volume` that has got `writes` pages, of which each packs to about `packed` bytes,
/// and then nothing more. Returns the LSN of each page.
fn write(volume: &Arc<dyn Volume>, writes: u32, packed: usize) -> Vec<u64> {
    let pages = (writes / 4).max(1);
    let segment_bytes = 1024 * PAGE;
    // So many that nothing is cleaned, and no map checkpoint made for want of room.
    let segments = (u64::from(writes) * (packed as u64 + 256) / segment_bytes as u64) as u32 + 64;
    let config = LogStoreConfig { page_bytes: PAGE, segment_bytes, segments, pages };
    let store = LogStore::create(volume, DB, &config).expect("made");
    volume.sync_directory().expect("synced");
    let (mut dice, mut lsns) = (Rng::with_seed(1), vec![0_u64; pages as usize]);
    let mut bytes = vec![0; PAGE];
    dice.fill(&mut bytes[..packed]);
    for lsn in 1..=u64::from(writes) / BATCH as u64 {
        let begin = dice.u32(..pages);
        let batch: Vec<u32> = (0..BATCH as u32).map(|i| (begin + 97 * i) % pages).collect();
        let image = |&page: &u32| PageImage {
            page: PageNo(page),
            lsn: Lsn(lsn),
            bytes: &bytes,
            codec: None,
        };
        let images: Vec<PageImage<'_>> = batch.iter().map(image).collect();
        store.write_batch(&images, &mut |left| left).expect("written");
        batch.iter().for_each(|&page| lsns[page as usize] = lsn);
    }
    lsns
}

/// Few pages in CI; `WEIR_OPEN_PAGES=4000000 WEIR_OPEN_DIR=...` measures, in a new directory, or in
/// the one that `WEIR_OPEN_COPY` names, to which the files are copied.
#[test]
fn opening_reads_little_of_what_was_written_since_the_map_checkpoint() {
    let count = std::env::var("WEIR_OPEN_PAGES").ok().map(|n| n.parse().expect("a number"));
    let dir = std::env::var("WEIR_OPEN_DIR").ok();
    let packed = std::env::var("WEIR_OPEN_PACKED").map_or(256, |n| n.parse().expect("a number"));
    let writes = count.unwrap_or(20_000);
    let sim = SimVolume::new(1);
    let reopen = |dir: &Option<String>| -> Arc<dyn Volume> {
        match dir {
            Some(dir) => Arc::new(FileVolume::open(dir.as_ref()).expect("a directory")),
            None => Arc::new(sim.clone()),
        }
    };
    let lsns = write(&reopen(&dir), writes, packed);
    let copy = std::env::var("WEIR_OPEN_COPY").ok();
    let dir = match (dir, copy) {
        (Some(from), Some(to)) => {
            std::fs::create_dir(&to).expect("a new directory");
            for file in std::fs::read_dir(from).expect("a directory") {
                let file = file.expect("a file");
                let to = std::path::Path::new(&to).join(file.file_name());
                std::fs::copy(file.path(), &to).expect("copied");
                std::fs::File::open(&to).and_then(|file| file.sync_all()).expect("synced");
            }
            Some(to)
        }
        (dir, _) => dir,
    };
    let volume = reopen(&dir);
    let begun = Instant::now();
    let store = LogStore::open(&volume, DB).expect("opened");
    let millis = begun.elapsed().as_millis();
    let read = volume.io_stats();
    println!("{writes} page writes: opened in {millis} ms; {read:?}");
    // A header for each chunk, and a look at each segment; of blocks those of the last chunk.
    let (chunks, segments) =
        (u64::from(writes) / BATCH as u64, store.observe().bytes / (1024 * PAGE as u64));
    assert!(read.reads <= chunks + 2 * segments + 16, "{read:?} for {chunks} chunks");
    let headers = chunks * 4096 * 5 / 4;
    assert!(
        read.bytes_read <= headers + (segments << 16) + (16 << 20),
        "{read:?} for {chunks} chunks"
    );
    let mut buf = vec![0; PAGE];
    for (page, &lsn) in lsns.iter().enumerate().step_by(1 + lsns.len() / 5_000) {
        let found = store.read(PageNo(page as u32), &mut buf).map_or(0, |lsn| lsn.0);
        assert_eq!(found, lsn, "page {page}");
    }
}
