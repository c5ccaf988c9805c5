//! Tests of real files, with O_DIRECT and without, through io_uring and through plain calls.
use super::*;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread;

use weir_base::ALIGN;

const PAGE: u64 = ALIGN as u64;

/// Each way of doing I/O; what the machine refuses falls back to another and is tested twice.
fn each_volume(test: impl Fn(FileVolume)) {
    for direct in [true, false] {
        for refuse_rings in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let rings = if refuse_rings { RingPool::refusing() } else { RingPool::new() };
            test(FileVolume::open_with(dir.path(), direct, false, rings).unwrap());
        }
    }
}

/// A page that tells which it is.
fn page_of(number: u64) -> AlignedBuf {
    let mut page = AlignedBuf::zeroed(ALIGN);
    page[..8].copy_from_slice(&(number + 1).to_le_bytes());
    page[ALIGN - 8..].copy_from_slice(&(number + 1).to_le_bytes());
    page
}

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.map(|_| ()).unwrap_err().kind()
}

#[test]
fn write_then_read() {
    each_volume(|volume| {
        let file = volume.create("data", 16 * PAGE).unwrap();
        assert_eq!(file.len(), 16 * PAGE);
        file.write_at(PAGE, &page_of(1)).unwrap();
        file.write_durable_at(2 * PAGE, &page_of(2)).unwrap();
        file.sync().unwrap();
        volume.sync_directory().unwrap();
        drop(file);
        let file = volume.open("data").unwrap();
        assert_eq!(file.len(), 16 * PAGE);
        let mut all = AlignedBuf::zeroed(16 * ALIGN);
        file.read_at(0, &mut all).unwrap();
        assert_eq!(all[..ALIGN], AlignedBuf::zeroed(ALIGN)[..]);
        assert_eq!(all[ALIGN..2 * ALIGN], page_of(1)[..]);
        assert_eq!(all[2 * ALIGN..3 * ALIGN], page_of(2)[..]);
        assert!(all[3 * ALIGN..].iter().all(|&byte| byte == 0));
    });
}

/// What this machine's file system promises is the business of `order.rs`; here, that nothing is
/// promised of another device, nor where writes stay in the cache, nor over a device of ours.
#[test]
fn one_sync_for_two_files_only_on_one_device_and_around_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().metadata().unwrap().dev();
    let elsewhere = Path::new("/proc").metadata().unwrap().dev();
    let volume = FileVolume::open_with(dir.path(), true, false, RingPool::new()).unwrap();
    let bypasses = probe(dir.path(), false).unwrap().0 == Direct::Bypasses;
    let ordered = ordered_device(&File::open(dir.path()).unwrap());
    assert_eq!(volume.is_synced_with(here), bypasses && ordered == Some(here));
    assert!(!volume.is_synced_with(elsewhere));
    let over = crate::DelayedVolume::new(
        Arc::new(volume),
        &["data"],
        Arc::new(weir_base::SystemClock::new()),
    );
    assert!(!over.is_synced_with(here));
    drop(over);
    let buffered = FileVolume::open_with(dir.path(), false, false, RingPool::new()).unwrap();
    assert!(!buffered.is_synced_with(here));
}

#[test]
fn what_was_written_through_the_cache_is_found_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cached");
    std::fs::write(&path, [1; ALIGN]).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    assert!(sys::is_cached(&file).unwrap());
}

/// A file's two handles show one file, in whichever order they write.
#[test]
fn cached_and_direct_writes_are_one_file() {
    each_volume(|volume| {
        let pages = 600;
        volume.create("data", pages * PAGE).unwrap();
        let file = volume.open_file("data", false).unwrap();
        let mut read = AlignedBuf::zeroed(ALIGN);
        let mut found = |at: u64| {
            file.read_at(at * PAGE, &mut read).unwrap();
            u64::from_le_bytes(read[..8].try_into().unwrap()) - 1
        };
        for at in 0..pages {
            let cached = file.write_cached_at(at * PAGE, &page_of(at)).unwrap();
            assert_eq!(cached, volume.shared.direct);
            match at % 4 {
                0 => file.write_at(at * PAGE, &page_of(at + 1)).unwrap(),
                1 => file.write_durable_at(at * PAGE, &page_of(at + 1)).unwrap(),
                2 => {
                    file.write_cached_at(at * PAGE, &page_of(at + 1)).unwrap();
                }
                _ => {
                    assert_eq!(found(at), at);
                    file.write_cached_at(at * PAGE, &page_of(at + 1)).unwrap();
                }
            }
            assert_eq!(found(at), at + 1);
            if at % 100 == 0 {
                file.sync().unwrap();
            }
        }
        drop(volume);
        let other = file.shared.dir_path.join("data");
        let whole = std::fs::read(other).unwrap();
        for at in 0..pages as usize {
            assert_eq!(whole[at * ALIGN..][..ALIGN], page_of(at as u64 + 1)[..], "{at}");
        }
        let outside = file.write_cached_at(pages * PAGE, &page_of(0));
        assert_eq!(kind(outside), ErrorKind::InvalidInput);
        assert_eq!(kind(file.write_cached_at(1, &page_of(0))), ErrorKind::InvalidInput);
    });
}

