//! Pages that the device writes whole or not at all: on a real kernel. No device here has such
//! writes, but XFS makes some by copies (Linux 6.16), so that all the rest can be tried.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use weir::{Config, Db, Durability, FileVolume};

/// An XFS in a file, mounted as long as this lives.
struct Xfs {
    scratch: tempfile::TempDir,
}

impl Xfs {
    /// `None`, with words, where this user may not mount one, or there are no tools for it.
    fn mount() -> Option<Xfs> {
        let scratch = tempfile::tempdir().expect("a directory");
        let image = scratch.path().join("image");
        std::fs::File::create(&image).and_then(|file| file.set_len(400 << 20)).expect("an image");
        let xfs = Xfs { scratch };
        std::fs::create_dir(xfs.path()).expect("a directory");
        let make: [&Path; 2] = ["-q".as_ref(), &image];
        let mount: [&Path; 4] = ["-o".as_ref(), "loop".as_ref(), &image, &xfs.path()];
        for (tool, arguments) in [("mkfs.xfs", &make[..]), ("mount", &mount[..])] {
            match Command::new(tool).args(arguments).output() {
                Ok(ran) if ran.status.success() => {}
                Ok(ran) => {
                    let why = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
                    eprintln!("skipped: {tool} says: {why}");
                    return None;
                }
                Err(e) => {
                    eprintln!("skipped: {tool}: {e}");
                    return None;
                }
            }
        }
        Some(xfs)
    }

    fn path(&self) -> PathBuf {
        self.scratch.path().join("mounted")
    }
}

impl Drop for Xfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

/// Updates all rows so often that all pages were written, and checks them after another opening.
/// Returns how the device was described, and how many pages and bytes were written.
fn work(dir: &Path, volume: fn(&Path) -> std::io::Result<FileVolume>) -> (String, u64, u64) {
    let open = |config| Db::open_on(Arc::new(volume(dir).expect("a volume")), config);
    let config = Config { log_bytes: 2 << 20, pool_bytes: 8 << 20, ..Config::default() };
    let db = open(config.clone()).expect("a database");
    let tree = db.create_tree("rows").expect("a tree");
    for round in 1..=4u8 {
        for row in 0..20_000u32 {
            tree.put(&row.to_be_bytes(), &[round; 100], Durability::Lazy).expect("a put");
        }
        db.checkpoint().expect("a checkpoint");
    }
    let (stats, described) = (db.stats(), db.stats().device_description);
    let pages = stats.page_writes.total();
    let bytes = stats.device.bytes_written - stats.log_bytes_written;
    drop(tree);
    db.close().expect("closed");
    let db = open(config).expect("opened again");
    let rows = db.tree("rows").expect("read").expect("the tree");
    for row in 0..20_000u32 {
        let found = rows.get(&row.to_be_bytes()).expect("read");
        assert_eq!(found.as_deref(), Some(&[4; 100][..]), "row {row}");
    }
    (described, pages, bytes)
}

#[test]
fn a_kernel_with_atomic_writes_is_asked_for_them() {
    let Some(xfs) = Xfs::mount() else { return };
    let (at, other) = (xfs.path().join("atomic"), xfs.path().join("doubled"));
    let (described, pages, once) = work(&at, FileVolume::open_with_atomic_copies);
    if described.contains("no atomic writes") {
        eprintln!("skipped: this kernel's XFS has no atomic writes: {described}");
        return;
    }
    assert!(described.contains("atomic writes up to"), "{described}");
    let (described, doubled_pages, twice) = work(&other, FileVolume::open);
    // What the file system does by copies is not used by itself.
    assert!(described.contains("by copies, which are not used"), "{described}");
    let (once, twice) = (once as f64 / pages as f64, twice as f64 / doubled_pages as f64);
    assert!(once < 0.75 * twice, "bytes a page written: {once} atomic, {twice} without");
}