/// What another file has taken the place of gets nothing, and a sync leaves nothing in the cache.
#[test]
fn a_cached_write_goes_to_its_own_file_and_leaves_the_cache_with_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let volume = FileVolume::open_with(dir.path(), true, false, RingPool::new()).unwrap();
    volume.create("data", PAGE).unwrap();
    let file = volume.open_file("data", false).unwrap();
    let is_cached = || {
        let look = File::open(dir.path().join("data")).unwrap();
        sys::is_cached(&look).unwrap()
    };
    if file.write_cached_at(0, &page_of(1)).unwrap() {
        assert!(is_cached());
        file.sync().unwrap();
        assert!(!is_cached());
    }
    let moved = volume.open_file("data", false).unwrap();
    std::fs::rename(dir.path().join("data"), dir.path().join("elsewhere")).unwrap();
    std::fs::write(dir.path().join("data"), [7; ALIGN]).unwrap();
    assert!(!moved.write_cached_at(0, &page_of(2)).unwrap());
    assert_eq!(std::fs::read(dir.path().join("data")).unwrap(), [7; ALIGN]);
    assert_eq!(std::fs::read(dir.path().join("elsewhere")).unwrap()[..], page_of(2)[..]);
}

#[test]
fn deep_batches_scattered_and_contiguous() {
    each_volume(|volume| {
        let pages = 1000;
        let file = volume.create("data", pages * PAGE).unwrap();
        // 7 and 1000 have no common divisor, so this visits every page, scattered.
        let order: Vec<u64> = (0..pages).map(|i| i * 7 % pages).collect();
        let contents: Vec<_> = order.iter().map(|&number| page_of(number)).collect();
        let ops: Vec<_> = order
            .iter()
            .zip(&contents)
            .map(|(&number, buf)| WriteOp { offset: number * PAGE, buf })
            .collect();
        file.write_many(&ops).unwrap();
        for stride in [1, 3] {
            let mut buffers: Vec<_> = (0..pages).map(|_| AlignedBuf::zeroed(ALIGN)).collect();
            let numbers = (0..pages).map(|i| i * stride % pages);
            let mut ops: Vec<_> = numbers
                .zip(&mut buffers)
                .map(|(number, buf)| ReadOp { offset: number * PAGE, buf: &mut buf[..] })
                .collect();
            file.read_many(&mut ops).unwrap();
            for (i, buffer) in buffers.iter().enumerate() {
                assert_eq!(buffer[..], page_of(i as u64 * stride % pages)[..], "page {i}");
            }
        }
    });
}

#[test]
fn threads_share_a_file() {
    each_volume(|volume| {
        let file = volume.create("data", 256 * PAGE).unwrap();
        thread::scope(|scope| {
            for thread in 0..4u64 {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..8 {
                        let contents: Vec<_> =
                            (0..64).map(|i| page_of(thread * 64 + i + round)).collect();
                        let ops: Vec<_> = (0..64)
                            .map(|i| WriteOp {
                                offset: (thread + 4 * i) * PAGE,
                                buf: &contents[i as usize],
                            })
                            .collect();
                        file.write_many(&ops).unwrap();
                        let mut back: Vec<_> = (0..64).map(|_| AlignedBuf::zeroed(ALIGN)).collect();
                        let mut ops: Vec<_> = (0..64u64)
                            .zip(&mut back)
                            .map(|(i, buf)| ReadOp { offset: (thread + 4 * i) * PAGE, buf })
                            .collect();
                        file.read_many(&mut ops).unwrap();
                        assert!(back.iter().zip(&contents).all(|(a, b)| a[..] == b[..]));
                    }
                });
            }
        });
    });
}

#[test]
fn bad_ranges_do_nothing() {
    each_volume(|volume| {
        let file = volume.create("data", 2 * PAGE).unwrap();
        let mut buf = AlignedBuf::zeroed(2 * ALIGN);
        assert_eq!(kind(file.read_at(512, &mut buf[..ALIGN])), ErrorKind::InvalidInput);
        assert_eq!(kind(file.read_at(0, &mut buf[..100])), ErrorKind::InvalidInput);
        assert_eq!(kind(file.read_at(PAGE, &mut buf)), ErrorKind::UnexpectedEof);
        assert_eq!(kind(file.write_at(PAGE, &buf)), ErrorKind::InvalidInput);
        assert_eq!(kind(file.write_durable_at(2 * PAGE, &buf)), ErrorKind::InvalidInput);
        assert_eq!(kind(file.grow(PAGE)), ErrorKind::InvalidInput);
        assert_eq!(kind(file.grow(2 * PAGE + 1)), ErrorKind::InvalidInput);
        let page = page_of(1);
        let ops = [0, 2 * PAGE].map(|offset| WriteOp { offset, buf: &page });
        assert_eq!(kind(file.write_many(&ops)), ErrorKind::InvalidInput);
        file.read_at(0, &mut buf).unwrap();
        assert!(buf.iter().all(|&byte| byte == 0), "an invalid batch wrote its valid part");
    });
}

#[test]
fn grown_space_reads_as_zeros() {
    each_volume(|volume| {
        let file = volume.create("data", 0).unwrap();
        assert!(file.is_empty());
        file.grow(3 * PAGE).unwrap();
        file.grow(3 * PAGE).unwrap();
        file.write_at(2 * PAGE, &page_of(5)).unwrap();
        file.sync().unwrap();
        let mut all = AlignedBuf::zeroed(3 * ALIGN);
        file.read_at(0, &mut all).unwrap();
        assert!(all[..2 * ALIGN].iter().all(|&byte| byte == 0));
        assert_eq!(all[2 * ALIGN..], page_of(5)[..]);
    });
}

#[test]
fn a_file_that_is_cut_is_short_and_grows_again_by_zeros() {
    each_volume(|volume| {
        let file = volume.create("data", 3 * PAGE).unwrap();
        for at in 0..3 {
            file.write_at(at * PAGE, &page_of(5)).unwrap();
        }
        assert_eq!(kind(file.shrink(4 * PAGE)), ErrorKind::InvalidInput);
        assert_eq!(kind(file.shrink(PAGE + 1)), ErrorKind::InvalidInput);
        file.shrink(PAGE).unwrap();
        assert_eq!(file.len(), PAGE);
        let on_disk = std::fs::metadata(volume.shared.dir_path.join("data")).unwrap();
        assert_eq!(on_disk.len(), PAGE);
        let mut one = AlignedBuf::zeroed(ALIGN);
        assert!(file.read_at(PAGE, &mut one).is_err());
        assert_eq!(kind(file.write_at(PAGE, &page_of(6))), ErrorKind::InvalidInput);
        file.grow(2 * PAGE).unwrap();
        file.sync().unwrap();
        file.read_at(PAGE, &mut one).unwrap();
        assert!(one.iter().all(|&byte| byte == 0));
        file.read_at(0, &mut one).unwrap();
        assert_eq!(one[..], page_of(5)[..]);
    });
}

#[test]
fn a_file_cut_short_behind_our_back() {
    each_volume(|volume| {
        let file = volume.create("data", 64 * PAGE).unwrap();
        let outside =
            File::options().write(true).open(volume.shared.dir_path.join("data")).unwrap();
        outside.set_len(10 * PAGE + 100).unwrap();
        let mut buf = AlignedBuf::zeroed(64 * ALIGN);
        assert_eq!(kind(file.read_at(0, &mut buf)), ErrorKind::UnexpectedEof);
        let mut ops: Vec<_> = buf
            .chunks_mut(ALIGN)
            .enumerate()
            .map(|(i, buf)| ReadOp { offset: (i as u64 * 5 % 64) * PAGE, buf })
            .collect();
        assert_eq!(kind(file.read_many(&mut ops)), ErrorKind::UnexpectedEof);
        drop(file);
        let file = volume.open("data").unwrap();
        assert_eq!(file.len(), 10 * PAGE + 100);
        file.read_at(0, &mut buf[..10 * ALIGN]).unwrap();
        assert_eq!(kind(file.read_at(10 * PAGE, &mut buf[..ALIGN])), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn the_directory() {
    each_volume(|volume| {
        assert_eq!(volume.list().unwrap(), Vec::<String>::new());
        assert_eq!(kind(volume.open("a")), ErrorKind::NotFound);
        assert_eq!(kind(volume.remove("a")), ErrorKind::NotFound);
        volume.create("b", PAGE).unwrap();
        volume.create("a", 0).unwrap();
        assert_eq!(kind(volume.create("a", PAGE)), ErrorKind::AlreadyExists);
        assert_eq!(volume.list().unwrap(), ["a", "b"]);
        assert!(volume.exists("a").unwrap() && !volume.exists("c").unwrap());
        volume.remove("a").unwrap();
        assert_eq!(volume.list().unwrap(), ["b"]);
        assert_eq!(kind(volume.create("../c", 0)), ErrorKind::InvalidInput);
        assert_eq!(kind(volume.create("c", 100)), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_second_open_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(dir.path()).unwrap();
    let error = FileVolume::open(dir.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().contains("is in use by this process"), "{error}");
    let file = volume.create("data", PAGE).unwrap();
    drop(volume);
    assert!(FileVolume::open(dir.path()).is_err(), "a file of the volume is still open");
    drop(file);
    FileVolume::open(dir.path()).unwrap();
}

/// The lock file can be removed beside its holder; what holds the data cannot.
#[test]
fn a_locked_file_is_alone() {
    let dir = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(dir.path()).unwrap();
    let first = volume.create("data", PAGE).unwrap();
    assert!(first.lock_alone().unwrap());
    let second = volume.open("data").unwrap();
    assert!(!second.lock_alone().unwrap());
    drop(first);
    assert!(second.lock_alone().unwrap());
    volume.close();
    let next = FileVolume::open(dir.path()).unwrap();
    assert!(next.open("data").unwrap().lock_alone().unwrap(), "a closed volume holds nothing");
}

#[test]
fn the_second_opener_learns_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let lock = File::create(dir.path().join(LOCK_NAME)).unwrap();
    assert!(sys::try_lock(&lock).unwrap());
    std::fs::write(dir.path().join(LOCK_NAME), "1").unwrap();
    let error = FileVolume::open(dir.path()).err().unwrap();
    assert!(error.to_string().contains("is in use by process 1;"), "{error}");
}

#[test]
fn a_foreign_lock_file_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for (before, after) in [
        ("", std::process::id().to_string()),
        ("4711", std::process::id().to_string()),
        ("not a number", "not a number".to_owned()),
        (&"1".repeat(400), "1".repeat(400)),
    ] {
        std::fs::write(dir.path().join(LOCK_NAME), before).unwrap();
        drop(FileVolume::open(dir.path()).unwrap());
        assert_eq!(std::fs::read_to_string(dir.path().join(LOCK_NAME)).unwrap(), after);
    }
}

#[test]
fn counters_count() {
    each_volume(|volume| {
        let file = volume.create("data", 8 * PAGE).unwrap();
        let before = volume.io_stats();
        let page = page_of(0);
        let ops = [0, PAGE, 4 * PAGE].map(|offset| WriteOp { offset, buf: &page });
        file.write_many(&ops).unwrap();
        file.write_durable_at(0, &page).unwrap();
        file.sync().unwrap();
        file.read_at(0, &mut AlignedBuf::zeroed(2 * ALIGN)).unwrap();
        let expected = IoStats {
            reads: 1,
            bytes_read: 2 * PAGE,
            writes: 3, // Two contiguous ones count as one.
            bytes_written: 4 * PAGE,
            syncs: 2,
        };
        assert_eq!(volume.io_stats().since(&before), expected);
    });
}

#[test]
fn no_sync_succeeds_after_one_that_failed() {
    each_volume(|volume| {
        volume.create("data", PAGE).unwrap();
        let file = volume.open_file("data", false).unwrap();
        file.write_at(0, &page_of(1)).unwrap();
        // The kernel reports a failed write-back once: the next sync of the same file is fine.
        let broken = file.synced(|| Err(io::Error::from_raw_os_error(libc::EIO)));
        assert_eq!(broken.unwrap_err().raw_os_error(), Some(libc::EIO));
        for _ in 0..2 {
            let error = file.sync().unwrap_err();
            assert!(error.to_string().contains("data"), "{error}");
        }
        if !volume.shared.direct {
            assert!(file.write_durable_at(0, &page_of(1)).is_err());
        }
        volume.open_file("data", false).unwrap().sync().unwrap();
    });
}

#[test]
fn a_sync_that_ends_after_one_that_failed_fails() {
    each_volume(|volume| {
        volume.create("data", PAGE).unwrap();
        let file = volume.open_file("data", false).unwrap();
        let (broken, found) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let failed = file.synced(|| {
                    broken.wait();
                    // The error is this one's; what it does with it takes a while.
                    thread::sleep(std::time::Duration::from_millis(20));
                    Err(io::Error::from_raw_os_error(libc::EIO))
                });
                assert!(failed.is_err());
                found.wait();
            });
            let other = || {
                broken.wait();
                if volume.shared.direct {
                    // The other way round: it began before.
                    file.synced(|| {
                        found.wait();
                        Ok(())
                    })
                } else {
                    let synced = file.sync();
                    found.wait();
                    synced
                }
            };
            assert!(other().is_err(), "{}", volume.describe());
        });
    });
}

#[test]
fn describes_what_it_uses() {
    let dir = tempfile::tempdir().unwrap();
    let volume = FileVolume::open_with(dir.path(), false, false, RingPool::refusing()).unwrap();
    let text = volume.describe();
    let expected =
        "files, buffered (no O_DIRECT here), pread/pwrite (no io_uring here), no atomic writes";
    assert_eq!(text, expected);
}

#[test]
fn what_is_made_is_for_its_owner_and_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/database");
    let volume = FileVolume::open(&path).unwrap();
    drop(volume.create("pages", PAGE).unwrap());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for name in ["pages", LOCK_NAME] {
        let found = mode(&path.join(name));
        assert!(found & 0o600 == 0o600 && found & 0o027 == 0, "{name}: {found:o}");
    }
    // One that was there is left as it is.
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    drop(volume);
    drop(FileVolume::open(&path).unwrap());
    assert_eq!(mode(&path), 0o755);
}

#[test]
fn a_full_disk_shows_when_space_is_reserved() {
    let dir = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(dir.path()).unwrap();
    // More than any disk has, but less than the largest file, so that space is what is missing.
    let too_much = 15 << 40;
    let file = volume.create("small", PAGE).unwrap();
    assert_eq!(kind(file.grow(too_much)), ErrorKind::StorageFull);
    assert_eq!(file.len(), PAGE);
    assert_eq!(kind(volume.create("big", too_much)), ErrorKind::StorageFull);
    assert!(!volume.exists("big").unwrap(), "a failed creation leaves nothing");
    file.write_at(0, &page_of(1)).unwrap();
}

#[test]
fn a_closed_volume_does_nothing_and_locks_nothing() {
    each_volume(|volume| {
        let dir = std::fs::canonicalize(&volume.shared.dir_path).unwrap();
        let file = volume.create("pages", 8192).unwrap();
        volume.close();
        let next = FileVolume::open(&dir).expect("the lock is free");
        let mut page = page_of(1);
        let refused = ErrorKind::NotConnected;
        assert_eq!(kind(file.write_at(0, &page)), refused);
        assert_eq!(kind(file.write_durable_at(0, &page)), refused);
        assert_eq!(kind(file.write_many(&[WriteOp { offset: 0, buf: &page }])), refused);
        assert_eq!(kind(file.read_at(0, &mut page)), refused);
        assert_eq!(kind(file.read_many(&mut [ReadOp { offset: 0, buf: &mut page }])), refused);
        assert_eq!(kind(file.sync()), refused);
        assert_eq!(kind(file.grow(16384)), refused);
        assert_eq!(kind(volume.open("pages").map(drop)), refused);
        assert_eq!(kind(volume.create("more", 4096).map(drop)), refused);
        assert_eq!(kind(volume.remove("pages")), refused);
        assert_eq!(kind(volume.exists("pages")), refused);
        assert_eq!(kind(volume.list()), refused);
        assert_eq!(kind(volume.sync_directory()), refused);
        assert_eq!(next.list().unwrap(), ["pages"]);
        assert_eq!(next.open("pages").unwrap().len(), 8192);
        // Dropped at last, it takes nothing from the one that has the directory now.
        drop((file, volume));
        assert_eq!(kind(FileVolume::open(&dir).map(drop)), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_hole_takes_no_space_and_can_have_some_again() {
    each_volume(|volume| {
        let file = volume.create("data", 64 * PAGE).unwrap();
        for at in 0..64 {
            file.write_at(at * PAGE, &page_of(at)).unwrap();
        }
        file.sync().unwrap();
        let before = file.allocated_bytes().unwrap();
        assert!(before >= 64 * PAGE);
        for (offset, len) in [(PAGE + 1, PAGE), (PAGE, 100), (63 * PAGE, 2 * PAGE)] {
            assert_eq!(kind(file.punch(offset, len)), ErrorKind::InvalidInput);
            assert_eq!(kind(file.reserve(offset, len)), ErrorKind::InvalidInput);
        }
        file.punch(8 * PAGE, 0).unwrap();
        // Where the file system makes no holes there is nothing to see.
        if !file.punch(8 * PAGE, 48 * PAGE).unwrap() {
            return;
        }
        assert_eq!(file.len(), 64 * PAGE);
        assert_eq!(file.allocated_bytes(), Some(before - 48 * PAGE));
        let mut one = AlignedBuf::zeroed(ALIGN);
        for at in 0..64 {
            file.read_at(at * PAGE, &mut one).unwrap();
            let kept = if (8..56).contains(&at) { AlignedBuf::zeroed(ALIGN) } else { page_of(at) };
            assert_eq!(one[..], kept[..], "{at}");
        }
        // Over what is there, too: it stays.
        file.reserve(0, 16 * PAGE).unwrap();
        assert_eq!(file.allocated_bytes(), Some(before - 40 * PAGE));
        file.write_at(9 * PAGE, &page_of(9)).unwrap();
        file.sync().unwrap();
        file.read_at(9 * PAGE, &mut one).unwrap();
        assert_eq!(one[..], page_of(9)[..]);
        file.read_at(7 * PAGE, &mut one).unwrap();
        assert_eq!(one[..], page_of(7)[..]);
    });
}

#[test]
fn a_directory_that_was_moved_is_gone_on_with_and_what_took_its_place_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (at, moved) = (dir.path().join("db"), dir.path().join("moved"));
    let volume = FileVolume::open(&at).unwrap();
    drop(volume.create("old", 4096).unwrap());
    std::fs::rename(&at, &moved).unwrap();
    std::fs::create_dir(&at).unwrap();
    for name in ["old", "other"] {
        std::fs::write(at.join(name), "another's").unwrap();
    }
    assert_eq!(volume.open("old").unwrap().len(), 4096);
    drop(volume.create("other", 4096).unwrap());
    assert_eq!(volume.list().unwrap(), ["old", "other"]);
    volume.remove("old").unwrap();
    assert!(!moved.join("old").exists() && moved.join("other").exists());
    for name in ["old", "other"] {
        assert_eq!(std::fs::read(at.join(name)).unwrap(), b"another's");
    }
    drop(volume);
    assert!(FileVolume::open(&moved).is_ok());
}

#[test]
fn what_a_child_has_of_the_open_files_keeps_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    for is_closed in [true, false] {
        let volume = FileVolume::open(dir.path()).unwrap();
        let name = if is_closed { "first" } else { "second" };
        let file = volume.open_file(name, true).unwrap();
        assert!(file.lock_alone().unwrap());
        // A fork has the same open files, not others of the same names.
        let lock = volume.shared.lock.read().as_ref().unwrap().try_clone().unwrap();
        let besides = file.file.try_clone().unwrap();
        if is_closed {
            volume.close();
        }
        drop((volume, file));
        let next = FileVolume::open(dir.path()).expect("the directory is free");
        assert!(next.open(name).unwrap().lock_alone().unwrap());
        drop((lock, besides));
    }
}
